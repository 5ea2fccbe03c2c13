// SPDX-License-Identifier: Apache-2.0
//! Adoption: drivers that another tool installed are taken over as they run, whether it was `kubectl apply`, `kubectl apply
//! --server-side`, Helm or the original operator. No pod is restarted, what is no longer wanted goes, and the end is that of a fresh
//! installation. And who keeps which field afterwards. On a real control plane.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod fields;
mod followed;
mod handed_back;
mod installers;
mod lost;
pub mod moving;
mod release;
mod settings;
mod upstream;

use crate::common::{Bed, PATIENCE, name, sample};
use crate::fixture::OPERATOR;
use crate::page::open;
use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tokio::sync::Mutex;
use vdo_testbed::former::bare;
use vdo_testbed::{Binaries, Part, Probe, until};

/// What a fresh installation leads to, and the manifests with which it can be played by other tools.
#[derive(Clone)]
struct Reference {
    state: BTreeMap<String, Value>,
    manifests: Vec<Value>,
}

/// The reference of the cluster in this folder: it takes an installation to find out.
static REFERENCE: Mutex<Option<(PathBuf, Reference)>> = Mutex::const_new(None);

/// The reference of this cluster. It is left without drivers, and with the Secret and the connection of the samples.
async fn reference(bed: &Bed) -> Result<Reference> {
    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    bed.apply(&bed.connection("vc1")).await?;
    let mut known = REFERENCE.lock().await;
    if let Some((_, reference)) = known.as_ref().filter(|(folder, _)| folder == bed.cluster.dir()) {
        return Ok(reference.clone());
    }
    bed.apply(&bed.config(json!({}))).await?;
    bed.until_ready().await?;
    let (code, rendered, err) = bed.vdoctl(&["render", "--show-secrets"])?;
    ensure!(code == 0, "{err}");
    let reference = Reference {
        state: state(bed).await?,
        manifests: vdo_api::yaml::load_all(&rendered)?.into_iter().map(bare).collect(),
    };
    bed.uninstall().await?;
    *known = Some((bed.cluster.dir().to_owned(), reference.clone()));
    Ok(reference)
}

/// Installs with another tool, with fields that are not wanted afterwards, and has the operator take over; gives the manifests.
async fn adopt(bed: &Bed, tool: Tool, reference: &Reference) -> Result<Vec<Value>> {
    let mut ghosts = reference.manifests.clone();
    ghosts.iter_mut().for_each(with_ghosts);
    tool.install(bed, &ghosts).await?;
    let before = running(bed).await?;
    let mark = bed.cluster.audit().mark().await?;
    bed.apply(&bed.config(tool.specification())).await?;
    bed.until_ready().await?;
    let after = running(bed).await?;
    ensure!(before == after, "{tool:?}: workloads or pods changed:\n{before:#?}\n{after:#?}");
    same(&reference.state, &state(bed).await?, tool)?;
    managed_by_us_alone(bed, tool).await?;
    let deleted = bed.deleted(mark).await?;
    ensure!(deleted.is_empty(), "{tool:?}: the operator deleted:\n{deleted}");
    println!(
        "{tool:?}: {} objects taken over, {} workloads and pods as they were",
        reference.state.len(),
        after.len()
    );
    Ok(ghosts)
}

/// A tool that installs once and does nothing afterwards.
fn adopted_as_it_runs(tool: Tool) -> Result<()> {
    OPERATOR.run(async |bed| {
        let reference = reference(bed).await?;
        let manifests = adopt(bed, tool, &reference).await?;
        handed_back::hand_back(bed, &manifests).await
    })
}

#[test]
#[ignore = "long"]
fn adoption_after_kubectl_apply_keeps_every_pod() -> Result<()> {
    adopted_as_it_runs(Tool::Kubectl)
}

#[test]
#[ignore = "long"]
fn adoption_after_kubectl_server_side_apply_keeps_every_pod() -> Result<()> {
    adopted_as_it_runs(Tool::KubectlServerSide)
}

/// The API server names who wrote an object before it kept a record: `before-first-apply`.
#[test]
#[ignore = "long"]
fn adoption_without_a_record_of_managers_keeps_every_pod() -> Result<()> {
    adopted_as_it_runs(Tool::Unrecorded)
}

#[test]
#[ignore = "long"]
fn adoption_after_original_operator_keeps_every_pod() -> Result<()> {
    adopted_as_it_runs(Tool::Original)
}

#[test]
#[ignore = "long"]
fn adoption_after_helm_keeps_every_pod_and_helm_may_upgrade_and_uninstall() -> Result<()> {
    OPERATOR.run(async |bed| {
        let reference = reference(bed).await?;
        let ghosts = adopt(bed, Tool::Helm, &reference).await?;
        release::what_helm_may_still_do(bed, &ghosts, &reference.state).await?;
        bed.uninstall().await?;
        handed_back::delete(bed, &ghosts)
    })
}

