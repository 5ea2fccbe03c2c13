// SPDX-License-Identifier: Apache-2.0
//! What a vCenter remembers: failed logins, locked accounts, sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// When an account is locked, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lockout {
    /// So many failures …
    pub failures: usize,
    /// … within this time …
    pub within: Duration,
    /// … lock the account for this long.
    pub lasts: Duration,
}

impl Default for Lockout {
    /// As a vCenter is delivered.
    fn default() -> Self {
        Self {
            failures: 5,
            within: Duration::from_secs(180),
            lasts: Duration::from_secs(300),
        }
    }
}

/// The sessions of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sessions {
    /// Begun and not ended.
    pub live: usize,
    /// The most there were at one time.
    pub most: usize,
}

#[derive(Debug)]
pub(super) struct Model {
    lockout: Option<Lockout>,
    now: Instant,
    skipped: Duration,
    failed: BTreeMap<String, Vec<Duration>>,
    locked: BTreeMap<String, Duration>,
    live: BTreeSet<String>,
    ended: BTreeSet<String>,
    most: usize,
}

impl Default for Model {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Model {
    pub(super) fn new(lockout: Option<Lockout>) -> Self {
        Self {
            lockout,
            now: Instant::now(),
            skipped: Duration::ZERO,
            failed: BTreeMap::new(),
            locked: BTreeMap::new(),
            live: BTreeSet::new(),
            ended: BTreeSet::new(),
            most: 0,
        }
    }

    fn now(&self) -> Duration {
        self.now.elapsed() + self.skipped
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.skipped += time;
    }

    /// Whether the account is locked, in which case the password is not even looked at.
    pub(super) fn is_locked(&self, user: &str) -> bool {
        self.locked.get(user).is_some_and(|until| self.now() < *until)
    }

    /// A password was wrong.
    pub(super) fn failed(&mut self, user: &str) {
        let (Some(lockout), now) = (self.lockout, self.now()) else { return };
        let failures = self.failed.entry(user.to_owned()).or_default();
        failures.retain(|at| now - *at < lockout.within);
        failures.push(now);
        if failures.len() >= lockout.failures {
            failures.clear();
            self.locked.insert(user.to_owned(), now + lockout.lasts);
        }
    }

    /// A session has begun.
    pub(super) fn begun(&mut self, user: &str, session: &str) {
        self.failed.remove(user);
        self.live.insert(session.to_owned());
        self.most = self.most.max(self.live.len());
    }

    /// A session was logged out, or its client learned that it has ended.
    pub(super) fn over(&mut self, session: &str) {
        self.live.remove(session);
    }

    pub(super) fn end_sessions(&mut self) {
        self.ended.append(&mut self.live);
    }

    /// Whether this session was ended by the server.
    pub(super) fn has_ended(&self, session: &str) -> bool {
        self.ended.contains(session)
    }

    pub(super) fn sessions(&self) -> Sessions {
        Sessions {
            live: self.live.len(),
            most: self.most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lockout_five_failures_in_three_minutes_locks_and_ends() {
        let mut model = Model::new(Some(Lockout::default()));
        for _ in 0..4 {
            model.failed("u");
        }
        model.pass(Duration::from_secs(181));
        model.failed("u");
        assert!(!model.is_locked("u"), "old failures count no more");
        for _ in 0..4 {
            model.failed("u");
        }
        assert!(model.is_locked("u") && !model.is_locked("v"));
        model.pass(Duration::from_secs(300));
        assert!(!model.is_locked("u"), "a lock ends");
    }
}
