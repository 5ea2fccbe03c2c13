//! Claims that wait for a volume, that cannot grow, or that have lost it; the classes and quotas that they meet.

use super::index::{Index, serves};
use super::objects::{Claim, Class, Meta, Pod, Quota};
use super::texts::{Stage, classify};
use super::{Cause, Finding, LATE, Names, Observed, kept};

const CLAIM: &str = "PersistentVolumeClaim";

pub(super) fn findings(observed: &Observed, index: &Index<'_>) -> Vec<Finding> {
    let claims = observed.claims.iter().flatten();
    let mut all: Vec<Finding> = claims.flat_map(|claim| of_claim(observed, index, claim)).collect();
    let classes = observed.classes.iter().flatten().filter(|class| class.is_default());
    let defaults: Vec<&Class> = classes.collect();
    if defaults.len() > 1 {
        let names: Vec<&str> = defaults.iter().map(|class| &*class.metadata.name).collect();
        let detail = names.join(", ");
        let finding = |class: &&Class| {
            Finding::new(
                Cause::SeveralDefaultClasses,
                "StorageClass",
                &class.metadata,
                &detail,
                Names::default(),
            )
        };
        all.extend(defaults.iter().map(finding));
    }
    all.extend(observed.quotas.iter().flatten().filter_map(reached));
    all
}

/// A quota of storage that is used up.
fn reached(quota: &Quota) -> Option<Finding> {
    let of_storage =
        |name: &str| matches!(name, "persistentvolumeclaims" | "requests.storage") || name.contains(".storageclass.storage.k8s.io/");
    let full = quota
        .status
        .hard
        .iter()
        .filter(|(name, most)| of_storage(name) && quota.status.used.get(*name) == Some(most));
    let full: Vec<String> = full.map(|(name, most)| format!("{name} is at {most}")).collect();
    let detail = full.join(", ");
    (!full.is_empty()).then(|| Finding::new(Cause::QuotaReached, "ResourceQuota", &quota.metadata, &detail, Names::default()))
}

fn of_claim(observed: &Observed, index: &Index<'_>, claim: &Claim) -> Vec<Finding> {
    let class = claim.class().unwrap_or_default();
    let names = Names { class, ..Names::default() };
    let found = |cause: Cause, detail: &str| Finding::new(cause, CLAIM, &claim.metadata, detail, names);
    let state = match claim.status.phase.as_str() {
        "Pending" => waiting(observed, index, claim, &found),
        "Lost" if index.is_ours(claim) => Some(found(Cause::ClaimLost, "")),
        "Bound" if index.is_ours(claim) => growing(index, claim, &found),
        _ => None,
    };
    let kept = kept(observed.now, CLAIM, &claim.metadata).filter(|_| index.is_ours(claim));
    state.into_iter().chain(kept).collect()
}

/// Why a claim has no volume.
fn waiting(observed: &Observed, index: &Index<'_>, claim: &Claim, found: &dyn Fn(Cause, &str) -> Finding) -> Option<Finding> {
    let classes = observed.classes.as_ref()?;
    let name = match claim.class() {
        // Kubernetes gives it the default class, as soon as there is one.
        None if classes.iter().any(Class::is_default) => return None,
        None => return Some(found(Cause::NoDefaultClass, "")),
        Some("") => return Some(found(Cause::NoVolumeFits, "")),
        Some(name) => name,
    };
    let Some(class) = index.classes.get(name) else {
        return Some(found(Cause::ClassNotFound, name));
    };
    if !serves(class) {
        let is_known = index.drivers.contains(&*class.provisioner) || class.provisioner.starts_with("kubernetes.io/");
        let is_unknown = observed.drivers.is_some() && !is_known;
        return is_unknown.then(|| found(Cause::UnknownProvisioner, &class.provisioner));
    }
    of_ours(observed, index, (claim, class), found)
}

