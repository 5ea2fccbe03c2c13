// SPDX-License-Identifier: Apache-2.0
//! A plan in the words in which it is shown.

use super::simulation::{Listed, Live, NOTHING, Slot, at, with};
use vdo_core::plan::outline;

#[test]
fn outline_names_each_object_once_with_what_is_done_and_why() {
    let slot = |wanted: Option<u8>, live, listed| Slot {
        wanted,
        live,
        listed,
        ..NOTHING
    };
    let case = with(&[
        (at("ServiceAccount", "cpi"), slot(Some(0), Live::Absent, Listed::No)),
        (at("Service", "webhook"), slot(Some(0), Live::Absent, Listed::SameUid)),
        (
            at("ConfigMap", "cpi"),
            Slot {
                fixed: true,
                ..slot(Some(1), Live::Ours(0), Listed::SameUid)
            },
        ),
        (at("Secret", "config"), slot(Some(1), Live::Ours(0), Listed::SameUid)),
        (at("DaemonSet", "cpi"), slot(Some(0), Live::Foreign(1), Listed::No)),
        (at("Deployment", "controller"), slot(Some(0), Live::Ours(0), Listed::SameUid)),
        (at("StorageClass", "fast"), slot(Some(0), Live::Ours(0), Listed::SameUid)),
        (at("DaemonSet", "node"), slot(None, Live::Ours(0), Listed::SameUid)),
    ]);
    let items = outline(&case.world.whole(&case.desired), &case.desired);
    let line = |item: &vdo_core::plan::Item| {
        let data = item.fields.iter().filter(|field| field.path.starts_with("data"));
        let data: Vec<String> = data
            .map(|field| format!(" {} {}->{}", field.path, field.found, field.wanted))
            .collect();
        format!(
            "{:?} {:?} {} {} {} {}{}",
            item.action,
            item.because,
            item.api_version,
            item.id,
            item.driver,
            item.wave,
            data.concat()
        )
    };
    assert_eq!(
        items.iter().map(line).collect::<Vec<_>>(),
        [
            "Recreate Immutable v1 ConfigMap kube-system/cpi vsphere-cpi 2 data.content 0->1",
            "Apply Outdated v1 Secret csi/config vsphere-csi 2 data.content \"******\"->\"******\"",
            "Create Deleted v1 Service csi/webhook vsphere-csi 2",
            "Create New v1 ServiceAccount kube-system/cpi vsphere-cpi 2",
            "Adopt Unmarked apps/v1 DaemonSet kube-system/cpi vsphere-cpi 4 data.content 1->0",
            "Prune Unwanted apps/v1 DaemonSet csi/node vsphere-csi 5",
            "Keep AsWanted storage.k8s.io/v1 StorageClass fast vsphere-csi 2",
            "Keep AsWanted apps/v1 Deployment csi/controller vsphere-csi 5",
        ]
    );
}
