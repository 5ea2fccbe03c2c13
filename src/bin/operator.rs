//! The operator: keeps the vSphere drivers of one cluster chosen, installed, configured and healthy.
#![expect(clippy::print_stderr, reason = "what goes wrong before there is a log")]

use clap::Parser;
use std::process::ExitCode;
use vdo::api::chain;
use vdo::runtime::args::Args;
use vdo::runtime::telemetry;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    if let Err(error) = telemetry::init(&args.log_level, args.log_format) {
        eprintln!("vdo-operator: {}", chain(&error));
        return ExitCode::from(2);
    }
    // kube and the vCenter client share one provider; with several compiled in, neither would choose by itself.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match vdo::controller::run(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", chain(&error));
            ExitCode::FAILURE
        }
    }
}
