//! Digests of the drivers' own manifests, object by object, as the release files have them: what a chart renders is held against them
//! where the manifests themselves are not available.

use std::path::PathBuf;

/// Where the manifests are, when this machine has them.
#[allow(clippy::disallowed_methods, reason = "a tool for people, told by the environment")]
pub fn manifests() -> Option<PathBuf> {
    std::env::var_os("VDO_UPSTREAM_DIR").map(PathBuf::from)
}

pub use vdo::chart::add_release::{digest, name};
