// SPDX-License-Identifier: Apache-2.0
//! The loop over VDOConfigs: runs one reconcile, and writes its status, events, metrics and log.

use super::loop_memory::{Config, newest};
use super::olm_condition::Verdict;
use super::{Context, drift_events, events, now, without_lease};
use crate::cluster::{ClusterError, Writer, version_number};
use crate::reconcile::{self, Mode, Pacing, ReconcileInput, configs};
use crate::runtime::metrics::{ConditionValue, ReconcileResult};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use serde_json::json;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::Instrument as _;
use vdo_api::api::{API_VERSION, Class, ConditionType, RECONCILE_AT, Reason, VDOConfig, VDOConfigStatus, chain};
use vdo_core::manifest::{Object, merge_patch};
use vdo_core::status::{Failure, Report, config_notes, fold, pace, source_changes, until_confirmation};

pub(super) async fn reconcile(object: Arc<VDOConfig>, context: Arc<Context>) -> Result<Action, Infallible> {
    if !context.fence.is_open() {
        let refused = context.lease_refused.borrow().clone();
        if let Some(failure) = refused {
            without_lease::report(&object, failure, &context).await;
        }
        // Another operator leads. When it is our turn, everything is looked at.
        return Ok(Action::await_change());
    }
    let asked = object.annotations().get(RECONCILE_AT).cloned();
    context
        .asked
        .send_if_modified(|known| std::mem::replace(known, asked.clone()) != asked);
    let started = Instant::now();
    let uid = object.uid().unwrap_or_default();
    let mut memory = context.memory.config(&uid);
    let time = now();
    let last = newest(object.status.as_ref(), object.resource_version().as_deref(), memory.status.as_ref());
    let unhealthy = last.drivers.iter().filter(|d| d.ready == "False").map(|d| d.name.clone()).collect();
    let force_reapply = memory.force_reapply(&unhealthy, started);
    let mut report = run(&context, &object, &memory, &last, &force_reapply, time).await;
    report.reconcile_at = asked;
    reconcile::report_windows(&object, time, &mut report);
    measure_run(&context, &report, time);
    if report.gone {
        tell_olm(&context, Verdict::nothing_installed(), time).await;
        let forgotten = context.memory.forget_config(&uid);
        forgotten
            .iter()
            .flat_map(|m| &m.drivers)
            .for_each(|driver| context.metrics.driver(driver, None));
        tracing::info!(config = %object.name_any(), "all drivers are removed");
        return Ok(Action::await_change());
    }
    for drift in &report.drift {
        memory.history.repaired(drift, time);
        tracing::warn!(config = %object.name_any(), reason = %Reason::DriftRepaired, "{drift}");
    }
    let pacing = Pacing {
        failures: memory.failures,
        steady: context.resync,
        uid: &uid,
    };
    let next = reconcile::next_run(&report, &last, pacing, time);
    memory.failures = next.failures;
    report.next_attempt = next.at.map(Time);
    let status = fold(&last, &report, &Time(time));
    log_changes(&object, &last, &status, &report);
    if report.failures.first().is_none_or(|failure| failure.reason != Reason::NotActive) {
        tell_olm(&context, Verdict::of(&status), time).await;
    }
    measure(&context, &status, &mut memory.drivers);
    let published = Instant::now();
    let confirmed = status.last_confirmed.as_ref().map(|at| until_confirmation(at.0, time));
    let delay = confirmed.unwrap_or(next.delay).min(next.delay);
    let delay = delay.min(publish(&context, &object, &last, status, &mut memory).await);
    drift_events::record(&context, &object, &report).await;
    context.metrics.stage("report", published.elapsed());
    context.metrics.stage("all", started.elapsed());
    context.memory.keep_config(&uid, memory);
    context.sweep();
    Ok(Action::requeue(delay))
}

/// One run of the pipeline, or why it could not begin.
async fn run(
    context: &Context,
    object: &VDOConfig,
    memory: &Config,
    last: &VDOConfigStatus,
    force_reapply: &BTreeSet<String>,
    now: Timestamp,
) -> Report {
    match futures::try_join!(context.version.get(), acting(context, object)) {
        Ok((kubernetes, acting)) => {
            let input = ReconcileInput {
                mode: Mode::Operator,
                config: object,
                acting: &acting,
                kubernetes,
                now,
                force_reapply,
                timeout: context.deletion_patience,
                history: &memory.history,
                due: last.next_attempt.as_ref().is_none_or(|next| next.at.0 <= now),
            };
            let span = tracing::info_span!("reconcile", config = %object.name_any(), generation = object.metadata.generation);
            reconcile::reconcile(&input, &context.ports).instrument(span).await
        }
        Err(error) => Report {
            generation: object.metadata.generation,
            failures: vec![Failure::from(&error)],
            ..Report::default()
        },
    }
}

