//! The operator when there is nothing to do.

use crate::bed::{Bed, OPERATOR, PATIENCE};
use crate::install;
use crate::process;
use crate::report::{Report, mebibytes, median, seconds, spread};
use anyhow::{Context, Result};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use vdo_testbed::{Cluster, Probe, until};

const RESYNCS: u64 = 10;
const STARTS: usize = 5;

pub async fn measure(bed: &mut Bed) -> Result<Report> {
    let mut report = Report::default();
    report.section("At rest");
    resyncs(bed, &mut report).await?;
    memory(bed, &mut report).await?;
    idle_cpu(bed, &mut report).await?;
    drift(bed, &mut report).await?;
    restarts(bed, &mut report).await?;
    removal(bed, &mut report).await?;
    Ok(report)
}

async fn resyncs(bed: &Bed, report: &mut Report) -> Result<()> {
    let mark = bed.cluster.audit().mark().await?;
    let before = reconciles(bed).await?;
    for round in 0..RESYNCS {
        install::resync(bed, &round.to_string()).await?;
        until("the resync to be made", PATIENCE, async || {
            let now = reconciles(bed).await?;
            Ok(Probe::when(now > before + round, format!("{} reconciles so far", now - before)))
        })
        .await?;
    }
    let made = reconciles(bed).await? - before;
    // All of them, those that list and watch as well.
    let requests = bed.cluster.audit().since(mark).await?.of(OPERATOR).only(|e| e.resource != "leases");
    if !requests.is_empty() {
        eprintln!("the operator asked at rest:\n{requests}");
    }
    report.row(
        &format!("requests over {RESYNCS} forced resyncs"),
        requests.len(),
        "expected 0",
        format!("{made} reconciles; every verb counts"),
    );
    Ok(())
}

async fn memory(bed: &Bed, report: &mut Report) -> Result<()> {
    let group = bed.operator.as_ref().context("no operator")?.group();
    let operator = process::find(group, "vdo-operator")?;
    let mut samples = Vec::new();
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        samples.push(process::memory(&operator)?);
    }
    report.row(
        &format!("resident memory, {} nodes", install::NODES),
        mebibytes(median(samples.iter().map(|m| m.resident))),
        String::new(),
        format!(
            "{} heap and stacks, the rest is the program file",
            mebibytes(median(samples.iter().map(|m| m.own)))
        ),
    );
    report.row(
        "peak resident memory since its start",
        mebibytes(samples.iter().map(|m| m.peak).fold(0.0, f64::max)),
        String::new(),
        "one installation and the resyncs",
    );
    Ok(())
}

async fn restarts(bed: &mut Bed, report: &mut Report) -> Result<()> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        bed.kill_operator();
        times.push(install::start(bed).await?);
    }
    report.row(
        "exec to ready, drivers installed",
        seconds(median(times.iter().copied())),
        String::new(),
        format!("{}, {STARTS} starts after a SIGKILL", spread(times)),
    );
    Ok(())
}

/// How many reconciles the operator has counted.
async fn reconciles(bed: &Bed) -> Result<u64> {
    let mut stream = tokio::net::TcpStream::connect(bed.operator_address()?).await?;
    let request = "GET /metrics HTTP/1.1\r\nHost: operator\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let lines = text.lines().filter(|line| line.starts_with("vdo_reconcile_total"));
    Ok(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum())
}

/// Objects that are changed one after the other.
const DRIFTS: usize = 100;

/// How long a change by somebody else lasts, and how many writes it takes to undo it; both from the audit log.
async fn drift(bed: &Bed, report: &mut Report) -> Result<()> {
    let object = ("v1", "ServiceAccount", "kube-system", "cloud-controller-manager");
    let mark = bed.cluster.audit().mark().await?;
    for round in 0..DRIFTS {
        let change = json!({"metadata": {"labels": {"app.kubernetes.io/version": format!("drift-{round}")}}});
        bed.merge(object.0, object.1, object.2, object.3, change).await?;
        until("the drift to be repaired", PATIENCE, async || {
            let now = bed.get(object.0, object.1, object.2, object.3).await?;
            let version = &now["metadata"]["labels"]["app.kubernetes.io/version"];
            Ok(Probe::when(*version != format!("drift-{round}"), version))
        })
        .await?;
    }
    let all = bed.cluster.audit().since(mark).await?;
    let times = |user: &'static str| -> Result<Vec<Timestamp>> {
        let of = all.0.iter().filter(|e| e.user == user && e.writes() && e.name == object.3);
        of.map(|e| Ok(e.timestamp.parse()?)).collect()
    };
    let (broken, mended) = (times(Cluster::ADMIN)?, times(OPERATOR)?);
    let mut lasted: Vec<f64> = broken
        .iter()
        .filter_map(|at| Some(mended.iter().find(|then| *then > at)?.duration_since(*at).as_secs_f64()))
        .collect();
    lasted.sort_by(f64::total_cmp);
    let at = |share: usize| {
        lasted
            .get((lasted.len() * share / 100).min(lasted.len().saturating_sub(1)))
            .copied()
            .unwrap_or(f64::NAN)
    };
    let writes = all
        .0
        .iter()
        .filter(|e| e.user == OPERATOR && e.writes() && e.resource != "leases" && e.resource != "events")
        .count();
    report.row(
        "drift of one object, until it is repaired: median",
        seconds(at(50)),
        "aim 50 ms",
        format!("{}; 99 of 100 within {}", spread(lasted.iter().copied()), seconds(at(99))),
    );
    report.row(
        "  writes for each",
        format!("{:.2}", writes as f64 / DRIFTS as f64),
        "aim 1",
        "the status does not change, so it is not written",
    );
    Ok(())
}

/// What a reconcile costs that finds nothing to do.
async fn idle_cpu(bed: &Bed, report: &mut Report) -> Result<()> {
    const ROUNDS: u64 = 50;
    let group = bed.operator.as_ref().context("no operator")?.group();
    let operator = process::find(group, "vdo-operator")?;
    let (before, count) = (process::cpu(&operator)?, reconciles(bed).await?);
    for round in 0..ROUNDS {
        install::resync(bed, &format!("cpu-{round}")).await?;
        until("the resync to be made", PATIENCE, async || {
            let now = reconciles(bed).await?;
            Ok(Probe::when(now > count + round, format!("{} reconciles so far", now - count)))
        })
        .await?;
    }
    let made = reconciles(bed).await? - count;
    let spent = process::cpu(&operator)? - before;
    report.row(
        "CPU of a reconcile that finds nothing to do",
        seconds(spent / made as f64),
        "aim 5 ms",
        format!("{made} reconciles; what a watch event and the metrics cost is in it"),
    );
    Ok(())
}

/// What a removal asks.
async fn removal(bed: &Bed, report: &mut Report) -> Result<()> {
    let objects = bed.owned().await?.len();
    let mark = bed.cluster.audit().mark().await?;
    bed.uninstall().await?;
    let all = bed.cluster.audit().since(mark).await?.of(OPERATOR);
    let asked = all.only(|e| e.verb != "watch" && e.resource != "leases");
    let bound = objects + 6;
    report.row(
        &format!("requests of the removal of {objects} objects"),
        asked.len(),
        format!("aim {bound}"),
        format!("{} writes; lists count", asked.clone().writes().len()),
    );
    bed.apply(&bed.config(json!({}))).await?;
    bed.until_ready().await?;
    Ok(())
}
