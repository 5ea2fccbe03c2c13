// SPDX-License-Identifier: Apache-2.0
//! `vdoctl rights`: prints the namespaces, roles and bindings (RBAC) that an administrator must create, or only the missing ones.

use super::args::{Global, Rights as Args};
use super::chart::objects_answer;
use super::context::Context;
use super::matrix::{Choice, driver, show};
use super::{Answer, CliError, Exit, within};
use serde_json::Value;
use vdo::cluster::{ClusterError, get, unserved};
use vdo::reconcile::{Account, Versions, lacking, rights, rights_without_policy};
use vdo_api::types::ObjectId;
use vdo_core::admission::NAME;
use vdo_core::drivers::is_on_request;
use vdo_core::install::OPERATOR;
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
    let (context, further) = cluster(args, global).await?;
    let further = further.iter().map(String::as_str);
    let named: Vec<&str> = further.chain(taken.iter().map(|(name, _)| *name)).collect();
    // What a cluster lacks of a driver that comes on request is beside what it has for the others.
    let versions = match taken.iter().all(|(name, _)| args.missing && is_on_request(name)) {
        true => Versions::Usual(&named),
        false => Versions::Of(&taken),
    };
    let with_policy = match &context {
        Some(context) if !args.admission_policy => within(global, has_policy(context)).await?,
        _ => args.admission_policy,
    };
    let on_openshift = match &context {
        Some(context) if !args.openshift => within(global, serves_constraints(context)).await?,
        _ => args.openshift,
    };
    let account = match (&args.service_account, &context) {
        (Some(name), _) => Some(name.clone()),
        (None, Some(context)) => within(global, of_the_operator(context, &global.namespace)).await?,
        (None, None) => None,
    };
    let account = Account {
        name: account.as_deref().unwrap_or(OPERATOR),
        namespace: &global.namespace,
    };
    // Not a wait for the cluster: the charts are looked through here.
    let found = match with_policy {
        true => rights(&repository, &loaded.index, account, versions).await,
        false => rights_without_policy(&repository, &loaded.index, account, versions).await,
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
        0 => answer.note(format!("Cluster {} has all required rights.", context.name)),
        _ => answer,
    })
}

/// The ServiceAccount that the operator's pods have, if there is an operator that may be seen.
async fn of_the_operator(context: &Context, namespace: &str) -> Result<Option<String>, CliError> {
    let id = ObjectId::new("apps", "Deployment", namespace, OPERATOR);
    let found = match get(&context.ports.client, "apps/v1", &id).await {
        Err(ClusterError::Forbidden { .. }) => None,
        found => found?,
    };
    let name = found.map(|deployment| deployment.text("/spec/template/spec/serviceAccountName").to_owned());
    Ok(name.filter(|name| !name.is_empty()))
}

/// With --missing: the cluster, and the further drivers that its VDOConfig names; none where there is no VDOConfig yet.
async fn cluster(args: &Args, global: &Global) -> Result<(Option<Context>, Vec<String>), CliError> {
    if !args.missing {
        return Ok((None, Vec::new()));
    }
    let context = within(global, Context::open(global)).await?;
    let drivers = within(global, async {
        Ok(context.acting().await.map(|config| config.spec.drivers).unwrap_or_default())
    })
    .await?;
    Ok((Some(context), drivers.into_iter().map(|driver| driver.name).collect()))
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
