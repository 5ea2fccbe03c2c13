//! `vdoctl matrix init`: the folder of a matrix, to publish into and to serve.

use super::super::args::{Global, Init};
use super::super::context::now;
use super::super::output::document;
use super::super::{Answer, CliError, Exit, style};
use super::place::{Published, signed, signing_key};
use crate::chart::Source;
use crate::publish::{Draft, Release};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

pub(super) async fn run(args: &Init, global: &Global) -> Result<Answer, CliError> {
    let (key, warning) = signing_key(args.key_file.as_deref())?;
    free(&args.folder)?;
    let release = if args.empty {
        let index = Draft::empty()
            .finish(now(), None)
            .map_err(|error| CliError::of(Exit::Refused, &error))?;
        signed(index, BTreeMap::new(), key.as_ref())?
    } else {
        copy(args, global, key.as_ref()).await?
    };
    let files = Source { files: release.files() };
    super::super::chart::write_folder(&args.folder, &files).map_err(|error| {
        CliError::new(
            Exit::Refused,
            format!("the folder {} cannot be written: {error}", args.folder.display()),
            "Check that you may write there.",
        )
    })?;
    let published = Published::new(&release, key.as_ref(), None, warning)?;
    let place = args.folder.display().to_string();
    let answer = Answer::formatted(
        args.output.or_table(),
        || {
            document(
                "MatrixInit",
                json!({"folder": place, "matrix": published.json(), "charts": release.charts.len()}),
            )
        },
        || format!("{} {place}: {}", style::good("✓"), published.line()),
    )?;
    Ok(published.answer(answer))
}

/// The index of a source as it is, with every chart that it names.
async fn copy(args: &Init, global: &Global, key: Option<&crate::signature::PrivateKey>) -> Result<Release, CliError> {
    let (library, edition) = super::library(&args.index, global).await?;
    let mut charts = BTreeMap::new();
    let entries = edition.index.drivers.values().flat_map(|driver| &driver.versions);
    for chart in entries.map(|entry| &entry.chart).filter(|chart| !chart.urls.is_empty()) {
        let bytes = library.package(chart).await.map_err(|error| CliError::of(Exit::Refused, &error))?;
        // The first one that a copied folder can have.
        let inside = |url: &&String| !url.contains("://") && !url.starts_with('/') && !url.contains("..");
        if let Some(path) = chart.urls.iter().find(inside) {
            charts.insert(path.clone(), bytes);
        }
    }
    signed(edition.signed.index.clone(), charts, key)
}

/// Nothing is overwritten.
fn free(folder: &Path) -> Result<(), CliError> {
    let occupied = match std::fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    if occupied {
        return Err(CliError::new(
            Exit::Refused,
            format!("{} is there already and is not an empty folder", folder.display()),
            "Name a folder that does not exist yet.",
        ));
    }
    Ok(())
}
