// SPDX-License-Identifier: Apache-2.0
//! Finds the causes for PersistentVolumeClaims that are pending, cannot grow, have lost their volume, or cannot be deleted.

use super::index::{BUILT_IN, Index, serves};
use super::objects::{Claim, Class, Label, Meta, Pod, Term};
use super::quantity::Quantity;
use super::texts::{Stage, classify};
use super::volume_zones;
use super::{Cause, Finding, LATE, Names, Observed, kept};
use crate::drivers::{CSI_DRIVER, MIGRATION, ONLINE_EXPANSION, SNAPSHOTS};
use std::collections::BTreeMap;

const CLAIM: &str = "PersistentVolumeClaim";
/// Kubernetes pkg/scheduler/framework/plugins/volumebinding/binder.go.
const CONFLICT: &str = "volume node affinity conflict";

pub(super) fn findings(observed: &Observed, index: &Index<'_>) -> Vec<Finding> {
    let (mut all, mut zones) = (Vec::new(), BTreeMap::new());
    for claim in observed.claims.iter().flatten() {
        for finding in of_claim(observed, index, claim) {
            all.push(match finding.cause.is_of_places() {
                true => finding.and(zones_of(observed, index, claim, &mut zones)),
                false => finding,
            });
        }
    }
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
    all
}

fn of_claim(observed: &Observed, index: &Index<'_>, claim: &Claim) -> Vec<Finding> {
    let class = claim.class().unwrap_or_default();
    let names = Names { class, ..Names::default() };
    let found = |cause: Cause, detail: &str| Finding::new(cause, CLAIM, &claim.metadata, detail, names);
    let state = match claim.status.phase.as_str() {
        "Pending" => waiting(observed, index, claim, &found),
        "Lost" if index.is_ours(claim) => Some(found(Cause::ClaimLost, "")),
        "Bound" if index.is_ours(claim) => growing(observed, index, claim, &found).or_else(|| kept_away(index, claim)),
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
    if observed.drivers.is_some() && !index.drivers.contains(CSI_DRIVER) {
        return Some(found(Cause::DriverNotInstalled, ""));
    }
    if observed.csi_nodes.is_some() && index.registered.is_empty() {
        return Some(found(Cause::NoNodeRegistered, ""));
    }
    if let Some(feature) = switched_off(observed, claim, class) {
        return Some(found(Cause::FeatureOff, &Observed::off(feature)));
    }
    if let Some(places) = unsatisfied(observed, class) {
        return Some(found(Cause::TopologyUnsatisfied, &format!("no node has the labels {places}")));
    }
    if let Some(event) = index.warning(CLAIM, &claim.metadata, &["ProvisioningFailed"]) {
        return Some(found(classify(Stage::Provision, &event.message), &event.message));
    }
    if class.waits() && claim.node().is_none() {
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
    (age >= LATE).then(|| found(Cause::ProvisionerSilent, &format!("the claim was created {} minutes ago", age / 60)))
}

/// The scheduler places a pod nowhere, for a reason of its volumes or another.
fn unplaced(claim: &Claim, pod: &Pod, why: &str) -> Finding {
    let by_place = [CONFLICT, "find available persistent volumes to bind"];
    let cause = match classify(Stage::Attach, why) {
        Cause::TooManyDisks => Cause::TooManyDisks,
        _ if by_place.iter().any(|words| why.contains(words)) => Cause::TopologyUnsatisfied,
        _ => Cause::PodNotPlaced,
    };
    let detail = format!("claim {}: {why}", claim.metadata.name);
    Finding::new(cause, "Pod", &pod.metadata, &detail, Names::default())
}

/// The feature that a claim needs and that the VDOConfig switches off.
fn switched_off(observed: &Observed, claim: &Claim, class: &Class) -> Option<&'static str> {
    let from_snapshot = claim
        .spec
        .data_source
        .as_ref()
        .is_some_and(|source| source.kind == "VolumeSnapshot");
    let needed = [(from_snapshot, SNAPSHOTS), (class.provisioner == BUILT_IN, MIGRATION)];
    needed
        .into_iter()
        .find_map(|(is_needed, feature)| (is_needed && observed.is_off(feature)).then_some(feature))
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
            term.labels()
                .all(|label| labels.get(&label.key).is_some_and(|value| label.values.contains(value)))
        })
    };
    if nodes.iter().any(has) {
        return None;
    }
    Some(volume_zones::labels(&class.allowed_topologies))
}

/// The zones that a claim asks for, which many claims have in common.
fn zones_of<'a>(observed: &Observed, index: &Index<'_>, claim: &Claim, known: &'a mut BTreeMap<String, String>) -> &'a str {
    let asked = asked(index, claim);
    known
        .entry(volume_zones::labels(&asked))
        .or_insert_with(|| volume_zones::described(observed, &asked))
}

/// The places that a claim asks for: those of its volume, of the node that was chosen for it, or of its class.
fn asked(index: &Index<'_>, claim: &Claim) -> Vec<Term> {
    if let Some(volume) = index.volumes.get(&*claim.spec.volume_name) {
        return volume.spec.node_affinity.required.node_selector_terms.clone();
    }
    let chosen = claim.node().and_then(|node| place_of(index, node));
    let class = claim.class().and_then(|name| index.classes.get(name));
    let allowed = || class.map(|class| class.allowed_topologies.clone()).unwrap_or_default();
    chosen.map_or_else(allowed, |place| vec![place])
}

/// Where a node is, by the labels with which the driver has registered on it.
fn place_of(index: &Index<'_>, name: &str) -> Option<Term> {
    let (node, registered) = (index.nodes.get(name)?, index.registered.get(name)?);
    let label = |key: &str| {
        let value = node.metadata.labels.get(key)?.clone();
        Some(Label {
            key: key.to_owned(),
            values: vec![value],
        })
    };
    let labels: Vec<Label> = registered.topology_keys().filter_map(label).collect();
    (!labels.is_empty()).then(|| Term {
        match_expressions: labels,
        ..Term::default()
    })
}

/// A pod that is placed nowhere, because no node that it may have reaches the volume that there is.
fn kept_away(index: &Index<'_>, claim: &Claim) -> Option<Finding> {
    let users = index.users(claim);
    let stuck = users.iter().find_map(|pod| Some((*pod, pod.unplaced()?)));
    let (pod, why) = stuck.filter(|(_, why)| why.contains(CONFLICT))?;
    Some(unplaced(claim, pod, why))
}

/// Whether a claim asks for more than it has.
fn asks_more(claim: &Claim) -> bool {
    let has = claim.status.capacity.get("storage").map(String::as_str);
    let amount = |text: Option<&str>| text.and_then(Quantity::parse);
    matches!((amount(claim.asked()), amount(has)), (Some(asked), Some(has)) if asked > has)
}

/// Why a claim does not grow.
fn growing(observed: &Observed, index: &Index<'_>, claim: &Claim, found: &dyn Fn(Cause, &str) -> Finding) -> Option<Finding> {
    if let Some(node) = index
        .attached
        .get(&*claim.spec.volume_name)
        .filter(|_| observed.is_off(ONLINE_EXPANSION) && asks_more(claim))
    {
        let detail = format!(
            "{}; the volume cannot grow while it is attached to node {node}",
            Observed::off(ONLINE_EXPANSION)
        );
        return Some(found(Cause::FeatureOff, &detail));
    }
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
