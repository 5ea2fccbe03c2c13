// SPDX-License-Identifier: Apache-2.0
//! Selects the claims, pods and volumes that the newest warning events name, so that the operator watches only these.

use super::attachments::in_quotes;
use super::index::{BUILT_IN, Index, is_ours, serves};
use super::objects::{Class, Event};
use super::{Observed, Volume};
use crate::drivers::CSI_DRIVER;
use std::collections::BTreeSet;

/// An object by kind, namespace and name.
pub type Named = (&'static str, String, String);

const CLAIM: &str = "PersistentVolumeClaim";
const POD: &str = "Pod";
const VOLUME: &str = "PersistentVolume";

/// The claims, the pods and the volumes that the newest warnings name; of claims and pods at most so many. Warnings of other drivers, and
/// about objects that are known to be theirs, do not count.
#[must_use]
pub fn concerned(warnings: &[Event], classes: &[Class], others: &BTreeSet<Named>, most: usize) -> BTreeSet<Named> {
    let mut newest: Vec<&Event> = warnings.iter().filter(|event| !is_of_another(event, classes)).collect();
    newest.sort_by(|a, b| b.at().cmp(a.at()));
    let (mut all, mut objects) = (BTreeSet::new(), BTreeSet::new());
    for event in newest {
        let about = &event.involved_object;
        let kind = match about.kind.as_str() {
            CLAIM => CLAIM,
            POD => POD,
            _ => continue,
        };
        let object = (kind, about.namespace.clone(), about.name.clone());
        let volume = in_quotes(&event.message).find(|name| kind == POD && is_name(name));
        let volume = volume.map(|name| (VOLUME, String::new(), name.to_owned()));
        let is_other = others.contains(&object) || volume.as_ref().is_some_and(|volume| others.contains(volume));
        let is_named = is_name(&about.namespace) && is_name(&about.name);
        if is_other || !is_named || (objects.len() == most && !objects.contains(&object)) {
            continue;
        }
        all.extend(volume);
        all.insert(object.clone());
        objects.insert(object);
    }
    all
}

/// The claims and volumes among those that were read that are of another driver.
#[must_use]
pub fn of_others(observed: &Observed) -> BTreeSet<Named> {
    let index = Index::of(observed);
    let volumes = observed.volumes.iter().flatten().filter(|volume: &&Volume| !is_ours(volume));
    let volumes = volumes.map(|volume| (VOLUME, String::new(), volume.metadata.name.clone()));
    let claims = observed.claims.iter().flatten().filter(|claim| {
        let class = claim.class().and_then(|name| index.classes.get(name));
        class.is_some_and(|class| !serves(class))
    });
    let claims = claims.map(|claim| (CLAIM, claim.metadata.namespace.clone(), claim.metadata.name.clone()));
    volumes.chain(claims).collect()
}

/// Whether a warning is of another driver, by the component that wrote it or by the class that it names.
fn is_of_another(event: &Event, classes: &[Class]) -> bool {
    let is_other = |driver: &str| ![CSI_DRIVER, BUILT_IN].contains(&driver);
    let class = in_quotes(&event.message).find_map(|name| classes.iter().find(|class| class.metadata.name == name));
    event.driver().is_some_and(is_other) || class.is_some_and(|class| event.reason == "ProvisioningFailed" && !serves(class))
}

/// Whether a text can be the name of an object: anyone who may write events writes any text there.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    !text.is_empty() && text.len() <= 253 && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(kind: &str, name: &str, message: &str, at: u32) -> Event {
        let value = json!({"involvedObject": {"kind": kind, "namespace": "shop", "name": name}, "message": message,
            "metadata": {"creationTimestamp": format!("2026-01-01T00:00:{at:02}Z")}});
        serde_json::from_value(value).expect("an event")
    }

    #[test]
    fn concerned_are_the_objects_of_the_newest_warnings_with_the_volumes_of_pods() {
        let object = |kind: &'static str, name: &str| (kind, "shop".to_owned(), name.to_owned());
        let warnings = [
            event("PersistentVolumeClaim", "old", "", 1),
            event("Pod", "web-0", "AttachVolume.Attach failed for volume \"pv-1\" : \"x\"", 3),
            event("PersistentVolumeClaim", "new", "", 2),
            event("PersistentVolumeClaim", "new", "again", 4),
            event("Node", "w-1", "", 5),
            event("PersistentVolumeClaim", "x,type=Normal", "", 6),
        ];
        let none = BTreeSet::new();
        let expected = BTreeSet::from([
            object(CLAIM, "new"),
            object(POD, "web-0"),
            (VOLUME, String::new(), "pv-1".to_owned()),
        ]);
        assert_eq!(concerned(&warnings, &[], &none, 2), expected);
        assert!(concerned(&warnings, &[], &none, 9).contains(&object(CLAIM, "old")));
    }

    /// Many newer warnings of another driver do not hide the one of ours.
    #[test]
    fn concerned_are_not_the_objects_of_other_drivers() {
        let classes = [("nfs", "nfs.csi.k8s.io"), ("fast", CSI_DRIVER), ("old", BUILT_IN)];
        let class =
            |(name, provisioner)| serde_json::from_value(json!({"metadata": {"name": name}, "provisioner": provisioner})).expect("a class");
        let classes: Vec<Class> = classes.into_iter().map(class).collect();
        let failed = |name: &str, reason: &str, component: &str, message: &str| {
            let mut failed = event(CLAIM, name, message, 1);
            failed.reason = reason.to_owned();
            failed.source.component = component.to_owned();
            failed
        };
        let of = |class: &str| format!("failed to provision volume with StorageClass \"{class}\": x");
        for (event, is_concerned) in [
            (
                failed(
                    "a",
                    "ProvisioningFailed",
                    "csi.vsphere.vmware.com_vsphere-csi-controller-1_uid",
                    &of("fast"),
                ),
                true,
            ),
            (
                failed(
                    "a",
                    "ProvisioningFailed",
                    "persistentvolume-controller",
                    "storageclass.storage.k8s.io \"gone\" not found",
                ),
                true,
            ),
            (failed("a", "ProvisioningFailed", "", &of("old")), true),
            (failed("a", "ProvisioningFailed", "", &of("nfs")), false),
            (failed("a", "ProvisioningFailed", "nfs.csi.k8s.io_nfs-0_uid", "x"), false),
            (failed("a", "VolumeResizeFailed", "external-resizer nfs.csi.k8s.io", "x"), false),
            (
                failed("a", "VolumeResizeFailed", "external-resizer csi.vsphere.vmware.com", "x"),
                true,
            ),
            (
                failed(
                    "a",
                    "FailedBinding",
                    "persistentvolume-controller",
                    "no persistent volumes available for this claim \"nfs\"",
                ),
                true,
            ),
        ] {
            let found = concerned(std::slice::from_ref(&event), &classes, &BTreeSet::new(), 20);
            assert_eq!(!found.is_empty(), is_concerned, "{event:?}");
        }
        let ours = failed("ours", "ProvisioningFailed", "", &of("fast"));
        let mut warnings: Vec<Event> = (0..30)
            .map(|at| failed(&format!("nfs-{at}"), "ProvisioningFailed", "", &of("nfs")))
            .collect();
        warnings
            .iter_mut()
            .for_each(|warning| warning.last_timestamp = Some("2026-02-01T00:00:00Z".to_owned()));
        warnings.push(ours);
        let found = concerned(&warnings, &classes, &BTreeSet::new(), 20);
        assert_eq!(found, BTreeSet::from([(CLAIM, "shop".to_owned(), "ours".to_owned())]));
    }

    /// A pod does not name the driver of its volume; once the volume was read, the pod makes room for another one.
    #[test]
    fn concerned_are_not_pods_with_volumes_of_other_drivers() {
        let pod = |at: u32| {
            event(
                POD,
                &format!("web-{at}"),
                &format!("AttachVolume.Attach failed for volume \"pv-{at}\" : x"),
                at,
            )
        };
        let warnings: Vec<Event> = (0..5).map(pod).collect();
        let volume = |at: u32, driver: &str| json!({"metadata": {"name": format!("pv-{at}")}, "spec": {"csi": {"driver": driver}}});
        let read = |value| serde_json::from_value(value).expect("an object");
        let observed = Observed {
            volumes: Some(vec![read(volume(4, "nfs.csi.k8s.io")), read(volume(3, CSI_DRIVER))]),
            ..Observed::default()
        };
        let others = of_others(&observed);
        assert_eq!(others, BTreeSet::from([(VOLUME, String::new(), "pv-4".to_owned())]));
        let names = |found: BTreeSet<Named>| {
            found
                .into_iter()
                .filter(|(kind, ..)| *kind == POD)
                .map(|(.., name)| name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(concerned(&warnings, &[], &BTreeSet::new(), 2)), ["web-3", "web-4"]);
        assert_eq!(names(concerned(&warnings, &[], &others, 2)), ["web-2", "web-3"]);
    }
}