/// Why the driver has made no volume for a claim of one of its classes.
fn of_ours(
    observed: &Observed,
    index: &Index<'_>,
    (claim, class): (&Claim, &Class),
    found: &dyn Fn(Cause, &str) -> Finding,
) -> Option<Finding> {
    if observed.drivers.is_some() && !index.drivers.contains(crate::drivers::CSI_DRIVER) {
        return Some(found(Cause::DriverNotInstalled, ""));
    }
    if observed.csi_nodes.is_some() && index.registered.is_empty() {
        return Some(found(Cause::NoNodeRegistered, ""));
    }
    if let Some(feature) = switched_off(observed, claim) {
        return Some(found(
            Cause::FeatureOff,
            &format!("spec.storageProvider.features[{feature}] is false"),
        ));
    }
    if let Some(places) = unsatisfied(observed, class) {
        return Some(found(Cause::TopologyUnsatisfied, &format!("no node has the labels {places}")));
    }
    if let Some(event) = index.warning(CLAIM, &claim.metadata, &["ProvisioningFailed"]) {
        return Some(found(classify(Stage::Provision, &event.message), &event.message));
    }
    if class.waits() && !claim.has_node() {
        observed.pods.as_ref()?;
        let users = index.users(claim);
        let stuck = users.iter().find_map(|pod| Some((*pod, pod.unplaced()?)));
        return match stuck {
            Some((pod, why)) => Some(unplaced(claim, pod, why)),
            None if users.is_empty() => Some(found(Cause::WaitsForPod, "")),
            None => None,
        };
    }
    // Without the events it is not known whether the driver is silent.
    observed.events.as_ref()?;
    let age = Meta::age(observed.now, claim.metadata.creation_timestamp.as_deref())?;
    (age >= LATE).then(|| found(Cause::ProvisionerSilent, &format!("for {} minutes", age / 60)))
}

/// The scheduler places a pod nowhere, for a reason of its volumes or another.
fn unplaced(claim: &Claim, pod: &Pod, why: &str) -> Finding {
    // Kubernetes pkg/scheduler/framework/plugins/volumebinding/binder.go.
    let by_place = ["volume node affinity conflict", "find available persistent volumes to bind"];
    let cause = match classify(Stage::Attach, why) {
        Cause::TooManyDisks => Cause::TooManyDisks,
        _ if by_place.iter().any(|words| why.contains(words)) => Cause::TopologyUnsatisfied,
        _ => Cause::PodNotPlaced,
    };
    let detail = format!("claim {}: {why}", claim.metadata.name);
    Finding::new(cause, "Pod", &pod.metadata, &detail, Names::default())
}

/// The feature that a claim needs and that the VDOConfig switches off.
fn switched_off(observed: &Observed, claim: &Claim) -> Option<&'static str> {
    let from_snapshot = claim
        .spec
        .data_source
        .as_ref()
        .is_some_and(|source| source.kind == "VolumeSnapshot");
    let off = |feature: &str| observed.features.get(feature) == Some(&false);
    (from_snapshot && off("block-volume-snapshot")).then_some("block-volume-snapshot")
}

/// Where the class allows volumes, if no node is there.
fn unsatisfied(observed: &Observed, class: &Class) -> Option<String> {
    let nodes = observed.nodes.as_ref()?;
    if class.allowed_topologies.is_empty() {
        return None;
    }
    let has = |node: &super::Named| {
        class.allowed_topologies.iter().any(|term| {
            let labels = &node.metadata.labels;
            term.match_label_expressions
                .iter()
                .all(|label| labels.get(&label.key).is_some_and(|value| label.values.contains(value)))
        })
    };
    if nodes.iter().any(has) {
        return None;
    }
    let label = |label: &super::objects::Label| format!("{}={}", label.key, label.values.join("|"));
    let term = |term: &super::objects::Term| term.match_label_expressions.iter().map(label).collect::<Vec<_>>().join(", ");
    Some(class.allowed_topologies.iter().map(term).collect::<Vec<_>>().join("; or "))
}

/// Why a claim does not grow.
fn growing(index: &Index<'_>, claim: &Claim, found: &dyn Fn(Cause, &str) -> Finding) -> Option<Finding> {
    let is = |name: &str| claim.status.conditions.iter().any(|c| c.r#type == name && c.status == "True");
    if is("FileSystemResizePending") {
        return Some(found(Cause::ResizeWaitsForPod, ""));
    }
    if !is("Resizing") && !is("ControllerResizeError") {
        return None;
    }
    let event = index.warning(CLAIM, &claim.metadata, &["VolumeResizeFailed"])?;
    Some(found(classify(Stage::Resize, &event.message), &event.message))
}
