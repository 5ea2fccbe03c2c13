// SPDX-License-Identifier: Apache-2.0
//! Decides when a vCenter is checked next: after an interval, a failure, a change of nodes, or a new cluster id (pure).

use super::loop_memory::Connection;
use std::collections::BTreeSet;
use std::time::Duration;
use vdo_api::retry::VCENTER;

/// What a vCenter would be asked with now.
pub(super) struct Asking {
    /// When it changes, the vCenter is asked again at once.
    pub with: String,
    /// A mark of the nodes: when it changes, the vCenter is asked again soon.
    pub crowd: u64,
    /// A mark of each node that waits for the cloud provider: for one that it was not asked about yet, the vCenter is asked at once.
    pub waiting: BTreeSet<u64>,
    /// The cluster id that is about to be used: when it was not asked about yet, the vCenter is asked at once.
    pub claim: Option<String>,
    /// How often it is asked when nothing changes.
    pub interval: Duration,
}

/// How long nodes that come and go are waited for before the vCenter is asked about them.
const SOON: Duration = Duration::from_secs(30);

/// The same for a new node that waits for the cloud provider, for which its machine may be the cause. Nodes that join one after the other
/// are asked about together.
const AT_ONCE: Duration = Duration::from_secs(3);

impl Connection {
    /// How long until the vCenter is asked again: the interval when all is well, else 10 s, 20 s … up to five minutes.
    pub(super) fn due_in(&self, asking: &Asking) -> Duration {
        let Some(asked) = self.asked else { return Duration::ZERO };
        if self.asked_with != asking.with || asking.claim.is_some() && asking.claim != self.claim {
            return Duration::ZERO;
        }
        let pause = if !self.well {
            VCENTER.after(self.failures)
        } else if !asking.waiting.is_subset(&self.waiting) {
            AT_ONCE
        } else if self.crowd != asking.crowd {
            SOON
        } else {
            asking.interval
        };
        pause.min(asking.interval).saturating_sub(asked.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// An outage costs an attempt every five minutes, once it has lasted that long; nodes that come are seen within half a minute.
    #[test]
    fn connection_check_backoff_grows_to_five_minutes() {
        let asking = |with: &str, crowd| Asking {
            with: with.into(),
            crowd,
            waiting: BTreeSet::new(),
            claim: None,
            interval: Duration::from_secs(600),
        };
        for (well, failures, with, crowd, expected) in [
            (true, 0, "a", 1, 600),
            (true, 0, "a", 2, 30),
            (true, 0, "b", 1, 0),
            (false, 1, "a", 1, 10),
            (false, 2, "a", 2, 20),
            (false, 5, "a", 1, 160),
            (false, 6, "a", 1, 300),
            (false, 1000, "a", 1, 300),
            (false, 1000, "b", 1, 0),
        ] {
            let memory = Connection {
                asked_with: "a".into(),
                crowd: 1,
                asked: Some(Instant::now()),
                well,
                failures,
                ..Connection::default()
            };
            let due = memory.due_in(&asking(with, crowd)).as_secs_f64();
            assert!(
                (due - f64::from(expected)).abs() < 2.0,
                "{due} instead of {expected} after {failures} failures"
            );
        }
        assert_eq!(Connection::default().due_in(&asking("a", 1)), Duration::ZERO);
    }

    /// Once for each new node, and never instead of the pauses after a failure: a login is not tried more often.
    #[test]
    fn connection_check_of_new_waiting_node_is_at_once() {
        let second = |due: Duration| due.as_secs_f64().round();
        for (well, known, waiting, expected) in [
            (true, vec![], vec![7], 3.0),
            (true, vec![7], vec![7], 600.0),
            (true, vec![7], vec![7, 8], 3.0),
            (true, vec![7, 8], vec![8], 600.0),
            (false, vec![], vec![7], 20.0),
        ] {
            let asking = Asking {
                with: "a".into(),
                crowd: 1,
                waiting: waiting.iter().copied().collect(),
                claim: None,
                interval: Duration::from_secs(600),
            };
            let memory = Connection {
                asked_with: "a".into(),
                crowd: 1,
                waiting: known.into_iter().collect(),
                asked: Some(Instant::now()),
                well,
                failures: 2,
                ..Connection::default()
            };
            assert_eq!(second(memory.due_in(&asking)), expected, "{well} {waiting:?}");
        }
    }

    /// An id is asked about once. One that is in use by now needs no answer.
    #[test]
    fn connection_check_of_new_cluster_id_is_at_once() {
        for (asked, claim, expected) in [
            (None, Some("demo"), true),
            (Some("demo"), Some("demo"), false),
            (Some("demo"), Some("other"), true),
            (Some("demo"), None, false),
        ] {
            let asking = Asking {
                with: "a".into(),
                crowd: 1,
                waiting: BTreeSet::new(),
                claim: claim.map(str::to_owned),
                interval: Duration::from_secs(600),
            };
            let memory = Connection {
                asked_with: "a".into(),
                crowd: 1,
                claim: asked.map(str::to_owned),
                asked: Some(Instant::now()),
                well: true,
                ..Connection::default()
            };
            assert_eq!(memory.due_in(&asking).is_zero(), expected, "{asked:?} {claim:?}");
        }
    }
}
