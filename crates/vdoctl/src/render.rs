// SPDX-License-Identifier: Apache-2.0
//! `vdoctl render`: prints all objects that the operator would apply, with masked Secrets.

use super::args::{Format, Global, Render as Args};
use super::chart::objects_answer;
use super::context::{Context, id};
use super::{Answer, CliError, Exit};
use vdo_core::plan::Desired;

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let context = Context::open(global).await?.choosing_from(&args.index, global).await?;
    let decided = context.decide().await?;
    let mut desired: Vec<&Desired> = decided.planned.desired.iter().collect();
    desired.sort_by_key(|d| (d.wave, d.object.id()));
    let show = |d: &&Desired| {
        if args.show_secrets {
            d.object.value().clone()
        } else {
            d.object.masked()
        }
    };
    let objects: Vec<_> = desired.iter().map(show).collect();
    let mut answer = objects_answer(args.output.or_yaml(), &objects)?;
    answer = context
        .matrix_lines()
        .chain(decided.left.iter().map(ToString::to_string))
        .fold(answer, Answer::note);
    answer = answer.note(format!(
        "{} objects for VDOConfig {} in cluster {}",
        objects.len(),
        id(&decided.config),
        context.name
    ));
    if matches!(args.output.or_yaml(), Format::Yaml | Format::Json) && !args.show_secrets && desired.iter().any(|d| d.object.is_secret()) {
        answer = answer.note("Secrets are masked, so do not apply this output with kubectl; --show-secrets prints them.");
    }
    Ok(match decided.left.is_empty() {
        true => answer,
        false => answer.exit(Exit::Refused),
    })
}
