// SPDX-License-Identifier: Apache-2.0
//! The documents of `vdoctl mirror`.

use super::super::output::View;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use vdo_api::types::{Digest, DriverName, DriverVersion};

/// What was pulled into a bundle, or would be.
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
    /// What was fetched of it; the rest is of an earlier pull.
    pub fetched_bytes: u64,
}

/// An image of a bundle.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PulledView {
    pub reference: String,
    pub digest: Digest,
    pub bytes: u64,
    /// The versions that need it.
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

/// What was removed from a bundle, or would be.
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

/// What was pushed into a registry, or would be.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MirrorPushView {
    pub to: String,
    pub dry_run: bool,
    pub images: usize,
    /// How many were there already.
    pub known: usize,
    pub bytes: u64,
    /// For `spec.images.registry`, where it holds a matrix.
    pub registry: Option<String>,
    /// For `vdoctl configure matrix`.
    pub matrix: Option<String>,
}

impl View for MirrorPushView {
    const KIND: &'static str = "MirrorPush";
}

/// Whether everything is there and unchanged.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MirrorVerifyView {
    pub mirror: String,
    pub complete: bool,
    pub versions: Vec<String>,
    pub images: usize,
    /// Of a bundle.
    pub bytes: Option<u64>,
    pub faults: Vec<FaultView>,
    pub notes: Vec<String>,
}

/// Something that is not as it should be.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FaultView {
    /// An image, or a part of the matrix.
    pub what: String,
    pub problem: String,
    /// The versions that it keeps from being installed.
    pub versions: Vec<String>,
}

impl View for MirrorVerifyView {
    const KIND: &'static str = "MirrorVerify";
}
