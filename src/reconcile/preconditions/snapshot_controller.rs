// SPDX-License-Identifier: Apache-2.0
//! SnapshotsSupported: whether the CRDs of volume snapshots and a snapshot controller are installed (effect; the judgement is pure).

use crate::cluster::{Reader, Select, View, Watch};
use crate::reconcile::error::ReconcileError;
use crate::reconcile::observe::cluster;
use crate::reconcile::rights::add_missing;
use kube::ResourceExt;
use serde_json::{Value, json};
use vdo_api::api::{ConditionType, ManagementState, Reason, VDOConfig, VDOConfigSpec};
use vdo_api::facts::SnapshotSupport;
use vdo_api::types::count;
use vdo_core::drivers::{self, SNAPSHOT_CONTROLLER, STORAGE};
use vdo_core::manifest::Object;
use vdo_core::status::Precondition;

const KIND: ConditionType = ConditionType::SnapshotsSupported;
/// The definitions, by name.
pub const DEFINITIONS: [&str; 3] = [
    "volumesnapshotclasses.snapshot.storage.k8s.io",
    "volumesnapshotcontents.snapshot.storage.k8s.io",
    "volumesnapshots.snapshot.storage.k8s.io",
];
/// The definitions of snapshots of several volumes at once. No driver needs them; clusters that were upgraded may have them.
pub const OF_GROUPS: [&str; 3] = [
    "volumegroupsnapshotclasses.groupsnapshot.storage.k8s.io",
    "volumegroupsnapshotcontents.groupsnapshot.storage.k8s.io",
    "volumegroupsnapshots.groupsnapshot.storage.k8s.io",
];
/// The version of them that the drivers speak.
const VERSION: &str = "v1";
/// That of the objects.
pub(in crate::reconcile) const API_VERSION: &str = "snapshot.storage.k8s.io/v1";
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
    if !drivers::is_requested(spec, STORAGE.name) {
        return Requested::Off("CSI is not requested");
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

fn definition(name: &str) -> Watch {
    Watch::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", Select::Name(name.into()))
}

/// Whether classes of snapshots can be created, and the drivers may take snapshots.
///
/// # Errors
/// When the definition cannot be read.
pub(in crate::reconcile) async fn have_classes(reader: &Reader, spec: &VDOConfigSpec) -> Result<bool, ReconcileError> {
    if matches!(wish(spec), Requested::Off(_)) {
        return Ok(false);
    }
    let watch = definition(DEFINITIONS[0]);
    let found = reader.load([watch.clone()]).await?.one(&watch);
    Ok(found.is_some_and(|definition| serves(&definition)))
}

/// Looks for the definitions, and for the controller where snapshots are asked for: anyone may label pods like it.
///
/// # Errors
/// When they cannot be read.
async fn look(reader: &Reader, wish: Requested) -> Result<SnapshotSupport, ReconcileError> {
    let labels = if wish == Requested::On { &CONTROLLERS[..] } else { &[] };
    let pods = || {
        labels
            .iter()
            .map(|labels| Watch::new("v1", "Pod", "", Select::Labels((*labels).into())))
    };
    let all = || DEFINITIONS.iter().chain(&OF_GROUPS).map(|name| definition(name));
    let watches = all().chain(pods());
    let view: View = reader.load(watches.collect::<Vec<_>>()).await?;
    let lacks = |name: &&str| view.one(&definition(name)).is_none_or(|found| !serves(&found));
    Ok(SnapshotSupport {
        missing: DEFINITIONS.into_iter().filter(lacks).map(str::to_owned).collect(),
        controllers: pods()
            .flat_map(|watch| view.list(&watch))
            .map(|pod| (format!("{}/{}", pod.namespace(), pod.name()), cluster::holds(&pod, "Ready")))
            .collect(),
        converting: all().filter_map(|watch| converting(&view.one(&watch)?)).collect(),
    })
}

/// A definition that converts objects through a webhook, and who is asked there.
fn converting(definition: &Object) -> Option<(String, String)> {
    let text = |place: &str| definition.text(&format!("/spec/conversion{place}"));
    if text("/strategy") != "Webhook" {
        return None;
    }
    let service = |field: &str| text(&format!("/webhook/clientConfig/service/{field}"));
    let asked = match service("name") {
        "" => text("/webhook/clientConfig/url").to_owned(),
        name => format!("Service {}/{name}", service("namespace")),
    };
    Some((definition.name().to_owned(), asked))
}

/// Whether a definition is established and served in the version that is spoken.
fn serves(definition: &Object) -> bool {
    let versions = definition.value().pointer("/spec/versions").and_then(Value::as_array);
    let served = |version: &Value| version["name"] == VERSION && version["served"] == true;
    versions.is_some_and(|all| all.iter().any(served)) && cluster::holds(definition, "Established")
}

/// Looks, if anyone wants snapshots, and judges.
pub(in crate::reconcile) async fn check(reader: &Reader, config: &VDOConfig) -> Precondition {
    match wish(&config.spec) {
        Requested::Off(why) => Precondition::unknown(KIND, Reason::NotRequested, why),
        wish => precondition(wish, &look(reader, wish).await, &remedy(config)),
    }
}

/// What to do where the definitions or the controller are missing: the driver of the matrix that has both is not named yet, or is.
fn remedy(config: &VDOConfig) -> String {
    let drivers = &config.spec.drivers;
    let at = drivers.iter().position(|driver| driver.name == SNAPSHOT_CONTROLLER);
    let (path, value) = match at {
        Some(at) if drivers[at].management_state == ManagementState::Removed => {
            (format!("/spec/drivers/{at}/managementState"), json!(ManagementState::Managed))
        }
        Some(_) => {
            return format!(
                "spec.drivers already names {SNAPSHOT_CONTROLLER}, whose chart contains the definitions and the controller: vdoctl status shows the state of this driver"
            );
        }
        None if drivers.is_empty() => ("/spec/drivers".to_owned(), json!([{"name": SNAPSHOT_CONTROLLER}])),
        None => ("/spec/drivers/-".to_owned(), json!({"name": SNAPSHOT_CONTROLLER})),
    };
    let patch = json!([{"op": "add", "path": path, "value": value}]);
    format!(
        "to install the definitions and the \
         controller: {} && kubectl patch vdoconfig {} --namespace {} --type=json --patch '{patch}'; if you do not use snapshots, set \
         spec.storageProvider.values.snapshots.enabled to false",
        add_missing(&format!(" --driver {SNAPSHOT_CONTROLLER}")),
        config.name_any(),
        config.namespace().unwrap_or_default(),
    )
}

/// The precondition, from what was found or why nothing could be. What no one asked for is reported and is no fault.
fn precondition(wish: Requested, found: &Result<SnapshotSupport, ReconcileError>, remedy: &str) -> Precondition {
    match (wish, found) {
        (Requested::Shipped, Ok(found)) if found.missing.is_empty() => Precondition::unknown(
            KIND,
            Reason::NotRequested,
            "snapshots are not requested; the API server serves their definitions",
        ),
        (Requested::Shipped, Ok(_)) => Precondition::unknown(
            KIND,
            Reason::NotRequested,
            "snapshots are not requested; the API server does not serve their definitions",
        ),
        _ => judge(found, remedy),
    }
}

fn judge(found: &Result<SnapshotSupport, ReconcileError>, remedy: &str) -> Precondition {
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            let why = vdo_api::api::chain(error);
            return Precondition::unknown(
                KIND,
                Reason::NotChecked,
                format!("the CustomResourceDefinitions of snapshots or the pods of the snapshot controller cannot be read: {why}"),
            );
        }
    };
    if !found.missing.is_empty() {
        let message = format!(
            "volume snapshots cannot be taken: the API server does not serve version {VERSION} of {}; the snapshotter of CSI may exit if \
             these definitions are missing; {remedy}",
            found.missing.join(", "),
        );
        return Precondition::fails(KIND, Reason::SnapshotDefinitionsMissing, message);
    }
    let missing = |what: String| Precondition::fails(KIND, Reason::SnapshotControllerMissing, what);
    match (found.controllers.iter().find(|(_, ready)| *ready), found.controllers.first()) {
        (Some((pod, _)), _) => runs(pod, &found.converting),
        (None, Some((pod, _))) => {
            let (namespace, name) = pod.split_once('/').unwrap_or_default();
            missing(format!(
                "volume snapshots cannot be taken: the pod {pod} of the snapshot controller is not ready; see `kubectl describe pod {name} \
                 --namespace {namespace}`"
            ))
        }
        (None, None) => missing(format!(
            "volume snapshots cannot be taken: no pod of a snapshot controller was found (by the labels {}); {remedy}",
            CONTROLLERS.join("; "),
        )),
    }
}

