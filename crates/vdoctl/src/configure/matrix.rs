// SPDX-License-Identifier: Apache-2.0
//! `vdoctl configure matrix`: sets the source of the operator's matrix, after vdoctl itself has read this matrix and made a plan with it.

use super::super::args::{ConfigureMatrix as Args, Global, MatrixFile};
use super::super::context::{Context, Deployed};
use super::super::deploy::matrix::Matrix;
use super::super::deploy::write as objects;
use super::super::matrix::Choice;
use super::super::operator_running::{Deployment, Presence};
use super::super::plan_and_diff::Planned;
use super::super::progress::{Mark, Progress};
use super::super::{Answer, CliError, Exit};
use super::write;
use vdo_core::install::Mounts;

pub(super) async fn run(args: &Args, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let named = MatrixFile {
        matrix: Some(args.source.clone()),
        ..MatrixFile::default()
    };
    let context = Context::open(global).await?;
    let presence = Presence::find(&context, context.namespace()).await?;
    let mounts = match &presence.deployment {
        Deployment::Found(found) => Mounts::of(found),
        _ => Mounts::default(),
    };
    let mut matrix = Matrix::of(&named, context.namespace(), None).await?;
    if mounts.keys {
        matrix.notes.clear();
        matrix
            .notes
            .push("the operator still accepts only matrices that its keys have signed".into());
    }
    matrix.notes.iter().for_each(|note| progress.step(Mark::Note, note));
    let context = match Choice::in_cluster(&named, &context, global).await {
        Ok(choice) => {
            progress.step(
                Mark::Done,
                &format!("{} has version {} of the matrix", args.source, choice.loaded.index.version),
            );
            context.deciding_with(choice)
        }
        Err(error) if args.writing.ignore_checks => {
            progress.step(
                Mark::Failed,
                &format!("the matrix cannot be read from this machine: {}", error.what),
            );
            context.like_the_operator(global).await?
        }
        Err(error) => {
            return Err(CliError {
                what: format!("{}, so nothing was written", error.what),
                ..error
            });
        }
    };
    if let Deployed::Config(_) = context.find_config().await? {
        match Planned::of(&context).await {
            Ok(planned) => planned
                .drivers
                .iter()
                .for_each(|driver| progress.step(Mark::Note, driver.lines().trim_end())),
            Err(error) if args.writing.ignore_checks => progress.step(Mark::Failed, &error.what),
            Err(error) => {
                return Err(CliError {
                    what: format!("{}, so nothing was written", error.what),
                    ..error
                });
            }
        }
    }
    if let Some(place) = &matrix.place {
        // A folder is many objects that replace each other as a whole.
        let fates = objects::dry_run(&context, &matrix.objects).await?;
        if args.writing.dry_run {
            objects::shown(&matrix.objects, &fates, progress);
            return Ok(Answer::text("").note("Nothing was written."));
        }
        objects::apply(&context, &matrix.objects, Some((place, &matrix.objects)), progress).await?;
        return Ok(
            Answer::text("").note("The operator reads the new matrix within a minute; vdoctl matrix source shows the matrix in use.")
        );
    }
    let mut changes = Vec::new();
    for object in &matrix.objects {
        changes.push(super::super::object_write::Change::apply(&context, object).await?);
    }
    let answer = write(&context, &changes, args.writing, progress).await?;
    Ok(match answer.exit {
        Exit::Ok if !args.writing.dry_run => answer.note("vdoctl matrix source shows the source in use."),
        _ => answer,
    })
}
