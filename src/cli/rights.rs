//! `vdoctl rights`: what the administrator brings for the drivers and for the operator.

use super::args::{Global, Rights as Args};
use super::chart::objects_answer;
use super::context::Context;
use super::matrix::{driver, repository, show};
use super::{Answer, CliError, Exit};
use crate::manifest::Object;
use crate::reconcile::{lacking, rights};
use serde_json::Value;

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let (repository, loaded) = repository(&args.index, global).await?;
    let mut taken = Vec::new();
    for ask in &args.driver {
        let name = match &ask.pin {
            Some(pin) => show::entry(&loaded.index, &ask.driver, &pin.to_string())?.0,
            None => driver(&loaded.index, &ask.driver)?.0,
        };
        taken.push((name, ask.pin.as_ref()));
    }
    let takes = |name: &str, version: &_| {
        let is_named = |(driver, pin): &(&str, Option<&_>)| *driver == name && pin.is_none_or(|pin| pin == version);
        taken.is_empty() || taken.iter().any(is_named)
    };
    let found = rights(&repository, &loaded.index, &global.namespace, takes)
        .await
        .map_err(|error| CliError::of(Exit::Refused, &error))?;
    let mut objects = [found.drivers, found.operator].concat();
    if args.admission_policy {
        objects.extend(found.policy);
    }
    if !args.missing {
        return objects_answer(args.output.or_yaml(), &objects);
    }
    let context = Context::open(global).await?;
    let objects = objects.into_iter().map(Object::new).collect::<Result<Vec<_>, _>>();
    let objects = objects.map_err(|error| CliError::of(Exit::Refused, &error))?;
    let lacking = lacking(&context.ports.reader, objects).await?;
    let (objects, reasons): (Vec<Value>, Vec<String>) = lacking.into_iter().map(|(object, why)| (object.into_value(), why)).unzip();
    let answer = objects_answer(args.output.or_yaml(), &objects)?;
    let answer = reasons.into_iter().fold(answer, Answer::note);
    Ok(match objects.len() {
        0 => answer.note(format!("Cluster {} lacks nothing.", context.name)),
        _ => answer,
    })
}
