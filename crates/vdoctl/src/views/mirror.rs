// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML documents of `vdoctl mirror`: `MirrorPull`, `MirrorPush`, `MirrorPrune`, `MirrorVerify`.

use super::super::output::View;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use vdo_api::types::{Digest, DriverName, DriverVersion};

/// The content that was pulled into a bundle, or that would be pulled.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MirrorPullView {
    pub bundle: PathBuf,
    pub dry_run: bool,
    pub versions: BTreeMap<DriverName, BTreeSet<DriverVersion>>,
    pub images: Vec<PulledView>,
    /// Tags that lead to another image than before.
    pub moved: Vec<MovedView>,
    pub blobs: usize,
    pub bytes: u64,
    /// The bytes that this pull fetched. Earlier pulls fetched the other bytes.
    pub fetched_bytes: u64,
}

/// An image of a bundle.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PulledView {
    pub reference: String,
    pub digest: Digest,
    pub bytes: u64,
    /// The driver versions that need the image.
    #[serde(rename = "for")]
    pub versions: Vec<String>,
}

/// A tag that leads to another image than before.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MovedView {
    pub reference: String,
    pub before: Digest,
    pub now: Digest,
}

impl View for MirrorPullView {
    const KIND: &'static str = "MirrorPull";
}

/// The content that was removed from a bundle, or that would be removed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MirrorPruneView {
    pub dry_run: bool,
    pub removed_blobs: usize,
    pub removed_bytes: u64,
}

impl View for MirrorPruneView {
    const KIND: &'static str = "MirrorPrune";
}

/// The content that was pushed into a registry, or that would be pushed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MirrorPushView {
    pub to: String,
    pub dry_run: bool,
    pub images: usize,
    /// How many of the images were in the registry already.
    pub known: usize,
    pub bytes: u64,
    /// The value for `spec.images.registry`; null if the content is not a mirror with a matrix.
    pub registry: Option<String>,
    /// The source for `vdoctl configure matrix`; null if the content is not a mirror with a matrix.
    pub matrix: Option<String>,
}

impl View for MirrorPushView {
    const KIND: &'static str = "MirrorPush";
}

/// Whether a mirror has everything that its versions need, and whether everything is unchanged.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MirrorVerifyView {
    pub mirror: String,
    pub complete: bool,
    pub versions: Vec<String>,
    pub images: usize,
    /// The size of a bundle; null for a registry.
    pub bytes: Option<u64>,
    pub faults: Vec<FaultView>,
    pub notes: Vec<String>,
}

/// A fault of a mirror.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FaultView {
    /// An image, or a part of the matrix.
    pub what: String,
    pub problem: String,
    /// The versions that cannot be installed because of the fault.
    pub versions: Vec<String>,
}

impl View for MirrorVerifyView {
    const KIND: &'static str = "MirrorVerify";
}
