// SPDX-License-Identifier: Apache-2.0
//! The rights to make, to repair and to remove something are taken away from the real operator on a real API server: exactly the rule that
//! is missing is named, nothing is half-done or torn down, and all goes on when the right is back.

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::{INSTALLED, OPERATOR};
use crate::rights::granted::{Right, Roles};
use crate::rights::in_log::reason_not_to_try;
use crate::rights::lab::{BEFORE_REMOVAL, Lab, everything, storage};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::Instant;
use vdo_api::api::STATE;
use vdo_testbed::{Probe, until};

const CSI: &str = "vmware-system-csi";
const CONTROLLER: &str = "vsphere-csi-controller";

/// The rights that are needed to make something.
pub fn to_install(roles: &Roles) -> Vec<Right> {
    let all = roles.all();
    all.into_iter()
        .filter(|right| right.is_for_making() && reason_not_to_try(right).is_none())
        .collect()
}

/// A right to repair a changed object, and one to repair a deleted one.
pub fn to_repair(roles: &Roles) -> Result<Vec<Right>> {
    let all = roles.all();
    [("patch", "deployments"), ("create", "serviceaccounts")]
        .into_iter()
        .map(|(verb, resource)| {
            let is_it = |r: &&Right| r.verb == verb && r.resource == resource && r.name.as_deref() == Some(CONTROLLER);
            let found = all.iter().find(is_it).cloned();
            found.with_context(|| format!("no right to {verb} {resource} {CONTROLLER}"))
        })
        .collect()
}

/// The rights without which nothing is removed, and those that are needed at the end of an uninstall.
pub fn to_uninstall(roles: &Roles) -> (Vec<Right>, Vec<Right>) {
    let mut own = roles.all();
    own.retain(|right| reason_not_to_try(right).is_none());
    let first = |right: &&Right| {
        (right.verb == "delete" && !right.is_at_home_to_delete())
            || (right.verb == "list" && BEFORE_REMOVAL.contains(&right.resource.as_str()))
    };
    let late = |right: &&Right| right.verb == "list" && !right.is_for_watching(&own) && !first(right);
    // The inventory goes last, when nothing else is left.
    let last = own.iter().filter(|right| right.is_at_home_to_delete());
    (
        own.iter().filter(first).cloned().collect(),
        own.iter().filter(late).chain(last).cloned().collect(),
    )
}

/// Nothing is made as long as a single right to make it is missing. A new storage driver does not begin without its cloud provider;
/// the cloud provider does without the storage driver, so that one is asked for alone where a right is only its own.
#[test]
#[ignore = "long"]
fn install_without_a_right_names_its_rule_and_makes_nothing() -> Result<()> {
    const COUNT: usize = 3;
    OPERATOR.run(async |bed| {
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        let mut lab = Lab::new(bed)?;
        let begun = Instant::now();
        let cloud = lab.cloud_provider().await?;
        // What is written besides the objects is not tried in a dry run; by then that has been remembered.
        let stage = |right: &Right| match (right.resource.as_str(), right.namespace.as_deref()) {
            // The certificate of the webhook, which only the storage driver waits for. The inventory is a Secret, too.
            ("secrets", Some(NS)) if right.name.as_deref() != Some(STATE) => 2,
            // The finalizer comes first of these, and stays.
            ("vdoconfigs", _) => 3,
            (_, Some(NS)) => 4,
            _ if cloud.iter().any(|object| right.is_needed_for(object)) => 1,
            _ => 2,
        };
        let mut all = to_install(&lab.roles);
        all.sort_by_key(stage);
        let tried = super::some("install", &all, COUNT);
        let mut before = None;
        for right in &tried {
            let stage = stage(right);
            let spec = if stage == 2 { storage(true) } else { everything(true) };
            let spec = (before != Some(stage)).then_some(spec);
            before = Some(stage);
            lab.take_and_ask(Some(right), spec).await?;
            lab.wake().await?;
            let named = lab.named(right).await;
            lab.note("installation", right, named);
            let made = lab.owned().await?;
            ensure!(made.is_empty(), "without the right to {right} this was made: {:?}", made.keys());
        }
        lab.bed.apply(&lab.bed.config(everything(false))).await?;
        lab.take(None).await?;
        lab.bed.until_ready().await.context("after the rights to install are back")?;
        lab.bed.apply(&lab.bed.config(everything(true))).await?;
        lab.bed.until_ready().await.context("with the webhook")?;
        lab.count("installation", begun, tried.len());
        lab.finish(&tried)
    })
}

