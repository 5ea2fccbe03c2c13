// SPDX-License-Identifier: Apache-2.0
//! First installations: by the operator, and of the same objects by `kubectl`.

use crate::common::{self, Bed, NS, OPERATOR, PATIENCE, condition};
use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use vdo_api::api::STATE;
use vdo_testbed::{Cluster, ClusterOptions, Entry, Mark, NodeOptions, Probe, Requests, Vcenter, VcenterOptions, until};

/// How many nodes a cluster has; one is of the control plane.
pub const NODES: usize = 10;
/// How many requests a first installation of this many objects may need: each is tried once and written once.
pub const fn bound(objects: usize) -> usize {
    2 * objects + 10
}

/// An installation by the operator. Times are in seconds from the VDOConfig's arrival at the API server.
pub struct Ours {
    pub objects: usize,
    pub requests: usize,
    pub writes: usize,
    pub status: usize,
    pub events: usize,
    pub inventory: usize,
    pub watches: usize,
    pub kinds: usize,
    pub start: f64,
    pub first: f64,
    pub created: f64,
    pub pause: f64,
    pub works: f64,
    pub ready: f64,
}

/// An installation by `kubectl apply --server-side`. Times are in seconds from its start.
pub struct Theirs {
    pub requests: usize,
    pub writes: usize,
    pub first: f64,
    pub created: f64,
    pub process: f64,
    pub works: f64,
}

/// A new cluster of ten nodes that wait for a cloud provider, with a vCenter that has their machines.
pub async fn cluster(vcenter: Option<Vcenter>) -> Result<Bed> {
    cluster_on(ClusterOptions::default(), vcenter).await
}

/// The same with these options.
pub async fn cluster_on(options: ClusterOptions, vcenter: Option<Vcenter>) -> Result<Bed> {
    let mut bed = Bed::start_on(options, VcenterOptions::with_vms(common::NODES)).await?;
    let more: Vec<(String, String)> = (common::NODES.len()..NODES)
        .map(|n| (format!("w-{n}"), format!("10.0.10.{}", n + 1)))
        .collect();
    bed.vcenter = match vcenter {
        Some(vcenter) => vcenter,
        None => {
            let more = more.iter().map(|(name, ip)| (name.as_str(), ip.as_str()));
            Vcenter::start(VcenterOptions::with_vms(common::NODES.into_iter().chain(more))).await?
        }
    };
    let nodes = more
        .iter()
        .map(|(name, _)| bed.cluster.add_node(NodeOptions::worker(name).uninitialized()));
    futures::future::try_join_all(nodes).await?;
    Ok(bed)
}

/// Ends everything but the vCenter, whose address is in the drivers' configuration.
pub fn end(bed: Bed) -> Vcenter {
    let Bed { vcenter, .. } = bed;
    vcenter
}