#[derive(Debug, Clone, Copy)]
enum Tool {
    Kubectl,
    KubectlServerSide,
    Helm,
    /// A client of before the API server kept a record of field managers.
    Unrecorded,
    /// The operator of vmware-tanzu: it created what it read, as its binary is named, and left no mark.
    Original,
}

impl Tool {
    /// The VDOConfig that goes with it.
    fn specification(self) -> Value {
        match self {
            Self::Original => json!({"cloudProvider": {"vsphereCloudConfigs": ["vc1"]}, "storageProvider": {"vsphereCloudConfig": "vc1"}}),
            _ => json!({}),
        }
    }

    async fn install(self, bed: &Bed, manifests: &[Value]) -> Result<()> {
        match self {
            Self::Kubectl => kubectl(bed, &["apply", "-f", "-"], manifests)?,
            Self::KubectlServerSide => kubectl(bed, &["apply", "--server-side", "-f", "-"], manifests)?,
            Self::Helm => release::install(bed, manifests).await?,
            Self::Original => create(bed, "manager", manifests).await?,
            Self::Unrecorded => {
                create(bed, "old-client", manifests).await?;
                for manifest in manifests {
                    forget_managers(bed, manifest).await?;
                }
            }
        }
        until_running(bed, &["DaemonSet", "Deployment"]).await
    }
}

/// Waits until the drivers' workloads of these kinds have all their pods, and no pod of before is left.
async fn until_running(bed: &Bed, kinds: &[&str]) -> Result<()> {
    until("the foreign drivers to run", PATIENCE, async || {
        let mut lacking = Vec::new();
        for kind in kinds {
            for object in workloads(bed, kind).await? {
                let status = &object["status"];
                let wanted = status["desiredNumberScheduled"].as_i64().or(object["spec"]["replicas"].as_i64());
                let ready = status["numberReady"].as_i64().or(status["readyReplicas"].as_i64()).unwrap_or(0);
                if status["observedGeneration"] != object["metadata"]["generation"] || wanted != Some(ready) {
                    lacking.push(name(&object));
                }
            }
        }
        let mut ending = bed.list("v1", "Pod", "").await?;
        ending.retain(|pod| pod["metadata"]["deletionTimestamp"].is_string());
        lacking.extend(ending.iter().map(name));
        Ok(Probe::when(lacking.is_empty(), lacking.join(", ")))
    })
    .await
}

/// The objects of files below the folder with the manifests of drivers and installers.
fn manifests_of_others(files: &[impl AsRef<str>]) -> Result<Vec<Value>> {
    let root = sample::upstream().context("VDO_UPSTREAM_DIR is not set")?;
    let mut all = Vec::new();
    for file in files {
        let path = root.join(file.as_ref());
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for mut object in vdo_api::yaml::load_all(&text)? {
            match object.get_mut("items").map(Value::take) {
                Some(Value::Array(items)) => all.extend(items),
                _ => all.push(object),
            }
        }
    }
    all.retain(|object| !object.is_null());
    Ok(all)
}

