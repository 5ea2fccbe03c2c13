// SPDX-License-Identifier: Apache-2.0
//! The command `vdoctl rights --missing | kubectl apply …`, which messages show for missing rights (pure).

/// The command that prints the rights that are missing.
const MISSING: &str = "vdoctl rights --missing";

/// The command by which an administrator adds the rights that are missing, with more flags for vdoctl.
#[must_use]
pub fn add_missing(flags: &str) -> String {
    format!("{MISSING}{flags} | kubectl apply --server-side --force-conflicts -f -")
}
