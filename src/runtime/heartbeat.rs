// SPDX-License-Identifier: Apache-2.0
//! The heartbeats of the operator's loops for `/healthz`: which of them are overdue.
//!
//! Only what the operator does by itself is expected here. A vCenter or an API server that does not answer is waited for within a
//! deadline, and a loop that waits for one gives its signs all the while: a restart would not bring it back.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The next sign of life of something that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// What runs.
    pub name: String,
    /// By when its next sign is expected at the latest.
    pub due: Instant,
}

/// What has given no sign of life in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overdue(Vec<(String, Duration)>);

impl fmt::Display for Overdue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self
            .0
            .iter()
            .map(|(name, late)| format!("{name} ({} s late)", late.as_secs()))
            .collect();
        write!(f, "no heartbeat from {}", all.join(", "))
    }
}

/// Whether everything has given its sign in time.
///
/// # Errors
/// With what has not, the latest first.
pub fn verdict(beats: &[Beat], now: Instant) -> Result<(), Overdue> {
    let late = beats.iter().filter(|beat| beat.due < now);
    let mut late: Vec<(String, Duration)> = late.map(|beat| (beat.name.clone(), now.duration_since(beat.due))).collect();
    if late.is_empty() {
        return Ok(());
    }
    late.sort_by_key(|(name, late)| (std::cmp::Reverse(*late), name.clone()));
    Err(Overdue(late))
}

type Source = Box<dyn Fn() -> Vec<Beat> + Send + Sync>;

/// Everything from which a sign of life is expected. Cheap to clone and share.
#[derive(Clone, Default)]
pub struct Heartbeats {
    expected: Arc<Mutex<BTreeMap<String, Instant>>>,
    sources: Arc<Mutex<Vec<Source>>>,
}

impl fmt::Debug for Heartbeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heartbeats").finish_non_exhaustive()
    }
}

impl Heartbeats {
    /// A sign of life; the next one is expected within this time.
    pub fn expect(&self, name: &str, within: Duration) {
        self.expected()
            .insert(name.to_owned(), Instant::now().checked_add(within).unwrap_or_else(Instant::now));
    }

    /// Nothing more is expected: it has ended, or waits for something with a deadline of its own.
    pub fn forget(&self, name: &str) {
        self.expected().remove(name);
    }

    /// Asks this, too, whenever a verdict is given.
    pub fn also(&self, source: impl Fn() -> Vec<Beat> + Send + Sync + 'static) {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(source));
    }

    /// The verdict of now.
    ///
    /// # Errors
    /// With what is overdue.
    pub fn verdict(&self) -> Result<(), Overdue> {
        let mut beats: Vec<Beat> = self
            .expected()
            .iter()
            .map(|(name, due)| Beat {
                name: name.clone(),
                due: *due,
            })
            .collect();
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        beats.extend(sources.iter().flat_map(|source| source()));
        verdict(&beats, Instant::now())
    }

    fn expected(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Instant>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_names_what_is_overdue_and_for_how_long() {
        let start = Instant::now();
        let at = |second: u64| start + Duration::from_secs(second);
        let beat = |name: &str, due: u64| Beat {
            name: name.into(),
            due: at(due),
        };
        let (run, watch) = (beat("reconcile of VDOConfig vdo", 900), beat("watch of Pod n/", 120));
        for (beats, now, expected) in [
            (vec![], 9999, None),
            (vec![run.clone(), watch.clone()], 120, None),
            (
                vec![run.clone(), watch.clone()],
                121,
                Some("no heartbeat from watch of Pod n/ (1 s late)"),
            ),
            (
                vec![run, watch],
                1000,
                Some("no heartbeat from watch of Pod n/ (880 s late), reconcile of VDOConfig vdo (100 s late)"),
            ),
        ] {
            let found = verdict(&beats, at(now)).err().map(|overdue| overdue.to_string());
            assert_eq!(found.as_deref(), expected, "at {now}");
        }
    }

    #[test]
    fn heartbeats_that_are_forgotten_are_not_overdue() {
        let beats = Heartbeats::default();
        beats.expect("a", Duration::ZERO);
        beats.also(|| {
            vec![Beat {
                name: "b".into(),
                due: Instant::now() + Duration::from_secs(60),
            }]
        });
        while beats.verdict().is_ok() {
            std::hint::spin_loop();
        }
        beats.forget("a");
        assert_eq!(beats.verdict(), Ok(()));
    }
}
