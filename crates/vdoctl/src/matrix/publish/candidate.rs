// SPDX-License-Identifier: Apache-2.0
//! Reads the charts to publish, and checks each for `matrix publish`: lint, rendering per Kubernetes minor, changes since the last version.

use super::super::super::args::Publish;
use super::super::super::error::sentence;
use super::super::super::views::publish::{CheckedView, ComparisonView};
use super::super::super::{CliError, Exit, chart as files, style};
use super::super::publish_target::Place;
use serde_json::{Map, Value};
use std::path::Path;
use vdo::reconcile;
use vdo_api::types::{Digest, DriverVersion, ObjectId, VersionRange, count};
use vdo_author::publish::{self, Comparison, Draft, Facts};
use vdo_core::chart::{self, Chart};
use vdo_core::manifest::Object;
use vdo_core::matrix::{self, Image, Index};

/// A package.
pub(super) struct Candidate {
    pub(super) bytes: Vec<u8>,
    pub(super) chart: Chart,
}

/// What is known of it.
#[derive(Default)]
pub(super) struct Checked {
    /// What keeps it from being published.
    pub(super) problems: Vec<String>,
    /// Its entry, when there is nothing of that.
    pub(super) entry: Option<Map<String, Value>>,
    /// The Kubernetes minors for which it was rendered.
    pub(super) minors: Vec<String>,
    images: Vec<Image>,
    /// Beside the version before it.
    pub(super) comparison: Option<(DriverVersion, Comparison)>,
    /// Rights that the version before does not need.
    rights: Vec<String>,
    /// What the API server of a cluster was asked about.
    pub(super) tried: Option<String>,
}

/// The packages that were named, and those of the chart sources that were named.
pub(super) fn read(args: &Publish, index: &Index) -> Result<Vec<Candidate>, CliError> {
    let mut all = Vec::new();
    for path in &args.charts {
        if path.is_dir() {
            of_source(path, args, index, &mut all)?;
        } else {
            all.push(Candidate::open(files::bytes("the chart", path)?)?);
        }
    }
    all.sort_by(|a, b| (&a.chart.metadata.name, &a.chart.metadata.version).cmp(&(&b.chart.metadata.name, &b.chart.metadata.version)));
    Ok(all)
}

/// The releases of a chart source that the index does not list, or the one that was named.
fn of_source(path: &Path, args: &Publish, index: &Index, all: &mut Vec<Candidate>) -> Result<(), CliError> {
    let source = files::read_folder(path, "Name the folder of one chart, or a package.")?;
    let mut versions = source.versions();
    if let Some(only) = &args.version {
        if !versions.contains(only) {
            versions = vec![only.clone()];
        } else {
            versions.retain(|version| version == only);
        }
    }
    for version in versions {
        let package = chart::package(&source, &version).map_err(|error| CliError::of(Exit::Refused, &error))?;
        let candidate = Candidate::open(package)?;
        let listed = index.drivers.get(&candidate.chart.metadata.name);
        let listed = listed.is_some_and(|driver| driver.entry(&version).is_some());
        if args.version.is_some() || !listed {
            all.push(candidate);
        }
    }
    Ok(())
}

impl Candidate {
    fn open(bytes: Vec<u8>) -> Result<Self, CliError> {
        let chart = chart::open(&bytes).map_err(|error| CliError::of(Exit::Refused, &error))?;
        Ok(Self { bytes, chart })
    }

    /// Where the package lies beside the index.
    pub(super) fn path(&self) -> String {
        format!("charts/{}-{}.tgz", self.chart.metadata.name, self.chart.metadata.version)
    }

    /// Looks at it from all sides. Reads the version before it from where that was published.
    pub(super) async fn check(&self, place: &Place, draft: &Draft, facts: &Facts) -> Result<Checked, CliError> {
        let (driver, version) = (&self.chart.metadata.name, &self.chart.metadata.version);
        let mut checked = Checked::default();
        let listed = draft.index().drivers.get(driver);
        let before = listed.and_then(|driver| driver.versions.iter().find(|entry| entry.version < *version));
        match publish::images(&self.chart) {
            Ok(Ok(images)) => checked.images = images,
            Ok(Err(problem)) => checked.problems.push(problem),
            // It is found again below, with the others.
            Err(_) => {}
        }
        let fields = before.and_then(|entry| Some((&entry.version, draft.fields(driver, &entry.version)?)));
        let digest = Digest::of(&self.bytes);
        let entry =
            publish::entry(&self.chart, &digest, &checked.images, facts, fields).map_err(|error| CliError::of(Exit::Usage, &error))?;
        let range = range(&entry)?;
        checked.minors = matrix::minors(&range, draft.index());
        checked.problems.extend(publish::problems(&self.chart, &checked.minors));
        if !checked.problems.is_empty() {
            return Ok(checked);
        }
        if let Some(before) = before {
            let old = chart::open(&place.chart(&before.chart).await?).map_err(|error| CliError::of(Exit::Refused, &error))?;
            let common = checked.minors.iter().rev();
            let common = common
                .clone()
                .find(|minor| contains(&before.kubernetes.range, minor))
                .or(checked.minors.last());
            let at = common.map_or("", String::as_str);
            let render = |chart: &Chart| publish::rendered(chart, at, &chart::everything(chart));
            // A version that does not render there has nothing to be compared with.
            if let (Ok(old), Ok(new)) = (render(&old), render(&self.chart)) {
                let compared = publish::compare(&old, &new).map_err(|error| CliError::new(Exit::Refused, sentence(&error), ""))?;
                checked.rights = more_rights(&old, &new)?;
                checked.comparison = Some((before.version.clone(), compared));
            }
        }
        checked.entry = Some(entry);
        Ok(checked)
    }
}

