//! vdoctl: the same engine, for people.

use std::process::ExitCode;

fn main() -> ExitCode {
    vdo::runtime::process::keep_memory_private();
    // With several crypto providers compiled in, none would be chosen by itself.
    let _ = rustls::crypto::ring::default_provider().install_default();
    vdoctl::main(std::env::args_os())
}
