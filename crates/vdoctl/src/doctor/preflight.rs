// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor --pre`: runs the checks before an installation, with the address and account of a vCenter and, if possible, a cluster.
//!
//! With a cluster it makes the checks of `vdoctl deploy` with the same flags: a check that would make `deploy` refuse fails here.

mod vcenter_only;

use super::super::args::{Deploy, Doctor as Args, Global};
use super::super::certificate_question::trusted;
use super::super::context::Context;
use super::super::deploy::configuration::{CONNECTION, Configuration};
use super::super::deploy::target::Target;
use super::super::deploy::vcenter::{Account, Login};
use super::super::deploy::write;
use super::super::password_file::password;
use super::super::preflight_checks::{Asking, Checked, check};
use super::super::progress::Progress;
use super::super::vcenter_address::{endpoint, trust};
use super::super::{CliError, Exit, prompt};
use super::check::{Check, Subject, Topic};
use super::{Findings, open};
use serde_json::Value;
use std::sync::Arc;
use vdo_api::api::Reason;
use vdo_api::facts::Node;
use vdo_api::types::{Trust, count};
use vdo_core::install::Mounts;
use vdo_core::manifest::Object;
use vdo_vsphere::vcenter::{Budget, Endpoint};

/// The same flags with the answer of a person on a terminal to the question that `deploy` asks: whether the certificate is that of the vCenter.
pub(super) async fn asked(args: &Args, progress: &mut Progress) -> Result<Args, CliError> {
    let mut args = args.clone();
    if args.pre && prompt::is_terminal() {
        let mut endpoint = named(&args)?;
        trusted(&mut endpoint, false, progress).await?;
        if let Trust::Thumbprint(print) = endpoint.trust {
            args.vcenter.thumbprint = Some(print);
        }
    }
    Ok(args)
}

fn named(args: &Args) -> Result<Endpoint, CliError> {
    let given = &args.vcenter;
    let trust = trust(given.thumbprint.as_ref(), given.ca_file.as_deref(), given.insecure)?;
    endpoint(given.vcenter.as_deref().unwrap_or_default(), trust)
}

pub(super) async fn inspect(args: &Args, global: &Global) -> Result<Findings, CliError> {
    let given = &args.vcenter;
    let user = given.user.clone().unwrap_or_default();
    let (password, warning) = password(given.password_file.as_deref(), &user)?;
    let mut found = Findings::default();
    found.talk.extend(warning);
    let account = Account {
        connection: CONNECTION.to_owned(),
        endpoint: named(args)?,
        login: Login::Typed(user, password),
        datacenters: given.datacenter.clone(),
    };
    match open(global).await {
        Ok(context) => in_cluster(args, global, context, account, &mut found).await?,
        Err(error) => {
            unreachable(&error, global, &mut found);
            vcenter_only::inspect(args, global, account, &[], &mut found).await?;
        }
    }
    Ok(found)
}

fn subject(name: &str) -> Subject {
    Subject {
        subject: Topic::Cluster,
        name: name.to_owned(),
        about: Vec::new(),
        checks: Vec::new(),
    }
}

/// That there is no cluster is not a failure before an installation; that a cluster does not answer is one.
fn unreachable(error: &CliError, global: &Global, found: &mut Findings) {
    let named = global.kubeconfig.is_some() || global.context.is_some();
    let absent = error.no_cluster && !named;
    if !absent {
        found.exits.push(error.exit);
    }
    let (status, reason) = if absent {
        (None, Reason::NotChecked)
    } else {
        (Some(false), Reason::ApiUnavailable)
    };
    let mut cluster = subject("-");
    let check = Check::new("Reachable", status, reason, &error.what, error.remedy.as_str());
    cluster.checks.push(check);
    found.view.subjects.push(cluster);
}

