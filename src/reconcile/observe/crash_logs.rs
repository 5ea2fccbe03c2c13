// SPDX-License-Identifier: Apache-2.0
//! Reads the last log line of a failing container, and the event that names why pods of a workload are not created (effect).
//!
//! There is one request for each end of a container, and one in a while for missing pods.

use crate::cluster::{ClusterError, pod_log, refused_pods};
use crate::reconcile::Ports;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vdo_core::health::{DriverHealth, PodFailure, log_excerpt};
use vdo_core::status::Report;

/// Ends that are remembered. There are more only when more containers fail than anyone reads about.
const REMEMBERED: usize = 32;

/// The UID of the pod, the container, and how often it was started again.
type End = (String, String, i64);

/// How long pods may be missing before anyone asks why, and asks again where no event has said: a DaemonSet that was just made has none yet.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the words of an event count.
const LASTS: Duration = Duration::from_secs(60);

/// What was read of the ends of containers, so that each is asked for once. It may be lost without harm.
#[derive(Debug, Default)]
pub struct CrashLogs {
    ends: Mutex<BTreeMap<End, Option<String>>>,
    /// Of workloads without pods, by UID.
    unmade: Mutex<BTreeMap<String, Refusals>>,
}

/// Why pods of a workload are not made.
#[derive(Debug)]
struct Refusals {
    /// Since when it lacks some.
    since: Instant,
    /// When it was asked last, and the words of the newest event.
    answer: Option<(Instant, Option<String>)>,
}

impl Refusals {
    /// Whether it is time to ask. Before anyone is asked the pods are missing for a moment, as after every change.
    fn is_due(&self, now: Instant) -> bool {
        match &self.answer {
            Some((at, why)) => now.duration_since(*at) >= why.as_ref().map_or(PATIENCE, |_| LASTS),
            None => now.duration_since(self.since) >= PATIENCE,
        }
    }

    /// The words of the newest event, as far as they are known.
    fn words(&self) -> Option<String> {
        self.answer.as_ref()?.1.clone()
    }

    /// Notes an answer. Without one the words of before are kept: a condition does not change to and fro with them.
    fn heard<E>(&mut self, now: Instant, answer: Result<Option<String>, E>) -> Result<(), E> {
        self.answer = Some((now, answer?));
        Ok(())
    }
}

/// The report, with the last words of the container that fails in what it says of its driver.
pub(in crate::reconcile) async fn added(ports: &Ports, mut report: Report) -> Report {
    let secrets: Vec<String> = report
        .connections
        .iter()
        .map(|c| c.credentials.password.expose().to_owned())
        .collect();
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
    // A look that failed says nothing of them.
    if report.failures.is_empty() {
        let unmade: BTreeSet<String> = report
            .drivers
            .iter()
            .filter_map(|driver| Some(driver.health.as_ref()?.unmade.as_ref()?.uid.clone()))
            .collect();
        lock(&ports.evidence.unmade).retain(|uid, _| unmade.contains(uid));
    }
    for driver in &mut report.drivers {
        let Some(health) = driver.health.take() else { continue };
        let before = health.message.clone();
        let reported = match refusal(ports, &health).await {
            Some(why) => health.with_refusal(&why),
            None => with_last_line(ports, health, &secrets).await,
        };
        for wait in report.waiting.iter_mut().filter(|wait| wait.message == before) {
            wait.message.clone_from(&reported.message);
            wait.reason = reported.reason;
        }
        driver.health = Some(reported);
    }
    report
}

/// Why pods of a driver are not made, once that has lasted.
async fn refusal(ports: &Ports, health: &DriverHealth) -> Option<String> {
    let unmade = health.unmade.as_ref()?;
    let now = Instant::now();
    let known = || lock(&ports.evidence.unmade);
    {
        let mut known = known();
        let known = known.entry(unmade.uid.clone()).or_insert(Refusals { since: now, answer: None });
        if !known.is_due(now) {
            return known.words();
        }
    }
    let answer = refused_pods(&ports.client, &unmade.workload, &unmade.uid).await;
    let mut known = known();
    let known = known.get_mut(&unmade.uid)?;
    if let Err(error) = known.heard(now, answer) {
        tracing::warn!(object = %unmade.workload, error = %vdo_api::api::chain(&error), "the operator cannot find out why the pods of the workload are not created");
    }
    known.words()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn with_last_line(ports: &Ports, health: DriverHealth, secrets: &[&str]) -> DriverHealth {
    let words = match &health.failure {
        Some(failure) if failure.crashed() => last_line(ports, failure, secrets).await,
        _ => None,
    };
    health.with_log_excerpt(words.as_deref(), secrets)
}

async fn last_line(ports: &Ports, failure: &PodFailure, secrets: &[&str]) -> Option<String> {
    let container = failure.container.as_ref()?;
    let end = (failure.uid.clone(), container.name.clone(), container.restarts);
    let known = || lock(&ports.evidence.ends);
    if let Some(words) = known().get(&end) {
        return words.clone();
    }
    let log = pod_log(&ports.client, &failure.namespace, &failure.pod, &container.name, failure.is_over()).await;
    let words = match log {
        Ok(log) => log_excerpt(&log, secrets),
        Err(error @ ClusterError::Forbidden { .. }) => {
            tracing::warn!(pod = failure.pod, container = container.name, error = %vdo_api::api::chain(&error), "the log of the container cannot be read");
            None
        }
        Err(error) => {
            tracing::debug!(pod = failure.pod, container = container.name, error = %vdo_api::api::chain(&error), "the log of the container cannot be read");
            None
        }
    };
    let mut known = known();
    known.retain(|(pod, name, _), _| (pod, name) != (&end.0, &end.1));
    while known.len() >= REMEMBERED {
        known.pop_first();
    }
    known.insert(end, words.clone());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_refusal_are_asked_for_again_and_kept_without_an_answer() {
        let since = Instant::now();
        let at = |seconds: u64| since + Duration::from_secs(seconds);
        let mut known = Refusals { since, answer: None };
        let words = Some("exceeded quota".to_owned());
        for (second, due, answer, said) in [
            (0, false, None, None),
            (4, false, None, None),
            (5, true, Some(Err(())), None),
            (6, true, Some(Ok(None)), None),
            (10, false, None, None),
            (11, true, Some(Ok(words.clone())), words.clone()),
            (70, false, None, words.clone()),
            (71, true, Some(Err(())), words.clone()),
            (72, true, Some(Ok(None)), None),
        ] {
            assert_eq!(known.is_due(at(second)), due, "{second} s");
            if let Some(answer) = answer {
                let failed = answer.is_err();
                assert_eq!(known.heard(at(second), answer).is_err(), failed, "{second} s");
            }
            assert_eq!(known.words(), said, "{second} s");
        }
    }
}
