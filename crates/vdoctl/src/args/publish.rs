// SPDX-License-Identifier: Apache-2.0
//! The flags of `vdoctl matrix init`, `publish`, `withdraw`, `deprecate` and `diff` with their help.

use super::{MatrixFile, Output, RegistryArgs, Resolving};
use clap::Args;
use std::path::PathBuf;
use vdo_api::types::{DriverVersion, VersionRange};
use vdo_source::fetch::MatrixSource;

/// Where a matrix is published, and how.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Publishing {
    /// The matrix: a folder, or oci://HOST/REPOSITORY:TAG
    #[arg(long, value_name = "DIR|oci://…", value_parser = target)]
    pub to: MatrixSource,
    /// A file with the private key that signs the matrix (PEM, PKCS #8); - means stdin; required if the matrix is already signed
    #[arg(long, env = "VDO_SIGNING_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// How long the new version of the matrix is valid, for example 180d; default: as long as the previous version
    #[arg(long, value_name = "DAYS", value_parser = days)]
    pub valid_for: Option<i64>,
    /// Shows the changes as a diff and writes nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `matrix init`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Init {
    /// A new or empty folder, or oci://HOST/REPOSITORY:TAG with a new tag
    #[arg(value_name = "DIR|oci://…", value_parser = target)]
    pub to: MatrixSource,
    /// Creates a matrix without drivers, instead of a copy
    #[arg(long, conflicts_with = "matrix")]
    pub empty: bool,
    /// A file with the private key that signs the matrix (PEM, PKCS #8); - means stdin
    #[arg(long, env = "VDO_SIGNING_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// The matrix to copy.
    #[command(flatten)]
    pub index: MatrixFile,
    /// The registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `matrix publish`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Publish {
    /// Chart packages, or folders with chart sources; from a folder, vdoctl publishes every release that the matrix does not list yet
    #[arg(value_name = "CHART", required_unless_present = "resolve_digests")]
    pub charts: Vec<PathBuf>,
    /// Publishes only this release of a chart source
    #[arg(long, value_name = "VERSION")]
    pub version: Option<DriverVersion>,
    /// A YAML file with the matrix entries of the versions, and with the sources and preconditions to which these entries refer
    #[arg(long, value_name = "FILE")]
    pub facts: Option<PathBuf>,
    /// The Kubernetes minor versions that the new versions support, for example 1.33..1.35; default: the range of the previous driver
    /// version, if this previous version belongs to the same minor version
    #[arg(long, value_name = "MIN..MAX", value_parser = range)]
    pub kubernetes: Option<VersionRange>,
    /// The vSphere versions that the new versions support, for example 7.0.. for 7.0 and newer; default: the range of the previous driver
    /// version
    #[arg(long, value_name = "MIN..MAX", value_parser = range)]
    pub vsphere: Option<VersionRange>,
    /// The oldest version from which an upgrade to the new versions is possible; default: the same version as for the previous driver
    /// version
    #[arg(long, value_name = "VERSION")]
    pub upgrades_from: Option<DriverVersion>,
    /// Publishes a version even if an upgrade to this version contains breaking changes; vdoctl lists these changes
    #[arg(long)]
    pub allow_breaking: bool,
    /// What is asked of registries. Without a chart: of every version that the matrix lists.
    #[command(flatten)]
    pub resolving: Resolving,
    /// Where and how.
    #[command(flatten)]
    pub publishing: Publishing,
}

/// Arguments of `matrix withdraw` and `matrix deprecate`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Mark {
    /// The driver: vsphere-cpi (or cpi) or vsphere-csi (or csi)
    #[arg(value_name = "DRIVER")]
    pub driver: String,
    /// The version of the driver, for example 3.7.4
    #[arg(value_name = "VERSION")]
    pub version: DriverVersion,
    /// The reason, as one sentence for administrators
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// The version to use instead
    #[arg(long = "use", value_name = "VERSION")]
    pub instead: Option<DriverVersion>,
    /// Where and how.
    #[command(flatten)]
    pub publishing: Publishing,
}

