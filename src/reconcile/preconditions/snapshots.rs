//! What volume snapshots need of the cluster, and whether it is there: definitions and a controller, which no driver brings.

use crate::cluster::{Reader, Select, View, Watch};
use crate::reconcile::error::ReconcileError;
use crate::reconcile::observe::cluster;
use serde_json::Value;
use vdo_api::api::{ConditionType, ManagementState, Reason, VDOConfigSpec};
use vdo_api::facts::SnapshotSupport;
use vdo_core::drivers::{self, Request, STORAGE};
use vdo_core::manifest::Object;
use vdo_core::status::Precondition;

const KIND: ConditionType = ConditionType::SnapshotsSupported;
/// The definitions, by name.
pub const DEFINITIONS: [&str; 3] = [
    "volumesnapshotclasses.snapshot.storage.k8s.io",
    "volumesnapshotcontents.snapshot.storage.k8s.io",
    "volumesnapshots.snapshot.storage.k8s.io",
];
/// The version of them that the drivers speak.
const VERSION: &str = "v1";
/// Labels of the pods of a snapshot controller: upstream's of today, RKE2's; upstream's up to 6, OpenShift's.
const CONTROLLERS: [&str; 2] = [
    "app.kubernetes.io/name in (snapshot-controller,rke2-snapshot-controller)",
    "app in (snapshot-controller,csi-snapshot-controller)",
];

/// What a specification says of snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reconcile) enum Requested {
    /// It asks for them.
    On,
    /// Nothing: the snapshotter runs, as the driver ships it.
    Shipped,
    /// They are switched off, or CSI is; why.
    Off(&'static str),
}

/// Reads the specification.
pub(in crate::reconcile) fn wish(spec: &VDOConfigSpec) -> Requested {
    let requested = |request: &Request| request.driver == STORAGE.name && request.state != ManagementState::Removed;
    if !drivers::requests(spec).iter().any(requested) {
        return Requested::Off("CSI is not asked for");
    }
    let Some(csi) = &spec.storage_provider else {
        return Requested::Shipped;
    };
    match csi.values.get("snapshots").and_then(|snapshots| snapshots.get("enabled")) {
        Some(Value::Bool(false)) => Requested::Off("spec.storageProvider.values.snapshots.enabled is false"),
        Some(Value::Bool(true)) => Requested::On,
        _ if csi.snapshots.is_some() || csi.features.get("block-volume-snapshot") == Some(&true) => Requested::On,
        _ => Requested::Shipped,
    }
}

/// Looks for the definitions, and for the controller where snapshots are asked for: anyone may label pods like it.
///
/// # Errors
/// When they cannot be read.
async fn look(reader: &Reader, wish: Requested) -> Result<SnapshotSupport, ReconcileError> {
    let definition = |name: &str| Watch::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", Select::Name(name.into()));
    let labels = if wish == Requested::On { &CONTROLLERS[..] } else { &[] };
    let pods = || {
        labels
            .iter()
            .map(|labels| Watch::new("v1", "Pod", "", Select::Labels((*labels).into())))
    };
    let watches = DEFINITIONS.iter().map(|name| definition(name)).chain(pods());
    let view: View = reader.load(watches.collect::<Vec<_>>()).await?;
    let lacks = |name: &&str| view.one(&definition(name)).is_none_or(|found| !serves(&found));
    Ok(SnapshotSupport {
        missing: DEFINITIONS.into_iter().filter(lacks).map(str::to_owned).collect(),
        controllers: pods()
            .flat_map(|watch| view.list(&watch))
            .map(|pod| (format!("{}/{}", pod.namespace(), pod.name()), cluster::holds(&pod, "Ready")))
            .collect(),
    })
}

/// Whether a definition is established and served in the version that is spoken.
fn serves(definition: &Object) -> bool {
    let versions = definition.value().pointer("/spec/versions").and_then(Value::as_array);
    let served = |version: &Value| version["name"] == VERSION && version["served"] == true;
    versions.is_some_and(|all| all.iter().any(served)) && cluster::holds(definition, "Established")
}

/// Looks, if anyone wants snapshots, and judges.
pub(in crate::reconcile) async fn check(reader: &Reader, spec: &VDOConfigSpec) -> Precondition {
    match wish(spec) {
        Requested::Off(why) => Precondition::unknown(KIND, Reason::NotRequested, why),
        wish => precondition(wish, &look(reader, wish).await),
    }
}

/// The precondition, from what was found or why nothing could be. What no one asked for is reported and is no fault.
fn precondition(wish: Requested, found: &Result<SnapshotSupport, ReconcileError>) -> Precondition {
    match (wish, found) {
        (Requested::Shipped, Ok(found)) if found.missing.is_empty() => {
            Precondition::unknown(KIND, Reason::NotRequested, "not asked for; the definitions are served")
        }
        (Requested::Shipped, Ok(_)) => {
            let judged = judge(found);
            Precondition::unknown(KIND, Reason::NotRequested, format!("not asked for; {}", judged.message))
        }
        _ => judge(found),
    }
}

