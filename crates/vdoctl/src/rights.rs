//! `vdoctl rights`: what the administrator brings for the drivers and for the operator.

use super::args::{Global, Rights as Args};
use super::chart::objects_answer;
use super::context::Context;
use super::matrix::{Choice, driver, show};
use super::{Answer, CliError, Exit, within};
use serde_json::Value;
use vdo::cluster::{ClusterError, get, unserved};
use vdo::reconcile::{Versions, lacking, rights, rights_without_policy};
use vdo_api::types::ObjectId;
use vdo_core::admission::NAME;
use vdo_core::manifest::Object;
use vdo_core::openshift::CONSTRAINTS;

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let Choice { repository, loaded, used } = within(global, Choice::at_desk(&args.index, global)).await?;
    let matrix = [Some(used.line()), used.warning()];
    let with_matrix = |answer: Answer| matrix.iter().flatten().cloned().fold(answer, Answer::note);
    let mut taken = Vec::new();
    for ask in &args.driver {
        let name = match &ask.pin {
            Some(pin) => show::entry(&loaded.index, &ask.driver, &pin.to_string())?.0,
            None => driver(&loaded.index, &ask.driver)?.0,
        };
        taken.push((name, ask.pin.as_ref()));
    }
    let versions = match taken.as_slice() {
        [] => Versions::All,
        taken => Versions::Of(taken),
    };
    let context = match args.missing {
        true => Some(within(global, Context::open(global)).await?),
        false => None,
    };
    let with_policy = match &context {
        Some(context) if !args.admission_policy => within(global, has_policy(context)).await?,
        _ => args.admission_policy,
    };
    let on_openshift = match &context {
        Some(context) if !args.openshift => within(global, serves_constraints(context)).await?,
        _ => args.openshift,
    };
    // Not a wait for the cluster: the charts are looked through here.
    let found = match with_policy {
        true => rights(&repository, &loaded.index, &global.namespace, versions).await,
        false => rights_without_policy(&repository, &loaded.index, &global.namespace, versions).await,
    };
    let found = found.map_err(|error| CliError::of(Exit::Refused, &error))?;
    let openshift = if on_openshift { found.openshift } else { Vec::new() };
    let objects = [found.drivers, found.operator, openshift, found.policy].concat();
    let Some(context) = context else {
        return objects_answer(args.output.or_yaml(), &objects).map(with_matrix);
    };
    let objects = objects.into_iter().map(Object::new).collect::<Result<Vec<_>, _>>();
    let objects = objects.map_err(|error| CliError::of(Exit::Refused, &error))?;
    let lacking = within(global, async { Ok(lacking(&context.ports.reader, objects).await?) }).await?;
    let (objects, reasons): (Vec<Value>, Vec<String>) = lacking.into_iter().map(|(object, why)| (object.into_value(), why)).unzip();
    let answer = with_matrix(objects_answer(args.output.or_yaml(), &objects)?);
    let answer = reasons.into_iter().fold(answer, Answer::note);
    Ok(match objects.len() {
        0 => answer.note(format!("Cluster {} lacks nothing.", context.name)),
        _ => answer,
    })
}

/// Whether pods need SecurityContextConstraints, as on OpenShift.
pub(super) async fn serves_constraints(context: &Context) -> Result<bool, CliError> {
    let kinds = [CONSTRAINTS].map(|(version, kind)| (version.to_owned(), kind.to_owned()));
    Ok(unserved(&context.ports.client, &kinds).await?.is_empty())
}

/// Whether the administrator has a policy for the operator, which then has to allow what the charts have.
async fn has_policy(context: &Context) -> Result<bool, CliError> {
    let id = ObjectId::new("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "", NAME);
    match get(&context.ports.client, "admissionregistration.k8s.io/v1", &id).await {
        Ok(live) => Ok(live.is_some()),
        Err(ClusterError::NotServed { .. } | ClusterError::Forbidden { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
