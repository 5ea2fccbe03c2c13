//! What keeps a deletion from beginning.

use super::target::{Scope, Target};
use crate::api::{DeletionPolicy, Reason, VDOConfig};
use crate::cli::context::{Context, id};
use crate::cli::{CliError, Exit};
use crate::cluster::{ClusterError, Select, Watch, list};
use crate::drivers::CSI_DRIVER;
use crate::plan::{Plan, REMOVE_DESPITE_VOLUMES, Volumes};
use crate::types::{count, shell_word};
use kube::ResourceExt;

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
            "Delete them first: vdoctl delete --drivers-only -n NAMESPACE removes the drivers of a namespace, kubectl delete the rest.",
        ));
    }
    let orphans = |config: &&std::sync::Arc<VDOConfig>| config.spec.deletion_policy == DeletionPolicy::Orphan;
    match target.configs.iter().find(orphans) {
        Some(config) if target.scope != Scope::Operator => Err(CliError::new(
            Exit::Refused,
            format!(
                "VDOConfig {} has deletionPolicy Orphan: its drivers stay when it is deleted",
                id(config)
            ),
            "Keep them with --keep-drivers, or set spec.deletionPolicy to Delete to remove them.",
        )),
        _ => Ok(()),
    }
}

/// Refuses while volumes or snapshots need the driver that would be removed.
pub(super) async fn refuse_volumes(context: &Context, config: &VDOConfig, plan: &Plan) -> Result<(), CliError> {
    let Some(blocked) = plan.blocked.iter().find(|wait| wait.reason == Reason::VolumesInUse) else {
        return Ok(());
    };
    let found = volumes(context).await?;
    let mut listed: Vec<String> = found.named.iter().map(|name| format!("  {name}")).collect();
    if found.count > found.named.len() {
        listed.push(format!("  and {} more", found.count - found.named.len()));
    }
    if listed.is_empty() {
        listed.push(format!("  {}", blocked.message));
    }
    let namespace = config.namespace().unwrap_or_default();
    listed.push("Delete the claims and snapshots, or move their data, and run vdoctl delete again.".into());
    listed.push("To remove the driver and leave the volumes as they are:".into());
    listed.push(format!(
        "  kubectl --namespace {} annotate vdoconfig {} {REMOVE_DESPITE_VOLUMES}=true",
        shell_word(&namespace),
        shell_word(&config.name_any())
    ));
    listed.push("To keep the drivers and remove only the operator: vdoctl delete --keep-drivers".into());
    Err(CliError::new(
        Exit::Refused,
        format!("{} of {CSI_DRIVER} are in use, so nothing was removed", found.counted()),
        listed.join("\n"),
    ))
}

async fn volumes(context: &Context) -> Result<Volumes, CliError> {
    let client = &context.ports.client;
    let all = async |api_version: &str, kind: &str| match list(client, &Watch::new(api_version, kind, "", Select::All)).await {
        Err(ClusterError::NotServed { .. }) => Ok(Vec::new()),
        found => found,
    };
    let volumes = all("v1", "PersistentVolume").await?;
    let attachments = all("storage.k8s.io/v1", "VolumeAttachment").await?;
    let snapshots = all("snapshot.storage.k8s.io/v1", "VolumeSnapshotContent").await?;
    Ok(Volumes::of(&volumes, &attachments, &snapshots))
}