pub fn kubectl(bed: &Bed, args: &[&str], manifests: &[Value]) -> Result<()> {
    let mut child = Command::new(Binaries::ensure(&[Part::Kubectl])?.path(Part::Kubectl))
        .arg("--kubeconfig")
        .arg(bed.cluster.kubeconfig())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let list = json!({"apiVersion": "v1", "kind": "List", "items": manifests});
    child.stdin.take().context("stdin")?.write_all(list.to_string().as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(
        output.status.success(),
        "kubectl {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// As a client creates objects that says its name and nothing else.
async fn create(bed: &Bed, manager: &str, manifests: &[Value]) -> Result<()> {
    let params = PostParams {
        field_manager: Some(manager.into()),
        ..PostParams::default()
    };
    for manifest in manifests {
        let object = manifest.clone();
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let api = bed.api(&text("/apiVersion"), &text("/kind"), &text("/metadata/namespace"));
        let created = api.create(&params, &serde_json::from_value::<DynamicObject>(object)?).await;
        created.with_context(|| name(manifest))?;
    }
    Ok(())
}

/// Takes the record of field managers off an object.
async fn forget_managers(bed: &Bed, manifest: &Value) -> Result<()> {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let none = json!({"metadata": {"managedFields": [{}]}});
    bed.merge(
        text("/apiVersion"),
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name"),
        none,
    )
    .await
}

/// Fields that are not wanted after the adoption.
fn with_ghosts(manifest: &mut Value) {
    manifest["metadata"]["labels"]["installed-by"] = "hand".into();
    if manifest["kind"] == "ConfigMap" {
        manifest["data"]["ghost"] = "x".into();
    }
}

async fn workloads(bed: &Bed, kind: &str) -> Result<Vec<Value>> {
    let ours = [
        "vsphere-csi-controller",
        "vsphere-csi-node",
        "vsphere-csi-node-windows",
        "vsphere-cloud-controller-manager",
    ];
    let mut all = bed.list("apps/v1", kind, "").await?;
    all.retain(|object| ours.iter().any(|name| object["metadata"]["name"] == *name));
    for object in &mut all {
        object["kind"] = kind.into();
    }
    Ok(all)
}

/// What must not change: UID and specification of every workload, and the UID of every pod. Not the generation, which the API
/// server also raises for an annotation of a Deployment.
pub async fn running(bed: &Bed) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for kind in ["DaemonSet", "Deployment"] {
        for object in workloads(bed, kind).await? {
            all.insert(name(&object), format!("{} {}", object["metadata"]["uid"], object["spec"]));
        }
    }
    for mut pod in bed.list("v1", "Pod", "").await? {
        pod["kind"] = "Pod".into();
        all.insert(name(&pod), pod["metadata"]["uid"].to_string());
    }
    ensure!(all.len() > 8, "{all:?}");
    Ok(all)
}

async fn state(bed: &Bed) -> Result<BTreeMap<String, Value>> {
    Ok(bed.owned().await?.into_iter().map(|object| (name(&object), object)).collect())
}

fn same(reference: &BTreeMap<String, Value>, found: &BTreeMap<String, Value>, tool: Tool) -> Result<()> {
    let names = |all: &BTreeMap<String, Value>| all.keys().cloned().collect::<Vec<_>>();
    ensure!(
        names(reference) == names(found),
        "{tool:?}: {:?} instead of {:?}",
        names(found),
        names(reference)
    );
    for (key, wanted) in reference {
        // The mark of where an object came from is a part of what is applied.
        let (found, wanted) = (unmarked(&found[key]), unmarked(wanted));
        ensure!(found == wanted, "{tool:?}: {key} differs:\n{found}\n{wanted}");
    }
    Ok(())
}

fn unmarked(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        annotations.retain(|key, _| key != "vdo.vmware.com/adopted-from" && key != "vdo.vmware.com/applied");
    }
    object
}

async fn managed_by_us_alone(bed: &Bed, tool: Tool) -> Result<()> {
    for owned in bed.owned().await? {
        let text = |pointer: &str| owned.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let live = bed
            .get(
                &text("/apiVersion"),
                &text("/kind"),
                &text("/metadata/namespace"),
                &text("/metadata/name"),
            )
            .await?;
        let managers = live["metadata"]["managedFields"].to_string();
        for other in ["kubectl", "helm", "before-first-apply", "\"manager\":\"manager\""] {
            ensure!(
                !managers.contains(other),
                "{tool:?}: {} is still managed by {other}: {managers}",
                name(&owned)
            );
        }
    }
    Ok(())
}

/// Volumes are registered in vCenter under the identity that the old configuration has.
#[test]
#[ignore = "long"]
fn adoption_keeps_the_cluster_id_of_the_old_configuration() -> Result<()> {
    OPERATOR.run(async |bed| {
        let uid = bed.get("v1", "Namespace", "", "kube-system").await?["metadata"]["uid"]
            .as_str()
            .context("a UID")?
            .to_owned();
        let mut manifests = reference(bed).await?.manifests;
        for secret in manifests
            .iter_mut()
            .filter(|object| object["metadata"]["name"] == "vsphere-config-secret")
        {
            let conf = String::from_utf8(STANDARD.decode(secret["data"]["csi-vsphere.conf"].as_str().context("the file")?)?)?;
            ensure!(conf.contains(&uid), "{conf}");
            secret["data"]["csi-vsphere.conf"] = STANDARD.encode(conf.replace(&uid, "the-old-cluster")).into();
        }
        Tool::Kubectl.install(bed, &manifests).await?;
        let before = running(bed).await?;
        let mut page = open(bed, "taking-over.md")?;
        page.file("vdo.yaml", &bed.config(json!({})).to_string())?;
        page.run("vdoctl plan")?;
        ensure!(
            running(bed).await? == before && bed.owned().await?.is_empty(),
            "a preview has written"
        );
        page.run("kubectl apply")?;
        let config = bed.until_ready().await?;
        assert_eq!(config["status"]["clusterId"], "the-old-cluster");
        let secret = bed.get("v1", "Secret", "vmware-system-csi", "vsphere-config-secret").await?;
        let conf = String::from_utf8(STANDARD.decode(secret["data"]["csi-vsphere.conf"].as_str().context("the file")?)?)?;
        ensure!(conf.contains("the-old-cluster") && !conf.contains(&uid), "{conf}");
        ensure!(running(bed).await? == before, "pods were restarted");
        handed_back::hand_back(bed, &manifests).await
    })
}
