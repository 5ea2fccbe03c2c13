//! `vdoctl diff`: what is wanted against what is there, field by field.

use super::args::{Diff as Args, Global};
use super::context::Context;
use super::plan_view::Planned;
use super::{Answer, CliError};
use crate::plan::Item;

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let context = Context::open(global).await?.choosing_from(&args.index, global).await?;
    answer(args, &Planned::of(&context).await?)
}

fn answer(args: &Args, planned: &Planned) -> Result<Answer, CliError> {
    let changing: Vec<&Item> = planned.changing().collect();
    let text = || changing.iter().map(|item| planned.line(item)).collect::<String>() + &planned.rest();
    let answer = Answer::formatted(args.output.or_table(), || planned.json("Diff", &changing), text)?;
    let answer = planned.notes.iter().cloned().fold(answer, Answer::say);
    Ok(answer.say(planned.summary()).exit(planned.exit()))
}
