//! What the administrator brings for the drivers: looked at before anything of theirs is written (effect; what is concluded is pure).

use super::Ports;
use super::error::ReconcileError;
use crate::cluster::{ClusterError, Reader, Select, View, Watch};
use std::collections::BTreeSet;
use vdo_api::api::Reason;
use vdo_core::manifest::Object;
use vdo_core::plan::{Desired, Held, Wait};
use vdo_core::rbac::{self, is_prerequisite};

/// Takes what the administrator brings out of what is wanted, and gives the drivers for which it is not enough. What such a driver has
/// reached before is kept; nothing new of it is written.
///
/// # Errors
/// When it cannot be looked at.
pub(super) async fn missing(ports: &Ports, desired: &mut Vec<Desired>) -> Result<Held, ReconcileError> {
    let watches = watches(desired);
    let view = ports.reader.load(watches).await?;
    let found = waits(desired, &view);
    desired.retain(|d| !is_prerequisite(d.object.identity()));
    Ok(found)
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
        let what = rbac::lacking(&object, view.one(&watch(&object)).as_ref())?;
        Some((object, what))
    };
    Ok(objects.into_iter().filter_map(lacking).collect())
}

fn watch(object: &Object) -> Watch {
    let select = Select::Name(object.name().to_owned());
    Watch::new(object.api_version(), object.kind(), object.namespace(), select)
}

fn waits(desired: &[Desired], view: &View) -> Held {
    let mut held = Held::new();
    for d in desired.iter().filter(|d| is_prerequisite(d.object.identity())) {
        let Some(what) = rbac::lacking(&d.object, view.one(&watch(&d.object)).as_ref()) else {
            continue;
        };
        let driver = d.driver.to_string();
        held.entry(driver.clone()).or_insert_with(|| Wait {
            message: format!(
                "{driver} waits for its rights: {what}; add what is missing: vdoctl rights --missing | kubectl apply --server-side --force-conflicts -f -"
            ),
            driver,
            reason: Reason::RightsMissing,
        });
    }
    held
}