/// Arguments of `matrix diff`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct MatrixDiff {
    /// The old matrix: embedded (the built-in matrix), an index file, a folder with index.yaml, or an https:// address
    #[arg(value_name = "OLD")]
    pub old: MatrixSource,
    /// The new matrix, in the same notation as the old matrix
    #[arg(value_name = "NEW")]
    pub new: MatrixSource,
    /// Compares the choices only for these Kubernetes versions, for example 1.34; default: every minor version in either matrix
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    pub kubernetes: Vec<vdo_api::types::KubernetesVersion>,
    /// Compares the choices only for these vCenter versions, for example 8.0.3; default: the first and the last
    /// version of every supported range in either matrix
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    pub vcenter: Vec<vdo_api::types::VcenterVersion>,
    /// A file with public keys (PEM), or a folder of such files; only a matrix that one of these keys has signed is accepted
    #[arg(long, env = "VDO_MATRIX_KEYS", value_name = "PATH")]
    pub matrix_keys: Option<PathBuf>,
    /// A folder with the credentials for the addresses of the matrices: one or more of the files username and password, bearerToken,
    /// tls.crt and tls.key, ca.crt, or .dockerconfigjson
    #[arg(long, env = "VDO_MATRIX_CREDENTIALS", value_name = "FOLDER")]
    pub matrix_credentials: Option<PathBuf>,
    /// The format.
    #[command(flatten)]
    pub output: Output,
}

fn days(text: &str) -> Result<i64, String> {
    let days = text.strip_suffix('d').and_then(|number| number.parse::<i64>().ok());
    days.filter(|days| (1..=3650).contains(days))
        .ok_or_else(|| format!("{text:?} is not a number of days; write for example 180d, at most 3650d"))
}

/// `1.33..1.35`, `7.0..` or `..8.0`.
pub(super) fn range(text: &str) -> Result<VersionRange, String> {
    let wrong = || format!("{text:?} is not a range; write for example 1.33..1.35, or 7.0.. for 7.0 and newer");
    let (min, max) = text.split_once("..").ok_or_else(wrong)?;
    let some = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
    let (min, max) = (some(min), some(max));
    let range = VersionRange::new(min.as_deref(), max.as_deref()).map_err(|error| error.to_string())?;
    (!range.is_empty()).then_some(range).ok_or_else(wrong)
}

/// A place that can be written.
fn target(text: &str) -> Result<MatrixSource, String> {
    match text.parse()? {
        source @ MatrixSource::Local(_) => Ok(source),
        MatrixSource::Registry(source) if source.reference().digest.is_some() => Err(format!(
            "{text} names a digest, and the content of a digest cannot change; name a tag"
        )),
        source @ MatrixSource::Registry(_) => Ok(source),
        MatrixSource::ConfigMaps(place) => Err(format!(
            "a matrix is published to a folder and loaded from there into ConfigMaps: vdoctl matrix publish CHART --to FOLDER, then vdoctl \
             matrix load FOLDER {place}"
        )),
        _ => Err(format!(
            "a matrix cannot be published to {text}; name a folder, or oci://HOST/REPOSITORY:TAG"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publish_place_that_cannot_be_written_is_refused_with_the_way() {
        for (text, said) in [
            (
                "configmap://vdo/matrix",
                "vdoctl matrix publish CHART --to FOLDER, then vdoctl matrix load FOLDER configmap://vdo/matrix",
            ),
            ("https://a.test/index.yaml", "cannot be published to https://a.test/index.yaml"),
            ("embedded", "cannot be published to embedded"),
        ] {
            let error = target(text).expect_err(text);
            assert!(error.contains(said), "{error}");
        }
        assert!(target("folder").is_ok() && target("oci://a.test/b:stable").is_ok());
    }

    #[test]
    fn publish_flags_with_ranges_and_days_are_read() {
        for (text, expected) in [
            ("1.33..1.35", Some("1.33 to 1.35")),
            ("7.0..", Some("7.0 and newer")),
            ("..8.0", Some("up to 8.0")),
            ("1.35..1.33", None),
            ("1.33", None),
            ("a..b", None),
        ] {
            assert_eq!(range(text).ok().map(|range| range.to_string()).as_deref(), expected, "{text}");
        }
        for (text, expected) in [("180d", Some(180)), ("0d", None), ("180", None), ("9999d", None)] {
            assert_eq!(days(text).ok(), expected, "{text}");
        }
    }
}
