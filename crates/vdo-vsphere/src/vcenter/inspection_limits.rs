// SPDX-License-Identifier: Apache-2.0
//! The limits of one inspection of a vCenter: time, bytes, elements, and the memory that all inspections of a process share.
//!
//! An inspection is everything from the first question to the last answer: the probe, the login and the reads. A server that answers slowly,
//! or without end, ends its own inspection and no other.

use super::Endpoint;
use crate::vsphere::{Excess, ProbeError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit};
use tokio::time::{Instant, timeout_at};
use vdo_api::types::Later as _;

/// What one inspection may take.
///
/// A vCenter with 20,000 machines sends about 120 MiB in 25 answers of some MiB, with a hundred elements for each machine.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The time for one call.
    pub call: Duration,
    /// The time for all calls together.
    pub whole: Duration,
    /// The bytes of one answer.
    pub answer: usize,
    /// The bytes of all answers.
    pub received: usize,
    /// The elements of all answers: of XML, or values of JSON.
    pub elements: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(15),
            whole: Duration::from_secs(60),
            answer: 16 << 20,
            received: 256 << 20,
            elements: 4_000_000,
        }
    }
}

/// The memory for what vCenters send, shared by all inspections of a process.
///
/// None may hold more than what is still free. So one alone may hold half of it, twenty may hold a twenty-first part each, and there is
/// always as much left for one that begins. No inspection waits for memory, so none that holds some can make others wait.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    size: usize,
    used: AtomicUsize,
}

impl Default for Pool {
    fn default() -> Self {
        Self::new(64 << 20)
    }
}

impl Pool {
    /// So many bytes.
    #[must_use]
    pub fn new(size: usize) -> Self {
        let used = AtomicUsize::new(0);
        Self(Arc::new(Shared { size, used }))
    }

    /// The bytes that are held now.
    #[must_use]
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Takes `more` for an inspection that will then hold `own`.
    fn take(&self, own: usize, more: usize) -> bool {
        let fits = |used: usize| {
            let used = used.checked_add(more)?;
            (own <= self.0.size.saturating_sub(used)).then_some(used)
        };
        self.0.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The budget of one inspection. Clones are the same budget; when the last one is dropped, what it holds is free.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Inspection>);

#[derive(Debug)]
struct Inspection {
    limits: Limits,
    until: Instant,
    received: AtomicUsize,
    elements: AtomicUsize,
    held: AtomicUsize,
    pool: Pool,
    _place: Option<(OwnedMutexGuard<()>, OwnedSemaphorePermit)>,
}

impl Drop for Inspection {
    fn drop(&mut self) {
        self.pool.give_back(*self.held.get_mut());
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Limits::default(), &Pool::default())
    }
}

impl Budget {
    /// An inspection that begins now.
    #[must_use]
    pub fn new(limits: Limits, pool: &Pool) -> Self {
        Self::in_place(limits, pool, None)
    }

    /// An inspection for a person, who may have said how long they wait.
    #[must_use]
    pub fn for_person(patience: Option<Duration>) -> Self {
        let usual = Limits::default();
        let limits = Limits {
            call: patience.map_or(usual.call, |patience| patience.min(usual.call)),
            whole: patience.unwrap_or(usual.whole),
            ..usual
        };
        Self::new(limits, &Pool::default())
    }

    /// The same, and what keeps others out is let go at its end.
    pub fn in_place(limits: Limits, pool: &Pool, place: Option<(OwnedMutexGuard<()>, OwnedSemaphorePermit)>) -> Self {
        Self(Arc::new(Inspection {
            until: Instant::now().later(limits.whole),
            limits,
            received: AtomicUsize::new(0),
            elements: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            pool: pool.clone(),
            _place: place,
        }))
    }

    /// The limits that this budget began with.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// When a call that begins now must have ended.
    pub fn end_of_call(&self) -> Instant {
        self.0.until.min(Instant::now().later(self.0.limits.call))
    }

    /// Waits for one call, but not beyond its time or that of the inspection.
    pub async fn within<T>(&self, endpoint: &Endpoint, call: impl Future<Output = T>) -> Result<Option<T>, ProbeError> {
        match timeout_at(self.end_of_call(), call).await {
            Ok(done) => Ok(Some(done)),
            Err(_) => self.go_on().map(|()| None).map_err(|excess| refused(endpoint, excess)),
        }
    }

    /// Whether there is time left.
    pub fn go_on(&self) -> Result<(), Excess> {
        match Instant::now() < self.0.until {
            true => Ok(()),
            false => Err(Excess::Time(self.0.limits.whole)),
        }
    }

    /// Counts what has come in.
    pub fn receive(&self, bytes: usize) -> Result<(), Excess> {
        let limit = self.0.limits.received;
        count(&self.0.received, bytes, limit, Excess::Bytes(limit))
    }