/// The checks of a deployment with these flags.
async fn in_cluster(args: &Args, global: &Global, context: Context, account: Account, found: &mut Findings) -> Result<(), CliError> {
    let mut cluster = subject(&context.name);
    cluster.about = vec![context.server.clone(), context.kubernetes.raw().to_owned()];
    let well = Check::new("Reachable", Some(true), Reason::Healthy, "the API server answers", "");
    cluster.checks.push(well);
    let address = account.endpoint.address();
    let nodes = vdo::reconcile::nodes(&context.ports.reader).await.map_err(CliError::from);
    let seen = nodes.as_deref().unwrap_or_default().to_vec();
    let checked = match nodes {
        Ok(nodes) => checked(args, global, context, nodes, &account).await,
        Err(error) => Err(error),
    };
    match checked {
        Ok((checked, warning)) => {
            found.talk.extend(warning);
            take(found, cluster, checked, &address);
            Ok(())
        }
        // Who may not deploy sees of the vCenter what it says of the nodes.
        Err(error) if error.exit == Exit::Refused || error.exit == Exit::Cluster => {
            let check = Check::new("ClusterRead", Some(false), Reason::Forbidden, &error.what, error.remedy.as_str());
            cluster.checks.push(check);
            found.exits.push(error.exit);
            found.view.subjects.push(cluster);
            vcenter_only::inspect(args, global, account, &seen, found).await
        }
        Err(error) => Err(error),
    }
}

async fn checked(
    args: &Args,
    global: &Global,
    context: Context,
    nodes: Vec<Arc<Node>>,
    account: &Account,
) -> Result<(Checked, Option<String>), CliError> {
    let deploy = Deploy::default();
    let target = Target::look(&deploy, global, &context, nodes).await?;
    let mut deciding = target.deciding(&args.index, global, context).await?;
    let warning = deciding.used.warning();
    let there = target.installed.config.as_ref();
    let name = there.and_then(|config| config.metadata.name.as_deref()).unwrap_or("vdo");
    let configuration = Configuration::of_flags(&deploy, &global.namespace, name, std::slice::from_ref(account), &Value::Null);
    let configuration = configuration.map_err(|error| CliError::internal(&error))?;
    let operator = target.operator(Mounts::default())?;
    let asking = Asking {
        only: None,
        installed: &operator,
        there,
        surplus: args.surplus(),
        budget: Budget::for_person(global.timeout),
    };
    let mut checked = check(&mut deciding, &configuration, asking).await?;
    // Where VDO is deployed its objects may be as a person has changed them.
    if there.is_none() {
        let all = operator.into_iter().chain(configuration.objects).collect();
        checked.cluster.checks.push(operator_accepted(&deciding, all).await?);
    }
    Ok((checked, warning))
}

/// Whether the API server would take the objects that deploy writes, from this user.
async fn operator_accepted(context: &Context, objects: Vec<Object>) -> Result<Check, CliError> {
    const CHECK: &str = "DeploymentAccepted";
    let all = write::beside_others(context, objects).await?;
    Ok(match write::dry_run(context, &all).await {
        Ok(_) => {
            let message = format!(
                "the API server accepts the {} of the operator and its configuration",
                count(all.len(), "object")
            );
            Check::new(CHECK, Some(true), Reason::Healthy, &message, "")
        }
        Err(error) => Check::new(CHECK, Some(false), Reason::AdmissionDenied, &error.what, error.remedy.as_str()),
    })
}

fn take(found: &mut Findings, mut cluster: Subject, checked: Checked, address: &str) {
    cluster.about.extend(checked.cluster.about);
    cluster.checks.extend(checked.cluster.checks);
    found.view.subjects.push(cluster);
    let undecided = || {
        Subject::of_drivers(vec![vcenter_only::not_chosen(
            "no version was chosen, because the checks of the vCenter failed",
        )])
    };
    found.view.subjects.push(checked.drivers.unwrap_or_else(undecided));
    for mut one in checked.connections {
        one.subject.name = address.to_owned();
        found.take(address, one.subject, one.report);
    }
}
