// SPDX-License-Identifier: Apache-2.0
//! What the operator costs on a real control plane, beside `kubectl` and `helm` in the same run. docs/benchmarks.md reads it.
//!
//! Nothing here judges: it fails only when it could not measure.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it prints its figures")]

mod bulk;
#[path = "../../tests/common/mod.rs"]
mod common;
mod helm;
mod install;
mod large;
mod many;
#[path = "../mirror/measured.rs"]
mod measured;
mod others;
mod process;
mod pull;
mod render;
mod report;
mod rest;
mod scale;
mod start;
mod upgrade;
mod volumes;

use anyhow::Result;
use install::{Ours, Theirs};
use report::{Report, median, seconds, spread};
use vdo_testbed::{Binaries, KUBERNETES_VERSION, Part};

/// How often the drivers are installed, each time into a new cluster.
const ROUNDS: usize = 3;

#[tokio::main]
async fn main() -> Result<()> {
    if !std::env::args().any(|arg| arg == "--bench") {
        println!("it measures only as `cargo bench --bench cluster`");
        return Ok(());
    }
    common::prepare();
    let binaries = tokio::task::spawn_blocking(Binaries::ensure_all).await??;
    let mut report = Report::default();
    if chosen("install") {
        real(&binaries, &mut report).await?;
    }
    if chosen("pull") {
        report.append(pull::measure().await?);
    }
    if chosen("scale") {
        let plan = scale::Plan {
            kubectl: &binaries.path(Part::Kubectl),
            sizes: numbers("VDO_BENCH_SIZES", &[26, 200, 2000])?,
            nodes: numbers("VDO_BENCH_NODES", &[5000])?.first().copied().unwrap_or(0),
        };
        report.append(scale::measure(&plan).await?);
    }
    if chosen("upgrade") {
        report.append(upgrade::measure().await?);
    }
    if chosen("many") {
        eprintln!("many VDOConfigs");
        report.append(many::measure().await?);
    }
    if chosen("large") {
        report.append(large::measure().await?);
    }
    if chosen("volumes") {
        report.append(volumes::measure().await?);
    }
    if chosen("start") {
        start::measure(&binaries.path(Part::Kubectl), &mut report)?;
    }
    if chosen("render") {
        eprintln!("rendering: in process, helm 3 and helm 4, vdoctl");
        let four = tokio::task::spawn_blocking(|| Binaries::ensure(&[Part::Helm4])).await??;
        render::measure([&binaries.path(Part::Helm), &four.path(Part::Helm4)], &mut report)?;
    }
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let is_release = std::env::current_exe()?
        .iter()
        .rev()
        .nth(2)
        .is_some_and(|folder| folder == "release"); // release/deps/cluster-…
    let build = if is_release { "optimised" } else { "debug" };
    println!(
        "\nvdo {}, {build} build; {cores} cores; Kubernetes {KUBERNETES_VERSION}; {} nodes\n",
        env!("CARGO_PKG_VERSION"),
        install::NODES,
    );
    println!("{report}");
    Ok(())
}

/// Whether a part is measured: all are, unless some are named as arguments.
fn chosen(part: &str) -> bool {
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    named.is_empty() || named.iter().any(|name| name == part)
}

/// Numbers from the environment, with commas between them.
#[expect(clippy::disallowed_methods, reason = "a bench has no other arguments")]
fn numbers(variable: &str, usual: &[usize]) -> Result<Vec<usize>> {
    match std::env::var(variable) {
        Ok(text) => text.split(',').map(|number| Ok(number.trim().parse()?)).collect(),
        Err(_) => Ok(usual.to_vec()),
    }
}

