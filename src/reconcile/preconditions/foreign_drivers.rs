//! Whether another manager runs a driver in the cluster: checked before the first write, and watched from then on (effect).

use crate::api::{ConditionType, Reason};
use crate::cluster::{Select, Watch};
use crate::drivers;
use crate::manifest::Object;
use crate::plan::{Desired, ORIGINAL_OPERATOR, foreigners};
use crate::reconcile::Ports;
use crate::reconcile::error::ReconcileError;
use crate::reconcile::observe::ClusterState;
use crate::reconcile::requests::DriverFailures;
use crate::status::Precondition;
use std::collections::BTreeSet;

/// The condition, and whom it concerns. A driver that does not run yet is not installed against another one; one that runs is kept, because to stop
/// repairing it would help no one.
///
/// # Errors
/// When it cannot be found out.
pub(in crate::reconcile) async fn foreign_drivers(
    ports: &Ports,
    state: &ClusterState,
    desired: &[Desired],
) -> Result<(Precondition, DriverFailures), ReconcileError> {
    let mut failures = DriverFailures::default();
    let watches = watches(desired);
    let view = ports.reader.load(watches.clone()).await?;
    let found: Vec<Object> = watches.iter().flat_map(|watch| view.list(watch)).collect();
    let all = foreigners(desired, &found, &state.apply_set);
    let kind = ConditionType::NoForeignDriver;
    let Some(first) = all.first() else {
        let holds = Precondition::holds(kind, "no other manager runs a vSphere driver in this cluster");
        return Ok((holds, failures));
    };
    let more = if all.len() > 1 {
        format!("; {} more objects are in the way", all.len() - 1)
    } else {
        String::new()
    };
    let message = format!("{}{more}", first.message);
    let precondition = Precondition::fails(kind, Reason::NotOurs, message.clone());
    let new = |driver: &str| !state.running.contains_key(driver);
    // Another tool manages vSphere drivers here, so none is installed beside it.
    let concerned: BTreeSet<String> = match all.iter().any(|foreigner| new(&foreigner.driver)) {
        true => desired.iter().map(|d| d.driver.to_string()).filter(|driver| new(driver)).collect(),
        false => BTreeSet::new(),
    };
    if !concerned.is_empty() {
        failures.of(concerned, ReconcileError::ForeignDriver { message });
    }
    Ok((precondition, failures))
}

/// The CSIDriver, the workloads of ours by name in all namespaces, and the original operator.
pub(in crate::reconcile) fn watches(desired: &[Desired]) -> BTreeSet<Watch> {
    let named = |api_version: &str, kind: &str, name: &str| Watch::new(api_version, kind, "", Select::Name(name.to_owned()));
    let mut all = BTreeSet::from([named("apps/v1", "Deployment", ORIGINAL_OPERATOR)]);
    for d in desired {
        let object = &d.object;
        if object.pod_spec().is_some() {
            all.insert(named(object.api_version(), object.kind(), object.name()));
            let others = drivers::known(&d.driver).map_or(&[][..], |known| known.also_runs_as);
            all.extend(others.iter().map(|(api_version, kind)| named(api_version, kind, object.name())));
        } else if object.kind() == "CSIDriver" {
            all.insert(named(object.api_version(), object.kind(), object.name()));
        }
    }
    all
}
