//! `vdoctl mirror prune`: what a bundle does not need.

use super::super::args::MirrorPrune as Args;
use super::super::output::document;
use super::super::{Answer, CliError, Exit, style};
use super::bundle::{Bundle, Matrix, opened, signature_name, write_matrix};
use super::collect::{selection, wanted};
use super::{size, unreadable};
use crate::layout::Layout;
use crate::mirror::{FILE, Image, Lock, MATRIX, Versions};
use crate::oci::{Descriptor, Index};
use crate::types::{Digest, count};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn run(args: &Args) -> Result<Answer, CliError> {
    // What it holds is read when no pull can change it any more.
    let turn = Layout::open(&args.bundle).and_then(|layout| layout.lock());
    let _turn = turn.map_err(|error| unreadable(&error))?;
    let bundle = Bundle::open(&args.bundle)?;
    let layout = &bundle.layout;
    let matrix = bundle.matrix()?.ok_or_else(|| {
        CliError::new(
            Exit::Refused,
            format!("{} holds no matrix, so it is not known what is needed", args.bundle.display()),
            "Name a bundle as vdoctl mirror pull writes it.",
        )
    })?;
    let names = match kept(args, &matrix)? {
        Some(versions) => narrowed(&bundle, &matrix, versions, args.dry_run)?,
        None => bundle.names.clone(),
    };
    let mut entries: Vec<Descriptor> = names.into_values().collect();
    let mut keep = BTreeSet::new();
    for entry in &entries {
        layout.reach(entry, &mut keep).map_err(|error| unreadable(&error))?;
    }
    // What belongs to an image stays with it.
    for entry in &bundle.unnamed {
        let belongs = layout
            .subject(entry)
            .map_err(|error| unreadable(&error))?
            .is_some_and(|subject| keep.contains(&subject));
        if belongs {
            layout.reach(entry, &mut keep).map_err(|error| unreadable(&error))?;
            entries.push(entry.clone());
        }
    }
    let swept = match args.dry_run {
        true => layout.unneeded(&keep),
        false => layout.set_index(&Index::new(entries)).and_then(|()| layout.sweep(&keep)),
    };
    let swept = swept.map_err(|error| unreadable(&error))?;
    let done = if args.dry_run { "would be removed" } else { "removed" };
    Answer::formatted(
        args.output.or_table(),
        || {
            let removed = json!({"dryRun": args.dry_run, "removedBlobs": swept.blobs, "removedBytes": swept.bytes});
            document("MirrorPrune", removed)
        },
        || {
            format!(
                "{} {done}: {}, {}\n",
                style::good("✓"),
                count(swept.blobs, "blob"),
                size(swept.bytes)
            )
        },
    )
}

/// The versions that stay, where not all do.
fn kept(args: &Args, matrix: &Matrix) -> Result<Option<Versions>, CliError> {
    if args.select == super::super::args::Selecting::default() {
        return Ok(None);
    }
    let index = matrix.lock.narrow(&matrix.index);
    let chosen = selection(&args.select, &index)?
        .choose(&index)
        .map_err(|error| CliError::of(Exit::Usage, &error))?;
    let mut versions = matrix.lock.versions.clone();
    for (driver, versions) in &mut versions {
        versions.retain(|version| chosen.get(driver).is_some_and(|chosen| chosen.contains(version)));
    }
    versions.retain(|_, versions| !versions.is_empty());
    match versions.is_empty() {
        true => Err(CliError::new(
            Exit::Usage,
            "none of the versions of the bundle is selected",
            "Look at what it has: vdoctl mirror verify.",
        )),
        false => Ok(Some(versions)),
    }
}

/// Writes the matrix of a bundle with fewer versions; gives what the bundle is going to name.
fn narrowed(bundle: &Bundle, matrix: &Matrix, versions: Versions, dry_run: bool) -> Result<BTreeMap<String, Descriptor>, CliError> {
    let needed = |versions: &Versions| {
        let mut needed = BTreeSet::new();
        for (driver, versions) in versions {
            for version in versions {
                let entry = matrix.index.drivers.get(driver).and_then(|driver| driver.entry(version));
                let Some(package) = entry.and_then(|entry| matrix.package(&entry.chart)) else {
                    continue;
                };
                let package = bundle.layout.read(package).map_err(|error| unreadable(&error))?;
                let images = wanted(&opened(&package)?, version, driver, &matrix.index)?;
                needed.extend(images.into_iter().map(|image| image.reference));
            }
        }
        Ok::<_, CliError>(needed)
    };
    // What no version needs, such as the operator, was asked for by itself.
    let (before, now) = (needed(&matrix.lock.versions)?, needed(&versions)?);
    let stays = |reference: &str| now.contains(reference) || !before.contains(reference);
    let mut lock: Lock = matrix.lock.clone();
    lock.images.retain(|image| stays(&image.reference));
    lock.versions = versions;
    let charts = lock
        .versions
        .iter()
        .flat_map(|(driver, versions)| versions.iter().map(move |version| (driver, version)));
    let charts: BTreeSet<&Digest> = charts
        .filter_map(|(driver, version)| Some(&matrix.index.drivers.get(driver)?.entry(version)?.chart.digest))
        .collect();
    let mut files = BTreeMap::new();
    for (path, blob) in &matrix.files {
        if !path.ends_with(".tgz") || charts.contains(&blob.digest) {
            files.insert(path.clone(), bundle.layout.read(blob).map_err(|error| unreadable(&error))?);
        }
    }
    let text = lock.text().map_err(|error| CliError::of(Exit::Refused, &error))?;
    files.insert(FILE.to_owned(), text.into_bytes());
    let own = |image: &Image| [image.reference.clone(), signature_name(&image.reference, &image.digest)];
    let kept: BTreeSet<String> = lock.images.iter().flat_map(own).collect();
    let known = matrix.lock.images.iter().flat_map(own);
    let removed: BTreeSet<String> = known.filter(|name| !kept.contains(name)).collect();
    let mut names = bundle.names.clone();
    names.retain(|name, _| !removed.contains(name));
    if !dry_run {
        let written = write_matrix(&bundle.layout, &files).map_err(|error| unreadable(&error))?;
        names.insert(MATRIX.to_owned(), written);
    }
    Ok(names)
}
