// SPDX-License-Identifier: Apache-2.0
//! Objects as large as an API server takes them, of every kind that the operator watches, and what the operator needs for them.

use super::{Bed, NS, PATIENCE, condition};
use anyhow::{Context, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use vdo_testbed::{Probe, until};

/// Where a tenant may do what he wants.
pub const TENANT: &str = "tenant";
/// Bytes of the content of an object. With its fields' record of managers it is at the 1.5 MiB that etcd takes.
const CONTENT: usize = 1_250_000;
/// How long it reconciles nothing when it is at rest.
const REST: Duration = Duration::from_secs(8);
/// The longest answer of a probe that a kubelet waits for.
const PROBE: Duration = Duration::from_secs(1);

/// A kind that the operator watches.
#[derive(Clone, Copy)]
pub struct Watched {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// Empty for objects of the cluster.
    pub namespace: &'static str,
    /// The object of this number, without its name.
    content: fn(usize) -> Value,
    /// One in each of as many namespaces: those of this name.
    name: Option<&'static str>,
}

const fn watched(api_version: &'static str, kind: &'static str, namespace: &'static str, content: fn(usize) -> Value) -> Watched {
    Watched {
        api_version,
        kind,
        namespace,
        content,
        name: None,
    }
}

/// Every kind that the operator watches by anything but the name of one object.
pub const WATCHED: [Watched; 11] = [
    PODS,
    CONFIG_MAPS,
    watched("v1", "Node", "", |_| json!({"metadata": {"labels": many(9_000, &"x".repeat(60))}})),
    watched("storage.k8s.io/v1", "CSINode", "", |number| {
        let driver = |driver| json!({"name": format!("d{driver}.example.com"), "nodeID": format!("{number}-{}", "x".repeat(180))});
        json!({"spec": {"drivers": (0..2_500).map(driver).collect::<Vec<_>>()}})
    }),
    watched(
        "vdo.vmware.com/v1alpha1",
        "VDOConfig",
        NS,
        |_| json!({"spec": {"cloudProvider": {}, "storageProvider": {"values": {"x": text()}}}}),
    ),
    watched(
        "vdo.vmware.com/v1alpha1",
        "VsphereCloudConfig",
        NS,
        |_| json!({"spec": {"vcIp": "vcenter.invalid", "credentials": "none", "datacenters": [text()]}}),
    ),
    watched(
        "vdo.vmware.com/v1alpha1",
        "CompatibilityConfig",
        NS,
        |_| json!({"spec": {"matrixURL": text()}}),
    ),
    NAMED,
    watched("discovery.k8s.io/v1", "EndpointSlice", "vmware-system-csi", |_| {
        let endpoint = |at: usize| json!({"addresses": [format!("10.1.{}.{}", at / 250, at % 250)], "hostname": format!("h{at}"), "deprecatedTopology": {"t": "x".repeat(800)}});
        json!({"addressType": "IPv4", "endpoints": (0..1_000).map(endpoint).collect::<Vec<_>>(), "ports": [],
            "metadata": {"labels": {"kubernetes.io/service-name": "vsphere-webhook-svc"}}})
    }),
    watched("v1", "PersistentVolume", "", |number| {
        json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": format!("v{number}"), "volumeAttributes": {"x": text()}}}})
    }),
    watched("storage.k8s.io/v1", "VolumeAttachment", "", |_| {
        json!({"spec": {"attacher": "csi.vsphere.vmware.com", "nodeName": "none", "source": {"inlineVolumeSpec": {
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": "v", "volumeAttributes": {"x": text()}}}}}})
    }),
];

/// Pods that their author calls a snapshot controller: most with few large values, some with many small ones.
pub const PODS: Watched = watched("v1", "Pod", TENANT, |number| {
    let env: Vec<Value> = match number % 4 {
        0 => (0..9_000).map(|at| json!({"name": format!("e{at}")})).collect(),
        _ => (0..10)
            .map(|at| json!({"name": format!("e{at}"), "value": "x".repeat(CONTENT / 10)}))
            .collect(),
    };
    // Nothing schedules it.
    json!({"metadata": {"labels": {"app": "snapshot-controller", "app.kubernetes.io/name": "snapshot-controller"}},
        "spec": {"schedulerName": "none", "containers": [{"name": "c", "image": "example.com/none", "env": env}]}})
});

/// ConfigMaps in the namespace of the operator.
pub const CONFIG_MAPS: Watched = watched("v1", "ConfigMap", NS, |_| json!({"data": {"x": "x".repeat(1_000_000)}}));

/// Workloads that are called like one of a driver, one in each namespace.
pub const NAMED: Watched = Watched {
    name: Some("vsphere-csi-controller"),
    ..watched("apps/v1", "Deployment", TENANT, |_| {
        let labels = json!({"app": "none"});
        json!({"spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "containers": [{"name": "c", "image": "example.com/none", "env": [{"name": "e", "value": text()}]}]}}}})
    })
};

fn text() -> String {
    "x".repeat(CONTENT)
}

fn many(count: usize, value: &str) -> Map<String, Value> {
    (0..count).map(|at| (format!("l{at}"), value.into())).collect()
}

/// Creates so many of them.
pub async fn create(bed: &Bed, watched: &Watched, count: usize) -> Result<()> {
    if watched.namespace == TENANT {
        let namespaces = watched.name.map_or(0, |_| count);
        for name in [TENANT.to_owned()].into_iter().chain((0..namespaces).map(tenant)) {
            bed.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
                .await?;
        }
        // A pod needs one, also where no controller makes it.
        bed.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": TENANT}}))
            .await?;
    }
    stream::iter(0..count)
        .map(async |number| {
            let (name, namespace) = match watched.name {
                Some(name) => (name.to_owned(), tenant(number)),
                None => (format!("large-{number}"), watched.namespace.to_owned()),
            };
            let mut object = (watched.content)(number);
            object["apiVersion"] = watched.api_version.into();
            object["kind"] = watched.kind.into();
            object["metadata"]["name"] = name.into();
            if !namespace.is_empty() {
                object["metadata"]["namespace"] = namespace.clone().into();
            }
            let api = bed.api(watched.api_version, watched.kind, &namespace);
            let object = serde_json::from_value(object)?;
            let created = api.create(&kube::api::PostParams::default(), &object).await;
            created.with_context(|| format!("{} {number}", watched.kind)).map(drop)
        })
        .buffer_unordered(4)
        .try_for_each(async |()| Ok(()))
        .await
}

/// Deletes them again.
pub async fn delete(bed: &Bed, watched: &Watched) -> Result<()> {
    let all = bed.list(watched.api_version, watched.kind, "").await?;
    let ours = |object: &&Value| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        name.starts_with("large-") || watched.name == Some(name)
    };
    stream::iter(all.iter().filter(ours))
        .map(async |object| {
            let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
            bed.delete(watched.api_version, watched.kind, text("namespace"), text("name")).await
        })
        .buffer_unordered(8)
        .try_for_each(async |()| Ok(()))
        .await
}

fn tenant(number: usize) -> String {
    format!("{TENANT}-{number}")
}

/// What an operator needed.
pub struct Needed {
    /// The most memory that it ever had, in bytes.
    pub peak: u64,
    /// The longest answer of a probe.
    pub probe: Duration,
}

/// Starts the operator among what is there, asks for its probes until it was at rest for a while, and says what it needed.
pub async fn start_among(bed: &mut Bed) -> Result<Needed> {
    bed.kill_operator();
    bed.operator = Some(bed.launch_operator("vdo-operator-0")?);
    until("the operator to serve its probes", PATIENCE, async || {
        Ok(Probe::when(bed.operator_address().is_ok(), "no address is logged"))
    })
    .await?;
    let mut slowest = Duration::ZERO;
    let mut unchanged = (Instant::now(), 0);
    until("the operator to be at rest", 3 * PATIENCE, async || {
        let asked = Instant::now();
        let healthy = bed.fetch("/healthz").await.context("the operator ended")?;
        slowest = slowest.max(asked.elapsed());
        ensure!(healthy.starts_with("HTTP/1.1 200"), "{healthy}");
        let ready = bed.fetch("/readyz").await?.starts_with("HTTP/1.1 200");
        let rounds = bed.reconciles().await?;
        if rounds != unchanged.1 {
            unchanged = (Instant::now(), rounds);
        }
        let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        let judged = condition(&config, "Ready");
        let answered = judged["reason"] != "ApiUnavailable";
        let rests = ready && rounds > 0 && answered && unchanged.0.elapsed() > REST;
        Ok(Probe::when(rests, format!("ready: {ready}, {rounds} reconciles, {judged}")))
    })
    .await?;
    let peak = peak(bed)?;
    Ok(Needed { peak, probe: slowest })
}

impl Needed {
    /// Fails where it is more than the pod may have.
    pub fn check(&self) -> Result<()> {
        let limit = limit()?;
        ensure!(self.peak < limit, "{} MiB of {} MiB", self.peak >> 20, limit >> 20);
        ensure!(self.probe < PROBE, "a probe was answered after {:?}", self.probe);
        Ok(())
    }
}

/// The memory that the pod of the operator may have, in bytes.
pub fn limit() -> Result<u64> {
    let text = std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/operator.yaml"))?;
    let deployment = vdo_api::yaml::load_all(&text)?;
    let limits = deployment
        .iter()
        .filter_map(|object| object.pointer("/spec/template/spec/containers/0/resources/limits/memory"));
    let limit = limits.filter_map(Value::as_str).next().context("operator.yaml has no limit")?;
    let mebibytes: u64 = limit.strip_suffix("Mi").context("a limit in Mi")?.parse()?;
    Ok(mebibytes << 20)
}

/// What the kernel says of the memory of a process under this name, in KiB; none where the process is gone.
pub fn memory(process: u32, name: &str) -> Result<Option<u64>> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(line.map(|line| line.trim().trim_end_matches(" kB").parse()).transpose()?)
}

/// The most memory that any process of the operator ever had, in bytes.
pub fn peak(bed: &Bed) -> Result<u64> {
    let operator = bed.operator.as_ref().context("no operator")?;
    let mut most = 0;
    for process in operator.family()? {
        if let Some(kibibytes) = memory(process, "VmHWM")? {
            most = most.max(kibibytes << 10);
        }
    }
    ensure!(most > 10 << 20, "no operator was measured");
    Ok(most)
}
