//! What a container that fails said last (effect: one request for each of its ends).

use crate::cluster::{ClusterError, pod_log};
use crate::reconcile::Ports;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use vdo_core::health::{DriverHealth, PodFailure, log_excerpt};
use vdo_core::status::Report;

/// Ends that are remembered. There are more only when more containers fail than anyone reads about.
const REMEMBERED: usize = 32;

/// The UID of the pod, the container, and how often it was started again.
type End = (String, String, i64);

/// What was read of the ends of containers, so that each is asked for once. It may be lost without harm.
#[derive(Debug, Default)]
pub struct CrashLogs(Mutex<BTreeMap<End, Option<String>>>);

/// The report, with the last words of the container that fails in what it says of its driver.
pub(in crate::reconcile) async fn added(ports: &Ports, mut report: Report) -> Report {
    let secrets: Vec<String> = report
        .connections
        .iter()
        .map(|c| c.credentials.password.expose().to_owned())
        .collect();
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
    for driver in &mut report.drivers {
        let Some(health) = driver.health.take() else { continue };
        let before = health.message.clone();
        let reported = with_last_line(ports, health, &secrets).await;
        for wait in report.waiting.iter_mut().filter(|wait| wait.message == before) {
            wait.message.clone_from(&reported.message);
        }
        driver.health = Some(reported);
    }
    report
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
    let known = || ports.evidence.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(words) = known().get(&end) {
        return words.clone();
    }
    let log = pod_log(&ports.client, &failure.namespace, &failure.pod, &container.name, failure.is_over()).await;
    let words = match log {
        Ok(log) => log_excerpt(&log, secrets),
        Err(error @ ClusterError::Forbidden { .. }) => {
            tracing::warn!(pod = failure.pod, container = container.name, error = %vdo_api::api::chain(&error), "its log cannot be read");
            None
        }
        Err(error) => {
            tracing::debug!(pod = failure.pod, container = container.name, error = %vdo_api::api::chain(&error), "its log cannot be read");
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
