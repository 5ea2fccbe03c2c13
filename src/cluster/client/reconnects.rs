// SPDX-License-Identifier: Apache-2.0
//! Reports watches that start again before their timeout, after which the version of the API server may be another one.

use hyper::{Request, Uri};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use vdo_api::types::Later as _;

/// A server may end a watch a little before its time is over.
const EARLY: Duration = Duration::from_secs(5);

/// Sends when a watch begins again although the one before it had time left.
#[derive(Debug, Clone, Default)]
pub(super) struct Reconnects {
    /// Until when each watch lasts, by its path and selectors.
    until: Arc<Mutex<HashMap<String, Instant>>>,
    again: watch::Sender<()>,
}

impl Reconnects {
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.again.subscribe()
    }

    /// Takes note of a request before it is sent.
    pub(super) fn note<B>(&self, request: Request<B>) -> Request<B> {
        if let Some((watch, lasts)) = watch_of(request.uri()) {
            let now = Instant::now();
            let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
            let before = until.insert(watch, now.later(lasts.saturating_sub(EARLY)));
            if before.is_some_and(|before| now < before) {
                self.again.send_replace(());
            }
        }
        request
    }
}

/// What a watch is of, and how long it lasts; `None` for other requests. The place where it begins is another one each time.
fn watch_of(uri: &Uri) -> Option<(String, Duration)> {
    let pairs = || uri.query().into_iter().flat_map(|query| query.split('&'));
    let value = |key: &str| pairs().find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
    value("watch").filter(|value| matches!(*value, "true" | "1"))?;
    let lasts = Duration::from_secs(value("timeoutSeconds")?.parse().ok()?);
    let rest: Vec<&str> = pairs().filter(|pair| !pair.starts_with("resourceVersion")).collect();
    Some((format!("{}?{}", uri.path(), rest.join("&")), lasts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watch_is_known_by_its_path_and_selectors() {
        for (uri, expected) in [
            (
                "/api/v1/nodes?&watch=true&timeoutSeconds=290&resourceVersion=7&allowWatchBookmarks=true",
                Some(("/api/v1/nodes?&watch=true&timeoutSeconds=290&allowWatchBookmarks=true", 290)),
            ),
            (
                "/api/v1/pods?labelSelector=a%3Db&watch=1&timeoutSeconds=30",
                Some(("/api/v1/pods?labelSelector=a%3Db&watch=1&timeoutSeconds=30", 30)),
            ),
            ("/api/v1/pods?watch=true", None),
            ("/api/v1/pods?watch=false&timeoutSeconds=290", None),
            ("/api/v1/pods?labelSelector=watch%3Dtrue&timeoutSeconds=290", None),
            ("/version", None),
        ] {
            let found = watch_of(&uri.parse().expect("an address"));
            let expected = expected.map(|(watch, seconds)| (watch.to_owned(), Duration::from_secs(seconds)));
            assert_eq!(found, expected, "{uri}");
        }
    }

    #[test]
    fn watch_that_begins_again_before_its_time_is_sent() {
        let reconnects = Reconnects::default();
        let mut again = reconnects.subscribe();
        let mut sent = |uri: &str| {
            let _ = reconnects.note(Request::get(uri).body(()).expect("a request"));
            let sent = again.has_changed().expect("a sender");
            again.mark_unchanged();
            sent
        };
        assert!(
            !sent("/api/v1/nodes?watch=true&timeoutSeconds=290&resourceVersion=1"),
            "it is the first"
        );
        assert!(
            !sent("/api/v1/pods?watch=true&timeoutSeconds=290&resourceVersion=1"),
            "it is another one"
        );
        assert!(!sent("/api/v1/nodes?limit=500"), "a list is not a watch");
        assert!(sent("/api/v1/nodes?watch=true&timeoutSeconds=290&resourceVersion=9"));
        assert!(!sent("/api/v1/secrets?watch=true&timeoutSeconds=1"), "the first of these");
        assert!(!sent("/api/v1/secrets?watch=true&timeoutSeconds=1"), "its time was over");
    }
}
