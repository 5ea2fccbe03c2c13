// SPDX-License-Identifier: Apache-2.0
//! Installations of several sizes: requests, throughput, drift, reconciles without changes, memory; and the same by others.

use crate::common::{Bed, NS, OPERATOR, PATIENCE, condition};
use crate::others::{self, Hand, LONG, Taken};
use crate::report::{Report, mebibytes, median, percentile, seconds};
use crate::{bulk, install, process};
use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use vdo_core::drivers::CSI;
use vdo_testbed::{Helm, Mark, Part, Probe, until};

/// How often a small installation is made.
const ROUNDS: usize = 3;
/// Up to this size an installation is small.
const SMALL: usize = 200;
/// How many ConfigMaps are changed by hand, each once.
const DRIFTS: usize = 50;
/// How many reconciles without changes are requested.
const RESYNCS: u64 = 20;

/// An installation by the operator.
struct Ours {
    requests: usize,
    /// From the first object created to the last, without the longest pause, in seconds.
    writing: f64,
    ready: f64,
    server: f64,
}

/// Which programs are beside, how large the installations are, and how many nodes there are at the end.
pub struct Plan<'a> {
    pub kubectl: &'a Path,
    pub sizes: Vec<usize>,
    pub nodes: usize,
}

pub async fn measure(plan: &Plan<'_>) -> Result<Report> {
    let mut report = Report::default();
    let mut bed = install::cluster(None).await?;
    // Objects that no chart has need rights that no operator has.
    bed.apply(
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "bulk"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": NS, "name": "vdo-operator"}]}),
    )
    .await?;
    // The policy allows the content of the charts that come with the operator alone.
    bed.delete(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        "",
        "vdo-operator",
    )
    .await?;
    // The nodes are initialised once and for all.
    bed.start_operator().await?;
    bed.apply_samples().await?;
    bed.until_ready().await?;
    let base = bed.owned().await?.len();
    let version = running(&bed, CSI).await?;
    uninstall(&bed).await?;
    for (number, size) in plan.sizes.iter().enumerate() {
        ensure!(*size >= base, "{size} objects are fewer than the {base} of the real charts");
        let folder = tempfile::tempdir()?;
        bulk::write(folder.path(), &version, size - base)?;
        report.section(&format!("{size} objects"));
        one(&mut bed, *size, base, folder.path(), plan, &mut report).await?;
        if number + 1 == plan.sizes.len() {
            many_nodes(&mut bed, plan.nodes, *size, &mut report).await?;
        } else {
            uninstall(&bed).await?;
        }
        eprintln!("\n{report}");
    }
    Ok(report)
}

/// The version of a driver that is installed.
async fn running(bed: &Bed, driver: &str) -> Result<String> {
    let status = bed.status().await?;
    let rows = status["drivers"].as_array().context("no driver in the status")?;
    let row = rows.iter().find(|row| row["name"] == driver);
    let version = row.and_then(|row| row["running"].as_str());
    Ok(version.with_context(|| format!("{driver} is not installed"))?.to_owned())
}

async fn one(bed: &mut Bed, size: usize, base: usize, matrix: &Path, plan: &Plan<'_>, report: &mut Report) -> Result<()> {
    let rounds = if size <= SMALL { ROUNDS } else { 1 };
    start(bed, matrix, false).await?;
    let (mut ours, mut bare, mut objects) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=rounds {
        eprintln!("{size} objects, round {round} of {rounds}");
        ours.push(by_operator(bed, size).await?);
        objects = install::objects(bed).await?;
        if round == rounds {
            at_rest(bed, size, report).await?;
            drift(bed, size - base, report).await?;
        }
        let mark = bed.cluster.audit().mark().await?;
        uninstall(bed).await?;
        let asked = install::at_rest(bed, mark).await?;
        if round == rounds {
            let aim = size + 6;
            if asked.len() > aim {
                eprintln!("more requests than expected:\n{}", asked.clone().only(|e| e.verb != "delete"));
            }
            report.row("requests of the removal", asked.len(), "", format!("aim {aim}"));
        }
        bare.push(others::install(bed, &objects, Hand::Bare).await?);
    }
    bed.kill_operator();
    eprintln!("{size} objects: kubectl, helm 3 and helm 4");
    let kubectl = others::install(bed, &objects, Hand::Kubectl(plan.kubectl)).await?;
    let helm = Helm::of(&bed.cluster).await?;
    let helm3 = others::install(bed, &objects, Hand::Helm(&helm)).await?;
    let helm = Helm::from(&bed.cluster, Part::Helm4).await?;
    let helm4 = others::install(bed, &objects, Hand::Helm(&helm)).await?;
    eprintln!("{size} objects: with a dry run of everything first");
    start(bed, matrix, true).await?;
    let dry_run = by_operator(bed, size).await?;
    compare(size, &ours, &dry_run, &bare, [kubectl, helm3, helm4], report);
    Ok(())
}

