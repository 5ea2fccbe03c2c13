// SPDX-License-Identifier: Apache-2.0
//! NoRwxAttachments: whether volumes that several nodes share are attached, read only when an upgrade of the CSI driver is due.
//!
//! The upgrade replaces the node plugin under the mounts of these volumes.

use crate::cluster::{ClusterError, Reader};
use crate::reconcile::driver_run::DriverRuns;
use crate::reconcile::observe::deletion_guards::volume_watches;
use crate::reconcile::preconditions::upgrade::SHARED_DETACHED;
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_api::api::{ConditionType, Reason};
use vdo_api::types::DriverVersion;
use vdo_core::drivers::{CSI_DRIVER, STORAGE};
use vdo_core::manifest::Object;
use vdo_core::matrix::{DriverRequest, Index, NoFit, Query, Resolution, resolve};
use vdo_core::status::Precondition;

const KIND: ConditionType = ConditionType::NoRwxAttachments;
/// How many volumes are named.
const NAMED: usize = 10;

/// The attachments of volumes that several nodes may share.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shared {
    /// Volume and node, by name.
    attached: Vec<(String, String)>,
    /// An attachment whose volume no one knows any more.
    unknown: Option<String>,
}

impl Shared {
    fn of(attachments: &[Object], volumes: &[Object]) -> Self {
        let modes: BTreeMap<&str, &Value> = volumes
            .iter()
            .filter_map(|volume| Some((volume.name(), volume.value().pointer("/spec/accessModes")?)))
            .collect();
        let mut found = Self::default();
        for attachment in ours(attachments) {
            let volume = attachment.text("/spec/source/persistentVolumeName");
            let inline = attachment.value().pointer("/spec/source/inlineVolumeSpec/accessModes");
            let Some(modes) = inline.or_else(|| modes.get(volume).copied()) else {
                found.unknown.get_or_insert_with(|| attachment.name().to_owned());
                continue;
            };
            if modes.as_array().is_some_and(|modes| modes.iter().any(is_shared)) {
                let name = if volume.is_empty() { attachment.name() } else { volume };
                found.attached.push((name.to_owned(), attachment.text("/spec/nodeName").to_owned()));
            }
        }
        found.attached.sort();
        found
    }

    fn judge(&self) -> Precondition {
        let again = "the upgrade waits, and the installed version stays";
        if !self.attached.is_empty() {
            let named: Vec<String> = self.attached.iter().take(NAMED).map(|(v, n)| format!("{v} on node {n}")).collect();
            let more = self.attached.len().saturating_sub(NAMED);
            let message = format!(
                "{} attachments of ReadWriteMany or ReadOnlyMany volumes of {CSI_DRIVER} exist: {}{}; {again}; stop the pods that use \
                 these volumes until the upgrade is complete, or pin the version with allowIncompatible",
                self.attached.len(),
                named.join(", "),
                if more > 0 { format!(" and {more} more") } else { String::new() },
            );
            return Precondition::fails(KIND, Reason::SharedVolumesAttached, message);
        }
        match &self.unknown {
            Some(attachment) => {
                let message = format!(
                    "it is not known whether the volume of VolumeAttachment {attachment} is shared by nodes, \
                     because its PersistentVolume does not exist; {again}"
                );
                Precondition::unknown(KIND, Reason::NotChecked, message)
            }
            None => Precondition::holds(KIND, "no ReadWriteMany or ReadOnlyMany volume of CSI is attached"),
        }
    }
}

fn ours(attachments: &[Object]) -> impl Iterator<Item = &Object> {
    attachments
        .iter()
        .filter(|attachment| attachment.text("/spec/attacher") == CSI_DRIVER)
}

fn is_shared(mode: &Value) -> bool {
    matches!(mode.as_str(), Some("ReadWriteMany" | "ReadOnlyMany"))
}

/// Looks, and judges. That something is attached is seen by watches, which wake us when the last one goes; that nothing is, is asked
/// of the API server itself. A failed read is reported: nothing but the upgrade waits for it.
async fn look(reader: &Reader) -> Precondition {
    match read(reader).await {
        Ok(found) => found.judge(),
        Err(error) => Precondition::unknown(
            KIND,
            Reason::NotChecked,
            format!("the volumes that are attached cannot be read: {}", vdo_api::api::chain(&error)),
        ),
    }
}

