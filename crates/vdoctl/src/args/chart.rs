// SPDX-License-Identifier: Apache-2.0
//! `vdoctl chart` as it is typed.

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
    /// The configuration of the driver with its credentials is not part of a chart: `vdoctl render` shows it.
    Render(ChartRender),
    /// Lists the container images that a chart uses
    Images(ChartRender),
    /// Compares what a chart renders with the driver's own manifests, field by field
    ///
    /// Ends with 0 when nothing differs but what the chart lists as intended, with 1 when something else does or when a listed
    /// deviation is not there, with more than 1 on an error. The order of objects and fields does not matter, that of lists does.
    Compare(ChartCompare),
    /// Writes the package of a chart, the same bytes every time
    Package(ChartPackage),
    /// Writes the sources of all charts, and what is known of their versions, into a new folder
    ///
    /// It is what charts and the matrix in vdoctl are made from: `vdoctl chart add-release` takes a new version of a driver up there, and
    /// `vdoctl matrix publish` publishes from there. No clone of the project is needed.
    Sources(ChartSources),
    /// Looks for mistakes in a chart: its folder with all releases, or a package
    Lint(ChartLint),
    /// Adds a new version of a driver to the sources of its chart, from the driver's own manifests
    ///
    /// What differs from the nearest older release is learnt from the manifests and written into the release file of the minor. Shows what
    /// is left to be done by hand. Ends with 0 when the new release renders the manifests, with 1 when differences remain.
    AddRelease(Box<ChartAddRelease>),
    /// Makes a chart of a project's own plain manifests
    ///
    /// Images, the namespace and pull secrets become values; everything else stays as it is. Notes what no value reaches. A further version
    /// becomes a release of a chart with the same templates, or a chart of its own beside it. Ends with 1 when chart lint finds a mistake.
    Import(ChartImport),
    /// Publishes the package of a chart in a registry, as helm push does
    ///
    /// The name of the chart is appended to the repository, and its version becomes the tag. The login is that of helm registry login or
    /// docker login, unless --username is given.
    Push(ChartPush),
    /// Fetches the package of a chart from a registry, as helm pull does
    Pull(ChartPull),
}

/// Arguments of `chart push`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ChartPush {
    /// The package
    #[arg(value_name = "PACKAGE")]
    pub package: PathBuf,
    /// The repository above that of the chart, for example oci://registry.example.com/charts
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
    /// The folder in which NAME-VERSION.tgz is written
    #[arg(long, short = 'd', value_name = "FOLDER", default_value = ".")]
    pub destination: PathBuf,
    /// The registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ChartName {
    /// The driver: vsphere-cpi or cpi, vsphere-csi or csi
    #[arg(value_name = "DRIVER")]
    pub driver: String,
    /// The version of the driver, for example 3.7.3
    #[arg(long, value_name = "VERSION")]
    pub version: String,
    /// A folder with chart sources, one folder for each driver, to use instead of the charts in vdoctl
    #[arg(long, value_name = "FOLDER")]
    pub charts: Option<PathBuf>,
}

/// A chart with its values.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ChartWith {
    /// The chart.
    #[command(flatten)]
    pub chart: ChartName,
    /// A YAML file with values; may be repeated, the last one wins; - is stdin
    #[arg(long, short = 'f', value_name = "FILE")]
    pub values: Vec<PathBuf>,
    /// A single value, for example controller.replicas=1; may be repeated; wins over files
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,
    /// The Kubernetes version to render for; default: the newest that the driver version supports
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
    /// The driver's own manifests, all that belong to the version; - is stdin
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
    /// The file to write; - is stdout
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: PathBuf,
}

/// Arguments of `chart sources`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ChartSources {
    /// The folder, which does not exist yet or is empty
    #[arg(value_name = "DIR")]
    pub to: PathBuf,
}

/// Arguments of `chart lint`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ChartLint {
    /// The folder of a chart, or a package
    #[arg(value_name = "DIR|TGZ")]
    pub path: PathBuf,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `chart add-release`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ChartAddRelease {
    /// The driver: vsphere-cpi or cpi, vsphere-csi or csi
    #[arg(value_name = "DRIVER")]
    pub driver: String,
    /// The new version, for example 3.7.4
    #[arg(value_name = "VERSION")]
    pub version: DriverVersion,
    /// The driver's own manifests of that version; - is stdin
    #[arg(value_name = "MANIFEST", required = true)]
    pub files: Vec<PathBuf>,
    /// The folder with chart sources, one folder for each driver
    #[arg(long, value_name = "FOLDER", default_value = "charts")]
    pub charts: PathBuf,
    /// The version to start from; default: the nearest older one
    #[arg(long, value_name = "VERSION")]
    pub from: Option<DriverVersion>,
    /// The day of the release, for example 2026-07-31; without it the release has none
    #[arg(long, value_name = "DATE")]
    pub date: Option<Date>,
    /// The facts of the matrix, to take up the release; default: ../matrix-index/facts.yaml beside the charts, if it is there
    #[arg(long, value_name = "FILE")]
    pub facts: Option<PathBuf>,
    /// The Kubernetes minors that the first version of a minor supports, for example 1.34..1.36: the facts get a line for it
    #[arg(long, value_name = "MIN..MAX", value_parser = range)]
    pub kubernetes: Option<VersionRange>,
    /// Where that is written: a source of the facts, with its address when it is new; may be repeated; without one it is unverified
    #[arg(long, value_name = "NAME[=URL]", value_parser = source, requires = "kubernetes")]
    pub source: Vec<(String, Option<String>)>,
    /// Lists the differences that remain as intended, for this reason, in deviations.yaml
    #[arg(long, value_name = "REASON")]
    pub intended: Option<String>,
    /// What is asked of registries.
    #[command(flatten)]
    pub resolving: Resolving,
    /// How these are reached.
    #[command(flatten)]
    pub registries: Registries,
    /// Shows what would be written as a diff and writes nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `chart import`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ChartImport {
    /// The project's own manifests of one version, all of them; - is stdin
    #[arg(value_name = "MANIFEST", required = true)]
    pub files: Vec<PathBuf>,
    /// The name of the driver: small letters, digits and hyphens
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// What the driver does: cloud-provider, storage, network or other
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub role: DriverRole,
    /// The version of the driver, for example 2.7.0
    #[arg(long, value_name = "VERSION")]
    pub version: DriverVersion,
    /// The folder with chart sources, in which a folder for the driver is written
    #[arg(long, short = 'o', value_name = "FOLDER", default_value = "charts")]
    pub output: PathBuf,
    /// Another reference for an image, for example agent=registry.example.com/agent:v2.7.0; may be repeated
    #[arg(long, value_name = "NAME=REFERENCE", value_parser = named)]
    pub image: Vec<(String, String)>,
    /// The day of the release, for example 2026-07-31
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
            Err("write NAME or NAME=URL, the name of letters, digits, -, . and _".to_owned())
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
