// SPDX-License-Identifier: Apache-2.0
//! `vdoctl chart import`: creates a chart, or a release of an existing chart, from a project's own plain manifests.

use super::super::args::ChartImport;
use super::super::{Answer, CliError, Exit, atomic_files};
use super::{folder, manifests};
use std::io;
use std::path::{Path, PathBuf};
use vdo_api::types::count;
use vdo_core::chart::import::{self, Joined, Wanted};

pub(super) fn run(args: &ChartImport) -> Result<Answer, CliError> {
    let wanted = Wanted {
        name: args.name.clone(),
        role: args.role,
        version: args.version.clone(),
        date: args.date.map(|date| date.to_string()),
        images: args.image.iter().cloned().collect(),
    };
    let manifests = manifests::read(&args.files)?;
    let imported = import::import(&wanted, &manifests).map_err(|error| CliError::of(Exit::Refused, &error))?;
    let objects: usize = manifests.iter().map(|manifest| manifest.objects.len()).sum();
    let answer = |talk: String| {
        let mut text = format!("{} {}: {}\n", wanted.name, wanted.version, count(objects, "object"));
        imported
            .notes
            .iter()
            .chain(&imported.findings)
            .for_each(|note| text += &format!("- {note}\n"));
        let exit = if imported.findings.is_empty() {
            Exit::Ok
        } else {
            Exit::Differences
        };
        Answer::text(text).note(talk).exit(exit)
    };

    let paths = folder::of_driver(&args.output, &args.name);
    let mut charts = Vec::new();
    for path in paths.iter().filter(|path| path.exists()) {
        let source = folder::read(path, "Name the folder for chart sources with --output.")?;
        charts.push((path, source));
    }
    // a version belongs to one chart: the one that lists it is asked first
    charts.sort_by_key(|(_, source)| !source.has(&args.version));
    for (path, source) in &charts {
        match import::joined(source, &imported.source, &args.version).map_err(|error| CliError::of(Exit::Refused, &error))? {
            Joined::Other => {}
            Joined::There => return Ok(answer(format!("{} has this release already", path.display()))),
            Joined::With { file, text } => {
                let file = path.join(file);
                atomic_files::write(&file, text.as_bytes()).map_err(|error| unwritten(&file, &error))?;
                return Ok(answer(format!(
                    "wrote {}: this release has the same templates as the existing releases",
                    file.display()
                )));
            }
        }
    }
    let (path, why) = match paths.into_iter().next().filter(|path| !path.exists()) {
        Some(path) => (path, ""),
        None => versioned(args),
    };
    folder::write(&path, &imported.source).map_err(|error| unwritten(&path, &error))?;
    Ok(answer(format!("wrote {}{why}", path.display())))
}

/// The folder of a version whose templates are its own.
fn versioned(args: &ChartImport) -> (PathBuf, &'static str) {
    let name = format!("{}-{}", args.name, args.version);
    (
        args.output.join(name),
        " as a separate chart, because the existing releases have other templates",
    )
}

fn unwritten(path: &Path, error: &io::Error) -> CliError {
    let what = format!("{} cannot be written: {error}", path.display());
    CliError::new(Exit::Refused, what, "Check that you may write there, and run the command again.")
}
