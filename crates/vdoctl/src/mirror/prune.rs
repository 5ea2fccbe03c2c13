// SPDX-License-Identifier: Apache-2.0
//! `vdoctl mirror prune`: removes driver versions that are not selected, and unneeded blobs, from a bundle.

use super::super::args::MirrorPrune as Args;
use super::super::views::mirror::MirrorPruneView;
use super::super::{Answer, CliError, Exit, style};
use super::bundle::{Bundle, Matrix, signature_name, write_matrix};
use super::narrow::{Narrow, narrow};
use super::{size, unreadable};
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::count;
use vdo_core::mirror_lock::{Image, MATRIX};
use vdo_oci::layout::Layout;
use vdo_oci::oci::{Descriptor, Index};

pub(super) fn run(args: &Args) -> Result<Answer, CliError> {
    // What it holds is read when no pull can change it any more.
    let path = &args.bundle;
    let turn = Layout::open(path).and_then(|layout| layout.lock());
    let _turn = turn.map_err(|error| unreadable(&error))?;
    let bundle = Bundle::open(path)?;
    let layout = &bundle.layout;
    let matrix = bundle.matrix()?.ok_or_else(|| {
        CliError::new(
            Exit::Refused,
            format!("{} has no matrix, so it is not known which files are needed", path.display()),
            "Name a bundle that vdoctl mirror pull has written.",
        )
    })?;
    let read = |blob: &Descriptor| layout.read(blob).map_err(|error| unreadable(&error));
    let names = match narrow(&args.select, &matrix, read)? {
        Some(narrow) => narrowed(&bundle, &matrix, &narrow, args.dry_run)?,
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
    let view = MirrorPruneView {
        dry_run: args.dry_run,
        removed_blobs: swept.blobs,
        removed_bytes: swept.bytes,
    };
    Answer::view(args.output.or_table(), &view, || {
        let (blobs, bytes) = (count(swept.blobs, "blob"), size(swept.bytes));
        format!("{} {done}: {blobs}, {bytes}\n", style::good("✓"))
    })
}

/// Writes the matrix of a bundle with fewer versions; gives what the bundle is going to name.
fn narrowed(bundle: &Bundle, matrix: &Matrix, narrow: &Narrow, dry_run: bool) -> Result<BTreeMap<String, Descriptor>, CliError> {
    let own = |image: &Image| [image.reference.clone(), signature_name(&image.reference, &image.digest)];
    let kept: BTreeSet<String> = narrow.lock.images.iter().flat_map(own).collect();
    let known = matrix.lock.images.iter().flat_map(own);
    let removed: BTreeSet<String> = known.filter(|name| !kept.contains(name)).collect();
    let mut names = bundle.names.clone();
    names.retain(|name, _| !removed.contains(name));
    if !dry_run {
        let written = write_matrix(&bundle.layout, &narrow.files).map_err(|error| unreadable(&error))?;
        names.insert(MATRIX.to_owned(), written);
    }
    Ok(names)
}
