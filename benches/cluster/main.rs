//! What the operator costs on a real control plane, beside `kubectl` and `helm` in the same run. docs/benchmarks.md reads it.
//!
//! Nothing here judges: it fails only when it could not measure.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it prints its figures")]

#[path = "../../tests/bed/mod.rs"]
mod bed;
mod helm;
mod install;
mod process;
mod render;
mod report;
mod rest;

use anyhow::Result;
use report::{Report, median, seconds};
use vdo_testbed::{Binaries, KUBERNETES_VERSION, Part};

/// How often the drivers are installed, each time into a new cluster.
const ROUNDS: usize = 3;

#[tokio::main]
async fn main() -> Result<()> {
    if !std::env::args().any(|arg| arg == "--bench") {
        println!("it measures only as `cargo bench --bench cluster`");
        return Ok(());
    }
    bed::prepare();
    let binaries = tokio::task::spawn_blocking(Binaries::ensure_all).await??;
    let mut report = Report::default();
    let mut rounds = Vec::new();
    for number in 1..=ROUNDS {
        eprintln!("installation {number} of {ROUNDS}: the operator, in a new cluster");
        let mut bed = install::cluster(None).await?;
        let ours = install::by_operator(&mut bed).await?;
        if number == ROUNDS {
            eprintln!("the operator at rest: resyncs, memory, restarts");
            rest::measure(&mut bed, &mut report).await?;
        }
        let objects = install::applicable(&bed).await?;
        eprintln!("installation {number} of {ROUNDS}: kubectl apply of the same objects, in a new cluster");
        let bed = install::cluster(Some(install::end(bed))).await?;
        let theirs = install::by_kubectl(&bed, &binaries.path(Part::Kubectl), &objects).await?;
        rounds.push((ours, theirs));
    }
    installs(&rounds, &mut report);
    eprintln!("rendering: in process, helm, vdoctl");
    render::measure(&binaries.path(Part::Helm), &mut report)?;
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!(
        "\nvdo {}, optimised build; {cores} cores; Kubernetes {KUBERNETES_VERSION}; {} nodes; medians of {ROUNDS} installations\n",
        env!("CARGO_PKG_VERSION"),
        install::NODES,
    );
    println!("{report}");
    Ok(())
}

/// The two ways of installing, side by side.
fn installs(rounds: &[(install::Ours, install::Theirs)], report: &mut Report) {
    let ours = |pick: fn(&install::Ours) -> f64| median(rounds.iter().map(|(ours, _)| pick(ours)));
    let theirs = |pick: fn(&install::Theirs) -> f64| median(rounds.iter().map(|(_, theirs)| pick(theirs)));
    let most = |pick: fn(&install::Ours) -> usize| rounds.iter().map(|(ours, _)| pick(ours)).max().unwrap_or_default();
    let kubectl = |pick: fn(&install::Theirs) -> usize| rounds.iter().map(|(_, theirs)| pick(theirs)).max().unwrap_or_default();
    let objects = most(|o| o.objects);
    let (requests, bound) = (most(|o| o.requests), objects + 10);
    report.section("Requests");
    report.row(
        &format!("first install of {objects} objects, all but list and watch"),
        requests,
        format!("kubectl {}", kubectl(|t| t.requests)),
        format!("bound {bound}{}", if requests > bound { ": EXCEEDED" } else { "" }),
    );
    report.row(
        "  of which writes",
        most(|o| o.writes),
        format!("kubectl {}", kubectl(|t| t.writes)),
        format!(
            "{} status, {} events, {} inventory",
            most(|o| o.status),
            most(|o| o.events),
            most(|o| o.inventory)
        ),
    );
    report.row(
        "  lists and watches, before and during it",
        most(|o| o.watches),
        String::new(),
        "one of each for a kind of object",
    );
    report.section("Time to install");
    let pairs = [
        ("to the last object created", ours(|o| o.created), theirs(|t| t.created)),
        (
            "to all nodes initialised, all pods and CSI nodes there",
            ours(|o| o.works),
            theirs(|t| t.works),
        ),
    ];
    for (name, ours, theirs) in pairs {
        report.row(
            name,
            seconds(ours),
            format!("kubectl {}", seconds(theirs)),
            format!("ratio {:.2}", ours / theirs),
        );
    }
    report.row(
        "to Ready=True",
        seconds(ours(|o| o.ready)),
        format!("kubectl {}", seconds(theirs(|t| t.works))),
        format!("ratio {:.2}; kubectl: to all there", ours(|o| o.ready) / theirs(|t| t.works)),
    );
    report.row(
        "the operator's wait for nodes between the drivers",
        seconds(ours(|o| o.pause)),
        String::new(),
        "longest time between two creations; in all of the above",
    );
    report.row(
        "to the last object created, without that wait",
        seconds(ours(|o| o.created - o.pause)),
        format!("kubectl {}", seconds(theirs(|t| t.process))),
        format!(
            "ratio {:.2}; kubectl: the whole process",
            ours(|o| o.created - o.pause) / theirs(|t| t.process)
        ),
    );
    report.row(
        "operator: exec to ready, empty cluster",
        seconds(ours(|o| o.start)),
        String::new(),
        "all watches of its own kinds are up",
    );
}
