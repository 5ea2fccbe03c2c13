// SPDX-License-Identifier: Apache-2.0
//! A change that takes away what volumes depend on leaves the drivers as they are, until a person approves it or the volumes are gone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::INSTALLED;
use crate::operation::private;
use crate::topology::versions;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const CSI: &str = "vmware-system-csi";
/// How vdoctl begins.
const DEPEND: &str = "volumes depend on settings that this change affects";
/// Another name of the same vCenter.
const OTHER: &str = "localhost";

async fn volume(bed: &Bed) -> Result<()> {
    volume_in(bed, json!({})).await
}

/// A volume with these settings more.
async fn volume_in(bed: &Bed, more: Value) -> Result<()> {
    let mut spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": "guarded"}});
    vdo_core::chart::values::merge(&mut spec, &more);
    bed.apply(&json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "guarded"}, "spec": spec}))
        .await
}

async fn move_to(bed: &Bed, address: &str) -> Result<()> {
    bed.merge(VDO, "VsphereCloudConfig", NS, "vc1", json!({"spec": {"vcIp": address}}))
        .await
}

/// Waits until the driver is configured with this vCenter, and ready.
async fn configured(bed: &Bed, address: &str) -> Result<()> {
    until(&format!("the driver to use {address}"), PATIENCE, async || {
        let secret = bed.get("v1", "Secret", CSI, "vsphere-config-secret").await?;
        let note = secret["metadata"]["annotations"]["vdo.vmware.com/volume-settings"].clone();
        let used = note
            .as_str()
            .is_some_and(|note| note.contains(&format!("\"vcenters\":[\"{address}\"]")));
        Ok(Probe::when(used, note))
    })
    .await?;
    bed.until_ready().await?;
    Ok(())
}

/// Waits until the operator asks for an approval because a vCenter is lost; gives the hash.
async fn asked(bed: &Bed, lost: &str) -> Result<String> {
    asked_about(bed, &lost_vcenter(lost)).await
}

fn lost_vcenter(address: &str) -> String {
    format!(
        "vCenter {address} would be removed from the configuration of the CSI driver, but some of 1 PersistentVolume may be in this vCenter"
    )
}

/// Waits until the operator asks for an approval because of volumes; gives the hash.
async fn asked_about(bed: &Bed, words: &str) -> Result<String> {
    let ready = bed.until_reason("Ready", "ApprovalRequired").await?;
    let message = ready["message"].as_str().unwrap_or_default();
    ensure!(message.contains(words) && message.contains("vdoctl approve"), "{message}");
    let status = bed.status().await?;
    Ok(status["plan"]["hash"].as_str().context("a hash")?.to_owned())
}

#[test]
#[ignore = "long"]
fn volume_guard_holds_another_vcenter_until_approved_or_without_volumes() -> Result<()> {
    INSTALLED.run(async |bed| {
        let host = bed.vcenter.host().to_string();
        volume(bed).await?;
        let before = versions(bed).await?;

        move_to(bed, OTHER).await?;
        let hash = asked(bed, &host).await?;
        ensure!(versions(bed).await? == before, "an object of the drivers was changed");
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        ensure!(condition(&config, "StorageReady")["status"] == "True", "{}", config["status"]);
        let (code, out, err) = bed.vdoctl(&["plan"])?;
        let shown = format!("{out}{err}");
        ensure!(code == 1 && shown.contains("not approved"), "{shown}");
        ensure!(
            shown.contains("volumes depend on settings that this change affects: vCenter "),
            "{shown}"
        );

        // Taken back, nothing is asked and nothing was written.
        move_to(bed, &host).await?;
        configured(bed, &host).await?;
        ensure!(
            versions(bed).await? == before,
            "an object of the drivers was changed on the way back"
        );

        move_to(bed, OTHER).await?;
        ensure!(asked(bed, &host).await? == hash, "the same change has another hash");
        let (code, _, err) = bed.vdoctl(&["approve", &hash])?;
        ensure!(code == 0, "{err}");
        configured(bed, OTHER).await?;

        // The last volume is deleted while a change waits for an approval.
        move_to(bed, &host).await?;
        asked(bed, OTHER).await?;
        bed.delete("v1", "PersistentVolume", "", "guarded").await?;
        configured(bed, &host).await
    })
}

