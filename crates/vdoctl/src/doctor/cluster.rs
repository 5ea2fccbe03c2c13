// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor` in a cluster: checks the API server, the nodes' kubelets, the drivers' conditions and every vSphere connection.

use super::super::args::{Doctor as Args, DoctorVerb, Global};
use super::super::context::{Context, Deciding, Deployed, now};
use super::super::error::unknown;
use super::super::password_file::password;
use super::super::remedy::About;
use super::super::status::Config;
use super::super::{CliError, Exit};
use super::check::{Check, KUBELETS, Subject, Topic};
use super::{Findings, connection_subject, kubelet, open, operator, uninstall};
use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;
use std::sync::Arc;
use vdo::cluster::ClusterError;
use vdo::reconcile::connection::{self, Inputs, Permission, inputs, known_index, requirements};
use vdo::reconcile::{self, ReconcileError, Stopped, connection_objects};
use vdo_api::api::{ConditionType, Reason, VDOConfig, VDOConfigStatus, VsphereCloudConfig};
use vdo_api::facts::{Credentials, Node, StoredCredentials};
use vdo_api::types::count;
use vdo_core::status::fold;
use vdo_vsphere::vcenter::Budget;
use vdo_vsphere::vsphere::{ConnectionReport, Coverage, Inspection, InspectionRequest, coverage, credentials_check, cross_checks, report};

pub(super) async fn inspect(args: &Args, global: &Global) -> Result<Findings, CliError> {
    let mut context = open(global).await?.choosing_from(&args.index, global).await?;
    // Only reads: nothing is sent as a dry run.
    context.ports.dry_runs = None;
    let mut found = Findings::default();
    found.talk.extend(context.used.warning());
    let own = match connection_objects(&context.ports.reader, &global.namespace).await {
        Err(ReconcileError::Cluster(ClusterError::NotServed { .. })) => Vec::new(),
        result => result?,
    };
    let chosen = chosen(args, &own)?;
    let deployed = context.find_config().await?;
    let seen = reconcile::nodes(&context.ports.reader).await.map_err(CliError::from);
    if let Err(error) = &seen {
        found
            .talk
            .push(format!("nodes cannot be compared with the vCenter: {}", error.what));
    }
    let nodes = seen.as_ref().cloned().unwrap_or_default();
    if args.what.is_none() {
        found
            .view
            .subjects
            .extend(cluster(&context, &deployed, seen.as_deref(), &mut found.exits).await);
        if own.is_empty() {
            found
                .talk
                .push("To check the cluster before an installation: vdoctl doctor --pre --vcenter HOST --user NAME".into());
        }
    }
    let names = own.iter().map(ResourceExt::name_any).collect();
    let config = match &deployed {
        Deployed::Config(config) => Some(config),
        _ => None,
    };
    let index = known_index(&context.ports.repository).await;
    let inspected = join_all(chosen.iter().map(|object| async {
        let requirements = config
            .map(|config| requirements(config, &global.namespace, &names, &object.name_any()))
            .unwrap_or_default();
        let claim = match config {
            Some(config) => context.claim(config, &requirements).await,
            None => None,
        };
        let request = InspectionRequest {
            server: object.spec.vc_ip.clone(),
            datacenters: object.spec.datacenters.clone(),
            nodes: nodes.clone(),
            requirements,
            claim,
            counted: None,
            alone: own.len() < 2,
            surplus: args.surplus(),
            machine_tags: matches!(args.what, Some(DoctorVerb::Topology)),
            index: index.clone(),
        };
        examine(args, global, &context, (object, &own), request).await
    }))
    .await;
    let inspected: Vec<Examined> = inspected.into_iter().collect::<Result<_, CliError>>()?;
    // Connections that were not checked are not listed.
    let whole = chosen.len() == own.len();
    take(&mut found, inspected, whole);
    Ok(found)
}

