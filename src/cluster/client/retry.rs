// SPDX-License-Identifier: Apache-2.0
//! Retries a request of the client that the API server refuses with `Retry-After`.

use hyper::header::RETRY_AFTER;
use hyper::{Request, Response};
use kube::client::Body;
use kube::client::retry::{InvalidBackoff, RetryPolicy};
use std::future::{Ready, ready};
use std::time::Duration;
use tower::BoxError;
use tower::retry::Policy;
use vdo_api::retry::{API_SERVER, may_pass};

/// Repeats a request whose answer is 429 or a server error with `Retry-After`, as client-go does: the server did nothing, and
/// asks for it. The delay itself is handled by [`ResponseFilter`](super::answer_filter::ResponseFilter), for all requests together.
/// The deadline of a request holds for all attempts together.
#[derive(Clone)]
pub(super) struct RetryRequested {
    failures: u32,
    /// Knows how to copy a request.
    copies: RetryPolicy,
}

impl RetryRequested {
    pub(super) fn new() -> Result<Self, InvalidBackoff> {
        Ok(Self {
            failures: 0,
            copies: RetryPolicy::new(Duration::ZERO, Duration::from_secs(1), 0, false)?,
        })
    }
}

impl<B> Policy<Request<Body>, Response<B>, BoxError> for RetryRequested {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Request<Body>, result: &mut Result<Response<B>, BoxError>) -> Option<Ready<()>> {
        let answer = result.as_ref().ok()?;
        if !may_pass(answer.status().as_u16()) || !answer.headers().contains_key(RETRY_AFTER) {
            return None;
        }
        self.failures = self.failures.saturating_add(1);
        API_SERVER.next(self.failures, None, 0).map(|_| ready(()))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        Policy::<Request<Body>, Response<B>, BoxError>::clone_request(&mut self.copies, request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, retry_after: bool) -> Result<Response<()>, BoxError> {
        let builder = Response::builder().status(code);
        let builder = if retry_after { builder.header(RETRY_AFTER, "1") } else { builder };
        Ok(builder.body(())?)
    }

    #[test]
    fn retry_only_server_error_with_retry_after_is_repeated() {
        for (code, retry_after, repeated) in [
            (429, true, true),
            (500, true, true),
            (503, true, true),
            (503, false, false),
            (200, true, false),
            (409, true, false),
        ] {
            let mut policy = RetryRequested::new().expect("a policy");
            let again = policy.retry(&mut Request::new(Body::empty()), &mut answer(code, retry_after));
            assert_eq!(again.is_some(), repeated, "{code} {retry_after}");
        }
    }

    #[test]
    fn retry_lost_connection_is_not_repeated() {
        let mut policy = RetryRequested::new().expect("a policy");
        let lost: Result<Response<()>, BoxError> = Err("the connection was lost".into());
        assert!(policy.retry(&mut Request::new(Body::empty()), &mut { lost }).is_none());
    }

    #[test]
    fn retry_repeated_errors_stop_after_three_attempts() {
        let mut policy = RetryRequested::new().expect("a policy");
        let times = std::iter::from_fn(|| policy.retry(&mut Request::new(Body::empty()), &mut answer(503, true))).take(10);
        assert_eq!(times.count(), 3);
    }
}
