// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix show`: prints all data of the matrix about one driver version; suggests near versions for an unknown version.

use super::super::args::{Global, Show as Args};
use super::super::views::matrix::{EntryView, MatrixEntryView};
use super::super::{Answer, CliError, Exit, style};
use super::{Loaded, bounds, confidence, driver, state};
use vdo_api::types::{DriverVersion, verb};
use vdo_core::matrix::{Driver, Entry, Index, Support};

/// An entry by what was typed; a wrong version is answered with its neighbours.
pub(crate) fn entry<'a>(index: &'a Index, name: &str, version: &str) -> Result<(&'a str, &'a Driver, &'a Entry), CliError> {
    let (name, driver) = driver(index, name)?;
    let parsed = version.parse::<DriverVersion>();
    if let Some(entry) = parsed.as_ref().ok().and_then(|version| driver.entry(version)) {
        return Ok((name, driver, entry));
    }
    let near: Vec<String> = match &parsed {
        Ok(version) => driver.nearest(version).iter().map(ToString::to_string).collect(),
        // `3.7` is not a version; those that begin so may be meant
        Err(_) => {
            let start = format!("{}.", version.trim_start_matches('v').trim_end_matches('.'));
            let all = driver.versions.iter().map(|entry| entry.version.to_string());
            all.filter(|known| known.starts_with(&start)).take(4).collect()
        }
    };
    let near = if near.is_empty() {
        String::new()
    } else {
        format!("The nearest {}: {}.\n", verb(near.len(), "version", "versions"), near.join(", "))
    };
    Err(CliError::new(
        Exit::NotFound,
        format!("{name} has no version {version:?} in this matrix"),
        format!("{near}All versions: vdoctl matrix list {name}"),
    ))
}

/// The same, with the index and the flags in the error.
pub(super) fn entry_of<'a>(loaded: &'a Loaded, name: &str, version: &str) -> Result<(&'a str, &'a Driver, &'a Entry), CliError> {
    entry(&loaded.index, name, version).map_err(|error| CliError {
        what: format!("{}: {}", error.what, loaded.used.what()),
        remedy: format!("{}{}", error.remedy, loaded.flags),
        ..error
    })
}

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let loaded = Loaded::read(&args.index, global).await?;
    let Some(version) = &args.version else {
        return Err(no_version(&loaded.index, &args.driver)?);
    };
    let (name, _, entry) = entry_of(&loaded, &args.driver, version)?;
    let view = MatrixEntryView {
        matrix: loaded.view(),
        entry: EntryView::of(&loaded.index, name, entry),
    };
    let text = || loaded.header() + &text(&loaded.index, name, entry);
    Ok(loaded.answer(Answer::view(args.output.or_table(), &view, text)?))
}

/// A driver was typed without a version: the newest are named.
fn no_version(index: &Index, typed: &str) -> Result<CliError, CliError> {
    let (name, driver) = driver(index, typed)?;
    let newest: Vec<String> = driver.versions.iter().take(3).map(|entry| entry.version.to_string()).collect();
    let first = newest.first().map(String::as_str).unwrap_or_default();
    Ok(CliError::new(
        Exit::Usage,
        format!("no version of {name} is named"),
        format!(
            "The newest versions: {}. For example: vdoctl matrix show {typed} {first}\nAll versions: vdoctl matrix list {typed}",
            newest.join(", ")
        ),
    ))
}

fn text(index: &Index, name: &str, entry: &Entry) -> String {
    let mut text = format!("{}  {}\n\n", style::head(&format!("{name} {}", entry.version)), state(entry));
    let support = |what: &str, support: &Support| {
        vec![
            what.to_owned(),
            bounds(&support.range),
            confidence(support.confidence).to_owned(),
            support.evidence.join(", "),
        ]
    };
    let mut rows = vec![support("Kubernetes", &entry.kubernetes), support("vCenter", &entry.vsphere)];
    for (name, feature) in &entry.features {
        rows.push(vec![
            name.clone(),
            format!("vCenter {}", bounds(&feature.vsphere)).trim_end().to_owned(),
            String::new(),
            feature.evidence.join(", "),
        ]);
    }
    text.push_str(&style::table(&["WHAT", "WITH", "CONFIDENCE", "EVIDENCE"], &rows));
    let notes = [("Kubernetes", &entry.kubernetes.note), ("vCenter", &entry.vsphere.note)];
    for (what, note) in notes.iter().filter_map(|(what, note)| Some((what, note.as_ref()?))) {
        text.push_str(&format!("\n{what}: {note}"));
    }
    for (what, note) in entry
        .features
        .iter()
        .filter_map(|(what, feature)| Some((what, feature.note.as_ref()?)))
    {
        text.push_str(&format!("\n{what}: {note}"));
    }
    text.push('\n');
    entry.requires.iter().for_each(|required| {
        let why = required.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        text.push_str(&format!("needs {required}{why}\n"));
    });
    if let Some(from) = &entry.upgrades_from {
        let min = from
            .min
            .as_ref()
            .map_or_else(|| "any version, as far as is known".to_owned(), |min| format!("{min} and newer"));
        text.push_str(&format!("\nUpgrades from {min}. Check first:\n"));
        for name in &from.preconditions {
            text.push_str(&format!(
                "  {name}: {}\n",
                index.preconditions.get(name).map(String::as_str).unwrap_or_default()
            ));
        }
    }
    let sources = |support: &Support| support.evidence.clone();
    let mut named: Vec<String> = sources(&entry.kubernetes).into_iter().chain(sources(&entry.vsphere)).collect();
    named.extend(entry.features.values().flat_map(|feature| feature.evidence.clone()));
    named.extend(entry.requires.iter().flat_map(|required| required.evidence.clone()));
    let digests = entry.images.iter().filter_map(|image| image.digest.as_ref());
    named.extend(digests.filter_map(|digest| index.stated_in(digest)).map(str::to_owned));
    named.sort();
    named.dedup();
    text.push_str("\nSources\n");
    for name in &named {
        if let Some(source) = index.sources.get(name) {
            text.push_str(&format!("  {name}  {}\n", source.url));
        }
    }
    text.push_str("\nImages\n");
    text.push_str(&images(index, entry));
    for manifest in &entry.manifests {
        text.push_str(&format!("manifest {manifest}\n"));
    }
    text
}

/// The references first, because they are the longest; below them the digests that are known.
fn images(index: &Index, entry: &Entry) -> String {
    // Not aligned: the longest reference and the longest name together are wider than a terminal.
    let lines = entry.images.iter().map(|image| format!("{}  {}\n", image.reference, image.name));
    let table = format!("{}\n{}", style::head("REFERENCE  NAME"), lines.collect::<String>());
    let digests = entry.images.iter().filter_map(|image| {
        let digest = image.digest.as_ref()?;
        let by = index
            .stated_in(digest)
            .map(|source| format!(" as stated by {source}, not read from a registry"))
            .unwrap_or_default();
        Some(vec![format!("  {}", image.name), format!("{}{by}", digest.short())])
    });
    let digests: Vec<Vec<String>> = digests.collect();
    match digests.is_empty() {
        true => table,
        false => format!("{table}Digests\n{}", style::columns(digests.iter())),
    }
}