async fn read(reader: &Reader) -> Result<Shared, ClusterError> {
    let [volumes, attachments] = volume_watches();
    let mut found = reader.load([attachments.clone()]).await?.list(&attachments);
    let watched = reader.cache().is_some();
    if watched && ours(&found).next().is_none() {
        found = reader.now(&attachments).await?;
    }
    if ours(&found).next().is_none() {
        return Ok(Shared::default());
    }
    let known = reader.load([volumes.clone()]).await?.list(&volumes);
    let shared = Shared::of(&found, &known);
    if watched && shared.attached.is_empty() {
        return Ok(Shared::of(&reader.now(&attachments).await?, &reader.now(&volumes).await?));
    }
    Ok(shared)
}

/// Adds what is attached to what upgrades are asked, whether or not one is due: for a command.
pub async fn hold_attached(reader: &Reader, runs: &mut DriverRuns) {
    if let Some(asked) = runs.get_mut(STORAGE.name).and_then(|run| run.asked.as_mut()) {
        hold(&mut asked.question, &look(reader).await);
    }
}

fn hold(question: &mut DriverRequest, judged: &Precondition) {
    if judged.holds != Some(true)
        && let Some(unmet) = &mut question.unmet
    {
        unmet.insert(SHARED_DETACHED.to_owned(), judged.message.clone());
    }
}

/// Chooses the versions. Where that is an upgrade of the CSI driver which asks for it, the volumes are looked at first, and the choice
/// is made once more with what was found.
pub(in crate::reconcile) async fn choose(
    reader: &Reader,
    index: &Index,
    query: &Query<'_>,
) -> (Precondition, Result<Resolution, Box<NoFit>>) {
    let resolution = resolve(index, query);
    if !is_available(index, resolution.as_ref().ok(), query.installed.get(STORAGE.name)) {
        let message = "no upgrade of CSI that needs this check is due";
        return (Precondition::unknown(KIND, Reason::NotRequested, message), resolution);
    }
    let judged = look(reader).await;
    if judged.holds == Some(true) {
        return (judged, resolution);
    }
    let mut drivers = query.drivers.clone();
    if let Some(question) = drivers.get_mut(STORAGE.name) {
        hold(question, &judged);
    }
    let resolution = resolve(
        index,
        &Query {
            drivers: &drivers,
            ..*query
        },
    );
    (judged, resolution)
}

