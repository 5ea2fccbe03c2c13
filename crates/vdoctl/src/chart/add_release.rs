// SPDX-License-Identifier: Apache-2.0
//! `vdoctl chart add-release`: writes a new driver version into the chart's release file, `facts.yaml` and `deviations.yaml`.

use super::super::args::ChartAddRelease;
use super::super::context::now;
use super::super::digests::{Digests, Resolved};
use super::super::{Answer, CliError, Exit, atomic_files, matrix, text_diff};
use super::compare::{self, DeviationReport};
use super::{file, folder, manifests};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use vdo_api::types::count;
use vdo_core::chart::add_release::{self, Added, Manifest, Stated};
use vdo_core::chart::{ImageSource, Source};
use vdo_core::matrix::Index;

/// A file that is to be written.
struct Change {
    path: PathBuf,
    before: String,
    after: String,
}

/// What the facts of the matrix say of the new version.
enum Facts {
    /// There are none here.
    None,
    /// It is in a line that was there.
    Joined(PathBuf),
    /// It has a line of its own.
    Stated(PathBuf),
    /// A person has to write it.
    Missing(PathBuf),
}

pub(in super::super) async fn run(args: &ChartAddRelease) -> Result<Answer, CliError> {
    let index = matrix::embedded_index()?;
    let driver = matrix::driver(&index, &args.driver).map_or(args.driver.as_str(), |(driver, _)| driver);
    let root = args.charts.join(driver);
    let source = folder::read(&root, "With --charts, name the folder that has a subfolder for each driver.")?;
    let manifests = manifests::read(&args.files)?;
    let date = args.date.map(|date| date.to_string());
    let refused = |error| CliError::of(Exit::Refused, &error);
    let added = add_release::add_release(&source, &args.version, date.as_deref(), &manifests, args.from.as_ref()).map_err(refused)?;
    let (mut added, missing) = resolved(args, &source, added, &manifests).await?;

    let mut changes = vec![Change {
        path: root.join(&added.file),
        before: text_of(&source, &added.file),
        after: added.text.clone(),
    }];
    changes.extend(intended(args, &root, &source, &mut added)?);
    // first: a version without a release is nothing that the index takes up
    let (facts, change) = facts(args, driver, &added)?;
    changes.splice(0..0, change);
    let found = DeviationReport {
        differences: added.differences.clone(),
        stale: added.stale.clone(),
    };
    let path = root.join(&added.file);
    let mut text = format!("{driver} {} from {}: {}\n", args.version, added.from, path.display());
    for (switch, before, after) in &added.changes {
        let _ = writeln!(text, "  {switch}: {before} -> {after}");
    }
    text += &compare::text(&found);
    text += &left_to_do(args, &added, &found, &facts, &missing);
    if args.dry_run {
        let diff = |change: &Change| text_diff::unified(&change.path.display().to_string(), &change.before, &change.after);
        text = changes.iter().map(diff).collect::<String>() + &text;
    } else {
        for change in &changes {
            atomic_files::write(&change.path, change.after.as_bytes()).map_err(|error| {
                let what = format!("{} cannot be written: {error}", change.path.display());
                CliError::new(
                    Exit::Refused,
                    what,
                    "Check that you may write this file, and run the command again.",
                )
            })?;
        }
    }
    let talk = changes.iter().map(|change| {
        let verb = if args.dry_run { "would write" } else { "wrote" };
        format!("{verb} {}", change.path.display())
    });
    let complete = found.is_intended() && missing.is_empty();
    let exit = if complete { Exit::Ok } else { Exit::Differences };
    Ok(talk.fold(Answer::text(text), Answer::note).exit(exit))
}

fn text_of(source: &Source, file: &str) -> String {
    let bytes = source.files.get(file);
    bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
}

/// The release with the digests that the registries have of its images, and what keeps images from having one.
async fn resolved(args: &ChartAddRelease, source: &Source, added: Added, manifests: &[Manifest]) -> Result<(Added, Vec<String>), CliError> {
    if !args.resolving.resolve_digests {
        return Ok((added, Vec::new()));
    }
    let images = added.release["images"].as_object().into_iter().flat_map(|images| images.values());
    let images = images.filter_map(|image| serde_json::from_value::<ImageSource>(image.clone()).ok());
    let references = images.filter(|image| !image.tag.is_empty()).map(|image| image.reference());
    let asked = Digests::new(&args.resolving, &args.registries);
    let Resolved { found, missing } = asked.of(references).await;
    let added = add_release::with_digests(source, &args.version, &added, manifests, &found);
    let added = added.map_err(|error| CliError::of(Exit::Refused, &error))?;
    Ok((added, missing.into_values().collect()))
}

