// SPDX-License-Identifier: Apache-2.0
//! Refuses `vdoctl delete` before it begins: VDO objects in other namespaces, `deletionPolicy: Orphan`, volumes or snapshots in use.

use super::objects_to_delete::{Scope, Target};
use crate::context::{Context, id};
use crate::{CliError, Exit};
use kube::ResourceExt;
use vdo::cluster::{ClusterError, Select, Watch, list};
use vdo_api::api::{DeletionPolicy, MANAGED_BY, MANAGED_BY_LABEL, VDOConfig};
use vdo_api::types::{ObjectId, count, shell_word, verb};
use vdo_core::drivers::{CSI_DRIVER, STORAGE};
use vdo_core::manifest::Object;
use vdo_core::plan::{Inventory, REMOVE_DESPITE_VOLUMES, StorageData, Volumes};

/// Refuses what a deletion must not do, from what was read.
pub(super) fn refuse(target: &Target, cluster: &str) -> Result<(), CliError> {
    if !target.elsewhere.is_empty() {
        let named: Vec<String> = target.elsewhere.iter().take(5).map(ToString::to_string).collect();
        return Err(CliError::new(
            Exit::Refused,
            format!(
                "cluster {cluster} has {} in other namespaces, which would be deleted with their definitions: {}",
                count(target.elsewhere.len(), "object"),
                named.join(", ")
            ),
            "Delete these objects first: the drivers of a namespace with vdoctl delete --drivers-only -n NAMESPACE, all other objects with kubectl delete.",
        ));
    }
    let orphans = |config: &&std::sync::Arc<VDOConfig>| config.spec.deletion_policy == DeletionPolicy::Orphan;
    match target.configs.iter().find(orphans) {
        Some(config) if target.scope != Scope::Operator => Err(CliError::new(
            Exit::Refused,
            format!(
                "VDOConfig {} has deletionPolicy Orphan: its drivers are kept when the VDOConfig is deleted",
                id(config)
            ),
            "Keep the drivers with --keep-drivers, or set spec.deletionPolicy to Delete to remove the drivers.",
        )),
        _ => Ok(()),
    }
}

/// Refuses while volumes or snapshots need the driver that would be removed, also where nothing of the driver runs any more: its pods may be
/// missing by mistake, and who removes the rest has to know of the volumes.
pub(super) fn refuse_volumes(config: &VDOConfig, inventory: &Inventory, found: &Volumes) -> Result<(), CliError> {
    let installed = inventory.objects.iter().any(|(_, entry)| entry.driver == STORAGE.name);
    let asked = config
        .annotations()
        .get(REMOVE_DESPITE_VOLUMES)
        .is_some_and(|value| value == "true");
    if found.count == 0 || !installed || asked {
        return Ok(());
    }
    let mut listed: Vec<String> = found.named.iter().map(|name| format!("  {name}")).collect();
    if found.count > found.named.len() {
        listed.push(format!("  and {} more", found.count - found.named.len()));
    }
    let namespace = config.namespace().unwrap_or_default();
    listed.push("Delete the claims and snapshots, or move their data, and run vdoctl delete again.".into());
    if config.metadata.deletion_timestamp.is_some() {
        listed.push("If the operator's manifests were deleted, the driver lacks its rights. This command restores the rights:".into());
        listed.push("  kubectl apply --server-side -k deploy".into());
    }
    listed.push("To remove the driver and leave the volumes as they are (vdoctl deploy finds them again):".into());
    listed.push(format!(
        "  kubectl --namespace {} annotate vdoconfig {} {REMOVE_DESPITE_VOLUMES}=true",
        shell_word(&namespace),
        shell_word(&config.name_any())
    ));
    listed.push("To keep the drivers and remove only the operator: vdoctl delete --keep-drivers".into());
    let verb = verb(found.count, "is", "are");
    Err(CliError::new(
        Exit::Refused,
        format!("{} of {CSI_DRIVER} {verb} in use, so nothing was removed", found.counted()),
        listed.join("\n"),
    ))
}

/// What holds data of the storage driver, or leads to it. A class that the operator made is removed with the driver, unless it is in use.
pub(super) async fn data(context: &Context, without_own_classes: bool) -> Result<StorageData, CliError> {
    let mut all = Vec::new();
    for (api_version, kind) in StorageData::KINDS {
        match list(&context.ports.client, &Watch::new(api_version, kind, "", Select::All)).await {
            Err(ClusterError::NotServed { .. }) => {}
            found => all.extend(found?),
        }
    }
    let own = |object: &Object| object.kind() == "StorageClass" && object.label(MANAGED_BY_LABEL) == Some(MANAGED_BY);
    let mut data = StorageData::of(&all);
    if without_own_classes {
        let own: Vec<ObjectId> = all.iter().filter(|object| own(object)).map(Object::id).collect();
        data.classes.retain(|class| !own.contains(class));
    }
    Ok(data)
}
