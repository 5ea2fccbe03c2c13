// SPDX-License-Identifier: Apache-2.0
//! How the operator is linked.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script its target through the environment"
)]

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    pack_relocations();
}

/// A megabyte less of the operator in memory (decision 052). The loader has to know the format: glibc does since 2.36.
fn pack_relocations() {
    let target = ["CARGO_CFG_TARGET_OS", "CARGO_CFG_TARGET_ENV"].map(|key| env::var(key).unwrap_or_default());
    if target == ["linux", "gnu"] {
        println!("cargo::rustc-link-arg-bin=vdo-operator=-Wl,-z,pack-relative-relocs");
    }
}
