// SPDX-License-Identifier: Apache-2.0
//! The verbs, flags and help of `vdoctl chart`: render, images, compare, package, sources, lint, add-release, import, push, pull.

use super::publish::range;
use super::{Output, Registries, RegistryArgs, Resolving, Setting};
use clap::{Args, Subcommand};
use jiff::civil::Date;
use std::path::PathBuf;
use vdo_api::types::{DriverRole, DriverVersion, KubernetesVersion, VersionRange};

/// Arguments of `chart`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Chart {
    /// The verb.
    #[command(subcommand)]
    pub verb: ChartVerb,
}

/// The verbs of `chart`.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum ChartVerb {
    /// Prints the objects of a chart
    ///
    /// A chart does not contain the driver's configuration with the credentials. `vdoctl render` shows this configuration.
    Render(ChartRender),
    /// Lists the container images that a chart uses
    Images(ChartRender),
    /// Compares the rendered chart with the driver's own manifests, field by field
    ///
    /// The exit code is 0 when the chart lists all differences as intended. The exit code is 1 when there is a difference that the chart
    /// does not list, or when the chart lists a difference that does not exist. The exit code is more than 1 after an error. The comparison ignores the order of objects
    /// and fields, but not the order of list items.
    Compare(ChartCompare),
    /// Writes the package of a chart reproducibly, with the same bytes every time
    Package(ChartPackage),
    /// Writes the sources of all charts, and the version data of the matrix (facts.yaml), into a new folder
    ///
    /// The charts and the matrix in vdoctl are built from these sources. `vdoctl chart add-release` adds a new version of a driver to the
    /// folder, and `vdoctl matrix publish` publishes from the folder. For this work, you do not need a clone of the project's Git
    /// repository.
    Sources(ChartSources),
    /// Finds mistakes in a chart: in its source folder with all releases, or in a package
    Lint(ChartLint),
    /// Adds a new version of a driver to the sources of its chart, from the driver's own manifests
    ///
    /// vdoctl finds the differences between the manifests and the nearest older release, and writes these differences into the release file
    /// of the minor version. The command also shows the work that you must do by hand. The exit code is 0 when the new release renders the
    /// manifests, and 1 when differences remain.
    AddRelease(Box<ChartAddRelease>),
    /// Creates a chart from a project's own plain manifests
    ///
    /// The images, the namespace and the pull secrets become values; all other fields stay unchanged. The output lists the images and
    /// namespaces in fields that no value can change. If you import another version with the same templates, this version becomes a release
    /// of the existing chart; otherwise the version becomes a separate chart. The exit code is 1 when vdoctl chart lint finds a mistake in
    /// the chart.
    Import(ChartImport),
    /// Publishes the package of a chart in a registry, as helm push does
    ///
    /// vdoctl appends the name of the chart to the repository, and uses the version of the chart as the tag. vdoctl uses the login of helm
    /// registry login or docker login, unless --username is given.
    Push(ChartPush),
    /// Fetches the package of a chart from a registry, as helm pull does
    Pull(ChartPull),
}

/// Arguments of `chart push`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ChartPush {
    /// The chart package to publish
    #[arg(value_name = "PACKAGE")]
    pub package: PathBuf,
    /// The parent repository of the chart, for example oci://registry.example.com/charts
    #[arg(value_name = "oci://HOST/REPOSITORY")]
    pub to: String,
    /// The registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
}

/// Arguments of `chart pull`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ChartPull {
    /// The repository of the chart, for example oci://registry.example.com/charts/vsphere-csi
    #[arg(value_name = "oci://HOST/REPOSITORY/NAME")]
    pub from: String,
    /// The version of the chart, for example 3.7.3
    #[arg(long, value_name = "VERSION")]
    pub version: String,
    /// The folder for the file NAME-VERSION.tgz
    #[arg(long, short = 'd', value_name = "FOLDER", default_value = ".")]
    pub destination: PathBuf,
    /// The registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ChartName {
    /// The driver: vsphere-cpi (or cpi) or vsphere-csi (or csi)
    #[arg(value_name = "DRIVER")]
    pub driver: String,
    /// The version of the driver, for example 3.7.3
    #[arg(long, value_name = "VERSION")]
    pub version: String,
    /// A folder with chart sources (one subfolder per driver), used instead of the charts in vdoctl
    #[arg(long, value_name = "FOLDER")]
    pub charts: Option<PathBuf>,
}

/// A chart with its values.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ChartWith {
    /// The chart.
    #[command(flatten)]
    pub chart: ChartName,
    /// A YAML file with values; may be repeated, and the last file has priority; - means stdin
    #[arg(long, short = 'f', value_name = "FILE")]
    pub values: Vec<PathBuf>,
    /// A single value, for example controller.replicas=1; may be repeated; has priority over values in files
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,
    /// The Kubernetes version to render for; default: the newest Kubernetes version that the driver version supports
    #[arg(long, value_name = "VERSION")]
    pub kubernetes: Option<KubernetesVersion>,
}

