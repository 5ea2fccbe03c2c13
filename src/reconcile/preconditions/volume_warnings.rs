// SPDX-License-Identifier: Apache-2.0
//! VolumesHealthy: whether events warn about volumes of the CSI driver (effect: watches); this condition blocks nothing.
//!
//! Without such warnings no claims, volumes or pods are watched; later only those that a warning names.

use crate::cluster::{ClusterError, Reader, Select, Watch};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use vdo_api::api::{ConditionType, Reason, VDOConfig, chain};
use vdo_api::types::count;
use vdo_core::drivers::{self, STORAGE};
use vdo_core::manifest::Object;
use vdo_core::status::Precondition;
use vdo_core::volume_diagnosis::{Class, Event, Finding, NamedObject, Observed, concerned, findings, of_others};

const KIND: ConditionType = ConditionType::VolumesHealthy;
/// The events of interest, by fields that the API server selects by.
const WARNINGS: [&str; 3] = [
    "type=Warning,involvedObject.kind=PersistentVolumeClaim",
    // No class, and no volume that fits: Kubernetes does not call it a warning.
    "reason=FailedBinding,involvedObject.kind=PersistentVolumeClaim",
    "reason=FailedAttachVolume,involvedObject.kind=Pod",
];
/// How many objects are looked at.
const LOOKED_AT: usize = 20;
/// How often others are looked at in the place of those that are of other drivers.
const ROUNDS: usize = 5;
/// How many findings a message has.
const NAMED: usize = 3;

/// Reads what is warned about, if CSI is asked for, and judges as `vdoctl doctor volumes` does.
pub(in crate::reconcile) async fn check(reader: &Reader, config: &VDOConfig, now: Timestamp) -> Precondition {
    if !drivers::is_requested(&config.spec, STORAGE.name) {
        return Precondition::unknown(KIND, Reason::NotRequested, "CSI is not requested");
    }
    match look(reader, config, now).await {
        Ok(observed) => judge(&findings(&observed)),
        Err(error) => {
            let why = chain(&error);
            Precondition::unknown(KIND, Reason::NotChecked, format!("warnings about volumes cannot be read: {why}"))
        }
    }
}

/// Reads what warnings are about. An object of another driver makes room for another one, as long as a few rounds find some.
async fn look(reader: &Reader, config: &VDOConfig, now: Timestamp) -> Result<Observed, ClusterError> {
    let classes = Watch::new("storage.k8s.io/v1", "StorageClass", "", Select::All);
    let events = WARNINGS.map(|fields| Watch::new("v1", "Event", "", Select::Fields(fields.to_owned())));
    let view = reader.load(events.iter().chain([&classes]).cloned().collect::<Vec<_>>()).await?;
    let warnings: Vec<Event> = events.iter().flat_map(|watch| all(view.list(watch))).collect();
    let classes: Vec<Class> = all(view.list(&classes));
    let mut others = BTreeSet::new();
    let mut observed = Observed::default();
    for _ in 0..ROUNDS {
        observed = named(reader, concerned(&warnings, &classes, &others, LOOKED_AT)).await?;
        observed.classes = Some(classes.clone());
        let found = of_others(&observed);
        if found.is_subset(&others) {
            break;
        }
        others.extend(found);
    }
    Ok(Observed {
        now,
        events: Some(warnings),
        features: drivers::feature_states(config),
        ..observed
    })
}

/// The claims, volumes and pods of these names; of pods those that do not run yet.
async fn named(reader: &Reader, objects: BTreeSet<NamedObject>) -> Result<Observed, ClusterError> {
    let named: BTreeSet<Watch> = objects
        .into_iter()
        .map(|(kind, namespace, name)| Watch::new("v1", kind, namespace, Select::Name(name)))
        .collect();
    let found = reader.load(named.iter().cloned().collect::<Vec<_>>()).await?;
    let of_kind = |kind: &str| {
        named
            .iter()
            .filter(|watch| watch.kind == kind)
            .filter_map(|watch| found.one(watch))
            .collect()
    };
    let is_pending = |pod: &Object| pod.text("/status/phase") == "Pending";
    let pods: Vec<Object> = of_kind("Pod");
    Ok(Observed {
        claims: Some(all(of_kind("PersistentVolumeClaim"))),
        volumes: Some(all(of_kind("PersistentVolume"))),
        pods: Some(all(pods.into_iter().filter(is_pending).collect())),
        ..Observed::default()
    })
}

/// Those that can be read.
fn all<T: DeserializeOwned>(objects: Vec<Object>) -> Vec<T> {
    let read = |object: Object| serde_json::from_value(object.into_value()).ok();
    objects.into_iter().filter_map(read).collect()
}

fn judge(findings: &[Finding]) -> Precondition {
    let faults: Vec<&Finding> = findings.iter().filter(|finding| finding.is_fault).collect();
    if faults.is_empty() {
        return Precondition::holds(KIND, "neither Kubernetes nor the driver warns about a volume of CSI");
    }
    let named: Vec<String> = faults
        .iter()
        .take(NAMED)
        .map(|finding| format!("{}: {}", finding.object(), finding.message))
        .collect();
    let more = match faults.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {}", count(more, "more object")),
    };
    let message = format!("{}{more}; for the remedies, run: vdoctl doctor volumes", named.join("; "));
    Precondition::fails(KIND, Reason::VolumesFailing, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Claims that wait, each with a warning of the driver.
    fn observed(claims: usize) -> Observed {
        let names: Vec<String> = (0..claims).map(|at| format!("c{at}")).collect();
        let claim = |name: &String| json!({"metadata": {"name": name, "namespace": "shop"}, "spec": {"storageClassName": "gold"}, "status": {"phase": "Pending"}});
        let event = |name: &String| {
            json!({"involvedObject": {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": name}, "reason": "ProvisioningFailed",
                "message": "failed: no pbm profile found with name: \"gold\""})
        };
        let class = json!({"metadata": {"name": "gold"}, "provisioner": "csi.vsphere.vmware.com"});
        let read = |value| serde_json::from_value(value).expect("a claim");
        Observed {
            claims: Some(names.iter().map(|name| read(claim(name))).collect()),
            events: Some(
                names
                    .iter()
                    .map(|name| serde_json::from_value(event(name)).expect("an event"))
                    .collect(),
            ),
            classes: Some(vec![serde_json::from_value(class).expect("a class")]),
            ..Observed::default()
        }
    }

    #[test]
    fn volumes_with_warnings_are_named_up_to_three() {
        let none = judge(&findings(&observed(0)));
        assert_eq!((none.holds, none.reason), (Some(true), Reason::Healthy));
        let one = judge(&findings(&observed(1)));
        assert_eq!((one.holds, one.reason), (Some(false), Reason::VolumesFailing));
        assert!(
            one.message
                .starts_with("PersistentVolumeClaim shop/c0: the storage policy that the class names does not exist")
                && one.message.ends_with("; for the remedies, run: vdoctl doctor volumes"),
            "{}",
            one.message
        );
        let many = judge(&findings(&observed(5)));
        assert!(
            many.message.contains("shop/c2: ") && !many.message.contains("shop/c3") && many.message.contains("; and 2 more objects; "),
            "{}",
            many.message
        );
    }
}
