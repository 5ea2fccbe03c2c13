// SPDX-License-Identifier: Apache-2.0
//! Indexes the read objects by name, so that thousands of claims are compared with thousands of volumes in a short time.

use super::Observed;
use super::objects::{Claim, Class, CsiNode, Event, Named, Pod, Volume};
use crate::drivers::CSI_DRIVER;
use std::collections::{BTreeMap, BTreeSet};

/// The driver that was built into Kubernetes; the CSI driver serves it by migration.
pub(super) const BUILT_IN: &str = "kubernetes.io/vsphere-volume";

/// What was read, by name.
pub(super) struct Index<'a> {
    /// The classes.
    pub classes: BTreeMap<&'a str, &'a Class>,
    /// The volumes.
    pub volumes: BTreeMap<&'a str, &'a Volume>,
    /// The claims, by namespace and name.
    pub claims: BTreeMap<(&'a str, &'a str), &'a Claim>,
    /// The newest warning of each object, by kind, namespace and name, and by reason.
    events: BTreeMap<(&'a str, &'a str, &'a str), Vec<&'a Event>>,
    /// The pods that do not run yet, by namespace.
    pods: BTreeMap<&'a str, Vec<&'a Pod>>,
    /// The nodes on which the driver is registered.
    pub registered: BTreeMap<&'a str, &'a CsiNode>,
    /// The nodes that volumes of the driver are attached to, by the name of the volume.
    pub attached: BTreeMap<&'a str, &'a str>,
    /// The nodes.
    pub nodes: BTreeMap<&'a str, &'a Named>,
    /// The CSI drivers of the cluster.
    pub drivers: BTreeSet<&'a str>,
}

impl<'a> Index<'a> {
    /// Sorts what was read.
    pub(super) fn of(observed: &'a Observed) -> Self {
        let mut events: BTreeMap<_, Vec<&Event>> = BTreeMap::new();
        for event in observed.events.iter().flatten() {
            let about = &event.involved_object;
            events
                .entry((&*about.kind, &*about.namespace, &*about.name))
                .or_default()
                .push(event);
        }
        let mut pods: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
        for pod in observed.pods.iter().flatten() {
            pods.entry(&pod.metadata.namespace).or_default().push(pod);
        }
        let registered = observed.csi_nodes.iter().flatten();
        let registered = registered.filter(|node| node.is_registered());
        Self {
            classes: observed
                .classes
                .iter()
                .flatten()
                .map(|class| (&*class.metadata.name, class))
                .collect(),
            volumes: observed
                .volumes
                .iter()
                .flatten()
                .map(|volume| (&*volume.metadata.name, volume))
                .collect(),
            claims: observed
                .claims
                .iter()
                .flatten()
                .map(|claim| ((&*claim.metadata.namespace, &*claim.metadata.name), claim))
                .collect(),
            events,
            pods,
            attached: attached(observed),
            registered: registered.map(|node| (&*node.metadata.name, node)).collect(),
            nodes: observed.nodes.iter().flatten().map(|node| (&*node.metadata.name, node)).collect(),
            drivers: observed.drivers.iter().flatten().map(|driver| &*driver.metadata.name).collect(),
        }
    }

    /// The newest warning with this reason about an object. One about a predecessor of the same name does not count.
    pub(super) fn warning(&self, kind: &str, meta: &super::Meta, reasons: &[&str]) -> Option<&'a Event> {
        let all = self.events.get(&(kind, &*meta.namespace, &*meta.name))?;
        let own = |event: &&&Event| {
            let uid = &event.involved_object.uid;
            (uid.is_empty() || meta.uid.is_empty() || *uid == meta.uid) && reasons.contains(&&*event.reason)
        };
        all.iter().filter(own).copied().max_by_key(|event| event.at())
    }

    /// The claims of a namespace that wait for a volume.
    pub(super) fn waiting(&self, namespace: &'a str) -> Vec<&'a Claim> {
        let from = self.claims.range((namespace, "")..);
        from.take_while(|((of, _), _)| *of == namespace)
            .map(|(_, claim)| *claim)
            .filter(|claim| claim.status.phase == "Pending")
            .collect()
    }

    /// The pods that use a claim and do not run yet.
    pub(super) fn users(&self, claim: &Claim) -> Vec<&'a Pod> {
        let all = self.pods.get(&*claim.metadata.namespace).into_iter().flatten();
        all.filter(|pod| pod.uses(&claim.metadata.name)).copied().collect()
    }

    /// Whether a pod was read, and does not run yet.
    pub(super) fn is_pending(&self, namespace: &str, name: &str) -> bool {
        let all = self.pods.get(namespace).into_iter().flatten();
        all.into_iter().any(|pod| pod.metadata.name == name)
    }

    /// Whether a claim is one of the driver.
    pub(super) fn is_ours(&self, claim: &Claim) -> bool {
        let by_volume = self.volumes.get(&*claim.spec.volume_name).map(|volume| is_ours(volume));
        by_volume.unwrap_or_else(|| {
            claim
                .class()
                .and_then(|name| self.classes.get(name))
                .is_some_and(|class| serves(class))
        })
    }
}

/// The nodes that volumes of the driver are attached to.
fn attached(observed: &Observed) -> BTreeMap<&str, &str> {
    let all = observed.attachments.iter().flatten();
    all.filter(|one| one.spec.attacher == CSI_DRIVER && one.status.attached)
        .map(|one| (&*one.spec.source.persistent_volume_name, &*one.spec.node_name))
        .collect()
}

/// Whether a volume is one of the driver.
pub(super) fn is_ours(volume: &Volume) -> bool {
    let by_csi = volume.spec.csi.as_ref().is_some_and(|csi| csi.driver == CSI_DRIVER);
    by_csi || volume.spec.vsphere_volume.is_some()
}

/// Whether the driver makes the volumes of a class.
pub(super) fn serves(class: &Class) -> bool {
    [CSI_DRIVER, BUILT_IN].contains(&&*class.provisioner)
}
