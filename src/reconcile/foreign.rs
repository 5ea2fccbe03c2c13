//! Is somebody else's driver in the cluster? Looked at before the first write, and watched from then on (effect).

use super::World;
use super::error::ReconcileError;
use super::select::Failures;
use super::survey::Survey;
use crate::api::{ConditionType, Reason};
use crate::cluster::{Select, Watch};
use crate::manifest::Object;
use crate::plan::{Desired, ORIGINAL_OPERATOR, foreigners};
use crate::status::{Precondition, Report};
use crate::types::{CPI, CSI_DRIVER};
use std::collections::BTreeSet;

/// Reports the condition. A driver that does not run yet is not installed against another one; one that runs is kept, because to stop
/// repairing it would help no one.
///
/// # Errors
/// When it cannot be found out.
pub(super) async fn foreign_drivers(
    world: &World,
    survey: &Survey,
    desired: &[Desired],
    failures: &mut Failures,
    report: &mut Report,
) -> Result<(), ReconcileError> {
    let watches = watches(desired);
    let view = world.reader.load(watches.clone()).await?;
    let found: Vec<Object> = watches.iter().flat_map(|watch| view.list(watch)).collect();
    let all = foreigners(desired, &found, &survey.apply_set);
    let kind = ConditionType::NoForeignDriver;
    let Some(first) = all.first() else {
        report
            .preconditions
            .push(Precondition::holds(kind, "nobody else runs a vSphere driver in this cluster"));
        return Ok(());
    };
    let more = if all.len() > 1 {
        format!("; {} more objects are in the way", all.len() - 1)
    } else {
        String::new()
    };
    let message = format!("{}{more}", first.message);
    report
        .preconditions
        .push(Precondition::fails(kind, Reason::NotOurs, message.clone()));
    let new = |driver: &str| !survey.running.contains_key(driver);
    // Another tool manages vSphere drivers here, so none is installed beside it.
    let concerned: BTreeSet<String> = match all.iter().any(|foreigner| new(&foreigner.driver)) {
        true => desired.iter().map(|d| d.driver.to_string()).filter(|driver| new(driver)).collect(),
        false => BTreeSet::new(),
    };
    if !concerned.is_empty() {
        failures.of(concerned, ReconcileError::ForeignDriver { message });
    }
    Ok(())
}

/// The CSIDriver, the workloads of ours by name in all namespaces, and the original operator. OpenShift runs the cloud
/// provider as a Deployment.
pub(super) fn watches(desired: &[Desired]) -> BTreeSet<Watch> {
    let named = |api_version: &str, kind: &str, name: &str| Watch::new(api_version, kind, "", Select::Name(name.to_owned()));
    let mut all = BTreeSet::from([named("apps/v1", "Deployment", ORIGINAL_OPERATOR)]);
    for d in desired {
        let object = &d.object;
        if object.pod_spec().is_some() {
            all.insert(named(object.api_version(), object.kind(), object.name()));
            if *d.driver == *CPI {
                all.insert(named("apps/v1", "Deployment", object.name()));
            }
        } else if object.name() == CSI_DRIVER {
            all.insert(named(object.api_version(), object.kind(), CSI_DRIVER));
        }
    }
    all
}