#[test]
fn volume_guard_of_vdoctl_refuses_change_that_volumes_depend_on() -> Result<()> {
    INSTALLED.run(async |bed| {
        let only =
            |name: &str| json!({"cloudProvider": {"vsphereCloudConfigs": ["vc1"]}, "storageProvider": {"vsphereCloudConfigs": [name]}});
        bed.apply(&bed.config(only("vc1"))).await?;
        bed.until_ready().await?;
        let mut other = bed.connection("vc2");
        other["spec"]["vcIp"] = OTHER.into();
        bed.apply(&other).await?;
        bed.until_condition("VsphereCloudConfig", "vc2", "Ready", "Healthy").await?;
        let change = ["configure", "drivers", "--set", "storageProvider.vsphereCloudConfigs=[vc2]"];
        volume(bed).await?;
        let (code, out, err) = bed.vdoctl(&change)?;
        let shown = format!("{out}{err}");
        ensure!(code == 4 && shown.contains("nothing was written"), "{code} {shown}");
        ensure!(
            shown.contains("volumes depend on settings that this change affects") && shown.contains("--ignore-checks"),
            "{shown}"
        );
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        ensure!(
            config["spec"]["storageProvider"]["vsphereCloudConfigs"] == json!(["vc1"]),
            "{}",
            config["spec"]
        );
        // Written anyway, the operator asks.
        let (code, out, err) = bed.vdoctl(&[&change[..], &["--ignore-checks"]].concat())?;
        ensure!(code == 0, "{out}{err}");
        asked(bed, bed.vcenter.host()).await?;
        bed.delete("v1", "PersistentVolume", "", "guarded").await?;
        configured(bed, OTHER).await
    })
}

/// What vdoctl says of a change that it refuses: nothing is written, and it names the flag that writes it in spite of volumes.
fn refused(bed: &Bed, change: &[&str], words: [&str; 2]) -> Result<()> {
    let (code, out, err) = bed.vdoctl(change)?;
    let shown = format!("{out}{err}");
    // A check that fails, or a plan that is refused.
    ensure!(
        matches!(code, 1 | 4) && shown.contains("nothing was written"),
        "{change:?}: {code} {shown}"
    );
    // The screen breaks lines.
    let line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in words.into_iter().chain(["--ignore-checks"]) {
        ensure!(line.contains(part), "{change:?}: {part:?} is not in {shown}");
    }
    Ok(())
}

/// What `vdoctl deploy --values` says of a file with everything that is there and this specification.
fn deploy_is_refused(bed: &Bed, spec: Value, words: [&str; 2]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let objects = [bed.secret(bed.vcenter.password()), bed.connection("vc1"), bed.config(spec)];
    let text = objects.map(|object| object.to_string()).join("\n---\n");
    let file = private(folder.path(), "configuration.yaml", &text)?;
    refused(bed, &["deploy", "--values", &file, "--no-wait", "--yes"], words)
}

#[test]
#[ignore = "long"]
fn volume_guard_holds_removed_categories_to_which_volumes_are_bound() -> Result<()> {
    INSTALLED.run(async |bed| {
        let tags = [("guard-region", "region-1"), ("guard-zone", "zone-a")];
        for (category, tag) in tags {
            bed.vcenter.tag(category, tag, "Datacenter", "DC0").await?;
        }
        let zones = json!({"topologyCategories": ["guard-region", "guard-zone"]});
        bed.apply(&bed.config(json!({"storageProvider": zones}))).await?;
        bed.until_ready().await?;
        let term = json!({"matchExpressions": [{"key": "topology.csi.vmware.com/guard-zone", "operator": "In", "values": ["zone-a"]}]});
        volume_in(bed, json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}})).await?;
        let before = versions(bed).await?;

        let words =
            "nodes would lose topology label topology.csi.vmware.com/guard-zone, which the node affinity of 1 PersistentVolume uses";
        refused(
            bed,
            &["configure", "drivers", "--set", "storageProvider.topologyCategories=[]"],
            [DEPEND, words],
        )?;
        deploy_is_refused(bed, json!({}), [DEPEND, words])?;
        bed.apply(&bed.config(json!({}))).await?;
        asked_about(bed, words).await?;
        ensure!(versions(bed).await? == before, "an object of the drivers was changed");
        // The label to which no volume is bound is not asked about.
        let ready = bed.until_reason("Ready", "ApprovalRequired").await?;
        ensure!(!ready.to_string().contains("guard-region"), "{ready}");

        bed.delete("v1", "PersistentVolume", "", "guarded").await?;
        bed.until_ready().await?;
        ensure!(versions(bed).await? != before, "the categories were not removed");
        for (category, tag) in tags {
            bed.vcenter.untag(category, tag, "Datacenter", "DC0").await?;
        }
        Ok(())
    })
}