/// One repair is not possible: the others are made, and it when its right is back.
#[test]
fn repair_without_a_right_names_its_rule_and_repairs_the_rest() -> Result<()> {
    const COUNT: usize = 1;
    INSTALLED.run(async |bed| {
        let mut lab = Lab::new(bed)?;
        let begun = Instant::now();
        let tried = super::some("repair", &to_repair(&lab.roles)?, COUNT);
        for right in &tried {
            lab.take(Some(right)).await?;
            let damaged = match right.verb.as_str() {
                "patch" => ("apps/v1", "Deployment", "/spec/replicas"),
                _ => ("v1", "ServiceAccount", "/metadata/uid"),
            };
            let value = async |bed: &Bed| {
                let object = bed.get(damaged.0, damaged.1, CSI, CONTROLLER).await?;
                anyhow::Ok(object.pointer(damaged.2).cloned().unwrap_or_default())
            };
            let before = value(lab.bed).await?;
            match right.verb.as_str() {
                "patch" => {
                    let change = json!({"spec": {"replicas": 7}});
                    lab.bed.merge(damaged.0, damaged.1, CSI, CONTROLLER, change).await?;
                }
                _ => lab.bed.delete(damaged.0, damaged.1, CSI, CONTROLLER).await?,
            }
            let other = ("v1", "ConfigMap", "kube-system", "vsphere-cloud-config");
            lab.bed.delete(other.0, other.1, other.2, other.3).await?;
            let named = lab.named(right).await;
            lab.note("drift", right, named);
            until("the other drift to be repaired", PATIENCE, async || {
                let object = lab.bed.get(other.0, other.1, other.2, other.3).await?;
                Ok(Probe::when(object["metadata"]["uid"].is_string(), &object))
            })
            .await?;
            ensure!(value(lab.bed).await? != before, "it was repaired without the right to {right}");
            lab.take(None).await?;
            lab.well_again(Instant::now()).await?;
            let after = value(lab.bed).await?;
            ensure!(
                after.is_number() && after == before || after.is_string(),
                "{after} instead of {before}"
            );
        }
        lab.count("drift", begun, tried.len());
        lab.finish(&tried)
    })
}

/// Nothing is removed as long as a single right to remove it is missing, and a storage class stays as long as it is not known that
/// no one uses it.
#[test]
#[ignore = "long"]
fn uninstall_without_a_right_names_its_rule_and_removes_nothing() -> Result<()> {
    const FIRST: usize = 2;
    const LATE: usize = 1;
    INSTALLED.run(async |bed| {
        let mut lab = Lab::new(bed)?;
        lab.install_everything().await?;
        let begun = Instant::now();
        let before = lab.owned().await?;
        let (first, late) = to_uninstall(&lab.roles);
        let first = super::some("uninstall", &first, FIRST);
        let late = super::some("end of an uninstall", &late, LATE);
        for (number, right) in first.iter().enumerate() {
            lab.take(Some(right)).await?;
            match number {
                0 => lab.bed.delete("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?,
                _ => lab.wake().await?,
            }
            let named = lab.named(right).await;
            lab.note("removal", right, named);
            lab.untouched(&before, &format!("without the right to {right}")).await?;
        }
        for right in &late {
            lab.take(Some(right)).await?;
            lab.wake().await?;
            let named = lab.named(right).await;
            lab.note("end of a removal", right, named);
            let left = lab.owned().await?;
            ensure!(
                right.is_at_home_to_delete() || left.keys().any(|key| key.starts_with("StorageClass")),
                "without the right to {right} the storage class went"
            );
        }
        lab.take(None).await?;
        let back = Instant::now();
        until("everything to be removed", PATIENCE, async || {
            let config = lab.config().await?;
            Ok(Probe::when(config == Value::Null, condition(&config, "Ready")))
        })
        .await?;
        println!("removed {:.1} s after the last right was back", back.elapsed().as_secs_f64());
        ensure!(lab.owned().await?.is_empty(), "something is left");
        lab.count("removal", begun, first.len() + late.len());
        let tried: Vec<Right> = first.into_iter().chain(late).collect();
        lab.finish(&tried)
    })
}

impl Right {
    /// Whether it is needed to delete what the operator keeps in its own namespace.
    fn is_at_home_to_delete(&self) -> bool {
        self.verb == "delete" && self.namespace.as_deref() == Some(NS)
    }

    /// Whether it is needed to write an object of a driver, the inventory or the finalizer. A review is a question, and makes no object.
    fn is_for_making(&self) -> bool {
        let elsewhere = [
            "events",
            "leases",
            "pods",
            "subjectaccessreviews",
            "vdoconfigs/status",
            "vspherecloudconfigs/status",
        ];
        matches!(self.verb.as_str(), "create" | "patch") && !elsewhere.contains(&self.resource.as_str())
    }

    /// Whether it is needed to write this object.
    fn is_needed_for(&self, object: &Value) -> bool {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let group = text("/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
        let writes = Self {
            namespace: Some(text("/metadata/namespace").to_owned()).filter(|namespace| !namespace.is_empty()),
            group: group.to_owned(),
            resource: format!("{}s", text("/kind").to_lowercase()),
            verb: self.verb.clone(),
            name: Some(text("/metadata/name").to_owned()),
        };
        self.covers(&writes)
    }

    /// Whether it is needed to see what is there, of all rights. What is only asked for before something goes is listed alone.
    pub fn is_for_watching(&self, all: &[Self]) -> bool {
        let watched = |other: &Self| other.verb == "watch" && (&other.group, &other.resource) == (&self.group, &self.resource);
        let same = |other: &&Self| (&other.name, &other.namespace) == (&self.name, &self.namespace);
        matches!(self.verb.as_str(), "list" | "watch")
            && !BEFORE_REMOVAL.contains(&self.resource.as_str())
            && all.iter().filter(same).any(watched)
    }
}