fn judge(found: &Result<SnapshotSupport, ReconcileError>) -> Precondition {
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            let why = vdo_api::api::chain(error);
            return Precondition::unknown(KIND, Reason::NotChecked, format!("what snapshots need cannot be read: {why}"));
        }
    };
    let install = |what: &str| {
        format!(
            "add snapshot-controller to spec.drivers where the matrix has it, install {what} from the release of \
             kubernetes-csi/external-snapshotter that the driver was tested with, or set \
             spec.storageProvider.values.snapshots.enabled to false"
        )
    };
    if !found.missing.is_empty() {
        let message = format!(
            "volume snapshots cannot be taken: the API server does not serve version {VERSION} of {}; the snapshotter of CSI may end \
             without; {}",
            found.missing.join(", "),
            install("the definitions")
        );
        return Precondition::fails(KIND, Reason::SnapshotDefinitionsMissing, message);
    }
    let missing = |what: String| Precondition::fails(KIND, Reason::SnapshotControllerMissing, what);
    match (found.controllers.iter().find(|(_, ready)| *ready), found.controllers.first()) {
        (Some((pod, _)), _) => Precondition::holds(KIND, format!("the definitions are served, and the controller runs as {pod}")),
        (None, Some((pod, _))) => missing(format!(
            "volume snapshots are not taken: the pod {pod} of the snapshot controller is not ready; see kubectl describe pod"
        )),
        (None, None) => missing(format!(
            "volume snapshots are not taken: no pod of a snapshot controller was found (by the labels {}); {}",
            CONTROLLERS.join("; "),
            install("it")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reported(precondition: &Precondition) -> String {
        format!("{:?} {}", precondition.holds, precondition.reason)
    }

    #[test]
    fn snapshots_wish_each_spec_gives_shipped_asked_or_off() {
        let none = Requested::Off("CSI is not asked for");
        let off = Requested::Off("spec.storageProvider.values.snapshots.enabled is false");
        for (spec, expected) in [
            (json!({}), Requested::Shipped),
            (json!({"storageProvider": {}}), Requested::Shipped),
            (
                json!({"cloudProvider": {}, "storageProvider": {"features": {"block-volume-snapshot": false}}}),
                Requested::Shipped,
            ),
            (json!({"storageProvider": {"snapshots": {}}}), Requested::On),
            (
                json!({"storageProvider": {"features": {"block-volume-snapshot": true}}}),
                Requested::On,
            ),
            (
                json!({"storageProvider": {"values": {"snapshots": {"enabled": true}}}}),
                Requested::On,
            ),
            (
                json!({"storageProvider": {"snapshots": {}, "values": {"snapshots": {"enabled": false}}}}),
                off,
            ),
            (json!({"cloudProvider": {}}), none),
        ] {
            let read: VDOConfigSpec = serde_json::from_value(spec.clone()).expect("a specification");
            assert_eq!(wish(&read), expected, "{spec}");
        }
    }

    #[test]
    fn snapshots_missing_definition_or_controller_is_reported() {
        let found = |missing: &[&str], controllers: &[(&str, bool)]| {
            judge(&Ok(SnapshotSupport {
                missing: missing.iter().map(|name| (*name).to_owned()).collect(),
                controllers: controllers.iter().map(|(name, ready)| ((*name).to_owned(), *ready)).collect(),
            }))
        };
        let none = found(&DEFINITIONS, &[]);
        assert_eq!(reported(&none), "Some(false) SnapshotDefinitionsMissing");
        assert!(none.message.contains(&DEFINITIONS.join(", ")), "{}", none.message);
        let one = found(&DEFINITIONS[2..], &[("kube-system/s", true)]);
        assert!(
            one.message.contains("v1 of volumesnapshots.snapshot.storage.k8s.io;"),
            "{}",
            one.message
        );
        let alone = found(&[], &[]);
        assert_eq!(reported(&alone), "Some(false) SnapshotControllerMissing");
        assert!(alone.message.contains("install it from the release"), "{}", alone.message);
        let broken = found(&[], &[("kube-system/s", false)]);
        assert!(broken.message.contains("kube-system/s"), "{}", broken.message);
        assert_eq!(reported(&found(&[], &[("a/a", false), ("b/b", true)])), "Some(true) Healthy");
    }

    #[test]
    fn snapshots_not_requested_missing_support_is_no_fault() {
        let unknown = precondition(Requested::Shipped, &Err(ReconcileError::NoClusterId));
        assert_eq!(reported(&unknown), "None NotChecked");
        // What no one has asked for is reported, and is no fault.
        let missing = Ok(SnapshotSupport::default());
        assert_eq!(
            reported(&precondition(Requested::On, &missing)),
            "Some(false) SnapshotControllerMissing"
        );
        let quiet = precondition(Requested::Shipped, &missing);
        assert_eq!(reported(&quiet), "None NotRequested");
        assert_eq!(
            quiet.message, "not asked for; the definitions are served",
            "and no controller was looked for"
        );
        let undefined = Ok(SnapshotSupport {
            missing: vec!["volumesnapshots.".into()],
            ..SnapshotSupport::default()
        });
        let quiet = precondition(Requested::Shipped, &undefined);
        assert_eq!(reported(&quiet), "None NotRequested");
        assert!(quiet.message.contains("does not serve"), "{}", quiet.message);
    }

    #[test]
    fn snapshots_definition_counts_only_when_v1_is_served() {
        let definition = |name: &str, served: bool, established: &str| {
            let value = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"},
                "spec": {"versions": [{"name": name, "served": served}]},
                "status": {"conditions": [{"type": "Established", "status": established}]}});
            serves(&Object::new(value).expect("an object"))
        };
        assert!(definition("v1", true, "True"));
        for (name, served, established) in [("v1beta1", true, "True"), ("v1", false, "True"), ("v1", true, "False")] {
            assert!(!definition(name, served, established), "{name} {served} {established}");
        }
    }
}
