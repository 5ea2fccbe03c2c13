// SPDX-License-Identifier: Apache-2.0
//! The binary `vdoctl`: passes the command line to the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    vdo_system::keep_memory_private();
    vdo_system::prepare_terminal();
    // With several crypto providers compiled in, none would be chosen by itself.
    let _ = rustls::crypto::ring::default_provider().install_default();
    vdoctl::main(std::env::args_os())
}
