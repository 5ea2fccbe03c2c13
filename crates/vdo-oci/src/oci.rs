// SPDX-License-Identifier: Apache-2.0
//! The data types of OCI images and artifacts: descriptor, manifest, index and configuration, as in version 1.1 of the image specification.
//!
//! [`crate::layout`] reads and writes them in a folder, [`crate::registry`] in a registry.

mod config;
mod descriptor;
mod manifest;
pub mod media;
mod platform;
mod tree;

pub use config::{ContainerConfig, History, ImageConfig, RootFs};
pub use descriptor::{BlobError, Descriptor};
pub use manifest::{Index, Manifest};
pub use platform::{ParsePlatformError, Platform};
pub use tree::{Kind, children, is_foreign};

use std::collections::BTreeMap;

/// Annotations and labels, sorted by key so that the same ones are the same bytes.
pub type Annotations = BTreeMap<String, String>;

/// The annotation of a descriptor in `index.json` that names what it describes: a tag.
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// The annotation of a layer that is a file: its path.
pub const TITLE: &str = "org.opencontainers.image.title";