/// Whether the choice upgrades the CSI driver to a version that asks for it.
fn is_available(index: &Index, resolution: Option<&Resolution>, installed: Option<&DriverVersion>) -> bool {
    let (Some(pick), Some(installed)) = (resolution.and_then(|resolution| resolution.picks.get(STORAGE.name)), installed) else {
        return false;
    };
    let entry = index.drivers.get(STORAGE.name).and_then(|driver| driver.entry(&pick.version));
    let mut named = entry
        .iter()
        .filter_map(|entry| entry.upgrades_from.as_ref())
        .flat_map(|from| &from.preconditions);
    pick.overridden.is_none() && pick.version > *installed && named.any(|name| name == SHARED_DETACHED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vdo_core::drivers::CSI;

    fn object(kind: &str, name: &str, spec: Value) -> Object {
        Object::new(json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec})).expect("an object")
    }

    fn attachment(name: &str, attacher: &str, volume: &str) -> Object {
        let spec = json!({"attacher": attacher, "nodeName": "w-1", "source": {"persistentVolumeName": volume}});
        object("VolumeAttachment", name, spec)
    }

    #[test]
    fn shared_volumes_attached_or_unknown_block_upgrade() {
        let volumes = [
            object("PersistentVolume", "file", json!({"accessModes": ["ReadWriteMany"]})),
            object(
                "PersistentVolume",
                "read",
                json!({"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}),
            ),
            object("PersistentVolume", "block", json!({"accessModes": ["ReadWriteOnce"]})),
            object("PersistentVolume", "pod", json!({"accessModes": ["ReadWriteOncePod"]})),
        ];
        let inline = |modes: Value| {
            let source = json!({"inlineVolumeSpec": {"accessModes": modes}});
            object(
                "VolumeAttachment",
                "inline",
                json!({"attacher": CSI_DRIVER, "nodeName": "w-2", "source": source}),
            )
        };
        for (attached, holds, reason, words) in [
            (vec![], Some(true), Reason::Healthy, "no ReadWriteMany"),
            (
                vec![attachment("a", CSI_DRIVER, "block"), attachment("b", CSI_DRIVER, "pod")],
                Some(true),
                Reason::Healthy,
                "",
            ),
            (
                vec![attachment("a", "nfs.example.org", "file")],
                Some(true),
                Reason::Healthy,
                "no ReadWriteMany",
            ),
            (
                vec![attachment("a", CSI_DRIVER, "file"), attachment("b", CSI_DRIVER, "block")],
                Some(false),
                Reason::SharedVolumesAttached,
                "1 attachments of ReadWriteMany or ReadOnlyMany volumes of csi.vsphere.vmware.com exist: file on node w-1;",
            ),
            (
                vec![attachment("a", CSI_DRIVER, "read")],
                Some(false),
                Reason::SharedVolumesAttached,
                "read on node w-1",
            ),
            (
                vec![inline(json!(["ReadWriteMany"]))],
                Some(false),
                Reason::SharedVolumesAttached,
                "inline on node w-2",
            ),
            (vec![inline(json!(["ReadWriteOnce"]))], Some(true), Reason::Healthy, ""),
            (
                vec![attachment("a", CSI_DRIVER, "gone")],
                None,
                Reason::NotChecked,
                "the volume of VolumeAttachment a is shared by nodes",
            ),
            // What is known to be in the way goes before what is not known.
            (
                vec![attachment("a", CSI_DRIVER, "gone"), attachment("b", CSI_DRIVER, "file")],
                Some(false),
                Reason::SharedVolumesAttached,
                "file on node w-1",
            ),
        ] {
            let judged = Shared::of(&attached, &volumes).judge();
            assert_eq!((judged.holds, judged.reason), (holds, reason), "{}", judged.message);
            assert!(judged.message.contains(words), "{words:?} is not in {}", judged.message);
        }
        let many: Vec<Object> = (0..25).map(|i| attachment(&format!("a{i:02}"), CSI_DRIVER, "file")).collect();
        let judged = Shared::of(&many, &volumes).judge();
        assert!(
            judged.message.starts_with("25 attachments") && judged.message.contains(" and 15 more"),
            "{}",
            judged.message
        );
    }

    #[test]
    fn shared_volumes_block_only_upgrade_that_requires_it() {
        let index = Index::parse(vdo_source::fetch::embedded::index()).expect("an index");
        let version = |text: &str| text.parse::<DriverVersion>().expect("a version");
        for (installed, pinned, forced, expected) in [
            (Some("3.6.3"), "3.7.3", false, true),
            (Some("3.6.3"), "3.6.3", false, false),
            (Some("3.7.3"), "3.6.3", false, false),
            (None, "3.7.3", false, false),
            // The user insists.
            (Some("3.6.3"), "3.7.3", true, false),
        ] {
            let installed: Option<DriverVersion> = installed.map(version);
            let entry = index.drivers[CSI].entry(&version(pinned)).expect("in the matrix");
            let pick = vdo_core::matrix::Pick {
                version: entry.version.clone(),
                target: entry.version.clone(),
                from: None,
                leaves: None,
                path: vec![],
                waits: None,
                chart: entry.chart.clone(),
                because: String::new(),
                because_target: String::new(),
                because_newest: String::new(),
                newest: None,
                overridden: forced.then(String::new),
                deprecated: None,
            };
            let resolution = Resolution {
                picks: [(CSI.to_owned(), pick)].into(),
            };
            assert_eq!(
                is_available(&index, Some(&resolution), installed.as_ref()),
                expected,
                "{installed:?} {pinned} {forced}"
            );
        }
        assert!(
            !is_available(&index, None, Some(&version("3.6.3"))),
            "without a choice nothing is upgraded"
        );
    }
}