fn range(entry: &Map<String, Value>) -> Result<VersionRange, CliError> {
    let bound = |key: &str| entry.get("kubernetes")?.get(key)?.as_str();
    VersionRange::new(bound("min"), bound("max")).map_err(|error| CliError::new(Exit::Usage, sentence(&error), "Correct the facts."))
}

fn contains(range: &VersionRange, minor: &str) -> bool {
    let numbers: Vec<u64> = minor.split('.').filter_map(|part| part.parse().ok()).collect();
    range.contains(&numbers)
}

/// What an administrator has to grant for the new version, as sentences.
fn more_rights(old: &[Value], new: &[Value]) -> Result<Vec<String>, CliError> {
    let objects = |all: &[Value]| all.iter().cloned().map(Object::new).collect::<Result<Vec<_>, _>>();
    let (old, new) = (objects(old), objects(new));
    let objects = old
        .and_then(|old| Ok((old, new?)))
        .map_err(|error| CliError::of(Exit::Refused, &error))?;
    reconcile::more_rights(&objects.0, &objects.1).map_err(|error| CliError::of(Exit::Refused, &error))
}

impl Checked {
    pub(super) fn text(&self, candidate: &Candidate) -> String {
        let label = candidate.chart.label();
        let minors = match self.minors.as_slice() {
            [] => String::new(),
            [one] => format!(", rendered for Kubernetes {one}"),
            [first, .., last] => format!(", rendered for Kubernetes {first} to {last}"),
        };
        let mut text = format!("{} {label}: {}{minors}\n", style::good("✓"), count(self.images.len(), "image"));
        if let Some((before, compared)) = &self.comparison {
            let numbers = [
                (compared.changed.len(), "changed"),
                (compared.added.len(), "added"),
                (compared.removed.len(), "removed"),
                (compared.recreated.len(), "recreated"),
            ];
            let some: Vec<String> = numbers
                .iter()
                .filter(|(number, _)| *number > 0)
                .map(|(number, word)| format!("{} {word}", count(*number, "object")))
                .collect();
            let what = if some.is_empty() {
                "the same objects".to_owned()
            } else {
                some.join(", ")
            };
            text.push_str(&format!("  compared with {before}: {what}\n"));
            for (ids, word) in [(&compared.added, "+"), (&compared.removed, "-"), (&compared.recreated, "!")] {
                ids.iter().for_each(|id| text.push_str(&format!("    {word} {id}\n")));
            }
            for what in &compared.breaking {
                text.push_str(&format!("  {} {what}\n", style::warn("!")));
            }
        }
        for right in &self.rights {
            text.push_str(&format!("  needs more rights than the previous version: {right}\n"));
        }
        if let Some(tried) = &self.tried {
            text.push_str(&format!("  {tried}\n"));
        }
        text
    }

    pub(super) fn view(&self, candidate: &Candidate) -> CheckedView {
        let metadata = &candidate.chart.metadata;
        let ids = |ids: &[ObjectId]| ids.iter().map(ToString::to_string).collect();
        CheckedView {
            driver: metadata.name.clone(),
            version: metadata.version.clone(),
            digest: Digest::of(&candidate.bytes),
            kubernetes: self.minors.clone(),
            images: self.images.clone(),
            comparison: self.comparison.as_ref().map(|(before, compared)| ComparisonView {
                from: before.clone(),
                breaking: compared.breaking.clone(),
                recreated: ids(&compared.recreated),
                added: ids(&compared.added),
                removed: ids(&compared.removed),
                changed: ids(&compared.changed),
            }),
            rights: self.rights.clone(),
            tried: self.tried.clone(),
        }
    }
}
