// SPDX-License-Identifier: Apache-2.0
//! `vdoctl chart package`: packages one release of a chart source as a `.tgz` whose bytes depend on the source alone.
//! `archive.rs` opens packages.

use super::opened_chart::Files;
use super::release_files::{self, invalid};
use super::source::Source;
use serde_json::Value;
use std::borrow::Cow;
use vdo_api::types::{DriverVersion, Remedy};
use vdo_api::yaml::YamlError;

/// The source cannot be packaged.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// There is no release file of that version.
    #[error("the chart has no release {version}; it has {known}")]
    NoRelease {
        /// The version asked for.
        version: DriverVersion,
        /// Those there are.
        known: String,
    },
    /// `Chart.yaml`, the release file or its schema cannot be read.
    #[error("{file} of the chart source cannot be read")]
    Yaml {
        /// The path in the source.
        file: String,
        /// Where and why.
        #[source]
        source: YamlError,
    },
    /// A file lacks something or says it wrongly.
    #[error("{file} of the chart source {problem}")]
    Invalid {
        /// The path in the source.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// The release says what `release.schema.json` does not allow.
    #[error("the release {version} is not accepted: {}", .problems.join("; "))]
    Refused {
        /// The version.
        version: DriverVersion,
        /// Each with its file and line.
        problems: Vec<String>,
    },
}

impl Remedy for PackageError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::NoRelease { .. } => Some("Name one of these releases, or add the release with vdoctl chart add-release.".into()),
            Self::Yaml { .. } | Self::Invalid { .. } | Self::Refused { .. } => {
                Some("Correct the mistake in the source of the chart.".into())
            }
        }
    }
}

/// Packages one release of a chart: a self-contained `.tgz` in Helm's layout whose bytes depend on nothing but the source.
///
/// The release becomes `release.yaml`, whole and as JSON, because the digest of a package must not depend on how some version of a
/// writer quotes; its version and date go into `Chart.yaml`, and everything else is taken as it is.
///
/// # Errors
/// When there is no such release, it is not accepted, or `Chart.yaml` cannot be read.
pub fn package(source: &Source, version: &DriverVersion) -> Result<Vec<u8>, PackageError> {
    let release_path = release_files::path(version);
    let release = source.release(version)?;
    let metadata_bytes = source.files.get("Chart.yaml").map_or(&[][..], Vec::as_slice);
    let metadata = release_files::map(&source.files, "Chart.yaml")?;
    let name = metadata.get("name").and_then(Value::as_str).filter(|name| is_plain(name));
    let name = name.ok_or_else(|| invalid("Chart.yaml", "has no usable name"))?.to_owned();
    let date = release.get("date").and_then(Value::as_str);
    let mtime = date.map_or(Ok(0), seconds).map_err(|problem| invalid(&release_path, problem))?;
    let metadata = filled(&String::from_utf8_lossy(metadata_bytes), version, date)
        .ok_or_else(|| invalid("Chart.yaml", "lacks a line that starts with version:, appVersion: or annotations:"))?;

    let mut files: Files = source
        .files
        .iter()
        .filter(|(path, _)| belongs(path))
        .map(|(p, c)| (p.clone(), c.clone()))
        .collect();
    files.insert("Chart.yaml".to_owned(), metadata.into_bytes());
    files.insert("release.yaml".to_owned(), format!("{release:#}\n").into_bytes());
    let archive = tar(&name, &files, mtime).map_err(|error| invalid("a file", format!("cannot be put into an archive: {error}")))?;
    Ok(gzip(&archive))
}

/// `Chart.yaml` with version and date filled in. Line by line and not through a YAML writer: comments stay, and the digest does not
/// depend on how some version of a writer quotes.
fn filled(source: &str, version: &DriverVersion, date: Option<&str>) -> Option<String> {
    let mut missing = vec!["version:", "appVersion:", "annotations:"];
    let mut out = String::new();
    for line in source.lines() {
        let key = missing.iter().position(|key| line.starts_with(key)).map(|at| missing.remove(at));
        match (key, date) {
            (Some("version:"), _) => out.push_str(&format!("version: {version}")),
            (Some("appVersion:"), _) => out.push_str(&format!("appVersion: v{version}")),
            (Some("annotations:"), Some(date)) => out.push_str(&format!("{line}\n  vdo.vmware.com/released: \"{date}\"")),
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    missing.is_empty().then_some(out)
}

fn belongs(path: &str) -> bool {
    path.starts_with("templates/")
        || matches!(
            path,
            "values.yaml" | "values.schema.json" | "release.schema.json" | "deviations.yaml"
        )
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Midnight UTC of a day written as `2026-07-31`.
fn seconds(date: &str) -> Result<u64, &'static str> {
    let day: jiff::civil::Date = date
        .parse()
        .map_err(|_| "has a date that is not a day; write for example 2026-07-31")?;
    let midnight = day.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| "has a date out of range")?;
    u64::try_from(midnight.timestamp().as_second()).map_err(|_| "has a date before 1970")
}

fn tar(top: &str, files: &Files, mtime: u64) -> std::io::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    let first = ["Chart.yaml"]; // Helm and registries look for it first
    let rest = files.keys().map(String::as_str).filter(|path| !first.contains(path));
    for path in first.into_iter().chain(rest) {
        let content = files.get(path).map_or(&[][..], Vec::as_slice);
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(mtime);
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, format!("{top}/{path}"), content)?;
    }
    builder.into_inner()
}

/// Gzip with stored blocks. A compressor may choose other bytes in its next version, and the digest of a package must not depend on
/// which compressor built it; a chart is 60 KiB either way.
fn gzip(data: &[u8]) -> Vec<u8> {
    const BLOCK: usize = u16::MAX as usize;
    // magic, deflate, no flags, no time, no extra flags, unknown system
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let blocks = data.len().div_ceil(BLOCK).max(1);
    for index in 0..blocks {
        let block = &data[index * BLOCK..data.len().min((index + 1) * BLOCK)];
        #[expect(clippy::cast_possible_truncation, reason = "a block is at most u16::MAX long")]
        let length = block.len() as u16;
        out.push(u8::from(index + 1 == blocks));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    let mut checksum = flate2::Crc::new();
    checksum.update(data);
    out.extend(checksum.sum().to_le_bytes());
    out.extend(checksum.amount().to_le_bytes());
    out
}
