// SPDX-License-Identifier: Apache-2.0
//! Brings the operator's image to the nodes of a cluster, and installs the operator there. `make deploy` and `make deploy-k8s-cluster` call it.
//!
//! ```text
//!   settings, cluster or nodes --> what is missing, before anything is built
//!                              --> build --> archive or registry --> every node --> deploy/deploy.sh
//! ```
#![expect(
    clippy::disallowed_methods,
    reason = "make hands its variables over in the environment, and there are no flags"
)]

mod cluster;
mod cluster_type;
mod image;
mod node;
mod nodes;
mod programs;
mod settings;
mod ssh;
mod stop;

use std::process::ExitCode;
use stop::Stop;

const USAGE: &str = "Usage: vdo-load cluster | nodes";

fn run(arguments: &[String]) -> Result<(), Stop> {
    match arguments {
        [one] if one == "cluster" => cluster::run(),
        [one] if one == "nodes" => nodes::run(),
        _ => Err(Stop::usage(USAGE)),
    }
}

#[expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "the one place that answers ssh, and that reports an error"
)]
fn main() -> ExitCode {
    if let Some(password) = ssh::asked_for() {
        println!("{password}");
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => {
            eprintln!("{stop}");
            ExitCode::from(stop.code())
        }
    }
}