fn compare(size: usize, ours: &[Ours], dry_run: &Ours, bare: &[Taken], [kubectl, helm3, helm4]: [Taken; 3], report: &mut Report) {
    let asked = ours.iter().map(|o| o.requests).max().unwrap_or_default();
    let beside = format!("kubectl {}, helm 3 {}, helm 4 {}", kubectl.requests, helm3.requests, helm4.requests);
    report.row("requests of the installation", asked, &beside, format!("aim {}", size + 10));
    report.row(
        "  with a dry run of everything first",
        dry_run.requests,
        "",
        format!("aim {}", install::bound(size)),
    );
    let (us, limit) = (median(ours.iter().map(|o| o.writing)), median(bare.iter().map(|t| t.writing)));
    report.row(
        "first object created to the last, without the longest pause",
        seconds(us),
        format!(
            "bare client {}, kubectl {}, helm 3 {}, helm 4 {}",
            seconds(limit),
            seconds(kubectl.writing),
            seconds(helm3.writing),
            seconds(helm4.writing)
        ),
        format!(
            "{:.0} % of the bare client's rate, aim 90; dry run first {}",
            100.0 * limit / us,
            seconds(dry_run.writing)
        ),
    );
    report.row(
        "to Ready=True; the others: the whole process",
        seconds(median(ours.iter().map(|o| o.ready))),
        format!(
            "kubectl {}, helm 3 {}, helm 4 {}",
            seconds(kubectl.whole),
            seconds(helm3.whole),
            seconds(helm4.whole)
        ),
        format!("dry run first {}", seconds(dry_run.ready)),
    );
    let server = median(ours.iter().map(|o| o.server));
    report.row(
        "processor time of the API server",
        seconds(server),
        format!(
            "bare client {}, kubectl {}, helm 3 {}, helm 4 {}",
            seconds(median(bare.iter().map(|t| t.server))),
            seconds(kubectl.server),
            seconds(helm3.server),
            seconds(helm4.server)
        ),
        format!("vdo/helm 4 {:.2}; dry run first {}", server / helm4.server, seconds(dry_run.server)),
    );
}

/// Starts the operator with this matrix.
async fn start(bed: &mut Bed, matrix: &Path, dry_run: bool) -> Result<()> {
    bed.kill_operator();
    // Flags live as long as the program.
    let path: &'static str = Box::leak(matrix.display().to_string().into_boxed_str());
    bed.flags = vec![("matrix", path), ("server-dry-run", if dry_run { "true" } else { "false" })];
    install::start(bed).await.map(drop)
}

async fn by_operator(bed: &Bed, size: usize) -> Result<Ours> {
    let server = process::of_server(bed)?;
    let mark = bed.cluster.audit().mark().await?;
    let (cpu, zero) = (process::seconds(&server)?, install::now());
    bed.apply(&bed.config(json!({}))).await?;
    ready(bed).await?;
    let (cpu, ready) = (process::seconds(&server)? - cpu, install::now().duration_since(zero).as_secs_f64());
    let requests = install::at_rest(bed, mark).await?;
    let created = install::creations(&requests, install::is_ours)?;
    ensure!(created.len() == size, "{} objects were created instead of {size}", created.len());
    if requests.len() > install::bound(size) {
        eprintln!("more requests than expected: {}", requests.len());
    }
    Ok(Ours {
        requests: requests.len(),
        writing: install::writing(&created),
        ready,
        server: cpu,
    })
}

/// Waits, and looks only four times in a second: what is looked at answers at its own cost.
async fn seldom<T>(what: &str, mut look: impl AsyncFnMut() -> Result<Probe<T>>) -> Result<T> {
    until(what, LONG, async || {
        sleep(Duration::from_millis(250)).await;
        look().await
    })
    .await
}