pub async fn by_operator(bed: &mut Bed) -> Result<Ours> {
    let start = start(bed).await?;
    let mark = bed.cluster.audit().mark().await?;
    bed.apply_samples().await?;
    let mut works = None;
    let ready = until("the installation", PATIENCE, async || {
        let missing = missing(bed).await?;
        if missing.is_none() && works.is_none() {
            works = Some(now());
        }
        let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        let ready = condition(&config, "Ready");
        let done = ready["status"] == "True" && missing.is_none();
        Ok(if done {
            Probe::Ready(now())
        } else {
            Probe::not_yet(format!("{missing:?}, {ready}"))
        })
    })
    .await?;
    let requests = at_rest(bed, mark).await?;
    let applied = bed
        .cluster
        .audit()
        .since(mark)
        .await?
        .of(Cluster::ADMIN)
        .only(|e| e.writes() && e.resource == "vdoconfigs");
    let zero = received(applied.0.first().context("the audit log has no VDOConfig")?)?;
    let creations = creations(&requests, is_ours)?;
    let (first, last) = creations.first().zip(creations.last()).context("nothing was created")?;
    let pauses = creations.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs_f64());
    // The moment of the last change of the status: exact, where the look above is as coarse as its interval.
    let settled = requests
        .0
        .iter()
        .filter(|e| is_status(e))
        .map(received)
        .collect::<Result<Vec<_>>>()?;
    let settled = settled
        .into_iter()
        .filter(|at| *at <= ready)
        .max()
        .context("no status was written")?;
    let since = |at: Timestamp| at.duration_since(zero).as_secs_f64();
    let count = |wanted: &dyn Fn(&Entry) -> bool| requests.0.iter().filter(|e| wanted(e)).count();
    let objects = bed.owned().await?.len();
    ensure!(
        objects == creations.len(),
        "{objects} objects, {} creations:\n{requests}",
        creations.len()
    );
    let watches = bed.cluster.audit().requests(|e| e.user == OPERATOR && !asked(e)).await?;
    if requests.len() > bound(objects) {
        eprintln!("more requests than expected:\n{requests}");
    }
    let kinds: BTreeSet<_> = watches.0.iter().map(|e| (&e.api_group, &e.resource)).collect();
    Ok(Ours {
        objects,
        requests: requests.len(),
        writes: count(&Entry::writes),
        status: count(&is_status),
        events: count(&|e| e.resource == "events"),
        inventory: count(&|e| e.writes() && is_inventory(e)),
        watches: watches.len(),
        kinds: kinds.len(),
        start,
        first: since(*first),
        created: since(*last),
        pause: pauses.fold(0.0, f64::max),
        works: since(works.context("it works")?),
        ready: since(settled),
    })
}

pub async fn by_kubectl(bed: &Bed, kubectl: &Path, objects: &str) -> Result<Theirs> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("objects.yaml");
    std::fs::write(&file, objects)?;
    let mark = bed.cluster.audit().mark().await?;
    let zero = now();
    let mut command = tokio::process::Command::new(kubectl);
    command.arg("--kubeconfig").arg(bed.cluster.kubeconfig());
    command.arg("--cache-dir").arg(folder.path().join("cache"));
    command.args(["apply", "--server-side", "--filename"]).arg(&file);
    let output = command.output().await?;
    let process = now().duration_since(zero).as_secs_f64();
    ensure!(
        output.status.success(),
        "kubectl apply: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    until("the drivers to work", PATIENCE, async || {
        Ok(match missing(bed).await? {
            None => Probe::Ready(()),
            Some(missing) => Probe::not_yet(missing),
        })
    })
    .await?;
    let works = now().duration_since(zero).as_secs_f64();
    let requests = bed
        .cluster
        .audit()
        .since(mark)
        .await?
        .only(|e| e.user_agent.starts_with("kubectl/") && asked(e));
    let created = creations(&requests, |_| true)?;
    let (first, last) = created.first().zip(created.last()).context("nothing was created")?;
    Ok(Theirs {
        requests: requests.len(),
        writes: requests.clone().writes().len(),
        first: first.duration_since(zero).as_secs_f64(),
        created: last.duration_since(zero).as_secs_f64(),
        process,
        works,
    })
}

/// Starts the operator; seconds from exec to the moment it says that it is ready.
pub async fn start(bed: &mut Bed) -> Result<f64> {
    let before = now();
    bed.start_operator().await?;
    let log = std::fs::read_to_string(bed.operator_log())?;
    let line = log
        .lines()
        .find(|line| line.contains("\"message\":\"ready\""))
        .context("it is not ready")?;
    let line: Value = serde_json::from_str(line)?;
    let ready: Timestamp = line["timestamp"].as_str().context("a line of the log without time")?.parse()?;
    Ok(ready.duration_since(before).as_secs_f64())
}

/// The operator's objects, in an order in which they can be applied.
pub async fn objects(bed: &Bed) -> Result<Vec<Value>> {
    let mut objects = bed.owned().await?;
    for object in &mut objects {
        if object["kind"] == "Namespace" {
            object.as_object_mut().context("an object")?.shift_remove("spec");
        }
    }
    Ok(objects)
}

