// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix load`: writes a matrix folder (index, signature, charts) into ConfigMaps, from which the operator reads the matrix.

use super::super::args::{Format, Global, MatrixLoad as Args};
use super::super::context::Context;
use super::super::deploy::write;
use super::super::printer::Printer;
use super::super::progress::Progress;
use super::super::{Answer, CliError, Exit, style};
use super::config_maps::{files, objects};
use vdo_api::types::count;
use vdo_source::fetch::ConfigMaps;

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let place = &args.place;
    is_read(place, global)?;
    let files = files(&args.folder).await?;
    let objects = objects(place, &files)?;
    let context = Context::open(global).await?;
    write::dry_run(&context, &objects).await?;
    let mut progress = Progress::new(&Printer::new(global.color), Format::Table);
    write::apply(&context, &objects, Some((place, &objects)), &mut progress).await?;
    let text = format!(
        "{} {place} has {} in {}\n",
        style::good("✓"),
        count(files.len(), "file"),
        count(objects.len() - 1, "ConfigMap")
    );
    Ok(Answer::text(text).note(format!(
        "The operator uses this matrix if its source is {place}; vdoctl matrix source shows where the source is set."
    )))
}

/// The operator reads no other namespace than its own.
fn is_read(place: &ConfigMaps, global: &Global) -> Result<(), CliError> {
    if place.namespace == global.namespace {
        return Ok(());
    }
    let there = ConfigMaps {
        namespace: global.namespace.clone(),
        name: place.name.clone(),
    };
    Err(CliError::new(
        Exit::Usage,
        format!(
            "{place} is in another namespace than the operator, which reads ConfigMaps of {} only",
            global.namespace
        ),
        format!("Write {there}, or name the operator's namespace with -n."),
    ))
}