/// The connections that are asked for.
fn chosen<'a>(args: &Args, own: &'a [VsphereCloudConfig]) -> Result<Vec<&'a VsphereCloudConfig>, CliError> {
    let chosen: Vec<&VsphereCloudConfig> = match &args.what {
        Some(DoctorVerb::Connection { name }) => {
            let one = own.iter().find(|object| object.name_any() == *name);
            let names: Vec<String> = own.iter().map(ResourceExt::name_any).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            vec![one.ok_or_else(|| unknown("vSphere connection", name, &names))?]
        }
        _ => own.iter().collect(),
    };
    if args.vcenter.password_file.is_some() && chosen.len() != 1 {
        return Err(CliError::new(
            Exit::Usage,
            format!(
                "--password-file needs exactly one vSphere connection, and this command checks {}",
                chosen.len()
            ),
            "Name the connection: vdoctl doctor connection NAME --password-file FILE",
        ));
    }
    Ok(chosen)
}

/// Adds what the inspections have shown; where every connection was inspected, also what they show of each other.
fn take(found: &mut Findings, inspected: Vec<Examined>, whole: bool) {
    let coverages: Vec<Arc<Coverage>> = inspected
        .iter()
        .filter_map(|examined| coverage(&examined.name, &examined.inspection).map(Arc::new))
        .collect();
    for examined in inspected {
        let mut reported = report(&examined.inspection, false, now());
        let own = coverages.iter().find(|coverage| coverage.connection == examined.name);
        if let Some(own) = own.filter(|_| whole) {
            reported.add_cross_checks(cross_checks(own, &coverages));
        }
        let subject = subject(&examined, &reported);
        found.take(&examined.name, subject, reported);
        found.talk.extend(examined.warning);
    }
}

/// One connection, and what the look at it has shown.
struct Examined {
    name: String,
    inspection: Inspection,
    inputs: Inputs,
    warning: Option<String>,
}

/// The look of the operator at one connection.
async fn examine(
    args: &Args,
    global: &Global,
    context: &Context,
    (object, all): (&VsphereCloudConfig, &[VsphereCloudConfig]),
    request: InspectionRequest,
) -> Result<Examined, CliError> {
    let mut inputs = inputs(&context.ports.reader, object).await;
    let (mut permission, mut warning) = (Permission::Recorded(all, now()), None);
    if let Some(file) = &args.vcenter.password_file
        && let Ok(found) = &mut inputs.credentials
    {
        let (given, warns) = password(Some(file), &found.credentials.user)?;
        warning = warns;
        *found = StoredCredentials {
            credentials: Credentials {
                user: found.credentials.user.clone(),
                password: given,
            },
            secret: "(given)".into(),
            version: String::new(),
        };
        permission = Permission::Given;
    }
    let inspection = connection::inspect(object, &inputs, request, permission, &Budget::for_person(global.timeout)).await;
    Ok(Examined {
        name: object.name_any(),
        inspection,
        inputs,
        warning,
    })
}

/// A connection with its stages and with that of its Secret, which needs no vCenter.
fn subject(examined: &Examined, reported: &ConnectionReport) -> Subject {
    let mut subject = connection_subject(&examined.name, reported);
    let at = subject
        .checks
        .iter()
        .position(|check| check.check == ConditionType::Authenticated.as_str());
    let credentials = match &examined.inputs.credentials {
        Err(ReconcileError::Cluster(error @ ClusterError::Forbidden { .. })) => {
            not_seen(ConditionType::CredentialsFound.as_str(), &CliError::cluster(error))
        }
        found => Check::of_connection(&credentials_check(found.as_ref())),
    };
    subject.checks.insert(at.unwrap_or(subject.checks.len()), credentials);
    for check in &mut subject.checks {
        check.lead_to_command(About::Connection(&examined.name));
    }
    subject
}

/// A check that the user of this command lacks a right for; the operator has its own.
fn not_seen(check: &str, error: &CliError) -> Check {
    Check::new(check, None, Reason::Forbidden, &error.what, error.remedy.as_str())
}