/// Arguments of `chart render` and `chart images`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ChartRender {
    /// The chart and its values.
    #[command(flatten)]
    pub with: ChartWith,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `chart compare`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ChartCompare {
    /// The chart and its values.
    #[command(flatten)]
    pub with: ChartWith,
    /// All manifests that the driver's project publishes for this version; - means stdin
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `chart package`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ChartPackage {
    /// The chart.
    #[command(flatten)]
    pub chart: ChartName,
    /// The file to write; - means stdout
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: PathBuf,
}

/// Arguments of `chart sources`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ChartSources {
    /// A new or empty folder
    #[arg(value_name = "DIR")]
    pub to: PathBuf,
}

/// Arguments of `chart lint`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ChartLint {
    /// The source folder of a chart, or a chart package
    #[arg(value_name = "DIR|TGZ")]
    pub path: PathBuf,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `chart add-release`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ChartAddRelease {
    /// The driver: vsphere-cpi (or cpi) or vsphere-csi (or csi)
    #[arg(value_name = "DRIVER")]
    pub driver: String,
    /// The new version, for example 3.7.4
    #[arg(value_name = "VERSION")]
    pub version: DriverVersion,
    /// The manifests that the driver's project publishes for the new version; - means stdin
    #[arg(value_name = "MANIFEST", required = true)]
    pub files: Vec<PathBuf>,
    /// The folder with chart sources (one subfolder per driver)
    #[arg(long, value_name = "FOLDER", default_value = "charts")]
    pub charts: PathBuf,
    /// The release to start from; default: the nearest older release
    #[arg(long, value_name = "VERSION")]
    pub from: Option<DriverVersion>,
    /// The release date, for example 2026-07-31; without this flag, the release has no date
    #[arg(long, value_name = "DATE")]
    pub date: Option<Date>,
    /// The facts.yaml file with the version data of the matrix, to which vdoctl adds the release; default: ../matrix-index/facts.yaml,
    /// relative to the --charts folder, if this file exists
    #[arg(long, value_name = "FILE")]
    pub facts: Option<PathBuf>,
    /// For the first release of a driver minor version: the supported Kubernetes minor versions, for example 1.34..1.36; vdoctl adds this
    /// range to the facts file
    #[arg(long, value_name = "MIN..MAX", value_parser = range)]
    pub kubernetes: Option<VersionRange>,
    /// The source that documents the --kubernetes range, with its URL if the facts file does not list this source yet; may be repeated;
    /// without a source, the matrix lists the range as unverified
    #[arg(long, value_name = "NAME[=URL]", value_parser = source, requires = "kubernetes")]
    pub source: Vec<(String, Option<String>)>,
    /// Writes the remaining differences into deviations.yaml as intended, with this reason
    #[arg(long, value_name = "REASON")]
    pub intended: Option<String>,
    /// What is asked of registries.
    #[command(flatten)]
    pub resolving: Resolving,
    /// How these are reached.
    #[command(flatten)]
    pub registries: Registries,
    /// Shows the changes as a diff and writes nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `chart import`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ChartImport {
    /// All manifests that the project publishes for one version; - means stdin
    #[arg(value_name = "MANIFEST", required = true)]
    pub files: Vec<PathBuf>,
    /// The name of the driver: lower-case letters, digits and hyphens
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// The role of the driver: cloud-provider, storage, network or other
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub role: DriverRole,
    /// The version of the driver, for example 2.7.0
    #[arg(long, value_name = "VERSION")]
    pub version: DriverVersion,
    /// The folder with chart sources; vdoctl writes a subfolder for the driver
    #[arg(long, short = 'o', value_name = "FOLDER", default_value = "charts")]
    pub output: PathBuf,
    /// Replaces the reference of an image, for example agent=registry.example.com/agent:v2.7.0; may be repeated
    #[arg(long, value_name = "NAME=REFERENCE", value_parser = named)]
    pub image: Vec<(String, String)>,
    /// The release date, for example 2026-07-31
    #[arg(long, value_name = "DATE")]
    pub date: Option<Date>,
}

fn role(text: &str) -> Result<DriverRole, String> {
    let all = [
        DriverRole::CloudProvider,
        DriverRole::Storage,
        DriverRole::Network,
        DriverRole::Other,
    ];
    let found = all.into_iter().find(|role| role.to_string() == text);
    found.ok_or_else(|| format!("write one of {}", all.map(|role| role.to_string()).join(", ")))
}

fn source(text: &str) -> Result<(String, Option<String>), String> {
    let (name, url) = text.split_once('=').map_or((text, None), |(name, url)| (name, Some(url)));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    match url {
        _ if name.is_empty() || !name.bytes().all(is_name) => {
            Err("write NAME or NAME=URL; the name consists of letters, digits, -, . and _".to_owned())
        }
        Some(url) if !url.starts_with("https://") => Err(format!("{url:?} is not an address; write https://…")),
        url => Ok((name.to_owned(), url.map(str::to_owned))),
    }
}

fn named(text: &str) -> Result<(String, String), String> {
    let parts = text
        .split_once('=')
        .filter(|(name, reference)| !name.is_empty() && !reference.is_empty());
    let (name, reference) = parts.ok_or("write NAME=REFERENCE")?;
    Ok((name.to_owned(), reference.to_owned()))
}
