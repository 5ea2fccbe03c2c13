// SPDX-License-Identifier: Apache-2.0
//! Checks the desired objects of a driver against the content that its chart permits (the admission policy's rules), before a write.

use super::Ports;
use super::driver_run::{DriverRun, DriverRuns};
use super::dry_run::cache::Refusal;
use super::error::ReconcileError;
use super::observe::ClusterState;
use super::planned::Planned;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use vdo_api::api::{Class, Reason};
use vdo_api::types::{ChartRef, DriverName};
use vdo_core::admission::{Allowed, ContentRefused};
use vdo_core::chart::{self, Chart};
use vdo_core::drivers;
use vdo_core::patches::{Origins, PatchRefused};
use vdo_core::plan::{Desired, Plan, Wait};
use vdo_core::rbac::is_prerequisite;
use vdo_core::status::Failure;
use vdo_source::fetch::embedded;

/// What was found sound last, by driver, so that the same objects are not checked in every reconcile. It may be lost without harm.
#[derive(Default)]
pub struct SoundContents(Mutex<BTreeMap<DriverName, String>>);

/// Closes the changes of drivers of which an object has content that its chart does not give it, and gives what there is to report.
pub(super) async fn refuse(ports: &Ports, state: &ClusterState, planned: &mut Planned) -> Vec<Failure> {
    let mut failures = Vec::new();
    for (driver, error) in refused(ports, (&planned.site.namespace, &planned.runs), &planned.plan).await {
        let failure = Failure::from(&error);
        planned.runs.of(&driver).wait = Some(Wait {
            driver: driver.clone(),
            reason: failure.reason,
            message: failure.message.clone(),
        });
        failures.push(failure);
    }
    if !failures.is_empty() {
        planned.replan(state);
    }
    failures
}

/// Only drivers of which the plan writes something: learning what a chart can render takes longer than everything else in a reconcile.
async fn refused(ports: &Ports, (namespace, runs): (&str, &DriverRuns), plan: &Plan) -> Vec<(DriverName, ReconcileError)> {
    let mut refused = Vec::new();
    let known = || ports.contents.0.lock().unwrap_or_else(PoisonError::into_inner);
    for run in runs.iter() {
        let driver = &run.name;
        let Some(pick) = run.pick.as_ref().filter(|_| plan.writes().any(|step| step.driver() == driver)) else {
            continue;
        };
        let own: Vec<&Desired> = run.objects.iter().filter(|d| !is_prerequisite(d.object.identity())).collect();
        let digests: Vec<&str> = own.iter().filter_map(|d| d.object.applied()).collect();
        let digests = format!("{} {}", pick.chart.digest, digests.join(" "));
        if own.is_empty() || known().get(driver) == Some(&digests) {
            continue;
        }
        let Some(charts) = charts_of(ports, driver, run.chart(), &pick.chart).await else {
            continue;
        };
        match check(driver, &charts, &own) {
            Err(error) => refused.push((driver.clone(), blamed(run, namespace, error))),
            Ok(()) => drop(known().insert(driver.clone(), digests)),
        }
    }
    refused
}

/// What there is to report of an object that the server does not accept, with the patches that are in it.
pub(super) fn not_accepted(patched: &Origins, (id, refusal): &Refusal) -> Failure {
    let failure = Failure::from(refusal.as_ref());
    let patches = patched.of(id).join(" and ");
    if patches.is_empty() {
        return failure;
    }
    let message = format!("{patches} changes {id}: {}", failure.message);
    // An object that is not valid is so until the patch is another.
    if refusal.is_lasting() && failure.reason == Reason::ApplyFailed {
        return Failure::new(Reason::PatchNotApplicable, Class::Terminal, message);
    }
    Failure { message, ..failure }
}

/// The error of the patches that brought the content, where some did.
fn blamed(run: &DriverRun, namespace: &str, error: ContentRefused) -> ReconcileError {
    let patches = run.patched.of_field(&error.object, &error.violation.path);
    if patches.is_empty() {
        return ReconcileError::Content(Box::new(error));
    }
    ReconcileError::Patch {
        namespace: namespace.to_owned(),
        refused: Box::new(PatchRefused {
            patch: patches.join(" and "),
            subject: error.object.to_string(),
            problem: format!("the admission policy does not allow the result: {}", error.violation),
        }),
    }
}

/// The chart of a driver. An earlier revision may be of a chart that is not the one in use: the content of any version in this program is as
/// good, where its matrix is the one in use. `None` for another matrix that does not have the chart any more; such a revision is authentic by
/// where it is kept.
async fn charts_of(ports: &Ports, driver: &str, chart: Option<&Arc<Chart>>, wanted: &ChartRef) -> Option<Vec<Arc<Chart>>> {
    if let Some(chart) = chart {
        return Some(vec![chart.clone()]);
    }
    if let Ok(chart) = ports.repository.chart(wanted).await
        && chart.metadata.name == driver
    {
        return Some(vec![chart]);
    }
    if !ports.repository.is_embedded() {
        return None;
    }
    let source = embedded::sources().remove(driver)?;
    let open = |version| chart::open(&chart::package(&source, &version).ok()?).ok();
    Some(source.versions().into_iter().filter_map(open).map(Arc::new).collect())
}

/// Holds the objects of a driver against its charts. Few renders are enough for objects whose values are usual ones.
fn check(driver: &str, charts: &[Arc<Chart>], objects: &[&Desired]) -> Result<(), ContentRefused> {
    let mut workloads = objects.iter().filter(|d| d.object.pod_spec().is_some());
    let namespace = workloads.next().map(|d| d.object.namespace().to_owned());
    let mut allowed = Allowed::default();
    for known in drivers::KNOWN.iter().filter(|known| known.name == driver) {
        for (kind, name) in known.written {
            allowed.learn_configuration(kind, namespace.as_deref().unwrap_or(known.namespace), name);
        }
    }
    let check = |allowed: &Allowed| objects.iter().try_for_each(|d| allowed.check(&d.object));
    for chart in charts {
        // Only where the chart lets the user choose, there is a namespace among the values.
        let base = match (&namespace, chart.values.get("namespace")) {
            (Some(namespace), Some(_)) => json!({"namespace": namespace}),
            _ => json!({}),
        };
        allowed.learn_until(chart, &base, |id| !is_prerequisite(id), |allowed| check(allowed).is_ok());
    }
    check(&allowed)
}
