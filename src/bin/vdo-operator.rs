// SPDX-License-Identifier: Apache-2.0
//! `main` of the program `vdo-operator`: parses the arguments, starts the log and runs the controllers.
#![expect(clippy::print_stderr, reason = "what goes wrong before there is a log")]

use clap::Parser;
use std::process::ExitCode;
use vdo::runtime::args::Args;
use vdo::runtime::telemetry;
use vdo_api::api::{causes, chain};

/// One thread computes, another one answers probes meanwhile. As many as the machine has cores would cost memory on large machines,
/// and the operator waits nearly all the time.
const THREADS: usize = 2;

fn main() -> ExitCode {
    let args = Args::parse();
    if let Err(error) = telemetry::init(&args.log_level, args.log_format) {
        eprintln!("vdo-operator: {}", causes(&error));
        return ExitCode::from(2);
    }
    vdo_system::keep_memory_private();
    vdo_system::raise_descriptor_limit();
    // kube and the vCenter client share one provider; with several compiled in, neither would choose by itself.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "the operator cannot start its threads");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(vdo::controller::run(&args));
    // A name that is being resolved must not keep a process that has said good-bye.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", chain(&error));
            ExitCode::FAILURE
        }
    }
}