/// Writes the status and the events of what changed in it. Gives how long it may take at most until the next run makes up for what was not written.
async fn publish(context: &Context, object: &VDOConfig, old: &VDOConfigStatus, status: VDOConfigStatus, memory: &mut Config) -> Duration {
    let ago = memory.written.map(|at| at.elapsed());
    match write_status(object, old, &status, ago, &context.ports.writer).await {
        Ok(Some(live)) => {
            let notes = config_notes(old, &status).into_iter().chain(source_changes(old, &status));
            events::record_all(context, &object.object_ref(&()), notes).await;
            memory.written = Some(Instant::now());
            memory.status = Some((version_number(live.resource_version()), status));
            Duration::MAX
        }
        // Held back: it is written with the next change, or when it is no longer too soon.
        Ok(None) if *old != status => pace(old, &status).saturating_sub(ago.unwrap_or_default()),
        Ok(None) => Duration::MAX,
        Err(error) => {
            tracing::warn!(config = %object.name_any(), error = %chain(&error), "the status could not be written");
            Duration::from_secs(5)
        }
    }
}

/// Writes the status if it says anything new. One that only counts on is held back for a while after the one before, which was
/// written so long `ago`.
pub(super) async fn write_status(
    config: &VDOConfig,
    old: &VDOConfigStatus,
    new: &VDOConfigStatus,
    ago: Option<Duration>,
    writer: &Writer,
) -> Result<Option<Object>, ClusterError> {
    if old == new || ago.is_some_and(|ago| ago < pace(old, new)) {
        return Ok(None);
    }
    let json = |status: &VDOConfigStatus| serde_json::to_value(status).unwrap_or_default();
    let change = merge_patch(&json(old), &json(new));
    writer.merge(API_VERSION, &config.id(), &json!({"status": change}), true).await
}

/// The metrics of a run.
fn measure_run(context: &Context, report: &Report, now: Timestamp) {
    context.metrics.reconciled(result(report));
    if let Some(cluster) = &report.cluster {
        context.version.seen(&cluster.nodes);
    }
    let generated = context.ports.repository.generated();
    let age = generated.and_then(|at| Duration::try_from(now.duration_since(at)).ok());
    context.metrics.matrix_age(age);
    for (stage, took) in &report.stages {
        context.metrics.stage(stage, *took);
    }
}

async fn tell_olm(context: &Context, verdict: Verdict, time: Timestamp) {
    let ports = &context.ports;
    context.operator_condition.keep(verdict, &ports.client, &ports.writer, time).await;
}

/// The name of the VDOConfig that acts. The watch that shows them wakes all of them when one is made or deleted.
async fn acting(context: &Context, own: &VDOConfig) -> Result<String, ClusterError> {
    let all = configs(&context.ports.reader, &context.namespace).await?;
    Ok(reconcile::acting(all.iter().map(AsRef::as_ref).chain([own]))
        .unwrap_or(own)
        .name_any())
}

fn result(report: &Report) -> ReconcileResult {
    match report.failures.first() {
        Some(t) if t.class != Class::Wait => ReconcileResult::Error,
        Some(_) => ReconcileResult::Waiting,
        None if report.waiting.is_empty() => ReconcileResult::Success,
        None => ReconcileResult::Waiting,
    }
}

/// The audit trail: what was decided and why, once for each change.
fn log_changes(object: &VDOConfig, old: &VDOConfigStatus, new: &VDOConfigStatus, report: &Report) {
    let config = object.name_any();
    for driver in &new.drivers {
        if old.drivers.iter().all(|d| (&d.name, &d.version) != (&driver.name, &driver.version)) {
            tracing::info!(
                config,
                driver = driver.name,
                version = driver.version,
                because = driver.because,
                "chosen"
            );
        }
    }
    let ready = |s: &VDOConfigStatus| {
        s.conditions
            .iter()
            .find(|c| c.type_ == "Ready")
            .map(|c| (c.status.clone(), c.reason.clone(), c.message.clone()))
    };
    if let (before, Some((status, reason, message))) = (ready(old), ready(new))
        && before.is_none_or(|b| b.0 != status || b.1 != reason)
    {
        tracing::info!(config, ready = status, reason, "{message}");
    }
    for failure in &report.failures {
        tracing::warn!(config, reason = %failure.reason, "{}", failure.message);
    }
}

fn measure(context: &Context, status: &VDOConfigStatus, known: &mut Vec<String>) {
    for gone in known.iter().filter(|name| status.drivers.iter().all(|d| d.name != **name)) {
        context.metrics.driver(gone, None);
    }
    *known = status.drivers.iter().map(|d| d.name.clone()).collect();
    for driver in &status.drivers {
        context.metrics.driver(&driver.name, Some(&driver.version));
    }
    // They are there only while they are true.
    for kind in [
        ConditionType::RolledBack,
        ConditionType::UpgradeAvailable,
        ConditionType::MaintenanceWindow,
    ] {
        context.metrics.condition(kind.as_str(), ConditionValue::False);
    }
    for condition in &status.conditions {
        let value = match condition.status.as_str() {
            "True" => ConditionValue::True,
            "False" => ConditionValue::False,
            _ => ConditionValue::Unknown,
        };
        context.metrics.condition(&condition.type_, value);
    }
}
