// SPDX-License-Identifier: Apache-2.0
//! `vdoctl mirror` as it is typed.

use super::{MatrixFile, Output, Registries, RegistryArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use vdo_api::types::{VcenterVersion, VersionRange};
use vdo_author::mirror::DriverPattern;
use vdo_oci::oci::Platform;

/// Arguments of `mirror`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Mirror {
    /// The verb.
    #[command(subcommand)]
    pub verb: MirrorVerb,
}

/// The verbs of `mirror`.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum MirrorVerb {
    /// Copies a part of a matrix with all its images into a bundle: a folder, or a file that ends in .tar
    ///
    /// Everything is compared with its digest while it is written. Interrupted, it leaves the bundle that was there before; run again, it
    /// fetches what is missing.
    Pull(MirrorPull),
    /// Checks that a mirror is complete: every image that any of its versions can ask for is inside, and nothing was changed
    ///
    /// Of a bundle without any network. Of a registry each image is looked up by its digest. With --cluster the images of the drivers that run
    /// and of those that are wanted are looked up where their pods take them from. The exit code is 1 when something is missing.
    Verify(MirrorVerify),
    /// Copies a bundle into a registry, and says how a cluster uses it
    ///
    /// Tags, digests and signatures stay what they are. What the registry has is not sent again. The matrix is written last, so a cluster
    /// that follows it finds every image.
    Push(MirrorPush),
    /// Copies a part of a matrix with all its images into a registry, without a bundle
    Copy(MirrorCopy),
    /// Removes what a bundle does not need: what earlier pulls have left, and versions that are not selected
    ///
    /// Nothing is deleted in a registry: its retention rules do that.
    Prune(MirrorPrune),
}

/// Which versions are mirrored. What is named several times is limited by all of it.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Selecting {
    /// The versions for these Kubernetes minors, for example 1.33..1.35 or 1.34
    #[arg(long, value_name = "MIN..MAX", value_parser = minors)]
    pub kubernetes: Option<VersionRange>,
    /// The versions for one of these vCenters, for example 8.0 or 8.0.3
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    pub vcenter: Vec<VcenterVersion>,
    /// These versions of a driver, for example csi=3.7.*, csi=3.7.3, csi=3.5.0..3.7.3 or csi
    #[arg(long, value_name = "DRIVER[=VERSIONS]", value_delimiter = ',')]
    pub driver: Vec<DriverPattern>,
    /// All versions that were not withdrawn
    #[arg(long)]
    pub all: bool,
}

/// What else is taken.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Taking {
    /// What the cluster runs, what it would choose, and the versions on the way there, now and with the next minor of Kubernetes
    #[arg(long)]
    pub for_cluster: bool,
    /// Only these platforms, for example linux/amd64; default: all, with the digests and signatures of the publisher
    #[arg(long, value_name = "OS/ARCH", value_delimiter = ',')]
    pub platform: Vec<Platform>,
    /// Takes what begins with this from elsewhere, for example registry.k8s.io=mirror.example/k8s
    #[arg(long, value_name = "PREFIX=PREFIX", value_delimiter = ',', value_parser = substitute)]
    pub from: Vec<(String, String)>,
    /// The operator's image that goes with it; none: no operator
    #[arg(long, value_name = "REFERENCE")]
    pub image: Option<String>,
}

/// What is asked of the registries of images.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Resolving {
    /// Asks the registries of images for their digests, and writes these down
    #[arg(long)]
    pub resolve_digests: bool,
    /// Each image must exist for this platform, for example linux/arm64; may be repeated
    #[arg(long, value_name = "OS/ARCH", value_delimiter = ',', default_value = "linux/amd64")]
    pub platform: Vec<Platform>,
    /// Asks elsewhere for images whose reference begins with this, for example registry.k8s.io=mirror.example/k8s
    #[arg(long, value_name = "PREFIX=PREFIX", value_delimiter = ',', value_parser = substitute)]
    pub images_from: Vec<(String, String)>,
}

/// Arguments of `mirror pull`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct MirrorPull {
    /// The bundle: a folder, or a file that ends in .tar
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Which versions.
    #[command(flatten)]
    pub select: Selecting,
    /// What else.
    #[command(flatten)]
    pub take: Taking,
    /// Lists what would be pulled, with its size, and writes nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The matrix.
    #[command(flatten)]
    pub index: MatrixFile,
    /// The registries.
    #[command(flatten)]
    pub registries: Registries,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `mirror verify`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct MirrorVerify {
    /// A bundle, or the oci://HOST/PREFIX to which it was pushed
    #[arg(value_name = "BUNDLE|oci://…", required_unless_present = "cluster", conflicts_with = "cluster")]
    pub mirror: Option<String>,
    /// The images of the cluster, where its pods take them from
    // Its images are in registries of several owners: a password is for one.
    #[arg(long, conflicts_with = "username")]
    pub cluster: bool,
    /// A file with public keys (PEM), or a folder of such files: the matrix has to be signed by one of them
    #[arg(long, env = "VDO_MATRIX_KEYS", value_name = "PATH")]
    pub matrix_keys: Option<PathBuf>,
    /// The registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `mirror push`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct MirrorPush {
    /// The bundle, or any OCI image layout: a folder or a tar file
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Where its images go: oci://HOST/PREFIX; an image without a name needs oci://HOST/REPOSITORY:TAG
    #[arg(value_name = "oci://…")]
    pub to: String,
    /// Makes the cluster use the mirror: the drivers take images from there, and the operator takes the matrix
    #[arg(long = "use")]
    pub adopt: bool,
    /// Lists what would be sent and sends nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `mirror copy`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct MirrorCopy {
    /// The matrix: embedded, an index file, a folder with index.yaml, or an address with https:// or oci://
    #[arg(value_name = "SOURCE")]
    pub source: vdo_source::fetch::MatrixSource,
    /// Where everything goes: oci://HOST/PREFIX
    #[arg(value_name = "oci://…")]
    pub to: String,
    /// Which versions.
    #[command(flatten)]
    pub select: Selecting,
    /// What else.
    #[command(flatten)]
    pub take: Taking,
    /// A file with public keys (PEM), or a folder of such files: a matrix that none of them has signed is refused
    #[arg(long, env = "VDO_MATRIX_KEYS", value_name = "PATH")]
    pub matrix_keys: Option<PathBuf>,
    /// A folder with the files of a Secret for the address of the matrix
    #[arg(long, env = "VDO_MATRIX_CREDENTIALS", value_name = "FOLDER")]
    pub matrix_credentials: Option<PathBuf>,
    /// The registries.
    #[command(flatten)]
    pub registries: Registries,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `mirror prune`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct MirrorPrune {
    /// The bundle, which is a folder
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Which of its versions stay; default: all.
    #[command(flatten)]
    pub select: Selecting,
    /// Lists what would be removed and removes nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// `1.33..1.35`, `1.33..` or `1.34`.
fn minors(text: &str) -> Result<VersionRange, String> {
    match text.contains("..") {
        true => super::publish::range(text),
        false => super::publish::range(&format!("{text}..{text}")),
    }
}

/// `registry.k8s.io=mirror.example/k8s`.
fn substitute(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("{text:?} is not a substitute; write for example registry.k8s.io=mirror.example/k8s");
    let (from, to) = text.split_once('=').ok_or_else(wrong)?;
    let trim = |part: &str| part.trim_start_matches("oci://").trim_end_matches('/').to_owned();
    let (from, to) = (trim(from), trim(to));
    (!from.is_empty() && !to.is_empty()).then_some((from, to)).ok_or_else(wrong)
}