async fn ready(bed: &Bed) -> Result<()> {
    seldom("the VDOConfig to be ready", async || {
        let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        let found = condition(&config, "Ready");
        let current = config["status"]["observedGeneration"] == config["metadata"]["generation"];
        Ok(Probe::when(found["status"] == "True" && current, found))
    })
    .await
}

async fn uninstall(bed: &Bed) -> Result<()> {
    bed.delete("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
    seldom("the VDOConfig to be gone", async || {
        let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        Ok(Probe::when(config == Value::Null, condition(&config, "Ready")))
    })
    .await
}

/// Measures reconciles without changes.
async fn at_rest(bed: &Bed, size: usize, report: &mut Report) -> Result<()> {
    let operator = process::of_operator(bed)?;
    // The request for the progress costs the operator something, too, and does not belong to the reconcile.
    let cpu = process::nanoseconds(&operator)?;
    let mut looks = 0;
    seldom("the looks to be made", async || {
        bed.reconciles().await?;
        looks += 1;
        Ok(Probe::when(looks > RESYNCS, looks))
    })
    .await?;
    let look = (process::nanoseconds(&operator)? - cpu) / to_f64(looks);
    let mark = bed.cluster.audit().mark().await?;
    let (before, cpu) = (bed.reconciles().await?, process::nanoseconds(&operator)?);
    looks = 0;
    for round in 0..RESYNCS {
        install::resync(bed, &format!("{size}-{round}")).await?;
        seldom("the resync to be made", async || {
            let made = bed.reconciles().await? - before;
            looks += 1;
            Ok(Probe::when(made > round, format!("{made} reconciles so far")))
        })
        .await?;
    }
    let (made, cpu) = (bed.reconciles().await? - before, process::nanoseconds(&operator)? - cpu);
    let cpu = cpu - to_f64(looks + 1) * look;
    let asked = bed.cluster.audit().since(mark).await?.of(OPERATOR).only(|e| e.resource != "leases");
    if !asked.is_empty() {
        eprintln!("the operator asked at rest:\n{asked}");
    }
    report.row(
        "processor time of a reconcile without changes",
        seconds(cpu / 1e9 / to_f64(made)),
        format!("and {} for each look of the bench", seconds(look / 1e9)),
        format!(
            "goal 5 ms at 2,000 objects; {made} reconciles, {} requests, the watches meanwhile included",
            asked.len()
        ),
    );
    let memory = process::memory(&operator)?;
    report.row(
        &format!("resident memory, {} nodes", install::NODES),
        mebibytes(memory.resident),
        "",
        format!("{} of its own, peak {}", mebibytes(memory.own), mebibytes(memory.peak)),
    );
    Ok(())
}

/// Changes of objects by hand, and how long until each is brought back.
async fn drift(bed: &Bed, bulk: usize, report: &mut Report) -> Result<()> {
    let drifts = DRIFTS.min(bulk / 2);
    if drifts == 0 {
        return Ok(());
    }
    let namespace = "vmware-system-csi";
    let mark = bed.cluster.audit().mark().await?;
    for number in 0..drifts {
        let name = bulk::config_map(number);
        let change = json!({"data": {"number": "changed by hand"}});
        bed.merge("v1", "ConfigMap", namespace, &name, change).await?;
        until("a ConfigMap to be brought back", PATIENCE, async || {
            let found = bed.get("v1", "ConfigMap", namespace, &name).await?;
            Ok(Probe::when(found["data"]["number"] != "changed by hand", &name))
        })
        .await?;
    }
    let asked = bed.cluster.audit().since(mark).await?;
    let mut times = Vec::new();
    for number in 0..drifts {
        let name = bulk::config_map(number);
        let patched = |by: &str| {
            asked
                .0
                .iter()
                .find(|e| e.writes() && e.resource == "configmaps" && e.name == name && e.user == by)
        };
        let (broken, repaired) = patched(vdo_testbed::Cluster::ADMIN)
            .zip(patched(OPERATOR))
            .context("a change and its repair")?;
        times.push(
            install::received(repaired)?
                .duration_since(install::received(broken)?)
                .as_secs_f64(),
        );
    }
    let own = asked.of(OPERATOR).writes();
    let objects = own.clone().only(|e| e.resource == "configmaps").len();
    report.row(
        "drift: from the change to its repair, p50",
        seconds(median(times.iter().copied())),
        format!("p99 {}", seconds(percentile(&times, 0.99))),
        format!(
            "aim 50 ms, 500 ms; {drifts} changes, {objects} writes to objects, {} of status and events",
            own.len() - objects
        ),
    );
    Ok(())
}

/// The same with many nodes, which are objects and nothing else: no one runs on them.
async fn many_nodes(bed: &mut Bed, nodes: usize, size: usize, report: &mut Report) -> Result<()> {
    if nodes == 0 {
        return Ok(());
    }
    eprintln!("{nodes} nodes");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node"));
    let api: Api<DynamicObject> = Api::all_with(bed.cluster.client(), &resource);
    stream::iter(install::NODES..nodes)
        .map(|number| {
            let api = &api;
            async move {
                let node: DynamicObject = serde_json::from_value(node(number))?;
                api.create(&PostParams::default(), &node).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(16)
        .try_collect::<Vec<()>>()
        .await?;
    for (what, restart) in [("as they came", false), ("after a restart", true)] {
        if restart {
            bed.kill_operator();
            install::start(bed).await?;
        }
        quiet(bed).await?;
        let memory = process::memory(&process::of_operator(bed)?)?;
        report.row(
            &format!("resident memory, {nodes} nodes and {size} objects, {what}"),
            mebibytes(memory.resident),
            "",
            format!("aim 80 MiB; {} of its own, peak {}", mebibytes(memory.own), mebibytes(memory.peak)),
        );
    }
    let (operator, before) = (process::of_operator(bed)?, bed.reconciles().await?);
    let (mark, cpu) = (bed.cluster.audit().mark().await?, process::nanoseconds(&operator)?);
    sleep(Duration::from_secs(10)).await;
    let (made, cpu) = (bed.reconciles().await? - before, process::nanoseconds(&operator)? - cpu);
    let asked: usize = requests(bed, mark).await?;
    report.row(
        "  then, in ten seconds",
        seconds(cpu / 1e9),
        "",
        format!("of processor; {made} reconciles, {asked} requests; the cluster marks the nodes as unreachable meanwhile"),
    );
    Ok(())
}

async fn requests(bed: &Bed, mark: Mark) -> Result<usize> {
    let all = bed.cluster.audit().since(mark).await?.of(OPERATOR);
    Ok(all.only(|e| e.resource != "leases" && e.verb != "watch").len())
}

/// A node as large as they are.
fn node(number: usize) -> Value {
    let name = format!("n-{number:05}");
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "KubeletHasSufficientMemory", "message": "kubelet has sufficient memory available",
            "lastHeartbeatTime": "2026-11-21T00:00:00Z", "lastTransitionTime": "2026-11-21T00:00:00Z"})
    };
    // Without the label of an operating system no DaemonSet wants to be there.
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "beta.kubernetes.io/arch": "amd64", "kubernetes.io/arch": "amd64",
            "node.kubernetes.io/instance-type": "vsphere-vm.cpu-8.mem-32gb.os-ubuntu", "topology.kubernetes.io/region": "region-1",
            "topology.kubernetes.io/zone": "zone-a", "topology.csi.vmware.com/k8s-zone": "zone-a", "node-pool": "workers"}},
        "spec": {"providerID": format!("vsphere://4201f8cd-1b9d-0f4c-8a3e-{number:012}")},
        "status": {"addresses": [{"type": "InternalIP", "address": format!("10.1.{}.{}", number / 250, number % 250)}, {"type": "Hostname", "address": name}],
            "nodeInfo": {"systemUUID": format!("4201f8cd-1b9d-0f4c-8a3e-{number:012}"), "machineID": "", "bootID": "", "kernelVersion": "6.8.0", "osImage": "Ubuntu",
                "containerRuntimeVersion": "containerd://2.0", "kubeletVersion": "v1.34.4", "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64"},
            "conditions": [condition("MemoryPressure", "False"), condition("DiskPressure", "False"), condition("PIDPressure", "False"), condition("Ready", "True")]}})
}

/// Waits until the operator has made no reconcile for three seconds, two minutes at most.
async fn quiet(bed: &Bed) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut before = None;
    while Instant::now() < deadline {
        let now = bed.reconciles().await?;
        if before == Some(now) && now > 0 {
            break;
        }
        before = Some(now);
        sleep(Duration::from_secs(3)).await;
    }
    Ok(())
}

fn to_f64(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
