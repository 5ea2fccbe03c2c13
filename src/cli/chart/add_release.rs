//! `vdoctl chart add-release`: a new version of a driver as an entry of its release file.

use super::super::args::ChartAddRelease;
use super::super::context::now;
use super::super::{Answer, CliError, Exit, matrix, save, text_diff};
use super::compare::{self, Found};
use super::{file, folder, manifests};
use crate::chart::add_release::{self, Added};
use crate::types::count;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A file that is to be written.
struct Change {
    path: PathBuf,
    before: String,
    after: String,
}

pub(in super::super) async fn run(args: &ChartAddRelease) -> Result<Answer, CliError> {
    let index = matrix::embedded_index()?;
    let driver = matrix::driver(&index, &args.driver).map_or(args.driver.as_str(), |(driver, _)| driver);
    let root = args.charts.join(driver);
    let source = folder::read(&root, "Name with --charts the folder that holds a folder for each driver.")?;
    let manifests = manifests::read(&args.files)?;
    let date = args.date.unwrap_or_else(|| now().to_zoned(jiff::tz::TimeZone::UTC).date());
    let added = add_release::add_release(&source, &args.version, &date.to_string(), &manifests, args.from.as_ref())
        .map_err(|error| CliError::of(Exit::Refused, &error))?;

    let path = root.join(&added.file);
    let before = source
        .files
        .get(&added.file)
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let mut changes = vec![Change {
        path: path.clone(),
        before: before.unwrap_or_default(),
        after: added.text.clone(),
    }];
    let beside = args.charts.with_file_name("matrix-index");
    let facts = args.facts.clone().unwrap_or_else(|| beside.join("facts.yaml"));
    let has_facts = args.facts.is_some() || facts.is_file();
    let known = if has_facts {
        file::text("the facts", &facts)?
    } else {
        String::new()
    };
    let joined = add_release::with_version(&known, driver, &added.from, &args.version);
    if let Some(after) = &joined {
        // first: a version without a release is nothing that the index takes up
        let change = Change {
            path: facts.clone(),
            before: known,
            after: after.clone(),
        };
        changes.insert(0, change);
    }
    let found = Found {
        differences: added.differences.clone(),
        stale: added.stale.clone(),
    };
    let mut text = format!("{driver} {} from {}: {}\n", args.version, added.from, path.display());
    for (switch, before, after) in &added.changes {
        let _ = writeln!(text, "  {switch}: {before} -> {after}");
    }
    text += &compare::text(&found);
    text += &left_to_do(args, &added, &found, has_facts.then_some((facts.as_path(), joined.is_some())));
    if args.dry_run {
        let diff = |change: &Change| text_diff::unified(&change.path.display().to_string(), &change.before, &change.after);
        text = changes.iter().map(diff).collect::<String>() + &text;
    } else {
        for change in &changes {
            save::write(&change.path, change.after.as_bytes()).map_err(|error| {
                let what = format!("{} cannot be written: {error}", change.path.display());
                CliError::new(Exit::Refused, what, "Check that you may write it, and run the command again.")
            })?;
        }
    }
    let talk = changes.iter().map(|change| {
        let verb = if args.dry_run { "would write" } else { "wrote" };
        format!("{verb} {}", change.path.display())
    });
    let exit = if found.is_intended() { Exit::Ok } else { Exit::Differences };
    Ok(talk.fold(Answer::text(text), Answer::note).exit(exit))
}

/// What nothing but a person can do.
fn left_to_do(args: &ChartAddRelease, added: &Added, found: &Found, facts: Option<(&Path, bool)>) -> String {
    let mut steps = Vec::new();
    if !found.is_intended() {
        let left = count(found.unexpected() + found.stale.len(), "difference");
        steps.push(format!(
            "{left} above: change a template or {}, or list it in deviations.yaml with its reason",
            added.file
        ));
    }
    if args.date.is_none() {
        steps.push(format!(
            "the date of {} is today's: write the day of the release, or name it with --date",
            args.version
        ));
    }
    let lost = added
        .changes
        .iter()
        .filter(|(path, _, after)| path.ends_with(".digest") && after.is_null());
    let lost: Vec<&str> = lost
        .filter_map(|(path, ..)| path.strip_prefix("images.")?.strip_suffix(".digest"))
        .collect();
    if !lost.is_empty() {
        steps.push(format!(
            "a manifest does not know the digests of images: look for those of {} in the registry's list",
            lost.join(", ")
        ));
    }
    match facts {
        Some((path, true)) => steps.push(format!(
            "{}: check that the line of {} holds for {} too",
            path.display(),
            added.from,
            args.version
        )),
        Some((path, false)) => steps.push(format!(
            "{}: say what {} works with, and the evidence",
            path.display(),
            args.version
        )),
        None => steps.push("an entry in the index, see docs/matrix.md".to_owned()),
    }
    let steps = steps.into_iter().map(|step| format!("- {step}\n"));
    steps.fold("Left to do:\n".to_owned(), |text, step| text + &step)
}
