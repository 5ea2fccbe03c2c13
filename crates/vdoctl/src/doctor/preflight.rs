//! `--pre`: before anything is installed, from a vCenter's address, an account there and, where there is one, a kubeconfig.

use super::super::args::{Doctor as Args, Global};
use super::super::context::{Deployed, now};
use super::super::matrix::Choice;
use super::super::{CliError, Exit};
use super::check::{Check, Subject, Topic};
use super::password::password;
use super::{Findings, connection_subject, open};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use vdo::reconcile::connection::examine;
use vdo_api::api::{ConditionType, Reason, VDOConfig, VDOConfigSpec};
use vdo_api::facts::{Credentials, Node};
use vdo_api::types::{KubernetesVersion, Thumbprint, Trust, VcenterVersion, count};
use vdo_core::drivers::KNOWN;
use vdo_core::matrix::{DriverRequest, Index, Query, UpdatePolicy, resolve};
use vdo_vsphere::vcenter::{Budget, Endpoint};
use vdo_vsphere::vsphere::{Claim, ConnectionReport, Feature, InspectionRequest, Requirements};

/// What the cluster says, if it can be asked.
struct Cluster {
    kubernetes: KubernetesVersion,
    nodes: Vec<Arc<Node>>,
    claim: Option<Arc<Claim>>,
}

pub(super) async fn inspect(args: &Args, global: &Global) -> Result<Findings, CliError> {
    let given = &args.vcenter;
    let user = given.user.clone().unwrap_or_default();
    let trust = trust(given.thumbprint.as_ref(), given.ca_file.as_deref(), given.insecure)?;
    let endpoint = endpoint(given.vcenter.as_deref().unwrap_or_default(), trust)?;
    let (password, warning) = password(given.password_file.as_deref(), &user)?;
    let mut found = Findings::default();
    found.talk.extend(warning);

    let requirements = Requirements {
        drivers: KNOWN.map(|driver| driver.name.into()).into(),
        features: [Feature::CloudProvider, Feature::Block].into(),
        ..Requirements::default()
    };
    let cluster = cluster(global, &requirements, &mut found).await;
    let choice = Choice::at_desk(&args.index, global).await?;
    found.talk.extend(choice.used.warning());
    let loaded = choice.loaded;
    let request = InspectionRequest {
        server: endpoint.server.clone(),
        datacenters: given.datacenter.clone(),
        requirements,
        nodes: cluster.as_ref().map(|cluster| cluster.nodes.clone()).unwrap_or_default(),
        alone: true,
        surplus: args.surplus(),
        machine_tags: false,
        index: Some(loaded.index.clone()),
        claim: cluster.as_ref().and_then(|cluster| cluster.claim.clone()),
    };
    let budget = Budget::for_person(global.timeout);
    let reported = examine(&endpoint, &Credentials { user, password }, request, now(), &budget).await;
    let mut subject = connection_subject(&endpoint.address(), &reported);
    for check in &mut subject.checks {
        check.without_secret();
    }
    if cluster.is_none()
        && let Some(nodes) = subject
            .checks
            .iter_mut()
            .find(|check| check.check == ConditionType::NodesFound.as_str())
    {
        *nodes = Check::new(
            &*nodes.check,
            None,
            Reason::NotChecked,
            "no cluster is known whose nodes could be looked for",
            "",
        );
    }
    let drivers = drivers(cluster.as_ref(), &reported, &loaded.index);
    found.view.subjects.push(drivers);
    found.take(&endpoint.address(), subject, reported);
    Ok(found)
}

/// The cluster of the kubeconfig. That there is none is no failure before an installation; that it does not answer is one.
async fn cluster(global: &Global, requirements: &Requirements, found: &mut Findings) -> Option<Cluster> {
    let check = |status, reason, message: &str, remedy: &str| Check::new("Reachable", status, reason, message, remedy);
    let mut subject = Subject {
        subject: Topic::Cluster,
        name: "-".into(),
        about: Vec::new(),
        checks: Vec::new(),
    };
    let context = match open(global).await {
        Ok(context) => context,
        Err(error) => {
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
            subject.checks.push(check(status, reason, &error.what, error.remedy.as_str()));
            found.view.subjects.push(subject);
            return None;
        }
    };
    subject.name = context.name.clone();
    subject.about = vec![context.server.clone(), context.kubernetes.raw().to_owned()];
    subject
        .checks
        .push(check(Some(true), Reason::Healthy, "the API server answers", ""));
    let nodes = match vdo::reconcile::nodes(&context.ports.reader).await {
        Ok(nodes) => nodes,
        Err(error) => {
            let error = CliError::from(error);
            subject.checks.push(Check::new(
                "NodesListed",
                Some(false),
                Reason::Forbidden,
                &error.what,
                error.remedy.as_str(),
            ));
            found.exits.push(error.exit);
            Vec::new()
        }
    };
    subject.about.push(count(nodes.len(), "node"));
    subject.checks.push(super::kubelet(&nodes));
    found.view.subjects.push(subject);
    let config = match context.deployed().await {
        Ok(Deployed::Config(config)) => *config,
        _ => VDOConfig::new("vdo", VDOConfigSpec::default()),
    };
    Some(Cluster {
        claim: context.claim(&config, requirements).await,
        kubernetes: context.kubernetes,
        nodes,
    })
}

