// SPDX-License-Identifier: Apache-2.0
//! `vdoctl chart add-release`: makes the release file's entry for a new driver version from the driver's own manifests.
//!
//! ```text
//!   manifests + the nearest older release --learn--> release --write--> releases/3.7.yaml with one entry more
//! ```
//!
//! What cannot be learnt is a change of the templates; it is reported as a difference between the manifests and the render.

mod deviations;
mod distance;
mod facts;
mod learn;
mod write;

pub use deviations::with_deviations;
pub use facts::{Stated, with_line, with_publication, with_version};
pub(super) use write::{block, scalar, with_entry};

use super::compare::{self, Deviation, Difference};
use super::document::DocumentError;
use super::opened_chart::{Chart, Files};
use super::package::{PackageError, package};
use super::release::ImageSource;
use super::render::{RenderError, as_upstream, render};
use super::source::Source;
use super::{ArchiveError, Context, archive, release_files};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use vdo_api::types::{Digest, DriverVersion, ObjectId, Remedy};
use vdo_api::yaml;

/// The entry cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// The version is there.
    #[error("{file} already lists {version}")]
    Listed {
        /// The release file.
        file: String,
        /// The version.
        version: DriverVersion,
    },
    /// There is no release to start from.
    #[error("the chart has no release to start from")]
    Nothing,
    /// The release file is not written in a way that takes an entry.
    #[error("no entry can be added to {file}: {problem}")]
    Text {
        /// The release file.
        file: String,
        /// Why.
        problem: String,
    },
    /// A release of the chart cannot be packaged.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// A release of the chart cannot be opened.
    #[error(transparent)]
    Open(#[from] ArchiveError),
    /// A release of the chart cannot be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A document of the manifests is not an object.
    #[error("a document of the manifests is not a Kubernetes object: {0}")]
    Document(#[from] DocumentError),
}

impl Remedy for AddError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Listed { .. } => Some("Remove this entry from the file, and run the command again.".into()),
            Self::Nothing => Some("Write the first release file by hand.".into()),
            Self::Text { .. } => Some("Correct the mistake in the source of the chart.".into()),
            Self::Document(_) => Some("Give the manifests as the driver's project publishes them.".into()),
            Self::Package(error) => error.remedy(),
            Self::Open(error) => error.remedy(),
            Self::Render(error) => error.remedy(),
        }
    }
}

/// A manifest file of the driver.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Its name, without a folder.
    pub name: String,
    /// Its bytes, for their digest.
    pub bytes: Vec<u8>,
    /// The objects in it.
    pub objects: Vec<Value>,
}

/// What there is to be written, and what is left to be done by hand.
#[derive(Debug, Clone)]
pub struct Added {
    /// The version whose release it was made from.
    pub from: DriverVersion,
    /// The release file.
    pub file: String,
    /// Its text with the new entry.
    pub text: String,
    /// The release, whole.
    pub release: Value,
    /// What differs from the release it was made from: path, before, after.
    pub changes: Vec<(String, Value, Value)>,
    /// Differences between the manifests and the render that remain, with the deviation that intends each.
    pub differences: Vec<(Difference, Option<Deviation>)>,
    /// Listed deviations that are not there.
    pub stale: Vec<Deviation>,
}

/// Makes the entry of a version from the driver's manifests. The source stays as it is.
///
/// # Errors
/// When the version is listed, there is no release to start from, a release of the chart is broken, or the text of the file takes no entry.
pub fn add_release(
    source: &Source,
    version: &DriverVersion,
    date: Option<&str>,
    manifests: &[Manifest],
    from: Option<&DriverVersion>,
) -> Result<Added, AddError> {
    let file = release_files::path(version);
    let versions = source.versions();
    if versions.contains(version) {
        return Err(AddError::Listed {
            file,
            version: version.clone(),
        });
    }
    let older = || versions.iter().rfind(|known| *known < version).or(versions.first());
    let from = from.or_else(older).ok_or(AddError::Nothing)?;
    let chart = opened(source, from)?;
    let objects: Vec<Value> = manifests.iter().flat_map(|manifest| manifest.objects.clone()).collect();
    let values = values(&chart, &objects)?;
    let known = versions
        .iter()
        .filter_map(|version| source.release(version).ok())
        .collect::<Vec<Value>>();
    let mut release = chart.release_data.clone();
    release["version"] = version.to_string().into();
    match date {
        Some(date) => release["date"] = date.into(),
        None => drop(release.as_object_mut().and_then(|release| release.shift_remove("date"))),
    }
    release["upstream"] = upstream(&chart.release_data, &known, (from, version), manifests);
    let release = learn::learn(&chart, release, &values, &objects, &known);
    made(source, (from, version), &chart, (release, &values, &objects))
}

/// The same release with digests of its images, by their references.
///
/// # Errors
/// As for [`add_release`].
pub fn with_digests(
    source: &Source,
    version: &DriverVersion,
    added: &Added,
    manifests: &[Manifest],
    digests: &BTreeMap<String, Digest>,
) -> Result<Added, AddError> {
    let chart = opened(source, &added.from)?;
    let objects: Vec<Value> = manifests.iter().flat_map(|manifest| manifest.objects.clone()).collect();
    let mut release = added.release.clone();
    for image in release["images"].as_object_mut().into_iter().flat_map(|images| images.values_mut()) {
        let reference = serde_json::from_value::<ImageSource>(image.clone()).map(|image| image.reference());
        if let Some(digest) = reference.ok().and_then(|reference| digests.get(&reference)) {
            image["digest"] = digest.to_string().into();
        }
    }
    let values = values(&chart, &objects)?;
    made(source, (&added.from, version), &chart, (release, &values, &objects))
}

