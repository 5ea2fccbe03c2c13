//! What is there: the cluster, the drivers as the pipeline sees them now, and every vSphere connection.

use super::super::args::{Doctor as Args, DoctorVerb, Global};
use super::super::failure::unknown;
use super::super::session::{Deployed, Session, now};
use super::super::{CliError, Exit};
use super::account::password;
use super::check::{Check, Subject};
use super::{Findings, connection_subject, kubelet, open};
use crate::api::{ConditionType, Reason, VDOConfig, VsphereCloudConfig};
use crate::cluster::ClusterError;
use crate::facts::{Credentials, Node, StoredCredentials};
use crate::reconcile::connection::{Inputs, Permission, inputs, inspect, known_index, requirements};
use crate::reconcile::{self, ReconcileError, connection_objects};
use crate::status::{Report, fold};
use crate::types::count;
use crate::vsphere::{ConnectionReport, Coverage, Inspection, InspectionRequest, coverage, credentials_check, cross_checks, report};
use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use std::sync::Arc;

pub(super) async fn look(args: &Args, global: &Global) -> Result<Findings, CliError> {
    let mut session = open(global).await?.choosing_from(&args.index).await?;
    // Only reads: nothing is sent as a dry run.
    session.world.rehearsals = None;
    let mut found = Findings::default();
    let own = match connection_objects(&session.world.reader, &global.namespace).await {
        Err(ReconcileError::Cluster(ClusterError::NotServed { .. })) => Vec::new(),
        result => result?,
    };
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
            format!("one password cannot be tried for {} connections", chosen.len()),
            "Name the connection: vdoctl doctor connection NAME --password-file FILE",
        ));
    }
    let deployed = session.deployed().await?;
    let nodes = match reconcile::nodes(&session.world.reader).await {
        Ok(nodes) => nodes,
        Err(error) => {
            found
                .talk
                .push(format!("nodes cannot be held against the vCenter: {}", CliError::from(error).what));
            Vec::new()
        }
    };
    if args.what.is_none() {
        found.subjects.extend(cluster(&session, &deployed, &nodes, &mut found.exits).await);
        if own.is_empty() {
            found
                .talk
                .push("Before anything is installed: vdoctl doctor --pre --vcenter HOST --user NAME".into());
        }
    }
    let names = own.iter().map(ResourceExt::name_any).collect();
    let spec = match &deployed {
        Deployed::Config(config) => Some(&config.spec),
        _ => None,
    };
    let index = known_index(&session.world.library).await;
    let inspected = join_all(chosen.iter().map(|object| async {
        let request = InspectionRequest {
            server: object.spec.vc_ip.clone(),
            datacenters: object.spec.datacenters.clone(),
            nodes: nodes.clone(),
            requirements: spec
                .as_ref()
                .map(|spec| requirements(spec, &global.namespace, &names, &object.name_any()))
                .unwrap_or_default(),
            alone: own.len() < 2,
            surplus: args.surplus(),
            index: index.clone(),
        };
        examine(args, &session, object, &own, request).await
    }))
    .await;
    let inspected: Vec<Examined> = inspected.into_iter().collect::<Result<_, CliError>>()?;
    // Of connections that were not looked at, nothing is said.
    let whole = chosen.len() == own.len();
    let coverages: Vec<Arc<Coverage>> = inspected
        .iter()
        .filter_map(|examined| coverage(&examined.name, &examined.inspection).map(Arc::new))
        .collect();
    for examined in inspected {
        let mut told = report(&examined.inspection, false, now());
        let own = coverages.iter().find(|coverage| coverage.connection == examined.name);
        if let Some(own) = own.filter(|_| whole) {
            told.add_cross_checks(cross_checks(own, &coverages));
        }
        let subject = subject(&examined, &told);
        found.take(&examined.name, subject, told);
        found.talk.extend(examined.warning);
    }
    Ok(found)
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
    session: &Session,
    object: &VsphereCloudConfig,
    all: &[VsphereCloudConfig],
    request: InspectionRequest,
) -> Result<Examined, CliError> {
    let mut inputs = inputs(&session.world.reader, object).await;
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
    let inspection = inspect(object, &inputs, request, permission).await;
    Ok(Examined {
        name: object.name_any(),
        inspection,
        inputs,
        warning,
    })
}

/// A connection with its stages and with that of its Secret, which needs no vCenter.
fn subject(examined: &Examined, told: &ConnectionReport) -> Subject {
    let mut subject = connection_subject(&examined.name, told);
    let at = subject
        .checks
        .iter()
        .position(|check| check.check == ConditionType::Authenticated.as_str());
    let credentials = Check::of_connection(&credentials_check(examined.inputs.credentials.as_ref()));
    subject.checks.insert(at.unwrap_or(subject.checks.len()), credentials);
    subject
}

/// The cluster, and the VDOConfig as the pipeline finds it now.
async fn cluster(session: &Session, deployed: &Deployed, nodes: &[Arc<Node>], exits: &mut Vec<Exit>) -> Vec<Subject> {
    let mut subjects = vec![Subject {
        subject: "cluster",
        name: session.name.clone(),
        about: vec![
            session.server.clone(),
            session.kubernetes.raw().to_owned(),
            count(nodes.len(), "node"),
        ],
        checks: vec![
            Check::new("Reachable", Some(true), Reason::Healthy, "the API server answers", ""),
            kubelet(nodes),
        ],
    }];
    let Deployed::Config(config) = deployed else {
        let missing = session.missing(deployed);
        exits.push(missing.exit);
        let check = Check::new("Deployed", Some(false), Reason::NotChecked, &missing.what, &missing.remedy);
        subjects[0].checks.push(Check {
            reason: "NotDeployed".into(),
            ..check
        });
        return subjects;
    };
    subjects.push(Subject {
        subject: "drivers",
        name: format!("VDOConfig {}", super::super::session::id(config)),
        about: Vec::new(),
        checks: drivers(session, config).await,
    });
    subjects
}

/// The conditions that the operator would publish now, worst news of the pipeline included.
async fn drivers(session: &Session, config: &VDOConfig) -> Vec<Check> {
    let mut report = Report {
        generation: config.metadata.generation,
        ..Report::default()
    };
    if let Err(error) = session.prepare(config, &mut report).await {
        report.troubles.insert(0, (&error).into());
    }
    let status = fold(&config.status.clone().unwrap_or_default(), &report, &Time(now()));
    let quiet = [ConditionType::Ready, ConditionType::Reconciling, ConditionType::Stalled].map(ConditionType::as_str);
    let ready = status.conditions.iter().find(|c| c.type_ == quiet[0]);
    let others: Vec<Check> = status
        .conditions
        .iter()
        .filter(|c| !quiet.contains(&c.type_.as_str()))
        .map(Check::of)
        .collect();
    // Ready sums up the others; it is told where it has a reason of its own.
    let own = ready.filter(|ready| ready.status != "True" && others.iter().all(|check| check.reason != ready.reason));
    own.map(Check::of).into_iter().chain(others).collect()
}