/// Everything is there. Whether a webhook answers is not known: only the API server asks it.
fn runs(pod: &str, converting: &[(String, String)]) -> Precondition {
    let there = format!("the definitions are served, and the controller runs as {pod}");
    let Some((name, asked)) = converting.first() else {
        return Precondition::holds(KIND, there);
    };
    let more = match converting.len() - 1 {
        0 => String::new(),
        more => format!(", and {}", count(more, "more definition")),
    };
    let message = format!(
        "{there}; the objects of CustomResourceDefinition {name}{more} are converted by a webhook ({asked}), and cannot be read without \
         the webhook; if no pod serves the webhook any more, run: kubectl patch customresourcedefinition {name} --type=merge \
         --patch '{{\"spec\":{{\"conversion\":{{\"strategy\":\"None\",\"webhook\":null}}}}}}'"
    );
    Precondition::unknown(KIND, Reason::SnapshotConversionWebhook, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(precondition: &Precondition) -> String {
        format!("{:?} {}", precondition.holds, precondition.reason)
    }

    #[test]
    fn snapshots_wish_each_spec_gives_shipped_asked_or_off() {
        let none = Requested::Off("CSI is not requested");
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
            judge(
                &Ok(SnapshotSupport {
                    missing: missing.iter().map(|name| (*name).to_owned()).collect(),
                    controllers: controllers.iter().map(|(name, ready)| ((*name).to_owned(), *ready)).collect(),
                    converting: Vec::new(),
                }),
                &remedy(&config(json!([]))),
            )
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
        assert!(alone.message.contains("kubectl patch vdoconfig vdo"), "{}", alone.message);
        let broken = found(&[], &[("kube-system/s", false)]);
        assert!(broken.message.contains("kube-system/s"), "{}", broken.message);
        assert_eq!(reported(&found(&[], &[("a/a", false), ("b/b", true)])), "Some(true) Healthy");
    }

    #[test]
    fn snapshots_not_requested_missing_support_is_no_fault() {
        let unknown = precondition(Requested::Shipped, &Err(ReconcileError::NoClusterId), "");
        assert_eq!(reported(&unknown), "None NotChecked");
        // What no one has asked for is reported, and is no fault.
        let missing = Ok(SnapshotSupport::default());
        assert_eq!(
            reported(&precondition(Requested::On, &missing, "")),
            "Some(false) SnapshotControllerMissing"
        );
        let quiet = precondition(Requested::Shipped, &missing, "");
        assert_eq!(reported(&quiet), "None NotRequested");
        assert_eq!(
            quiet.message, "snapshots are not requested; the API server serves their definitions",
            "and no controller was looked for"
        );
        let undefined = Ok(SnapshotSupport {
            missing: vec!["volumesnapshots.".into()],
            ..SnapshotSupport::default()
        });
        let quiet = precondition(
            Requested::Shipped,
            &undefined,
            "to install the definitions and the controller: a long command",
        );
        assert_eq!(reported(&quiet), "None NotRequested");
        assert_eq!(
            quiet.message, "snapshots are not requested; the API server does not serve their definitions",
            "one line"
        );
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

    fn config(drivers: Value) -> VDOConfig {
        let value = json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig",
            "metadata": {"name": "vdo", "namespace": "work"}, "spec": {"drivers": drivers}});
        serde_json::from_value(value).expect("a VDOConfig")
    }

    #[test]
    fn snapshots_remedy_adds_the_driver_to_those_that_are_named() {
        let grant = "vdoctl rights --missing --driver snapshot-controller | kubectl apply --server-side --force-conflicts -f - && ";
        for (drivers, patch) in [
            (
                json!([]),
                r#"[{"op":"add","path":"/spec/drivers","value":[{"name":"snapshot-controller"}]}]"#,
            ),
            (
                json!([{"name": "lamp"}]),
                r#"[{"op":"add","path":"/spec/drivers/-","value":{"name":"snapshot-controller"}}]"#,
            ),
            (
                json!([{"name": "lamp"}, {"name": "snapshot-controller", "managementState": "Removed"}]),
                r#"[{"op":"add","path":"/spec/drivers/1/managementState","value":"Managed"}]"#,
            ),
        ] {
            let found = remedy(&config(drivers));
            let command = format!("{grant}kubectl patch vdoconfig vdo --namespace work --type=json --patch '{patch}';");
            assert!(found.contains(&command), "{found}");
        }
        let there = remedy(&config(json!([{"name": "snapshot-controller"}])));
        assert!(there.contains("vdoctl status") && !there.contains("kubectl"), "{there}");
    }

    #[test]
    fn snapshots_conversion_webhook_is_reported_with_its_service() {
        let definition = |conversion: Value| {
            let value = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": OF_GROUPS[0]},
                "spec": {"conversion": conversion}});
            converting(&Object::new(value).expect("an object"))
        };
        assert_eq!(definition(json!({"strategy": "None"})), None);
        let client = json!({"service": {"namespace": "kube-system", "name": "converter"}});
        let found = definition(json!({"strategy": "Webhook", "webhook": {"clientConfig": client}})).expect("it converts");
        assert_eq!(found, (OF_GROUPS[0].to_owned(), "Service kube-system/converter".to_owned()));
        let url = definition(json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://c.example.com"}}}));
        assert_eq!(url.expect("it converts").1, "https://c.example.com");
        let support = SnapshotSupport {
            controllers: vec![("kube-system/s".to_owned(), true)],
            converting: vec![found.clone(), found],
            ..SnapshotSupport::default()
        };
        let judged = judge(&Ok(support), "");
        assert_eq!(reported(&judged), "None SnapshotConversionWebhook");
        for part in [
            "kube-system/converter",
            "and 1 more definition",
            "kubectl patch customresourcedefinition volumegroup",
        ] {
            assert!(judged.message.contains(part), "{}", judged.message);
        }
    }
}