/// The drivers as they are, into new clusters.
async fn real(binaries: &Binaries, report: &mut Report) -> Result<()> {
    let mut rest = Report::default();
    let mut rounds = Vec::new();
    for number in 1..=ROUNDS {
        eprintln!("installation {number} of {ROUNDS}: the operator, in a new cluster");
        let mut bed = install::cluster(None).await?;
        let ours = install::by_operator(&mut bed).await?;
        if number == ROUNDS {
            eprintln!("the operator at rest: resyncs, memory, restarts");
            rest = rest::measure(&mut bed).await?;
        }
        let objects = vdo_api::yaml::dump_all(&install::objects(&bed).await?);
        eprintln!("installation {number} of {ROUNDS}: kubectl apply of the same objects, in a new cluster");
        let bed = install::cluster(Some(install::end(bed))).await?;
        let theirs = install::by_kubectl(&bed, &binaries.path(Part::Kubectl), &objects).await?;
        rounds.push((ours, theirs));
    }
    installs(&rounds, report);
    report.append(rest);
    Ok(())
}

/// The two ways of installing, side by side.
fn installs(rounds: &[(Ours, Theirs)], report: &mut Report) {
    requests(rounds, report);
    report.section("Time to install, from the VDOConfig's arrival or kubectl's start");
    let ours = |pick: fn(&Ours) -> f64| rounds.iter().map(move |(ours, _)| pick(ours));
    let theirs = |pick: fn(&Theirs) -> f64| rounds.iter().map(move |(_, theirs)| pick(theirs));
    let mut beside = |what: &str, mine: fn(&Ours) -> f64, other: fn(&Theirs) -> f64| {
        let (us, them) = (median(ours(mine)), median(theirs(other)));
        let remark = format!("vdo/kubectl {:.2}; {}, {}", us / them, spread(ours(mine)), spread(theirs(other)));
        report.row(what, seconds(us), format!("kubectl {}", seconds(them)), remark);
    };
    beside("to the first object created", |o| o.first, |t| t.first);
    beside("to the last object created", |o| o.created, |t| t.created);
    beside(
        "  without the wait for nodes between the drivers",
        |o| o.created - o.pause,
        |t| t.created,
    );
    beside(
        "until everything is ready: nodes initialised, pods ready, CSI nodes",
        |o| o.works,
        |t| t.works,
    );
    beside("to Ready=True; kubectl: until everything is ready", |o| o.ready, |t| t.works);
    let mut alone = |what: &str, mine: fn(&Ours) -> f64| {
        report.row(what, seconds(median(ours(mine))), "", spread(ours(mine)));
    };
    alone("wait for nodes: longest time between two creations", |o| o.pause);
    alone("operator: exec to ready, nothing installed", |o| o.start);
    let process = median(theirs(|t| t.process));
    report.row("kubectl: the whole process", "", format!("kubectl {}", seconds(process)), "");
}

/// How much was asked of the API server; of several installations the one that asked most.
fn requests(rounds: &[(Ours, Theirs)], report: &mut Report) {
    let ours = |pick: fn(&Ours) -> usize| rounds.iter().map(|(ours, _)| pick(ours)).max().unwrap_or_default();
    let theirs = |pick: fn(&Theirs) -> usize| rounds.iter().map(|(_, theirs)| pick(theirs)).max().unwrap_or_default();
    let objects = ours(|o| o.objects);
    let (asked, bound) = (ours(|o| o.requests), install::bound(objects));
    report.section("Requests");
    report.row(
        &format!("first install of {objects} objects, all but list and watch"),
        asked,
        format!("kubectl {}", theirs(|t| t.requests)),
        format!("bound {bound}{}", if asked > bound { ": EXCEEDED" } else { "" }),
    );
    report.row(
        "  of which writes",
        ours(|o| o.writes),
        format!("kubectl {}", theirs(|t| t.writes)),
        format!(
            "{} to the status, {} events, {} to the inventory",
            ours(|o| o.status),
            ours(|o| o.events),
            ours(|o| o.inventory)
        ),
    );
    report.row(
        "lists and watches since the operator's start",
        ours(|o| o.watches),
        "",
        format!("for {} kinds of objects", ours(|o| o.kinds)),
    );
}