    /// Counts what was read of it.
    pub fn elements(&self, number: usize) -> Result<(), Excess> {
        let limit = self.0.limits.elements;
        count(&self.0.elements, number, limit, Excess::Elements(limit))
    }

    /// Memory that is free again when what this gives is dropped.
    pub fn hold(&self) -> Held {
        Held {
            budget: self.clone(),
            bytes: 0,
        }
    }

    /// Memory that is free again at the end of the inspection.
    pub fn keep(&self, bytes: usize) -> Result<(), Excess> {
        let own = self.0.held.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if self.0.pool.take(own, bytes) {
            return Ok(());
        }
        self.0.held.fetch_sub(bytes, Ordering::Relaxed);
        Err(Excess::Memory)
    }
}

fn count(counter: &AtomicUsize, more: usize, limit: usize, excess: Excess) -> Result<(), Excess> {
    let all = counter.fetch_add(more, Ordering::Relaxed).saturating_add(more);
    if all <= limit { Ok(()) } else { Err(excess) }
}

/// What an excess is of the one who is asked.
pub fn refused(endpoint: &Endpoint, excess: Excess) -> ProbeError {
    let address = endpoint.address();
    match excess {
        Excess::Time(after) => ProbeError::Unfinished { address, after },
        excess => ProbeError::TooMuch { address, excess },
    }
}

/// Memory that one inspection holds for a while.
#[derive(Debug)]
pub struct Held {
    budget: Budget,
    bytes: usize,
}

impl Held {
    /// Holds so much more.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Excess> {
        self.budget.keep(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// How much it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// From now on until the end of the inspection.
    pub fn keep(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.0.held.fetch_sub(self.bytes, Ordering::Relaxed);
        self.budget.0.pool.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            received: 3 << 20,
            elements: 10,
            ..Limits::default()
        }
    }

    #[test]
    fn budget_more_than_limit_is_refused() {
        let budget = Budget::new(limits(), &Pool::default());
        assert_eq!((budget.receive(2 << 20), budget.receive(1 << 20)), (Ok(()), Ok(())));
        assert_eq!(budget.receive(1).map_err(|e| e.to_string()), Err("more than 3 MiB".into()));
        assert_eq!(budget.clone().elements(10), Ok(()));
        assert_eq!(budget.elements(1), Err(Excess::Elements(10)), "clones share one budget");
    }

    #[tokio::test]
    async fn budget_time_passed_is_refused() {
        let limits = Limits {
            call: Duration::from_millis(100),
            whole: Duration::from_millis(350),
            ..limits()
        };
        let budget = Budget::new(limits, &Pool::default());
        let endpoint = Endpoint {
            server: "vc".into(),
            port: 443,
            trust: vdo_api::types::Trust::Insecure,
        };
        let never = || budget.within(&endpoint, std::future::pending::<()>());
        assert!(matches!(never().await, Ok(None)), "a call has its own time");
        let mut later = vec![];
        for _ in 0..3 {
            later.push(never().await);
        }
        let error = later
            .into_iter()
            .find_map(Result::err)
            .expect("three calls of 100 ms do not fit in what is left of 350 ms");
        assert_eq!(error.to_string(), "vc:443 did not finish answering within 350ms");
    }

    #[test]
    fn pool_greedy_inspections_leave_as_much_as_each_holds() {
        let pool = Pool::new(66);
        let greedy: Vec<Budget> = (0..20).map(|_| Budget::new(limits(), &pool)).collect();
        for budget in greedy.iter().cycle().take(1000) {
            let _ = budget.keep(1);
        }
        assert!(greedy.iter().all(|budget| budget.keep(1) == Err(Excess::Memory)));
        let modest = Budget::new(limits(), &pool);
        assert_eq!(modest.keep(2), Ok(()), "{} of 66 are used", pool.used());
        drop(greedy);
        assert_eq!((pool.used(), modest.keep(31), modest.keep(1)), (2, Ok(()), Err(Excess::Memory)));
        drop(modest);
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn held_memory_dropped_or_kept_is_free_in_time() {
        let pool = Pool::new(100);
        let budget = Budget::new(limits(), &pool);
        let (mut for_a_while, mut kept) = (budget.hold(), budget.hold());
        assert_eq!(
            (for_a_while.grow(10), kept.grow(20), kept.grow(30)),
            (Ok(()), Ok(()), Err(Excess::Memory))
        );
        drop(for_a_while);
        assert_eq!(pool.used(), 20);
        kept.keep();
        assert_eq!(pool.used(), 20);
        drop(budget);
        assert_eq!(pool.used(), 0);
    }
}
