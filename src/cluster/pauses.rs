//! How long a watch that failed waits before it is tried again.

use kube::runtime::utils::Backoff;
use kube::runtime::watcher::DefaultBackoff;
use std::time::Duration;

/// kube's pauses, which are client-go's, a third as long: from a quarter of a second to ten, with as much again by chance. After an
/// outage of the API server drift is seen that much sooner, and a few dozen watches are no load for it.
#[derive(Default)]
pub(super) struct Pauses(DefaultBackoff);

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next().map(|pause| pause / 3)
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.0.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn backoff_repeated_pauses_grow_up_to_twenty_seconds() {
        let pauses: Vec<Duration> = Pauses::default().take(20).collect();
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_secs(20)), "{pauses:?}");
        assert!(pauses[0] < Duration::from_secs(1), "{pauses:?}");
        assert!(pauses[19] >= Duration::from_secs(10), "{pauses:?}");
    }
}
