// SPDX-License-Identifier: Apache-2.0
//! The pauses before a failed watch of the cache is retried.

use kube::runtime::utils::{Backoff, ResetTimerBackoff};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;
use vdo_api::retry::WATCH;

/// How long without a failure the pauses start over, as client-go's do.
const QUIET: Duration = Duration::from_secs(120);

/// The pauses of [`WATCH`]. After an outage of the API server drift is seen that much sooner, and a few dozen watches are no load for it.
pub(super) struct WatchBackoff(ResetTimerBackoff<Failures>);

/// Failures in a row.
#[derive(Default)]
struct Failures(u32);

impl Default for WatchBackoff {
    fn default() -> Self {
        Self(ResetTimerBackoff::new(Failures::default(), QUIET))
    }
}

impl Iterator for Failures {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0 = self.0.saturating_add(1);
        WATCH.next(self.0, None, RandomState::new().hash_one(self.0))
    }
}

impl Backoff for Failures {
    fn reset(&mut self) {
        self.0 = 0;
    }
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next()
    }
}

impl Backoff for WatchBackoff {
    /// Does nothing. kube calls it at every event, and a watcher emits one before each attempt to get the first list: where every
    /// list fails, the pauses would never grow.
    fn reset(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt as _;
    use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
    use kube::runtime::watcher::{self, Error, Event, watcher};
    use kube::{Api, Client, Config};

    #[tokio::test]
    async fn backoff_repeated_pauses_grow_up_to_twenty_seconds() {
        let mut backoff = WatchBackoff::default();
        let pauses: Vec<Duration> = std::iter::repeat_with(|| {
            backoff.reset();
            backoff.next().expect("it never gives up")
        })
        .take(20)
        .collect();
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_secs(20)), "{pauses:?}");
        assert!(pauses[0] < Duration::from_secs(1), "{pauses:?}");
        assert!(pauses[19] >= Duration::from_secs(10), "{pauses:?}");
    }

    /// Why a reset means nothing.
    #[tokio::test]
    async fn watcher_whose_lists_fail_emits_event_before_each_failure() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = Config::new("http://127.0.0.1:1".parse().expect("an address"));
        let client = Client::try_from(config).expect("a client");
        let nodes = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node"));
        let api: Api<DynamicObject> = Api::all_with(client, &nodes);
        let events: Vec<_> = watcher(api, watcher::Config::default()).take(4).collect().await;
        for pair in events.chunks(2) {
            assert!(matches!(pair, [Ok(Event::Init), Err(Error::InitialListFailed(_))]), "{pair:?}");
        }
    }
}
