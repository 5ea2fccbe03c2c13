// SPDX-License-Identifier: Apache-2.0
//! The operator when there is nothing to do.

use crate::common::{Bed, OPERATOR, PATIENCE};
use crate::install;
use crate::process;
use crate::report::{Report, mebibytes, median, seconds, spread};
use anyhow::Result;
use std::time::Duration;
use vdo_testbed::{Probe, until};

const RESYNCS: u64 = 10;
const STARTS: usize = 5;

pub async fn measure(bed: &mut Bed) -> Result<Report> {
    let mut report = Report::default();
    report.section("At rest");
    resyncs(bed, &mut report).await?;
    memory(bed, &mut report).await?;
    restarts(bed, &mut report).await?;
    Ok(report)
}

async fn resyncs(bed: &Bed, report: &mut Report) -> Result<()> {
    let mark = bed.cluster.audit().mark().await?;
    let before = bed.reconciles().await?;
    for round in 0..RESYNCS {
        install::resync(bed, &round.to_string()).await?;
        until("the resync to be made", PATIENCE, async || {
            let now = bed.reconciles().await?;
            Ok(Probe::when(now > before + round, format!("{} reconciles so far", now - before)))
        })
        .await?;
    }
    let made = bed.reconciles().await? - before;
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
    let operator = process::of_operator(bed)?;
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
