//! `vdoctl mirror` as it is typed.

use super::{MatrixFile, Output, RegistryArgs};
use clap::builder::FalseyValueParser;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use vdo_api::types::{VcenterVersion, VersionRange};
use vdo_author::mirror::DriverPattern;
use vdo_oci::oci::Platform;
use vdo_oci::registry::realm_host;

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
    /// Removes what a mirror does not need: what earlier pulls or pushes have left, and versions that are not selected
    ///
    /// In a registry the manifests are deleted that this mirror has written there and does not need any more, if nothing else needs them; the
    /// registry frees their blobs when it collects its garbage. Look first whether a cluster still runs them: vdoctl status.
    Prune(MirrorPrune),
}

/// Which versions are mirrored. What is named several times is limited by all of it.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Selecting {
    /// The versions for these Kubernetes minors, for example 1.33..1.35 or 1.34
    #[arg(long, env = "VDO_KUBERNETES", value_name = "MIN..MAX", value_parser = minors)]
    pub kubernetes: Option<VersionRange>,
    /// The versions for one of these vCenters, for example 8.0 or 8.0.3
    #[arg(long, env = "VDO_VCENTER", value_name = "VERSION", value_delimiter = ',')]
    pub vcenter: Vec<VcenterVersion>,
    /// These versions of a driver, for example csi=3.7.*, csi=3.7.3, csi=3.5.0..3.7.3 or csi
    #[arg(long, env = "VDO_DRIVER", value_name = "DRIVER[=VERSIONS]", value_delimiter = ',')]
    pub driver: Vec<DriverPattern>,
    /// All versions that were not withdrawn
    #[arg(long, env = "VDO_ALL", value_parser = FalseyValueParser::new())]
    pub all: bool,
}

/// What else is taken.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Taking {
    /// What the cluster runs, what it would choose, and the versions on the way there, now and with the next minor of Kubernetes
    #[arg(long, env = "VDO_FOR_CLUSTER", value_parser = FalseyValueParser::new())]
    pub for_cluster: bool,
    /// Only these platforms, for example linux/amd64; default: all, with the digests and signatures of the publisher
    #[arg(long, env = "VDO_PLATFORM", value_name = "OS/ARCH", value_delimiter = ',')]
    pub platform: Vec<Platform>,
    /// Takes what begins with this from elsewhere, for example registry.k8s.io=mirror.example/k8s
    #[arg(long, env = "VDO_FROM", value_name = "PREFIX=PREFIX", value_delimiter = ',', value_parser = substitute)]
    pub from: Vec<(String, String)>,
    /// The operator's image that goes with it; none: no operator
    #[arg(long, env = "VDO_IMAGE", value_name = "REFERENCE")]
    pub image: Option<String>,
}

/// How several registries are reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Registries {
    /// A file with the authorities (PEM) that may have signed the certificates of the registries, instead of those of the machine
    #[arg(long, env = "VDO_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Speaks to the registries without TLS
    #[arg(long, env = "VDO_PLAIN_HTTP", value_parser = FalseyValueParser::new())]
    pub plain_http: bool,
    /// The file with logins; default: that of helm registry login, then that of docker login
    #[arg(long, env = "VDO_REGISTRY_CONFIG", value_name = "FILE")]
    pub registry_config: Option<PathBuf>,
    /// A host that gives out tokens for one of the registries and may see its login; may be repeated. Not needed for a host in the domain of the
    /// registry
    #[arg(long, env = "VDO_REGISTRY_TOKEN_REALM", value_name = "HOST", value_delimiter = ',', value_parser = realm_host)]
    pub registry_token_realm: Vec<String>,
}

/// What is asked of the registries of images.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Resolving {
    /// Asks the registries of images for their digests, and writes these down
    #[arg(long, env = "VDO_RESOLVE_DIGESTS", value_parser = FalseyValueParser::new())]
    pub resolve_digests: bool,
    /// Each image must exist for this platform, for example linux/arm64; may be repeated
    #[arg(
        long,
        env = "VDO_PLATFORM",
        value_name = "OS/ARCH",
        value_delimiter = ',',
        default_value = "linux/amd64"
    )]
    pub platform: Vec<Platform>,
    /// Asks elsewhere for images whose reference begins with this, for example registry.k8s.io=mirror.example/k8s
    #[arg(long, env = "VDO_IMAGES_FROM", value_name = "PREFIX=PREFIX", value_delimiter = ',', value_parser = substitute)]
    pub images_from: Vec<(String, String)>,
}

impl From<&RegistryArgs> for Registries {
    /// Without the user: that one is for the registry of the matrix.
    fn from(args: &RegistryArgs) -> Self {
        Self {
            ca_file: args.ca_file.clone(),
            plain_http: args.plain_http,
            registry_config: args.registry_config.clone(),
            registry_token_realm: args.registry_token_realm.clone(),
        }
    }
}

impl From<Registries> for RegistryArgs {
    fn from(args: Registries) -> Self {
        Self {
            ca_file: args.ca_file,
            plain_http: args.plain_http,
            registry_config: args.registry_config,
            registry_token_realm: args.registry_token_realm,
            ..Self::default()
        }
    }
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
    #[arg(long, env = "VDO_DRY_RUN", value_parser = FalseyValueParser::new())]
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
    /// A bundle, or oci://HOST/PREFIX as it was pushed to
    #[arg(value_name = "BUNDLE|oci://…", required_unless_present = "cluster", conflicts_with = "cluster")]
    pub mirror: Option<String>,
    /// The images of the cluster, where its pods take them from
    // Its images are in registries of several owners: a password is for one.
    #[arg(long, env = "VDO_CLUSTER", value_parser = FalseyValueParser::new(), conflicts_with = "username")]
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
    /// Makes the cluster use it: the VDOConfig takes images from there, and the operator the matrix
    #[arg(long = "use", env = "VDO_USE_MIRROR", value_parser = FalseyValueParser::new())]
    pub adopt: bool,
    /// Lists what would be sent and sends nothing
    #[arg(long, env = "VDO_DRY_RUN", value_parser = FalseyValueParser::new())]
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
    /// The bundle, which is a folder, or oci://HOST/PREFIX as it was pushed to
    #[arg(value_name = "BUNDLE|oci://…")]
    pub mirror: String,
    /// Which of its versions stay; default: all.
    #[command(flatten)]
    pub select: Selecting,
    /// Lists what would be removed and removes nothing
    #[arg(long, env = "VDO_DRY_RUN", value_parser = FalseyValueParser::new())]
    pub dry_run: bool,
    /// The registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
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
    let wrong = || format!("{text:?} is no substitute; write for example registry.k8s.io=mirror.example/k8s");
    let (from, to) = text.split_once('=').ok_or_else(wrong)?;
    let trim = |part: &str| part.trim_start_matches("oci://").trim_end_matches('/').to_owned();
    let (from, to) = (trim(from), trim(to));
    (!from.is_empty() && !to.is_empty()).then_some((from, to)).ok_or_else(wrong)
}
