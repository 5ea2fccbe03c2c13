// SPDX-License-Identifier: Apache-2.0
//! An upgrade and a rollback of the CSI driver beside those of Helm, what the history costs, and how soon the CPI follows the platform.

use crate::common::{Bed, NS, OPERATOR, PATIENCE};
use crate::install::{self, now};
use crate::report::{Report, seconds};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_api::api::STATE;
use vdo_testbed::{Cluster, Helm, Mark, Part, Probe, Requests, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const OLD: &str = "3.6.3";
const NEW: &str = "3.7.3";
/// The minor that comes after that of the test bed, and its CPI.
const NEXT: (&str, &str) = ("v1.35.0", "1.35.1");
/// How many states of both drivers are applied, to see what their history takes.
const REVISIONS: usize = 5;

/// What a change asked of the API server.
struct Asked {
    requests: usize,
    writes: usize,
    /// Until every pod is ready, in seconds; the others do not wait.
    time: f64,
}

pub async fn measure() -> Result<Report> {
    let mut report = Report::default();
    eprintln!("upgrade {OLD} to {NEW} and rollback: the operator");
    let mut bed = install::cluster(None).await?;
    install::start(&mut bed).await?;
    bed.apply_samples().await?;
    pin(&bed, OLD).await?;
    bed.until_ready().await?;
    let before = install::objects(&bed).await?;
    let mark = settled(&bed).await?;
    pin(&bed, NEW).await?;
    let upgrade = ours(&bed, mark, NEW).await?;
    let after = install::objects(&bed).await?;
    let mark = settled(&bed).await?;
    let (code, _, err) = bed.vdoctl(&["rollback", "csi"])?;
    ensure!(code == 0, "vdoctl rollback: {err}");
    let rollback = ours(&bed, mark, OLD).await?;
    let (code, _, err) = bed.vdoctl(&["rollback", "csi", "--lift"])?;
    ensure!(code == 0, "vdoctl rollback --lift: {err}");
    eprintln!("{REVISIONS} revisions of both drivers");
    let history = history(&bed).await?;
    eprintln!(
        "requests {} and {}, {history} bytes of history",
        upgrade.requests, rollback.requests
    );
    eprintln!("Kubernetes {}", NEXT.0);
    let follows = follows(&mut bed).await?;

    eprintln!("the same by helm 3 and helm 4, in new clusters");
    let vcenter = install::end(bed);
    let bed = install::cluster(Some(vcenter)).await?;
    let three = by_helm(&bed, &Helm::of(&bed.cluster).await?, &before, &after).await?;
    let bed = install::cluster(Some(install::end(bed))).await?;
    let four = by_helm(&bed, &Helm::from(&bed.cluster, Part::Helm4).await?, &before, &after).await?;

    report.section(&format!(
        "Upgrade of CSI {OLD} to {NEW} and back, {} objects of both drivers",
        after.len()
    ));
    for (what, ours, three, four) in [("upgrade", &upgrade, &three.0, &four.0), ("rollback", &rollback, &three.1, &four.1)] {
        report.row(
            &format!("requests of the {what}, all but list and watch"),
            ours.requests,
            format!("helm 3 {}, helm 4 {}", three.requests, four.requests),
            "helm asks for each object before it writes",
        );
        report.row(
            "  of which writes",
            ours.writes,
            format!("helm 3 {}, helm 4 {}", three.writes, four.writes),
            "dry runs are not writes",
        );
        report.row(
            "  to every pod ready; the others: the whole process",
            seconds(ours.time),
            format!("helm 3 {}, helm 4 {}", seconds(three.time), seconds(four.time)),
            "helm waits for nothing",
        );
    }
    report.row(
        &format!("bytes in etcd: the inventory with {REVISIONS} revisions of both drivers"),
        history,
        format!("helm 3 {}, helm 4 {}", three.2, four.2),
        "goal 204800; helm: of its three revisions",
    );
    report.row(
        "from the API server's new minor to the new CPI's first pod",
        seconds(follows),
        "",
        format!("Kubernetes {}, CPI {}; goal 60 s", NEXT.0, NEXT.1),
    );
    Ok(report)
}

async fn pin(bed: &Bed, version: &str) -> Result<()> {
    let spec = json!({"cloudProvider": {}, "storageProvider": {"version": version}});
    bed.merge(VDO, "VDOConfig", NS, "vdo", json!({"spec": spec})).await
}

/// Waits until nothing is asked any more.
async fn settled(bed: &Bed) -> Result<Mark> {
    let mark = bed.cluster.audit().mark().await?;
    install::at_rest(bed, mark).await?;
    bed.cluster.audit().mark().await
}

/// Waits until the operator has brought the driver to this version, and counts.
async fn ours(bed: &Bed, mark: Mark, version: &str) -> Result<Asked> {
    let zero = now();
    until(&format!("CSI to run {version}"), PATIENCE, async || {
        let csi = bed.status().await?["drivers"][1].clone();
        Ok(Probe::when(csi["running"] == version && csi["ready"] == "True", csi))
    })
    .await?;
    let time = now().duration_since(zero).as_secs_f64();
    Ok(asked(install::at_rest(bed, mark).await?, time))
}

fn asked(requests: Requests, time: f64) -> Asked {
    let requests = requests.only(|e| !matches!(e.verb.as_str(), "list" | "watch"));
    Asked {
        requests: requests.len(),
        writes: requests.writes().len(),
        time,
    }
}

/// Applies further states of both drivers; the size of what is kept of them, as the API server stores it.
async fn history(bed: &Bed) -> Result<usize> {
    for number in 0..=REVISIONS {
        let proxy = format!("http://proxy-{number}.example.com:3128");
        let values = json!({"values": {"proxy": {"http": proxy}}});
        let spec = json!({"cloudProvider": values, "storageProvider": {"version": OLD, "values": values["values"]}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", json!({"spec": spec})).await?;
        bed.until_ready().await?;
        settled(bed).await?;
    }
    let (_, text, _) = bed.vdoctl(&["history", "-o", "json"])?;
    let all: Value = serde_json::from_str(&text)?;
    for driver in all["drivers"].as_array().context("drivers")? {
        let kept = driver["revisions"].as_array().map_or(0, Vec::len);
        ensure!(kept >= REVISIONS, "{} has {kept} revisions", driver["name"]);
    }
    stored(bed, &format!("/api/v1/namespaces/{NS}/secrets/{STATE}")).await
}

/// The size of an object in the form in which it is in etcd.
async fn stored(bed: &Bed, path: &str) -> Result<usize> {
    use futures::AsyncReadExt as _;
    let request = http::Request::get(path).header("Accept", "application/vnd.kubernetes.protobuf");
    let mut bytes = Vec::new();
    let mut body = std::pin::pin!(bed.cluster.client().request_stream(request.body(Vec::new())?).await?);
    body.read_to_end(&mut bytes).await?;
    ensure!(bytes.starts_with(b"k8s\0"), "{path} is not in the form of etcd");
    Ok(bytes.len())
}

/// From the moment when the API server is there in its next minor to the creation of the first pod of the CPI for it.
async fn follows(bed: &mut Bed) -> Result<f64> {
    let mark = bed.cluster.audit().mark().await?;
    bed.cluster.report_version(NEXT.0).await?;
    let zero = now();
    let image = until("a pod of the next CPI", PATIENCE, async || {
        let pods = bed.list("v1", "Pod", "").await?;
        let of_next = |pod: &&Value| {
            let image = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
            pod["metadata"]["namespace"] == "kube-system" && image.contains(NEXT.1)
        };
        Ok(match pods.iter().find(of_next) {
            Some(pod) => Probe::Ready(pod["metadata"]["name"].clone()),
            None => Probe::not_yet(format!("{} pods", pods.len())),
        })
    })
    .await?;
    let seen = now().duration_since(zero).as_secs_f64();
    // To the moment at which the API server got it, where the audit log outlived the restart.
    let created = bed.cluster.audit().since(mark).await.ok().and_then(|all| {
        let is = |e: &&vdo_testbed::Entry| e.resource == "pods" && e.verb == "create" && image == e.name.as_str();
        let at = install::received(all.0.iter().find(is)?).ok()?;
        Some(at.duration_since(zero).as_secs_f64())
    });
    Ok(created.filter(|time| *time > 0.0).unwrap_or(seen))
}

/// Installs, upgrades and rolls back; what the last two asked, and the size of Helm's records.
async fn by_helm(bed: &Bed, helm: &Helm, before: &[Value], after: &[Value]) -> Result<(Asked, Asked, usize)> {
    ensure!(bed.operator.is_none(), "an operator would interfere with {OPERATOR}");
    let (old, new) = (helm.chart("old", before)?, helm.chart("new", after)?);
    helm.run(&["--namespace", "default", "install", "drivers", &old]).await?;
    let change = async |args: &[&str]| -> Result<Asked> {
        let mark = bed.cluster.audit().mark().await?;
        let zero = now();
        helm.run(&[&["--namespace", "default"], args].concat()).await?;
        let time = now().duration_since(zero).as_secs_f64();
        let requests = bed.cluster.audit().since(mark).await?.of(Cluster::ADMIN);
        Ok(asked(requests.only(|e| e.user_agent.to_lowercase().contains("helm")), time))
    };
    let upgrade = change(&["upgrade", "drivers", &new]).await?;
    let rollback = change(&["rollback", "drivers", "1"]).await?;
    let mut size = 0;
    for number in 1..=3 {
        size += stored(
            bed,
            &format!("/api/v1/namespaces/default/secrets/sh.helm.release.v1.drivers.v{number}"),
        )
        .await?;
    }
    Ok((upgrade, rollback, size))
}
