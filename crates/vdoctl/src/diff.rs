// SPDX-License-Identifier: Apache-2.0
//! `vdoctl diff`: prints the fields in which the live objects of the drivers differ from the desired objects.

use super::args::{Diff as Args, Format, Global};
use super::context::Context;
use super::matrix::Used;
use super::plan_and_diff::Planned;
use super::views::plan::DiffView;
use super::{Answer, CliError};
use vdo_core::plan::Item;

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let mut context = Context::open(global).await?.choosing_from(&args.index, global).await?;
    answer(args.output.or_table(), &Planned::after(&mut context, &args.preview).await?)
}

fn answer(format: Format, planned: &Planned) -> Result<Answer, CliError> {
    let changing: Vec<&Item> = planned.changing().collect();
    let text = || {
        let (shown, folded) = planned.shown(format == Format::Wide);
        planned.supposition() + &shown.iter().map(|item| planned.line(item)).collect::<String>() + &folded + &planned.rest()
    };
    let view = DiffView(planned.view(&changing));
    let answer = Answer::view(format, &view, text)?.of_others();
    let header = planned.matrix.as_ref().map(Used::line);
    let answer = header.into_iter().chain(planned.talk()).fold(answer, Answer::note);
    Ok(answer.note(planned.summary()).exit(planned.exit()))
}