/// What is missing until both drivers work; the same check for every installer.
async fn missing(bed: &Bed) -> Result<Option<String>> {
    for (kind, ready, wanted) in [
        ("Deployment", "/status/readyReplicas", "/spec/replicas"),
        ("DaemonSet", "/status/numberReady", "/status/desiredNumberScheduled"),
    ] {
        let found = bed.list("apps/v1", kind, "vdo.vmware.com/driver").await?;
        let number = |object: &Value, at: &str| object.pointer(at).and_then(Value::as_i64).unwrap_or(0);
        let seen = |o: &Value| o["status"]["observedGeneration"] == o["metadata"]["generation"];
        if found.is_empty() {
            return Ok(Some(format!("no {kind}")));
        }
        if let Some(waits) = found.iter().find(|o| !seen(o) || number(o, ready) < number(o, wanted)) {
            return Ok(Some(format!("{kind} {}", common::name(waits))));
        }
    }
    let registered = bed.list("storage.k8s.io/v1", "CSINode", "").await?;
    let registered = registered
        .iter()
        .filter(|n| n["spec"]["drivers"].as_array().is_some_and(|d| !d.is_empty()))
        .count();
    if registered < NODES {
        return Ok(Some(format!("{} CSI nodes", NODES - registered)));
    }
    let nodes = bed.list("v1", "Node", "").await?;
    let initialised = |n: &&Value| n["spec"]["providerID"].is_string() && !n["spec"]["taints"].to_string().contains("uninitialized");
    let initialised = nodes.iter().filter(initialised).count();
    Ok((initialised < NODES).then(|| format!("{} nodes", NODES - initialised)))
}

/// Everything the operator asked since a mark, once it has asked nothing for two seconds.
pub async fn at_rest(bed: &Bed, mark: Mark) -> Result<Requests> {
    let mut before = None;
    loop {
        let requests = bed.operator_requests(mark).await?;
        if before == Some(requests.len()) {
            return Ok(requests);
        }
        before = Some(requests.len());
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

fn asked(entry: &Entry) -> bool {
    !matches!(entry.verb.as_str(), "watch" | "list")
}

fn is_status(entry: &Entry) -> bool {
    entry.resource == "vdoconfigs" && entry.subresource == "status" && entry.writes()
}

fn is_inventory(entry: &Entry) -> bool {
    entry.resource == "secrets" && entry.name == STATE
}

/// An object of a driver, not one that the operator keeps for itself.
pub fn is_ours(entry: &Entry) -> bool {
    entry.resource != "events" && !is_inventory(entry)
}

/// From the first creation to the last, without the longest pause, in seconds.
pub fn writing(created: &[Timestamp]) -> f64 {
    let pauses = created.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs_f64());
    let whole = created
        .first()
        .zip(created.last())
        .map(|(first, last)| last.duration_since(*first).as_secs_f64());
    whole.unwrap_or(f64::NAN) - pauses.fold(0.0, f64::max)
}

/// When objects were created, in order.
pub fn creations(requests: &Requests, wanted: fn(&Entry) -> bool) -> Result<Vec<Timestamp>> {
    let created = requests.0.iter().filter(|e| e.writes() && e.code == 201 && wanted(e));
    let mut times = created.map(received).collect::<Result<Vec<_>>>()?;
    times.sort();
    Ok(times)
}

pub fn received(entry: &Entry) -> Result<Timestamp> {
    entry.timestamp.parse().with_context(|| format!("the time of {}", entry.object()))
}

/// The clock that the audit log and the operator's log use, too.
#[expect(clippy::disallowed_methods, reason = "it measures time")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Asks for a resync.
pub async fn resync(bed: &Bed, token: &str) -> Result<()> {
    let change = json!({"metadata": {"annotations": {"example.com/round": token}}});
    bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", change).await
}
