//! Drivers that somebody else installed are taken over as they run: by `kubectl apply`, by `kubectl apply --server-side`, by Helm and
//! by the original operator; and those of the drivers' own manifests, where this machine has them. No pod is restarted, what is no
//! longer wanted goes, and the end is that of a fresh installation. And who keeps which field afterwards. On a real control plane.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

#[path = "../bed/mod.rs"]
mod bed;
mod fields;
mod release;
mod upstream;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bed::{Bed, PATIENCE, name};
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use vdo_testbed::{Binaries, Part, Probe, until};

#[tokio::test(flavor = "multi_thread")]
async fn what_others_installed_is_taken_over_as_it_runs() -> Result<()> {
    bed::prepare();
    let mut bed = Bed::start().await?;
    bed.start_operator().await?;
    bed.apply_samples().await?;
    bed.until_ready().await?;
    let reference = state(&bed).await?;
    let (code, rendered, err) = bed.vdoctl(&["render", "--show-secrets"])?;
    ensure!(code == 0, "{err}");
    let manifests: Vec<Value> = vdo::yaml::load_all(&rendered)?.into_iter().map(bare).collect();
    fields::who_keeps_a_field(&bed).await?;
    bed.uninstall().await?;

    let mut ghosts = manifests.clone();
    ghosts.iter_mut().for_each(with_ghosts);
    for tool in [Tool::Kubectl, Tool::KubectlServerSide, Tool::Helm, Tool::Original] {
        tool.install(&bed, &ghosts).await?;
        let before = running(&bed).await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.apply(&bed.config(tool.specification())).await?;
        bed.until_ready().await?;
        let after = running(&bed).await?;
        ensure!(before == after, "{tool:?}: workloads or pods changed:\n{before:#?}\n{after:#?}");
        same(&reference, &state(&bed).await?, tool)?;
        nobody_else_manages(&bed, tool).await?;
        let deleted = bed.deleted(mark).await?;
        ensure!(deleted.is_empty(), "{tool:?}: the operator deleted:\n{deleted}");
        println!(
            "{tool:?}: {} objects taken over, {} workloads and pods as they were",
            reference.len(),
            after.len()
        );
        if matches!(tool, Tool::Helm) {
            release::what_helm_may_still_do(&bed, &ghosts, &reference).await?;
        }
        bed.uninstall().await?;
    }
    the_identity_of_volumes_is_kept(&bed, &manifests).await?;
    bed.uninstall().await?;
    upstream::upstream_manifests_are_taken_over(&bed, &manifests).await
}

#[derive(Debug, Clone, Copy)]
enum Tool {
    Kubectl,
    KubectlServerSide,
    Helm,
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
        }
        until_running(bed, &["DaemonSet", "Deployment"]).await
    }
}

/// Waits until the drivers' workloads of these kinds have all their pods.
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
        Ok(Probe::when(lacking.is_empty(), lacking.join(", ")))
    })
    .await
}

fn kubectl(bed: &Bed, args: &[&str], manifests: &[Value]) -> Result<()> {
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
        match api.create(&params, &serde_json::from_value::<DynamicObject>(object)?).await {
            Err(kube::Error::Api(status)) if status.code == 409 && text("/kind") == "Namespace" => {}
            result => drop(result.with_context(|| name(manifest))?),
        }
    }
    Ok(())
}

/// A manifest without our marks.
fn bare(mut manifest: Value) -> Value {
    for field in ["labels", "annotations"] {
        if let Some(map) = manifest["metadata"][field].as_object_mut() {
            map.retain(|key, _| {
                let marks = ["vdo.vmware.com/", "applyset.kubernetes.io/", "app.kubernetes.io/"];
                !marks.iter().any(|mark| key.starts_with(mark))
            });
        }
        if manifest["metadata"][field].as_object().is_some_and(serde_json::Map::is_empty) {
            manifest["metadata"].as_object_mut().expect("metadata").shift_remove(field);
        }
    }
    manifest
}

/// Fields that nobody wants after the take-over.
fn with_ghosts(manifest: &mut Value) {
    if manifest["kind"] != "Namespace" {
        manifest["metadata"]["labels"]["installed-by"] = "hand".into();
    }
    if manifest["kind"] == "ConfigMap" {
        manifest["data"]["ghost"] = "x".into();
    }
    // More than the operator itself may do, so that nobody could bind it before the role is as we want it.
    if manifest["kind"] == "ClusterRole" {
        let all = json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"]});
        manifest["rules"].as_array_mut().expect("rules").push(all);
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
async fn running(bed: &Bed) -> Result<BTreeMap<String, String>> {
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
        ensure!(found[key] == *wanted, "{tool:?}: {key} differs:\n{}\n{wanted}", found[key]);
    }
    Ok(())
}

async fn nobody_else_manages(bed: &Bed, tool: Tool) -> Result<()> {
    for owned in bed.owned().await? {
        // A namespace that was there before stays, with our marks, from one round to the next, and is ours already then.
        if owned["kind"] == "Namespace" {
            continue;
        }
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
async fn the_identity_of_volumes_is_kept(bed: &Bed, manifests: &[Value]) -> Result<()> {
    let uid = bed.get("v1", "Namespace", "", "kube-system").await?["metadata"]["uid"]
        .as_str()
        .context("a UID")?
        .to_owned();
    let mut manifests = manifests.to_vec();
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
    bed.apply(&bed.config(json!({}))).await?;
    let config = bed.until_ready().await?;
    assert_eq!(config["status"]["clusterId"], "the-old-cluster");
    let secret = bed.get("v1", "Secret", "vmware-system-csi", "vsphere-config-secret").await?;
    let conf = String::from_utf8(STANDARD.decode(secret["data"]["csi-vsphere.conf"].as_str().context("the file")?)?)?;
    ensure!(conf.contains("the-old-cluster") && !conf.contains(&uid), "{conf}");
    ensure!(running(bed).await? == before, "pods were restarted");
    Ok(())
}
