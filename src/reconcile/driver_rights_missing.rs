// SPDX-License-Identifier: Apache-2.0
//! Reads whether the namespaces, roles and bindings exist that an administrator creates for the drivers; a driver without them waits.

use super::Ports;
use super::driver_run::DriverRuns;
use super::error::ReconcileError;
use super::rights::add_missing;
use crate::cluster::{ClusterError, Reader, Select, View, Watch};
use std::collections::BTreeSet;
use vdo_api::api::{Class, Reason};
use vdo_core::install::VDOCTL;
use vdo_core::manifest::Object;
use vdo_core::plan::{Desired, Wait};
use vdo_core::rbac::{self, is_prerequisite};
use vdo_core::status::Failure;

/// Takes what the administrator brings out of what should exist. A driver for which it is not enough waits: what it has reached before is
/// kept, and nothing new of it is written. Gives what is waited for.
///
/// # Errors
/// When it cannot be looked at.
pub(super) async fn check(ports: &Ports, runs: &mut DriverRuns) -> Result<Vec<Failure>, ReconcileError> {
    let all: BTreeSet<Watch> = runs.sound().flat_map(|run| watches(&run.objects)).collect();
    let view = ports.reader.load(all).await?;
    let mut failures = Vec::new();
    for run in runs.iter_mut().filter(|run| !run.has_failed()) {
        run.wait = wait(&run.objects, &view);
        run.objects.retain(|d| !is_prerequisite(d.object.identity()));
        failures.extend(run.wait.as_ref().map(|wait| Failure::of_wait(wait, Class::Wait)));
    }
    Ok(failures)
}

/// Each by its name: the administrator does not have to label them.
pub(super) fn watches(desired: &[Desired]) -> BTreeSet<Watch> {
    let brought = desired.iter().filter(|d| is_prerequisite(d.object.identity()));
    brought.map(|d| watch(&d.object)).collect()
}

/// Those of which the cluster has nothing or not enough, each with what is lacking.
///
/// # Errors
/// When they cannot be looked at.
pub async fn lacking(reader: &Reader, objects: Vec<Object>) -> Result<Vec<(Object, String)>, ClusterError> {
    let view = reader.load(objects.iter().map(watch).collect::<Vec<_>>()).await?;
    let lacking = |object: Object| {
        let live = view.one(&watch(&object));
        let what = rbac::lacking(&object, live.as_ref())?;
        Some((rbac::beside_others(object, live.as_ref(), VDOCTL), what))
    };
    Ok(objects.into_iter().filter_map(lacking).collect())
}

fn watch(object: &Object) -> Watch {
    let select = Select::Name(object.name().to_owned());
    Watch::new(object.api_version(), object.kind(), object.namespace(), select)
}

fn wait(desired: &[Desired], view: &View) -> Option<Wait> {
    let mut brought = desired.iter().filter(|d| is_prerequisite(d.object.identity()));
    brought.find_map(|d| {
        let what = rbac::lacking(&d.object, view.one(&watch(&d.object)).as_ref())?;
        let driver = d.driver.to_string();
        Some(Wait {
            message: format!(
                "{driver} waits for missing rights: {what}; to add the missing rights: `{}`",
                add_missing("")
            ),
            driver,
            reason: Reason::RightsMissing,
        })
    })
}