/// Whether there are versions of both drivers for this cluster and this vCenter.
fn drivers(cluster: Option<&Cluster>, reported: &ConnectionReport, index: &Index) -> Subject {
    let version: Option<VcenterVersion> = reported.about.as_ref().and_then(|about| about.version.parse().ok());
    let check = match (cluster, version) {
        (Some(cluster), Some(version)) => {
            let drivers: BTreeMap<_, _> = KNOWN
                .into_iter()
                .map(|driver| (driver.name.into(), DriverRequest::default()))
                .collect();
            let vcenters = [(
                "vcenter".to_owned(),
                index.vcenter(&version, reported.about.as_ref().map(|about| about.build.as_str())),
            )];
            let result = resolve(
                index,
                &Query {
                    kubernetes: &cluster.kubernetes,
                    vcenters: &vcenters,
                    drivers: &drivers,
                    installed: &BTreeMap::new(),
                    policy: UpdatePolicy::Compatible,
                },
            );
            match result {
                Ok(choice) => {
                    let picks: Vec<String> = choice.picks.iter().map(|(name, pick)| format!("{name} {}", pick.version)).collect();
                    Check::new(
                        "VersionsFit",
                        Some(true),
                        Reason::Healthy,
                        &format!("{} would be installed", picks.join(" and ")),
                        "",
                    )
                }
                Err(error) => {
                    let error = CliError::of(Exit::Differences, error.as_ref());
                    Check::new(
                        "VersionsFit",
                        Some(false),
                        Reason::NoCompatibleVersion,
                        &error.what,
                        error.remedy.as_str(),
                    )
                }
            }
        }
        (None, _) => Check::new(
            "VersionsFit",
            None,
            Reason::NotChecked,
            "the version of the cluster is not known",
            "",
        ),
        (_, None) => Check::new(
            "VersionsFit",
            None,
            Reason::NotChecked,
            "the version of the vCenter is not known",
            "",
        ),
    };
    Subject {
        subject: Topic::Drivers,
        name: "cloud provider and CSI".into(),
        about: Vec::new(),
        checks: vec![check],
    }
}

/// Where a vCenter is, from an address as it is typed.
pub(crate) fn endpoint(address: &str, trust: Trust) -> Result<Endpoint, CliError> {
    let (server, port) = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((server, rest)) => (server.to_owned(), rest.strip_prefix(':').map(str::to_owned)),
        None if address.matches(':').count() == 1 => {
            let (server, port) = address.split_once(':').unwrap_or_default();
            (server.to_owned(), Some(port.to_owned()))
        }
        None => (address.to_owned(), None),
    };
    let port = port.map_or(Ok(443), |port| port.parse::<u16>()).map_err(|_| {
        CliError::new(
            Exit::Usage,
            format!("{address:?} has no port that is a number"),
            "Write the host name or the address, and the port if it is not 443: vcenter.example.com:8443",
        )
    })?;
    Ok(Endpoint { server, port, trust })
}

/// How a vCenter is trusted, from what is typed.
pub(crate) fn trust(thumbprint: Option<&Thumbprint>, ca_file: Option<&Path>, insecure: bool) -> Result<Trust, CliError> {
    Ok(match (ca_file, thumbprint) {
        _ if insecure => Trust::Insecure,
        (Some(file), _) => Trust::CaBundle(std::fs::read_to_string(file).map_err(|error| {
            CliError::new(
                Exit::Usage,
                format!("{} cannot be read: {error}", file.display()),
                "Name a file with PEM certificates.",
            )
        })?),
        (None, Some(print)) => Trust::Thumbprint(print.clone()),
        (None, None) => Trust::SystemRoots,
    })
}
