// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix init`: creates a matrix in a new folder or registry tag, as a copy of another matrix or empty.

use super::super::args::{Global, Init};
use super::super::context::now;
use super::super::views::publish::MatrixInitView;
use super::super::{Answer, CliError, Exit, chart, registry, style};
use super::publish_target::{Published, signed, signing_key};
use std::collections::BTreeMap;
use std::path::Path;
use vdo_author::publish::{Draft, Release};
use vdo_core::chart::Source;
use vdo_oci::registry::push_matrix;
use vdo_source::fetch::MatrixSource;
use vdo_source::signature::PrivateKey;

pub(super) async fn run(args: &Init, global: &Global) -> Result<Answer, CliError> {
    let (key, warning) = signing_key(args.key_file.as_deref())?;
    if let MatrixSource::Local(folder) = &args.to {
        free(folder)?;
    }
    let release = if args.empty {
        let index = Draft::empty()
            .finish(now(), None)
            .map_err(|error| CliError::of(Exit::Refused, &error))?;
        signed(index, BTreeMap::new(), key.as_ref())?
    } else {
        copy(args, key.as_ref(), global).await?
    };
    match &args.to {
        MatrixSource::Registry(source) => {
            let registry = registry::open(&args.registry, source.reference()).await?;
            let pushed = push_matrix(&registry, source.reference(), &release.files(), None).await;
            pushed.map_err(|error| registry::failed(&error))?;
        }
        _ => write(&args.to.to_string(), release.files())?,
    }
    let published = Published::new(&release, key.as_ref(), None, warning)?;
    let view = MatrixInitView {
        place: args.to.to_string(),
        matrix: published.view(),
        charts: release.charts.len(),
    };
    let text = || format!("{} {}: {}", style::good("✓"), view.place, published.line());
    let answer = Answer::view(args.output.or_table(), &view, text)?;
    Ok(published.answer(answer))
}

fn write(folder: &str, files: BTreeMap<String, Vec<u8>>) -> Result<(), CliError> {
    chart::write_folder(Path::new(folder), &Source { files }).map_err(|error| {
        CliError::new(
            Exit::Refused,
            format!("the folder {folder} cannot be written: {error}"),
            "Check that you may write there.",
        )
    })
}

/// The index of a source as it is, with every chart that it names.
async fn copy(args: &Init, key: Option<&PrivateKey>, global: &Global) -> Result<Release, CliError> {
    let (repository, loaded) = super::repository(&args.index, global).await?;
    let mut charts = BTreeMap::new();
    let entries = loaded.index.drivers.values().flat_map(|driver| &driver.versions);
    for chart in entries.map(|entry| &entry.chart).filter(|chart| !chart.urls.is_empty()) {
        let bytes = repository
            .package(chart)
            .await
            .map_err(|error| CliError::of(Exit::Refused, &error))?;
        // The first one that a copied folder can have.
        let inside = |url: &&String| !url.contains("://") && !url.starts_with('/') && !url.contains("..");
        if let Some(path) = chart.urls.iter().find(inside) {
            charts.insert(path.clone(), bytes);
        }
    }
    signed(loaded.signed.index.clone(), charts, key)
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
            format!("{} already exists and is not an empty folder", folder.display()),
            "Name a folder that does not exist yet.",
        ));
    }
    Ok(())
}