/// The cluster, and the VDOConfig as the pipeline finds it now.
async fn cluster(context: &Deciding, deployed: &Deployed, nodes: Result<&[Arc<Node>], &CliError>, exits: &mut Vec<Exit>) -> Vec<Subject> {
    let kubelets = match nodes {
        Ok(nodes) => kubelet(nodes),
        Err(error) => not_seen(KUBELETS, error),
    };
    let mut subjects = vec![Subject {
        subject: Topic::Cluster,
        name: context.name.clone(),
        about: vec![
            context.server.clone(),
            context.kubernetes.raw().to_owned(),
            nodes.map_or_else(|_| "nodes not visible".into(), |nodes| count(nodes.len(), "node")),
        ],
        checks: vec![
            Check::new("Reachable", Some(true), Reason::Healthy, "the API server answers", ""),
            kubelets,
        ],
    }];
    let Deployed::Config(config) = deployed else {
        let missing = context.no_config_error(deployed);
        exits.push(missing.exit);
        let check = Check::new("Deployed", Some(false), Reason::NotChecked, &missing.what, missing.remedy.as_str());
        subjects[0].checks.push(Check {
            reason: "NotDeployed".into(),
            ..check
        });
        return subjects;
    };
    if !reconcile::is_uninstalled(config) {
        subjects.push(operator::subject(context, config).await);
    } else {
        subjects.push(Subject {
            subject: Topic::Drivers,
            name: format!("VDOConfig {}", super::super::context::id(config)),
            about: vec!["being uninstalled".into()],
            checks: uninstall::checks(context, config).await,
        });
        return subjects;
    }
    subjects.push(Subject {
        subject: Topic::Drivers,
        name: format!("VDOConfig {}", super::super::context::id(config)),
        about: vec![format!("matrix {}", context.used.what())],
        checks: drivers(context, config, exits).await,
    });
    subjects
}

/// What the operator has found out about pods that fail, by events and logs over time, says more than one look at the cluster.
fn keep_evidence(conditions: &mut [Condition], published: &[Condition]) {
    let evidence = |found: &Condition| {
        let same = |known: &&Condition| known.type_ == found.type_ && known.status == found.status;
        published
            .iter()
            .find(same)
            .filter(|known| known.reason == Reason::PodsFailing.as_str())
    };
    for found in conditions.iter_mut().filter(|found| found.status == "False") {
        if let Some(known) = evidence(found) {
            found.reason.clone_from(&known.reason);
            found.message.clone_from(&known.message);
        }
    }
}

/// The VDOConfig with the status that was found.
fn known(config: &VDOConfig, status: VDOConfigStatus) -> Config {
    Config::of(&VDOConfig {
        status: Some(status),
        ..config.clone()
    })
}

/// The conditions that the operator would publish now, worst news of the pipeline included.
async fn drivers(context: &Deciding, config: &VDOConfig, exits: &mut Vec<Exit>) -> Vec<Check> {
    let mut report = match context.prepare(config).await {
        Ok(((_, planned), mut found)) => {
            found.waiting = planned.plan.waiting;
            found
        }
        // The user of this command, and not the operator, lacks a right: what the operator found last stays true.
        Err(Stopped {
            error: ReconcileError::Cluster(error @ ClusterError::Forbidden { .. }),
            ..
        }) => {
            exits.push(Exit::Refused);
            return vec![not_seen("Drivers", &CliError::cluster(&error))];
        }
        Err(stopped) => stopped.into_report(),
    };
    // Whether the operator can read the source is for the operator to say.
    if context.used.is_of_operator() {
        report.preconditions.retain(|found| found.kind != ConditionType::MatrixFresh);
    }
    report.generation = config.metadata.generation;
    let published = config.status.clone().unwrap_or_default();
    let mut status = fold(&published, &report, &Time(now()));
    keep_evidence(&mut status.conditions, &published.conditions);
    let quiet = [ConditionType::Ready, ConditionType::Reconciling, ConditionType::Stalled].map(ConditionType::as_str);
    let ready = status.conditions.iter().find(|c| c.type_ == quiet[0]);
    let others: Vec<Check> = status
        .conditions
        .iter()
        .filter(|c| !quiet.contains(&c.type_.as_str()))
        .map(Check::of)
        .collect();
    // Ready sums up the others; it is shown where it has a reason of its own.
    let own = ready.filter(|ready| ready.status != "True" && others.iter().all(|check| check.reason != ready.reason));
    let mut all: Vec<Check> = own.map(Check::of).into_iter().chain(others).collect();
    let found = known(config, status);
    for check in &mut all {
        check.lead_to_command(About::Config(&found));
    }
    all
}
