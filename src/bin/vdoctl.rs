//! vdoctl: the same engine, for people.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    // With several crypto providers compiled in, none would be chosen by itself.
    let _ = rustls::crypto::ring::default_provider().install_default();
    vdo::cli::main(std::env::args_os()).await
}
