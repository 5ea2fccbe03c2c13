// SPDX-License-Identifier: Apache-2.0
//! Watches: streams that can be held and broken.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use futures::Stream;
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use tokio::sync::{mpsc, watch};

use super::answer;
use super::call::Call;
use super::connection::Line;

/// How a running watch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The connection is reset.
    Reset,
    /// The stream ends as if its time were over.
    End,
    /// An ERROR event says that its place is too old (410), then it ends.
    Gone,
}

/// Which requests are meant.
pub(super) type Filter = std::sync::Arc<dyn Fn(&Call) -> bool + Send + Sync>;

/// All watches that run.
pub(super) struct Streams {
    open: Mutex<BTreeMap<u64, (Call, mpsc::UnboundedSender<Cut>)>>,
    next: AtomicU64,
    held: watch::Sender<Option<Filter>>,
}

impl Streams {
    pub(super) fn new() -> Self {
        Self {
            open: Mutex::default(),
            next: AtomicU64::new(0),
            held: watch::Sender::new(None),
        }
    }

    /// Ends those that `filter` wants; how many. They count as gone at once.
    pub(super) fn cut(&self, how: Cut, filter: impl Fn(&Call) -> bool) -> usize {
        let mut open = super::lock(&self.open);
        let all = open.len();
        open.retain(|_, (call, cut)| !filter(call) || cut.send(how).is_err());
        all - open.len()
    }

    /// From now on those that `filter` wants say nothing, however much happens; `None` lets all go on.
    pub(super) fn hold(&self, filter: Option<Filter>) {
        self.held.send_replace(filter);
    }

    /// How many run.
    pub(super) fn count(&self, filter: impl Fn(&Call) -> bool) -> usize {
        super::lock(&self.open).values().filter(|(call, _)| filter(call)).count()
    }
}

/// Takes a watch out of the list when its stream is dropped, by either side.
struct Entry {
    streams: std::sync::Arc<super::Shared>,
    id: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        super::lock(&self.streams.streams.open).remove(&self.id);
    }
}

struct State {
    body: Incoming,
    /// What has come of a line whose end has not; events are handed on whole.
    partial: BytesMut,
    cuts: mpsc::UnboundedReceiver<Cut>,
    held: watch::Receiver<Option<Filter>>,
    call: Call,
    line: std::sync::Arc<Line>,
    ended: bool,
    _entry: Entry,
}

/// A watch that goes on until the API server or a [`Cut`] ends it.
pub(super) fn relay(
    body: Incoming,
    call: Call,
    shared: std::sync::Arc<super::Shared>,
    line: std::sync::Arc<Line>,
) -> impl Stream<Item = Result<Frame<Bytes>, hyper::Error>> + Send {
    let id = shared.streams.next.fetch_add(1, Ordering::Relaxed);
    let (sender, cuts) = mpsc::unbounded_channel();
    super::lock(&shared.streams.open).insert(id, (call.clone(), sender));
    let state = State {
        body,
        partial: BytesMut::new(),
        cuts,
        held: shared.streams.held.subscribe(),
        call,
        line,
        ended: false,
        _entry: Entry { streams: shared, id },
    };
    futures::stream::unfold(state, |mut state| async move {
        let next = state.next().await?;
        Some((next.map(Frame::data), state))
    })
}

impl State {
    async fn next(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        if self.ended {
            return None;
        }
        loop {
            let holds = self.held.borrow_and_update().as_ref().is_some_and(|filter| filter(&self.call));
            tokio::select! {
                biased;
                cut = self.cuts.recv() => match cut {
                    Some(Cut::Reset) => {
                        self.line.reset();
                        std::future::pending::<()>().await;
                    }
                    Some(Cut::Gone) => {
                        self.ended = true;
                        return Some(Ok(answer::gone()));
                    }
                    Some(Cut::End) | None => return None,
                },
                _ = self.held.changed() => {}
                frame = self.body.frame(), if !holds => match frame? {
                    Err(error) => return Some(Err(error)),
                    Ok(frame) => {
                        self.partial.extend_from_slice(&frame.into_data().unwrap_or_default());
                        if let Some(end) = self.partial.iter().rposition(|byte| *byte == b'\n') {
                            return Some(Ok(self.partial.split_to(end + 1).freeze()));
                        }
                    }
                },
            }
        }
    }
}