/// The deviations with the differences that are intended from now on.
fn intended(args: &ChartAddRelease, root: &Path, source: &Source, added: &mut Added) -> Result<Option<Change>, CliError> {
    const FILE: &str = "deviations.yaml";
    let unexpected = || added.differences.iter().filter(|(_, deviation)| deviation.is_none());
    let Some(reason) = args.intended.as_ref().filter(|_| unexpected().next().is_some()) else {
        return Ok(None);
    };
    let before = text_of(source, FILE);
    let after = add_release::with_deviations(&before, unexpected().map(|(difference, _)| difference), &args.version, reason);
    let path = root.join(FILE);
    let (after, listed) = after.ok_or_else(|| {
        let what = format!("no entry can be added to {}", path.display());
        CliError::new(
            Exit::Refused,
            what,
            "Write the deviations as a YAML list, with each field on its own line.",
        )
    })?;
    for (difference, deviation) in &mut added.differences {
        if deviation.is_none() {
            *deviation = listed.iter().find(|listed| listed.intends(difference)).cloned();
        }
    }
    Ok(Some(Change { path, before, after }))
}

/// The facts with the new version, and as those of the next publication.
fn facts(args: &ChartAddRelease, driver: &str, added: &Added) -> Result<(Facts, Option<Change>), CliError> {
    let beside = args.charts.with_file_name("matrix-index");
    let path = args.facts.clone().unwrap_or_else(|| beside.join("facts.yaml"));
    if args.facts.is_none() && !path.is_file() {
        return Ok((Facts::None, None));
    }
    let before = file::text("the facts", &path)?;
    let joined = add_release::with_version(&before, driver, &added.from, &args.version);
    let stated = args.kubernetes.as_ref().and_then(|kubernetes| {
        let sources = &args.source;
        let stated = Stated { kubernetes, sources };
        add_release::with_line(&before, driver, &added.from, &args.version, &stated)
    });
    let (facts, after) = match (joined, stated) {
        (_, Some(after)) => (Facts::Stated(path.clone()), after),
        (Some(after), None) => (Facts::Joined(path.clone()), after),
        (None, None) => return Ok((Facts::Missing(path), None)),
    };
    let published = std::fs::read(path.with_file_name("index.yaml")).ok();
    let published = published.and_then(|bytes| Some(Index::parse(&bytes).ok()?.version));
    let today = now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let next = published.and_then(|published| add_release::with_publication(&after, published, today));
    let after = next.unwrap_or(after);
    Ok((facts, Some(Change { path, before, after })))
}

/// What nothing but a person can do.
fn left_to_do(args: &ChartAddRelease, added: &Added, found: &DeviationReport, facts: &Facts, missing: &[String]) -> String {
    let mut steps = Vec::new();
    if !found.is_intended() {
        let left = count(found.unexpected() + found.stale.len(), "difference");
        steps.push(format!(
            "{left} above: change a template or {}, or list each difference as intended: --intended \"why it differs\"",
            added.file
        ));
    }
    if args.date.is_none() {
        steps.push(format!(
            "{} has no date: name the day of the release with --date, if it is known",
            args.version
        ));
    }
    steps.extend(missing.iter().map(|problem| format!("no digest: {problem}")));
    let lost = added
        .changes
        .iter()
        .filter(|(path, _, after)| path.ends_with(".digest") && after.is_null());
    let lost: Vec<&str> = lost
        .filter_map(|(path, ..)| path.strip_prefix("images.")?.strip_suffix(".digest"))
        .collect();
    if !lost.is_empty() && missing.is_empty() {
        steps.push(format!(
            "the manifests have no image digests: --resolve-digests asks the registry for the digests of {}",
            lost.join(", ")
        ));
    }
    let (from, version) = (&added.from, &args.version);
    match facts {
        Facts::Joined(path) => steps.push(format!(
            "{}: check that the facts in this file about version {from} (supported Kubernetes and vSphere versions, evidence) are also true \
             for version {version}",
            path.display()
        )),
        Facts::Stated(path) => steps.push(format!(
            "{}: check the facts that {version} takes from {from}; no source states these facts for {version}",
            path.display()
        )),
        Facts::Missing(path) => steps.push(format!(
            "{}: state the Kubernetes versions that {version} supports, and the evidence: --kubernetes MIN..MAX --source NAME=URL",
            path.display()
        )),
        Facts::None => steps.push("write an entry into the index, see docs/matrix.md".to_owned()),
    }
    let steps = steps.into_iter().map(|step| format!("- {step}\n"));
    steps.fold("Left to do:\n".to_owned(), |text, step| text + &step)
}
