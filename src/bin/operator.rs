//! The operator: keeps the vSphere drivers of one cluster chosen, installed, configured and healthy.

use clap::Parser;
use std::process::ExitCode;
use vdo::runtime::args::Args;
use vdo::runtime::telemetry;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    if let Err(error) = telemetry::init(&args.log_level, args.log_format) {
        telemetry::fatal(&error);
        return ExitCode::from(2);
    }
    // kube and the vCenter client must use the same one; with several compiled in, neither would choose by itself.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match vdo::controller::run(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", vdo::api::chain(&error));
            ExitCode::FAILURE
        }
    }
}
