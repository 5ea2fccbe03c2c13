// SPDX-License-Identifier: Apache-2.0
//! The verbs, flags and help of `vdoctl mirror`: pull, verify, push, copy, prune; and `--resolve-digests` of charts and matrices.

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
    /// Copies the selected part of a matrix with all its images into a bundle: a folder, or a file that ends in .tar
    ///
    /// While vdoctl writes the data, it compares all data with the digests. An interruption leaves an existing bundle unchanged. If you run
    /// the command again, vdoctl fetches only the missing data.
    Pull(MirrorPull),
    /// Checks that a mirror contains every image that its driver versions can use, and that no data in the mirror was changed
    ///
    /// vdoctl checks a bundle without a network. In a registry, vdoctl looks up each image by its digest. With --cluster, vdoctl takes the
    /// images of the running and the desired drivers, and looks up these images in the registries from which the pods pull. The exit code
    /// is 1 when anything is missing.
    Verify(MirrorVerify),
    /// Copies a bundle into a registry, and shows how to use the registry in a cluster
    ///
    /// Tags, digests and signatures do not change. Images that the registry already has are not sent again. The matrix is written last, so
    /// a cluster that uses the matrix finds every image.
    Push(MirrorPush),
    /// Copies the selected part of a matrix with all its images into a registry, without a bundle
    Copy(MirrorCopy),
    /// Removes from a bundle the data that only earlier pulls needed, and the driver versions that are not selected
    ///
    /// The command deletes nothing in a registry. Use the retention rules of the registry for this purpose.
    Prune(MirrorPrune),
}

/// Which versions are mirrored. What is named several times is limited by all of it.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Selecting {
    /// Selects the driver versions that support one of these Kubernetes minor versions, for example 1.33..1.35 or 1.34
    #[arg(long, value_name = "MIN..MAX", value_parser = minors)]
    pub kubernetes: Option<VersionRange>,
    /// Selects the driver versions that support one of these vCenter versions, for example 8.0 or 8.0.3
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    pub vcenter: Vec<VcenterVersion>,
    /// Selects these versions of a driver, for example csi=3.7.*, csi=3.7.3, csi=3.5.0..3.7.3 or csi
    #[arg(long, value_name = "DRIVER[=VERSIONS]", value_delimiter = ',')]
    pub driver: Vec<DriverPattern>,
    /// Selects all driver versions that were not withdrawn
    #[arg(long)]
    pub all: bool,
}

/// What else is taken.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Taking {
    /// Selects the driver versions that are installed in the cluster, the versions that the operator would choose for the current and for
    /// the next Kubernetes minor version, and all upgrade steps between these versions
    #[arg(long)]
    pub for_cluster: bool,
    /// Copies only these platforms, for example linux/amd64; default: all platforms, so that the digests and signatures of the publisher
    /// stay valid
    #[arg(long, value_name = "OS/ARCH", value_delimiter = ',')]
    pub platform: Vec<Platform>,
    /// Pulls images from another registry: replaces the first prefix of an image name with the second prefix, for example
    /// registry.k8s.io=mirror.example/k8s
    #[arg(long, value_name = "PREFIX=PREFIX", value_delimiter = ',', value_parser = substitute)]
    pub from: Vec<(String, String)>,
    /// The image of the operator to copy; default: the released image; the value none copies no operator image
    #[arg(long, value_name = "REFERENCE")]
    pub image: Option<String>,
}

/// What is asked of the registries of images.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Resolving {
    /// Reads the digest of each image from its registry and records the digest
    #[arg(long)]
    pub resolve_digests: bool,
    /// A platform for which each image must exist, for example linux/arm64; may be repeated
    #[arg(long, value_name = "OS/ARCH", value_delimiter = ',', default_value = "linux/amd64")]
    pub platform: Vec<Platform>,
    /// Looks up images in another registry: replaces the first prefix of an image name with the second prefix, for example
    /// registry.k8s.io=mirror.example/k8s
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
    /// Lists the images that would be pulled, with their sizes, and writes nothing
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
    /// A bundle, or the oci://HOST/PREFIX to which a bundle was pushed
    #[arg(value_name = "BUNDLE|oci://…", required_unless_present = "cluster", conflicts_with = "cluster")]
    pub mirror: Option<String>,
    /// Checks the images of the cluster in the registries from which its pods pull
    // Its images are in registries of several owners: a password is for one.
    #[arg(long, conflicts_with = "username")]
    pub cluster: bool,
    /// A file with public keys (PEM), or a folder of such files; the matrix must be signed by one of these keys
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
    /// The target for the images: oci://HOST/PREFIX. If the OCI image layout gives its image no name, write oci://HOST/REPOSITORY:TAG
    #[arg(value_name = "oci://…")]
    pub to: String,
    /// Configures the cluster to use the mirror for the drivers' images and for the operator's matrix
    #[arg(long = "use")]
    pub adopt: bool,
    /// Lists the data that would be sent, and sends nothing
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
    /// The matrix: embedded (the built-in matrix), an index file, a folder with index.yaml, or an https:// or oci:// address
    #[arg(value_name = "SOURCE")]
    pub source: vdo_source::fetch::MatrixSource,
    /// The target for the matrix and the images: oci://HOST/PREFIX
    #[arg(value_name = "oci://…")]
    pub to: String,
    /// Which versions.
    #[command(flatten)]
    pub select: Selecting,
    /// What else.
    #[command(flatten)]
    pub take: Taking,
    /// A file with public keys (PEM), or a folder of such files; only a matrix that one of these keys has signed is accepted
    #[arg(long, env = "VDO_MATRIX_KEYS", value_name = "PATH")]
    pub matrix_keys: Option<PathBuf>,
    /// A folder with the credentials for the address of the matrix: one or more of the files username and password, bearerToken, tls.crt
    /// and tls.key, ca.crt, or .dockerconfigjson
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
    /// The folder of the bundle
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Which of its versions stay; default: all.
    #[command(flatten)]
    pub select: Selecting,
    /// Shows how much data would be removed, and removes nothing
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
    let wrong = || format!("{text:?} does not replace a registry; write OLD=NEW, for example registry.k8s.io=mirror.example/k8s");
    let (from, to) = text.split_once('=').ok_or_else(wrong)?;
    let trim = |part: &str| part.trim_start_matches("oci://").trim_end_matches('/').to_owned();
    let (from, to) = (trim(from), trim(to));
    (!from.is_empty() && !to.is_empty()).then_some((from, to)).ok_or_else(wrong)
}
