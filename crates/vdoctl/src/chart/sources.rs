// SPDX-License-Identifier: Apache-2.0
//! `vdoctl chart sources`: writes the sources of the built-in charts, and `facts.yaml` of the matrix, into a new folder.

use super::super::args::ChartSources;
use super::super::{Answer, CliError, Exit};
use super::folder;
use vdo_api::types::{count, shell_word};
use vdo_core::chart::Source;
use vdo_source::fetch::embedded;

pub(in super::super) fn run(args: &ChartSources) -> Result<Answer, CliError> {
    let free = match std::fs::read_dir(&args.to) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if !free {
        return Err(CliError::new(
            Exit::Refused,
            format!("{} already exists and is not an empty folder", args.to.display()),
            "Name a folder that does not exist yet.",
        ));
    }
    let sources = embedded::sources();
    let mut all = Source::default();
    for (driver, source) in &sources {
        let files = source
            .files
            .iter()
            .map(|(path, bytes)| (format!("charts/{driver}/{path}"), bytes.clone()));
        all.files.extend(files);
    }
    all.files
        .extend(embedded::facts().map(|(name, bytes)| (format!("matrix-index/{name}"), bytes.to_vec())));
    folder::write(&args.to, &all).map_err(|error| {
        CliError::new(
            Exit::Refused,
            format!("the folder {} cannot be written: {error}", args.to.display()),
            "Check that you may write there.",
        )
    })?;
    let place = args.to.display().to_string();
    let place = shell_word(&place);
    let drivers: Vec<&str> = sources.keys().map(String::as_str).collect();
    Ok(Answer::text(format!(
        "{}: the charts of {}, {}\nTo add a new version of a driver: cd {place}, then vdoctl chart add-release DRIVER VERSION MANIFEST…\n",
        args.to.display(),
        drivers.join(" and "),
        count(all.files.len(), "file")
    )))
}
