//! Drivers that somebody else installed are taken over as they run: by `kubectl apply`, by `kubectl apply --server-side`, by Helm and
//! by the original operator; and those of the drivers' own manifests, where this machine has them. No pod is restarted, what is no longer wanted goes, and the end is that of a fresh installation. And who keeps which field
//! afterwards. On a real control plane.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod bed;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bed::{Bed, PATIENCE, name};
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
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
    who_keeps_a_field(&bed).await?;
    bed.uninstall().await?;

    for tool in [Tool::Kubectl, Tool::KubectlServerSide, Tool::Helm, Tool::Original] {
        let mut manifests = manifests.clone();
        for manifest in &mut manifests {
            with_ghosts(manifest);
        }
        tool.install(&bed, &manifests).await?;
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
        bed.uninstall().await?;
    }
    the_identity_of_volumes_is_kept(&bed, &manifests).await?;
    bed.uninstall().await?;
    upstream_manifests_are_taken_over(&bed, &manifests).await
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
            Self::Helm => helm(bed, manifests).await?,
            Self::Original => create(bed, "manager", manifests).await?,
        }
        until("the foreign drivers to run", PATIENCE, async || {
            let mut lacking = Vec::new();
            for kind in ["DaemonSet", "Deployment"] {
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

/// As Helm 3 creates objects: under its own manager, with its labels and annotations.
async fn helm(bed: &Bed, manifests: &[Value]) -> Result<()> {
    let marked = manifests.iter().cloned().map(|mut object| {
        object["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm".into();
        object["metadata"]["annotations"]["meta.helm.sh/release-name"] = "vsphere".into();
        object["metadata"]["annotations"]["meta.helm.sh/release-namespace"] = "kube-system".into();
        object
    });
    create(bed, "helm", &marked.collect::<Vec<_>>()).await
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

/// Own, yield, fail: by path, as the specification says.
async fn who_keeps_a_field(bed: &Bed) -> Result<()> {
    let (ns, controller, map) = (
        "vmware-system-csi",
        "vsphere-csi-controller",
        "internal-feature-states.csi.vsphere.vmware.com",
    );
    bed.apply(&bed.config(json!({"conflicts": [
        {"kind": "Deployment", "name": controller, "path": "spec.replicas", "policy": "Yield"},
        {"kind": "ConfigMap", "path": "data.trigger-csi-fullsync", "policy": "Fail"},
    ]})))
    .await?;
    bed.until_ready().await?;
    // Somebody scales, and somebody else changes what nobody may: only that comes back.
    bed.merge("apps/v1", "Deployment", ns, controller, json!({"spec": {"replicas": 2}}))
        .await?;
    bed.merge("apps/v1", "Deployment", ns, controller, json!({"spec": {"revisionHistoryLimit": 3, "minReadySeconds": 0, "template": {"spec": {"priorityClassName": "system-node-critical"}}}}))
        .await?;
    until("the drift beside the yielded field to be repaired", PATIENCE, async || {
        let spec = bed.get("apps/v1", "Deployment", ns, controller).await?["spec"].clone();
        let found = &spec["template"]["spec"]["priorityClassName"];
        Ok(Probe::when(found == "system-cluster-critical", found))
    })
    .await?;
    assert_eq!(bed.get("apps/v1", "Deployment", ns, controller).await?["spec"]["replicas"], 2);
    // What fails is named with its manager and the time.
    bed.merge("v1", "ConfigMap", ns, map, json!({"data": {"trigger-csi-fullsync": "true"}}))
        .await?;
    let found = bed.until_reason("Ready", "Conflict").await?;
    let message = found["message"].as_str().unwrap_or_default();
    println!("Conflict           {message}");
    let time = message.contains(", 20");
    ensure!(
        message.contains(map) && message.contains(".data.trigger-csi-fullsync (") && time,
        "{message}"
    );
    assert_eq!(bed.get("v1", "ConfigMap", ns, map).await?["data"]["trigger-csi-fullsync"], "true");
    // Without the rules everything is taken back.
    bed.apply(&bed.config(json!({}))).await?;
    until("everything to be taken back", PATIENCE, async || {
        let replicas = bed.get("apps/v1", "Deployment", ns, controller).await?["spec"]["replicas"].clone();
        let state = bed.get("v1", "ConfigMap", ns, map).await?["data"]["trigger-csi-fullsync"].clone();
        Ok(Probe::when(
            replicas == 1 && state == "false",
            format!("{replicas} replicas, {state}"),
        ))
    })
    .await?;
    bed.until_ready().await?;
    Ok(())
}

/// The drivers' own manifests, with the configuration that somebody wrote for them; `None` when this machine has none.
fn upstream(manifests: &[Value]) -> Result<Option<Vec<Value>>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "where upstream's manifests are is told by the environment, as in tests/upstream.rs"
    )]
    let given = std::env::var_os("VDO_UPSTREAM_DIR").map(PathBuf::from);
    let root = given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/upstream"));
    let mut all = Vec::new();
    for file in [
        "cloud-provider-vsphere/1.34.0/vsphere-cloud-controller-manager.yaml",
        "vsphere-csi-driver/3.7.3/namespace.yaml",
        "vsphere-csi-driver/3.7.3/vsphere-csi-driver.yaml",
    ] {
        let path = root.join(file);
        if !path.is_file() {
            println!("NOT RUN: taking over upstream's manifests; {} is not there", path.display());
            return Ok(None);
        }
        all.extend(vdo::yaml::load_all(&std::fs::read_to_string(path)?)?);
    }
    let configuration = ["vsphere-cloud-secret", "vsphere-cloud-config", "vsphere-config-secret"];
    let is_configuration = |object: &Value| configuration.iter().any(|name| object["metadata"]["name"] == *name);
    all.retain(|object| !object.is_null() && !is_configuration(object));
    all.extend(manifests.iter().filter(|object| is_configuration(object)).cloned());
    // A namespace comes before what is in it.
    all.sort_by_key(|object| object["kind"] != "Namespace");
    Ok(Some(all))
}

/// What the documentation of the drivers tells people to apply. The templates of upstream and ours may differ; where they do not,
/// no pod is restarted.
async fn upstream_manifests_are_taken_over(bed: &Bed, manifests: &[Value]) -> Result<()> {
    let Some(theirs) = upstream(manifests)? else { return Ok(()) };
    kubectl(bed, &["apply", "-f", "-"], &theirs)?;
    until("upstream's drivers to run", PATIENCE, async || {
        let mut lacking = Vec::new();
        for object in workloads(bed, "DaemonSet").await? {
            let status = &object["status"];
            if status["desiredNumberScheduled"] != status["numberReady"] || status["observedGeneration"] != object["metadata"]["generation"]
            {
                lacking.push(name(&object));
            }
        }
        Ok(Probe::when(lacking.is_empty(), lacking.join(", ")))
    })
    .await?;
    let before = templates(bed).await?;
    let mark = bed.cluster.audit().mark().await?;
    let pins = json!({"cloudProvider": {"version": "1.34.0"}, "storageProvider": {"version": "3.7.3"}});
    bed.apply(&bed.config(pins)).await?;
    bed.until_ready().await?;
    let after = templates(bed).await?;
    let mut kept = 0;
    for (workload, (uid, template, pods)) in &before {
        let (now_uid, now_template, now_pods) = after.get(workload).with_context(|| format!("{workload} is gone"))?;
        ensure!(uid == now_uid, "{workload} was made anew");
        if template == now_template {
            kept += 1;
            ensure!(
                now_pods.is_subset(pods),
                "{workload}: pods were restarted although its template is as it was"
            );
        } else {
            println!("upstream: {workload} has another template:\n{template}\n{now_template}");
        }
    }
    nobody_else_manages(bed, Tool::Kubectl).await?;
    let deleted = bed.deleted(mark).await?;
    ensure!(deleted.is_empty(), "the operator deleted:\n{deleted}");
    println!(
        "upstream's manifests: {} objects applied, {kept} of {} workloads with an equal template",
        theirs.len(),
        before.len()
    );
    Ok(())
}

/// Each workload with its UID, its pod template and the UIDs of its pods.
async fn templates(bed: &Bed) -> Result<BTreeMap<String, (String, String, BTreeSet<String>)>> {
    let mut all = BTreeMap::new();
    for kind in ["DaemonSet", "Deployment"] {
        for object in workloads(bed, kind).await? {
            let labels = object["spec"]["selector"]["matchLabels"].as_object().context("labels")?;
            let selector: Vec<String> = labels
                .iter()
                .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                .collect();
            let pods = bed.list("v1", "Pod", &selector.join(",")).await?;
            let pods = pods.iter().map(|pod| pod["metadata"]["uid"].to_string()).collect();
            let template = object["spec"]["template"].to_string();
            all.insert(name(&object), (object["metadata"]["uid"].to_string(), template, pods));
        }
    }
    Ok(all)
}
