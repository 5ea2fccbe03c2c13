// SPDX-License-Identifier: Apache-2.0
//! What the chart grants to the driver's controller, and what the driver does with it.

use super::ACCOUNT;
use crate::common::Bed;
use crate::rights::granted::{Right, rights};
use anyhow::{Result, ensure};
use serde_json::Value;
use vdo_testbed::Entry;

/// Rights of upstream's role that the life of one volume may do without: resources, verbs, and what they are for.
const UNUSED: [(&[&str], &[&str], &str); 12] = [
    (
        &["cnsvspherevolumemigrations.cns.vmware.com"],
        &["create", "get", "list", "watch", "update", "delete"],
        "volumes of the in-tree plugin, of which there are none",
    ),
    (
        &["cnsvolumeinfoes.cns.vmware.com"],
        &["create", "get", "list", "watch", "delete"],
        "which volume is in which vCenter, where there are several",
    ),
    (
        &["triggercsifullsyncs.cns.vmware.com"],
        &["create", "get", "list", "watch", "update"],
        "the feature state trigger-csi-fullsync, which is off",
    ),
    (
        &["csinodetopologies.cns.vmware.com"],
        &["get", "update"],
        "zones and regions, which need the plugin on the nodes",
    ),
    (&["nodes"], &["get", "list", "watch"], "zones and regions"),
    (
        &["configmaps"],
        &["create"],
        "a cluster id of the driver's own; the operator's configuration names one",
    ),
    (
        &["cnsvolumeoperationrequests.cns.vmware.com"],
        &["delete"],
        "a record of an operation is deleted a day later",
    ),
    (
        &["leases.coordination.k8s.io"],
        &["list", "watch", "delete"],
        "nothing: leader election gets, creates and updates",
    ),
    (
        &["events"],
        &["get", "list", "watch", "update", "patch"],
        "an event that happens again is patched",
    ),
    (
        &["persistentvolumes", "persistentvolumeclaims"],
        &["get", "update"],
        "older sidecars: newer ones read through a watch, and patch",
    ),
    (
        &[
            "volumesnapshots.snapshot.storage.k8s.io",
            "volumesnapshotcontents.snapshot.storage.k8s.io",
        ],
        &["create", "list", "update", "delete"],
        "older sidecars: contents are made by the controller that all drivers share",
    ),
    (
        &[
            "csinodes.storage.k8s.io",
            "pods",
            "storageclasses.storage.k8s.io",
            "volumeattachments.storage.k8s.io",
            "volumesnapshotclasses.snapshot.storage.k8s.io",
        ],
        &["get"],
        "single objects, which the driver reads through its watches",
    ),
];

/// No request of the driver was refused, and what it did not make use of is in the table.
pub async fn suffice_and_are_needed(bed: &Bed) -> Result<()> {
    let requests = bed.cluster.audit().requests(|entry| entry.user == ACCOUNT).await?;
    ensure!(requests.len() > 100, "the driver has made {} requests only", requests.len());
    let forbidden = requests.clone().only(|entry| entry.code == 403);
    ensure!(forbidden.is_empty(), "forbidden to the driver:\n{forbidden}");

    let role = bed
        .get("rbac.authorization.k8s.io/v1", "ClusterRole", "", "vsphere-csi-controller-role")
        .await?;
    ensure!(role != Value::Null, "the role has another name");
    let granted = rights(&role)?;
    let unused = granted.iter().filter(|right| !requests.0.iter().any(|entry| uses(entry, right)));
    let unexplained: Vec<String> = unused.filter(|right| !is_explained(right)).map(Right::to_string).collect();
    ensure!(unexplained.is_empty(), "granted, not used and not explained: {unexplained:#?}");
    for (resources, verbs, reason) in UNUSED {
        let found = granted.iter().any(|right| is_in(right, resources, verbs));
        ensure!(found, "nothing of {resources:?} is granted any more, but explained: {reason}");
    }
    Ok(())
}

/// Whether a request makes use of a right. Newer clients read a list with a watch, older ones need both.
fn uses(entry: &Entry, right: &Right) -> bool {
    let mut watched = right.clone();
    if right.verb == "list" {
        watched.verb = "watch".into();
    }
    right.allows(entry) || watched.allows(entry)
}

fn is_explained(right: &Right) -> bool {
    UNUSED.iter().any(|(resources, verbs, _)| is_in(right, resources, verbs))
}

fn is_in(right: &Right, resources: &[&str], verbs: &[&str]) -> bool {
    let dot = if right.group.is_empty() { "" } else { "." };
    resources.contains(&format!("{}{dot}{}", right.resource, right.group).as_str()) && verbs.contains(&right.verb.as_str())
}
