// SPDX-License-Identifier: Apache-2.0
//! Accessors of the types in `objects.rs` for values that are more than one field: the class of a claim, the topology keys of a node.

use super::objects::{BETA_CLASS, Claim, Class, CsiNode, Event, Label, Pod, Registered, SELECTED_NODE, Term, Volume};
use crate::drivers::{CSI_DRIVER, DEFAULT_ANNOTATIONS};

impl Claim {
    /// The class that it names; an empty name means an existing volume.
    pub(super) fn class(&self) -> Option<&str> {
        let beta = self.metadata.annotation(BETA_CLASS);
        beta.or(self.spec.storage_class_name.as_deref())
    }

    /// The size that it asks for.
    pub(super) fn asked(&self) -> Option<&str> {
        self.spec.resources.requests.get("storage").map(String::as_str)
    }

    /// The node that was chosen for its volume.
    pub(super) fn node(&self) -> Option<&str> {
        self.metadata.annotation(SELECTED_NODE)
    }
}

impl Class {
    /// Whether claims that name no class may get it.
    pub(super) fn is_default(&self) -> bool {
        DEFAULT_ANNOTATIONS
            .iter()
            .any(|mark| self.metadata.annotation(mark) == Some("true"))
    }

    /// Whether its volumes are made when their pods are placed.
    pub(super) fn waits(&self) -> bool {
        self.volume_binding_mode == "WaitForFirstConsumer"
    }
}

impl Term {
    /// The labels.
    pub(super) fn labels(&self) -> impl Iterator<Item = &Label> {
        self.match_label_expressions.iter().chain(&self.match_expressions)
    }
}

impl CsiNode {
    /// Our driver on the node.
    fn ours(&self) -> Option<&Registered> {
        self.spec.drivers.iter().find(|driver| driver.name == CSI_DRIVER)
    }

    /// Whether our driver is registered.
    pub(super) fn is_registered(&self) -> bool {
        self.ours().is_some()
    }

    /// The labels by which our driver places volumes.
    pub(super) fn topology_keys(&self) -> impl Iterator<Item = &str> {
        let keys = self.ours().and_then(|driver| driver.topology_keys.as_ref());
        keys.into_iter().flatten().map(String::as_str)
    }
}

impl Volume {
    /// How large it is.
    pub(super) fn size(&self) -> &str {
        self.spec.capacity.get("storage").map(String::as_str).unwrap_or_default()
    }
}

impl Event {
    /// The driver that wrote it, where a sidecar of one did: the provisioner signs with the driver, an underscore and its own identity.
    pub(super) fn driver(&self) -> Option<&str> {
        let component = self.source.component.as_str();
        let provisioner = || component.split_once('_').map(|(driver, _)| driver);
        component.strip_prefix("external-resizer ").or_else(provisioner)
    }

    /// When it was seen last, as text that sorts.
    pub(super) fn at(&self) -> &str {
        let times = [&self.last_timestamp, &self.event_time, &self.metadata.creation_timestamp];
        times.into_iter().flatten().map(String::as_str).max().unwrap_or_default()
    }
}

impl Pod {
    /// Whether it uses this claim of its namespace.
    pub(super) fn uses(&self, claim: &str) -> bool {
        self.spec.volumes.iter().any(|volume| {
            let named = volume.persistent_volume_claim.as_ref().is_some_and(|own| own.claim_name == claim);
            named || (volume.ephemeral.is_some() && format!("{}-{}", self.metadata.name, volume.name) == claim)
        })
    }

    /// Why the scheduler places it nowhere.
    pub(super) fn unplaced(&self) -> Option<&str> {
        let placed = self.status.conditions.iter().find(|condition| condition.r#type == "PodScheduled")?;
        (placed.status == "False").then_some(placed.message.as_str())
    }
}
