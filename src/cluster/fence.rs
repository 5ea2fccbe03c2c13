// SPDX-License-Identifier: Apache-2.0
//! The fence that blocks writes to the cluster while the operator does not hold the Lease, and counts the writes under way.

use super::ClusterError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Until when writes may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// Always: no one else writes.
    Always,
    /// Until the lease that allows them may have passed to another operator.
    Until(Instant),
    /// Not now, and perhaps later.
    Shut,
    /// Never again.
    Stopped,
}

/// Every write passes it. Cheap to clone; all clones are the same fence.
///
/// # Guarantees
/// * No write begins while it is shut, and none outlives the moment for which it was opened.
/// * Once stopped, it never opens again.
#[derive(Debug, Clone)]
pub struct Fence {
    open: Arc<Mutex<Open>>,
    in_hand: watch::Sender<usize>,
}

/// Open for ever, for a process that shares its work with no other.
impl Default for Fence {
    fn default() -> Self {
        Self::new(Open::Always)
    }
}

impl Fence {
    fn new(open: Open) -> Self {
        Self {
            open: Arc::new(Mutex::new(open)),
            in_hand: watch::Sender::new(0),
        }
    }

    /// A fence that is shut until it is opened.
    #[must_use]
    pub fn shut() -> Self {
        Self::new(Open::Shut)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a write could begin now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        match *self.lock() {
            Open::Always => true,
            Open::Until(end) => Instant::now() < end,
            Open::Shut | Open::Stopped => false,
        }
    }

    /// Opens it until then. Whether it was shut before.
    pub(super) fn open_until(&self, end: Instant) -> bool {
        let was = self.is_open();
        let mut open = self.lock();
        if *open == Open::Stopped {
            return false;
        }
        *open = Open::Until(end);
        !was
    }

    /// Shuts it, until it is opened again.
    pub(super) fn close(&self) {
        let mut open = self.lock();
        if *open != Open::Stopped {
            *open = Open::Shut;
        }
    }

    /// Shuts it for ever. Writes under way go on.
    pub fn stop(&self) {
        *self.lock() = Open::Stopped;
    }

    /// Waits until no write is under way, but no longer than `timeout`. Whether none is.
    pub async fn idle(&self, timeout: Duration) -> bool {
        let mut in_hand = self.in_hand.subscribe();
        let none = in_hand.wait_for(|writes| *writes == 0);
        tokio::time::timeout(timeout, none).await.is_ok()
    }

    /// Makes a write, if it may be made, within the time for which it may.
    pub(super) async fn pass<T>(&self, what: &str, write: impl Future<Output = Result<T, ClusterError>>) -> Result<T, ClusterError> {
        let refused = || ClusterError::NotLeading { what: what.to_owned() };
        let end = match *self.lock() {
            Open::Always => None,
            Open::Until(end) if Instant::now() < end => Some(end),
            _ => return Err(refused()),
        };
        self.in_hand.send_modify(|writes| *writes += 1);
        let _under_way = UnderWay(&self.in_hand);
        match end {
            None => write.await,
            Some(end) => tokio::time::timeout_at(end.into(), write).await.unwrap_or_else(|_| Err(refused())),
        }
    }
}

struct UnderWay<'a>(&'a watch::Sender<usize>);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|writes| *writes -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    const SOON: Duration = Duration::from_millis(20);

    async fn allowed(fence: &Fence) -> bool {
        fence.pass("x", ready(Ok(()))).await.is_ok()
    }

    #[tokio::test]
    async fn write_fence_past_lease_deadline_rejects_writes() {
        assert!(allowed(&Fence::default()).await);
        let fence = Fence::shut();
        assert!(!allowed(&fence).await && !fence.is_open());
        assert!(fence.open_until(Instant::now() + Duration::from_secs(60)) && !fence.open_until(Instant::now() + SOON));
        assert!(allowed(&fence).await);
        let late = tokio::time::timeout(Duration::from_secs(10), fence.pass::<()>("x", pending())).await;
        let late = late.expect("a write outlives the lease for ten seconds");
        assert!(
            late.is_err_and(|error| error.to_string().contains("Lease")),
            "a write outlived the lease"
        );
        assert!(!allowed(&fence).await, "it shuts by itself");
    }

    #[tokio::test]
    async fn write_fence_stopped_never_opens_again() {
        let fence = Fence::shut();
        fence.close();
        assert!(fence.open_until(Instant::now() + Duration::from_secs(60)));
        fence.stop();
        assert!(!fence.open_until(Instant::now() + Duration::from_secs(60)) && !allowed(&fence).await);
        fence.close();
        assert!(
            !fence.open_until(Instant::now() + Duration::from_secs(60)),
            "stopped, it was opened again"
        );
    }

    #[tokio::test]
    async fn write_fence_stop_waits_for_write_in_progress() {
        let fence = Fence::default();
        assert!(fence.idle(SOON).await);
        let (finish, finished) = tokio::sync::oneshot::channel::<()>();
        let writer = fence.clone();
        let write = tokio::spawn(async move {
            let last = async {
                let _ = finished.await;
                Ok(())
            };
            writer.pass("x", last).await
        });
        while *fence.in_hand.borrow() == 0 {
            tokio::task::yield_now().await;
        }
        fence.stop();
        assert!(!fence.idle(SOON).await, "a write is under way");
        finish.send(()).expect("it waits");
        assert!(fence.idle(Duration::from_secs(10)).await);
        assert!(write.await.expect("no panic").is_ok(), "the write in hand was not finished");
    }
}