/// The release as text, with what differs from the one it was made from and from the manifests.
fn made(
    source: &Source,
    (from, version): (&DriverVersion, &DriverVersion),
    chart: &Chart,
    (release, values, objects): (Value, &Value, &[Value]),
) -> Result<Added, AddError> {
    let file = release_files::path(version);
    let text = write::with_entry(source, (from, version), &release)?;
    let mut changed = source.clone();
    changed.files.insert(file.clone(), text.clone().into_bytes());
    let new = opened(&changed, version)?;
    let differences = compare::compare(objects, &render(&new, values, &Context::default())?)?;
    let effective = super::accepted(&new, values)?;
    let listed = compare::applicable(&new.deviations, version, &effective);
    let stale = compare::judge(&differences, &listed).stale;
    let intention = |difference: &Difference| listed.iter().find(|deviation| deviation.intends(difference)).cloned();
    Ok(Added {
        changes: changes(&chart.release_data, &release),
        release,
        from: from.clone(),
        file,
        text,
        differences: differences.into_iter().map(|found| (found.clone(), intention(&found))).collect(),
        stale,
    })
}

fn opened(source: &Source, version: &DriverVersion) -> Result<Chart, AddError> {
    Ok(archive::open(&package(source, version)?)?)
}

/// The values with which the chart renders the most of what the manifests have.
fn values(chart: &Chart, objects: &[Value]) -> Result<Value, AddError> {
    let missing = |values: &Value| -> Result<usize, AddError> {
        let rendered = render(chart, values, &Context::default())?;
        Ok(compare::compare(objects, &rendered)?
            .iter()
            .filter(|found| found.path.is_empty())
            .count())
    };
    let all = as_upstream(chart);
    Ok(if missing(&all)? < missing(&Value::Null)? {
        all
    } else {
        Value::Null
    })
}

/// Where the release comes from, with the digests of the files and of each object in them.
fn upstream(base: &Value, known: &[Value], (from, version): (&DriverVersion, &DriverVersion), manifests: &[Manifest]) -> Value {
    let renamed = |text: &str| {
        let text = text.replace(&from.to_string(), &version.to_string());
        text.replace(&format!("v{}/", from.minor()), &format!("v{}/", version.minor()))
    };
    let named = |release: &Value, name: &str| {
        let files = release.pointer("/upstream/files").and_then(Value::as_object)?;
        let of: DriverVersion = release["version"].as_str()?.parse().ok()?;
        let path = files.keys().find(|path| path.rsplit('/').next() == Some(name))?;
        Some(path.replace(&format!("v{}/", of.minor()), &format!("v{}/", version.minor())))
    };
    let mut upstream = json!({});
    if let Some(repository) = base.pointer("/upstream/repository") {
        upstream["repository"] = repository.clone();
    }
    let tag = base.pointer("/upstream/tag").and_then(Value::as_str).map(renamed);
    upstream["tag"] = tag.unwrap_or_else(|| format!("v{version}")).into();
    for manifest in manifests {
        let path = known.iter().rev().find_map(|release| named(release, &manifest.name));
        let path = path.unwrap_or_else(|| manifest.name.clone());
        upstream["files"][&path] = Digest::of(&manifest.bytes).hex().into();
        for object in &manifest.objects {
            upstream["objects"][&path][name(object)] = digest(object).into();
        }
    }
    upstream
}

/// The digest of an object, whatever the order of its keys: SHA-256 of its JSON with sorted keys.
#[must_use]
pub fn digest(object: &Value) -> String {
    Digest::of(sorted(object).to_string().as_bytes()).hex()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, Value> = fields.iter().map(|(key, value)| (key, sorted(value))).collect();
            sorted.into_iter().map(|(key, value)| (key.clone(), value)).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// The name of an object as digests are listed by it.
#[must_use]
pub fn name(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let group = text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
    ObjectId::new(group, text("/kind"), text("/metadata/namespace"), text("/metadata/name")).to_string()
}

/// What differs between two releases, except where they come from.
fn changes(before: &Value, after: &Value) -> Vec<(String, Value, Value)> {
    fn walk(path: &str, before: &Value, after: &Value, found: &mut Vec<(String, Value, Value)>) {
        match (before, after) {
            (Value::Object(left), Value::Object(right)) => {
                let keys: Vec<&String> = left.keys().chain(right.keys().filter(|key| !left.contains_key(*key))).collect();
                for key in keys
                    .into_iter()
                    .filter(|key| !(path.is_empty() && ["version", "date", "upstream"].contains(&key.as_str())))
                {
                    let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    walk(
                        &below,
                        before.get(key).unwrap_or(&Value::Null),
                        after.get(key).unwrap_or(&Value::Null),
                        found,
                    );
                }
            }
            _ if before != after => found.push((path.to_owned(), before.clone(), after.clone())),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk("", before, after, &mut found);
    found
}

/// The text of a file of the source.
fn text<'a>(files: &'a Files, file: &str) -> Option<&'a str> {
    std::str::from_utf8(files.get(file)?).ok()
}

/// The line, from 0, where a path of a YAML text stands.
fn line(text: &str, path: &[&str]) -> Option<usize> {
    let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
    usize::try_from(*yaml::lines(text).get(&path)?).ok()?.checked_sub(1)
}