/// Drivers that run keep the id under which volumes may be registered.
#[test]
fn volume_guard_keeps_the_cluster_id() -> Result<()> {
    INSTALLED.run(async |bed| {
        volume(bed).await?;
        let before = versions(bed).await?;
        let id = bed.status().await?["clusterId"].as_str().context("no cluster id")?.to_owned();
        let change = ["configure", "drivers", "--set", "storageProvider.clusterId=another"];
        let (code, out, err) = bed.vdoctl(&change)?;
        let shown = format!("{out}{err}");
        ensure!(
            code == 4 && shown.contains("nothing was written") && shown.contains(&id),
            "{code} {shown}"
        );
        deploy_is_refused(bed, json!({"storageProvider": {"clusterId": "another"}}), ["clusterId", &id])?;
        let (code, out, err) = bed.vdoctl(&[&change[..], &["--ignore-checks"]].concat())?;
        ensure!(code == 0, "{out}{err}");
        let ready = bed.until_reason("Ready", "InvalidSpec").await?;
        ensure!(ready["message"].as_str().is_some_and(|message| message.contains(&id)), "{ready}");
        ensure!(
            versions(bed).await? == before,
            "an object of the drivers was changed for another cluster id"
        );
        // vdoctl has written the field, so that vdoctl's change is taken back and not that of the samples.
        bed.merge(VDO, "VDOConfig", NS, "vdo", json!({"spec": {"storageProvider": null}}))
            .await?;
        bed.until_ready().await?;
        bed.delete("v1", "PersistentVolume", "", "guarded").await
    })
}

#[test]
fn volume_guard_asks_when_a_deleted_connection_is_replaced_by_another_vcenter() -> Result<()> {
    INSTALLED.run(async |bed| {
        let host = bed.vcenter.host().to_string();
        volume(bed).await?;
        let before = versions(bed).await?;
        bed.delete(VDO, "VsphereCloudConfig", NS, "vc1").await?;
        let ready = bed.until_reason("Ready", "NoConnections").await?;
        ensure!(versions(bed).await? == before, "an object of the drivers was changed: {ready}");
        let mut other = bed.connection("vc2");
        other["spec"]["vcIp"] = OTHER.into();
        bed.apply(&other).await?;
        asked(bed, &host).await?;
        ensure!(versions(bed).await? == before, "an object of the drivers was changed");
        // The connection comes back under its own name.
        bed.delete(VDO, "VsphereCloudConfig", NS, "vc2").await?;
        bed.apply(&bed.connection("vc1")).await?;
        configured(bed, &host).await?;
        ensure!(
            versions(bed).await? == before,
            "an object of the drivers was changed on the way back"
        );
        bed.delete("v1", "PersistentVolume", "", "guarded").await
    })
}

#[test]
fn volume_guard_of_vdoctl_refuses_another_vcenter_in_configure_connection_and_deploy() -> Result<()> {
    INSTALLED.run(async |bed| {
        let host = bed.vcenter.host().to_string();
        let other = format!("{OTHER}:{}", bed.vcenter.port());
        volume(bed).await?;
        let before = versions(bed).await?;
        let change = ["configure", "connection", "vc1", "--vcenter", &other, "--yes"];
        refused(bed, &change, [DEPEND, &lost_vcenter(&host)])?;
        let folder = tempfile::tempdir()?;
        let password = private(folder.path(), "password", bed.vcenter.password())?;
        let print = bed.vcenter.thumbprint_sha256();
        let user = bed.vcenter.user().to_owned();
        let deploy = [
            "deploy",
            "--vcenter",
            &other,
            "--user",
            &user,
            "--password-file",
            &password,
            "--thumbprint",
            &print,
            "--yes",
        ];
        let (code, out, err) = bed.vdoctl(&deploy)?;
        let leads = format!("connection vc1 of this cluster uses vCenter {host}, not {OTHER}");
        ensure!(
            code == 4 && err.contains(&leads) && err.contains("--values FILE"),
            "{code}\n{out}{err}"
        );
        let connection = bed.get(VDO, "VsphereCloudConfig", NS, "vc1").await?;
        ensure!(connection["spec"]["vcIp"] == *host, "{connection}");

        // Written anyway, the operator asks.
        let (code, out, err) = bed.vdoctl(&[&change[..], &["--ignore-checks"]].concat())?;
        ensure!(code == 0, "{out}{err}");
        asked(bed, &host).await?;
        ensure!(versions(bed).await? == before, "an object of the drivers was changed");
        bed.delete("v1", "PersistentVolume", "", "guarded").await?;
        configured(bed, OTHER).await?;
        move_to(bed, &host).await?;
        configured(bed, &host).await
    })
}
