// SPDX-License-Identifier: Apache-2.0
//! Accepts the connections of the port for probes: limits their number, and keeps a file descriptor in reserve.

use futures::FutureExt as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// A kubelet and a few scrapers. Who opens more ends the oldest connection, so that many silent clients cannot keep out a probe.
pub(super) const MAX_CONNECTIONS: usize = 64;
/// Until the next attempt to accept when nothing can be freed, unless a connection ends before.
const RETRY: Duration = Duration::from_millis(100);
/// How often a lasting shortage of descriptors is logged.
const REMIND: Duration = Duration::from_secs(60);

/// The connections that are being served, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Connections {
    tasks: JoinSet<()>,
    order: VecDeque<AbortHandle>,
}

impl Connections {
    /// Serves one more; the oldest makes room for it where necessary.
    pub async fn serve(&mut self, connection: impl Future<Output = ()> + Send + 'static) {
        self.forget_finished();
        if self.tasks.len() >= MAX_CONNECTIONS {
            self.end_oldest().await;
        }
        self.order.push_back(self.tasks.spawn(connection));
    }

    /// Ends the oldest connection; `false` when none is open.
    pub async fn end_oldest(&mut self) -> bool {
        self.forget_finished();
        let Some(oldest) = self.order.pop_front() else { return false };
        oldest.abort();
        // Its descriptor is free when its task has ended, and not before.
        self.tasks.join_next().await;
        true
    }

    /// Waits until a connection has ended, for ever when none is open.
    pub async fn ended(&mut self) {
        match self.tasks.join_next().await {
            Some(_) => self.forget_finished(),
            None => std::future::pending().await,
        }
    }

    fn forget_finished(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        self.order.retain(|connection| !connection.is_finished());
    }
}

/// A listener with a file descriptor in reserve: when the process has used up all others, a probe is answered with that one.
#[derive(Debug)]
pub(super) struct Listener {
    listener: TcpListener,
    reserve: Option<File>,
    warned: Option<Instant>,
}

impl Listener {
    pub fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            reserve: None,
            warned: None,
        }
    }

    /// The next connection.
    pub async fn accept(&mut self, connections: &mut Connections) -> TcpStream {
        loop {
            if self.reserve.is_none() {
                self.reserve = File::open("/dev/null").ok();
            }
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                // Its descriptor may become the reserve again.
                () = connections.ended() => continue,
            };
            match accepted {
                Ok((stream, _)) => return stream,
                Err(error) if is_shortage(&error) => {
                    self.make_room(&error, connections).await;
                    // Before the reserve is filled again, and before another thread takes what is free now.
                    if let Some(Ok((stream, _))) = self.listener.accept().now_or_never() {
                        return stream;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection for probes and metrics ended before it began");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Frees a descriptor for a client that waits.
    async fn make_room(&mut self, error: &std::io::Error, connections: &mut Connections) {
        // The kernel wants a descriptor before it looks whether there is anyone to accept.
        let waits = self.is_waited_for();
        if waits && self.warned.is_none_or(|at| at.elapsed() >= REMIND) {
            self.warned = Some(Instant::now());
            tracing::warn!(%error, "no file descriptor is free; the operator answers probes with its reserved descriptor");
        }
        if waits && (self.reserve.take().is_some() || connections.end_oldest().await) {
            return;
        }
        let _ = tokio::time::timeout(RETRY, connections.ended()).await;
    }

    fn is_waited_for(&self) -> bool {
        let mut listener = [PollFd::new(&self.listener, PollFlags::IN)];
        poll(&mut listener, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

fn is_shortage(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}
