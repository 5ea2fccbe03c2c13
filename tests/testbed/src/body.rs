// SPDX-License-Identifier: Apache-2.0
//! Bodies of answers, of servers that stand in for others.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use tokio::time::sleep;

pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

pub(crate) fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never: Infallible| match never {}).boxed_unsync()
}

pub(crate) fn streamed(parts: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Body {
    StreamBody::new(parts.map(|part| part.map(Frame::data))).boxed_unsync()
}

pub(crate) fn trickle(body: Bytes, pause: Duration) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::unfold((body, 0), move |(body, at)| async move {
        sleep(pause).await;
        (at < body.len()).then(|| (Ok(body.slice(at..=at)), (body, at + 1)))
    })
}
