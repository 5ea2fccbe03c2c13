// SPDX-License-Identifier: Apache-2.0
//! Runs the operator's checks as if VDO were installed, for `deploy`, `configure connection`, `adopt` and `doctor --pre`; writes nothing.

mod decided;

use super::context::{Context, Deciding, now};
use super::deploy::configuration::Configuration;
use super::doctor::check::{Check, Mark, Subject, Topic};
use super::doctor::exit_code::worst;
use super::doctor::{connection_subject, kubelet};
use super::plan_and_diff::Planned;
use super::{CliError, Exit};
use decided::TAKING_OVER;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use vdo::cluster::Reader;
use vdo::reconcile::connection::{Inputs, Permission, inputs, inspect, known_index, requirements};
use vdo::reconcile::rivals;
use vdo_api::api::{ConditionType, Reason, VDOConfig, VDOConfigStatus, VsphereCloudConfig};
use vdo_api::facts::Node;
use vdo_api::types::count;
use vdo_core::health::placement;
use vdo_core::install::OPERATOR;
use vdo_core::manifest::Object;
use vdo_core::matrix::Resolution;
use vdo_vsphere::vcenter::Budget;
use vdo_vsphere::vsphere::{ConnectionReport, Inspection, InspectionRequest, fold_status, report};

/// What was found.
pub(crate) struct Checked {
    /// The cluster.
    pub(crate) cluster: Subject,
    /// The drivers, if every vCenter is well.
    pub(crate) drivers: Option<Subject>,
    /// Every connection that was looked at.
    pub(crate) connections: Vec<Connected>,
    /// The chosen versions.
    pub(crate) choice: Option<Resolution>,
    /// What would be done to each object of the drivers, in a first installation of which no check failed before.
    pub(crate) plan: Option<Planned>,
}

/// A connection, and what the look at its vCenter has shown.
pub(crate) struct Connected {
    pub(crate) subject: Subject,
    pub(crate) report: ConnectionReport,
    /// The address of the vCenter.
    server: String,
}

impl Connected {
    /// One line, if the vCenter answers.
    pub(crate) fn line(&self) -> Option<String> {
        let about = self.report.about.as_ref()?;
        Some(format!("{} is vCenter {} build {}", self.server, about.version, about.build))
    }
}

impl Checked {
    fn subjects(&self) -> impl Iterator<Item = &Subject> {
        let connections = self.connections.iter().map(|one| &one.subject);
        [&self.cluster].into_iter().chain(connections).chain(&self.drivers)
    }

    /// The code that a failed check ends with; `Ok` when none failed.
    pub(crate) fn exit(&self) -> Exit {
        worst(self.subjects(), &[])
    }

    /// Every check that failed, with what to do about it.
    pub(crate) fn failures(&self) -> impl Iterator<Item = &Check> {
        let all = self.subjects().flat_map(|subject| &subject.checks);
        all.filter(|check| check.status == Mark::False)
    }

    /// How many checks passed.
    pub(crate) fn passed(&self) -> usize {
        self.subjects().map(|subject| subject.count(Mark::True)).sum()
    }

    /// The identity of each vCenter that answers.
    pub(crate) fn instances(&self) -> impl Iterator<Item = &str> {
        let about = self.connections.iter().filter_map(|one| one.report.about.as_ref());
        about.map(|about| about.instance_uuid.as_str())
    }
}

/// What is asked besides the configuration.
pub(crate) struct Asking<'a> {
    /// The only connection that is looked at; default: all.
    pub(crate) only: Option<&'a str>,
    /// What is supposed to be in the cluster: the operator and what comes with it.
    pub(crate) installed: &'a [Object],
    /// The VDOConfig that acts.
    pub(crate) there: Option<&'a VDOConfig>,
    /// Whether privileges that nothing needs are looked for.
    pub(crate) surplus: bool,
    /// How long a vCenter may take.
    pub(crate) budget: Budget,
}

struct Examined {
    object: VsphereCloudConfig,
    inputs: Inputs,
    inspection: Inspection,
}

/// Checks a configuration in a cluster. Whatever keeps a first installation from getting healthy fails; what may trouble an installation that is
/// there is for its own conditions to say.
pub(crate) async fn check(context: &mut Deciding, configuration: &Configuration, asking: Asking<'_>) -> Result<Checked, CliError> {
    let Some(mut config) = configuration.config() else {
        return Err(CliError::new(Exit::Usage, "there is no VDOConfig to check", ""));
    };
    asking.there.into_iter().for_each(|there| keep(&mut config, there));
    let supposed: Vec<Object> = asking.installed.iter().chain(&configuration.objects).cloned().collect();
    context.suppose(supposed.clone());
    let nodes = vdo::reconcile::nodes(&context.ports.reader).await?;
    let examined = examine(context, &config, configuration.connections(), &asking, &nodes).await;
    let mut checked = Checked {
        cluster: cluster(context, &asking, &nodes),
        drivers: None,
        connections: examined.iter().map(|one| connected(one, configuration)).collect(),
        choice: None,
        plan: None,
    };
    if checked.connections.iter().all(|one| worst([&one.subject], &[]) == Exit::Ok) {
        context.suppose(supposed.into_iter().map(|object| seen(object, &examined)).collect());
        decided::decided(context, &config, asking.there.is_none(), &mut checked).await;
    }
    context.ports.reader = Reader::Once(context.ports.client.clone());
    if asking.there.is_none() && !checked.cluster.checks.iter().any(|check| check.check == FOREIGN.as_str()) {
        checked.cluster.checks.push(no_foreign_driver(context).await);
    }
    Ok(checked)
}

/// The objects, of which these connections have the status that the operator would give them.
pub(crate) async fn with_status(
    context: &Context,
    config: &VDOConfig,
    objects: Vec<Object>,
    names: &BTreeSet<&str>,
) -> Result<Vec<Object>, CliError> {
    let nodes = vdo::reconcile::nodes(&context.ports.reader).await?;
    let configuration = Configuration { objects };
    let asking = |only| Asking {
        only: Some(only),
        installed: &[],
        there: Some(config),
        surplus: false,
        budget: Budget::default(),
    };
    let looks = names.iter().map(|name| {
        let (asking, connections) = (asking(*name), configuration.connections());
        let nodes = &nodes;
        async move { examine(context, config, connections, &asking, nodes).await }
    });
    let examined: Vec<Examined> = futures::future::join_all(looks).await.into_iter().flatten().collect();
    Ok(configuration.objects.into_iter().map(|object| seen(object, &examined)).collect())
}

/// The condition about other managers.
const FOREIGN: ConditionType = ConditionType::NoForeignDriver;

fn cluster(context: &Context, asking: &Asking<'_>, nodes: &[Arc<Node>]) -> Subject {
    let mut checks = vec![kubelet(nodes)];
    let operator = asking
        .installed
        .iter()
        .find(|object| object.name() == OPERATOR && object.kind() == "Deployment");
    checks.extend(operator.and_then(|operator| operator_placed(operator, nodes)));
    Subject {
        subject: Topic::Cluster,
        name: context.name.clone(),
        about: vec![count(nodes.len(), "node")],
        checks,
    }
}

/// Whether a node takes the operator's own pod.
fn operator_placed(operator: &Object, nodes: &[Arc<Node>]) -> Option<Check> {
    let place = placement(operator, nodes)?;
    let total = nodes.len();
    let later = place.later();
    if place.is_enough() {
        let which = place.eligible + later.len();
        let later = if later.is_empty() {
            String::new()
        } else {
            format!(" ({})", later.join("; "))
        };
        let message = format!("the pods of {operator} can be scheduled on {which} of {total} nodes{later}");
        return Some(Check::new(PLACED, Some(true), Reason::Healthy, &message, ""));
    }
    let refused = place.hindrances();
    let why = if refused.is_empty() {
        String::new()
    } else {
        format!(" ({})", refused.join("; "))
    };
    Some(Check::new(
        PLACED,
        Some(false),
        Reason::NoEligibleNode,
        &format!("the pods of {operator} can be scheduled on none of {total} nodes{why}"),
        "Label a node as a control-plane node, or have the operator tolerate the taint: vdoctl deploy --toleration KEY[=VALUE][:EFFECT].",
    ))
}

/// The check of the operator's own pod.
const PLACED: &str = "OperatorPlaced";

/// Whether a driver runs already that deploy would not install a second one beside, where the drivers as such could not be decided on.
async fn no_foreign_driver(context: &Context) -> Check {
    match rivals(&context.ports.client, &context.ports.reader, "", context.namespace()).await {
        Ok(rivals) if rivals.is_empty() => Check::new(
            FOREIGN.as_str(),
            Some(true),
            Reason::Healthy,
            "no other manager runs a vSphere driver in this cluster",
            "",
        ),
        Ok(rivals) => Check::new(FOREIGN.as_str(), Some(false), Reason::NotOurs, &rivals.join("; "), TAKING_OVER),
        Err(error) => {
            let error = CliError::of(Exit::Cluster, &error);
            Check::new(FOREIGN.as_str(), None, Reason::NotChecked, &error.what, error.remedy.as_str())
        }
    }
}

fn connected(examined: &Examined, configuration: &Configuration) -> Connected {
    let report = report(&examined.inspection, false, now());
    let mut subject = connection_subject(&examined.object.name_any(), &report);
    subject.lead_to_thumbprint(&report);
    let credentials = examined.object.spec.credentials.as_str();
    let typed = configuration
        .objects
        .iter()
        .any(|o| o.kind() == "Secret" && o.name() == credentials);
    if typed {
        subject.checks.iter_mut().for_each(Check::without_secret);
    }
    Connected {
        subject,
        server: examined.object.spec.vc_ip.clone(),
        report,
    }
}

/// What of a VDOConfig outlives that it is applied again, as far as the checks ask for it: whether its cluster id is in use, and what people
/// have said by annotations.
fn keep(config: &mut VDOConfig, there: &VDOConfig) {
    config.status = Some(VDOConfigStatus {
        cluster_id: there.status.as_ref().and_then(|status| status.cluster_id.clone()),
        ..VDOConfigStatus::default()
    });
    let mut annotations = there.annotations().clone();
    annotations.append(config.annotations_mut());
    *config.annotations_mut() = annotations;
}

async fn examine(
    context: &Context,
    config: &VDOConfig,
    connections: Vec<VsphereCloudConfig>,
    asking: &Asking<'_>,
    nodes: &[Arc<Node>],
) -> Vec<Examined> {
    let names: BTreeSet<String> = connections.iter().map(ResourceExt::name_any).collect();
    let alone = connections.len() < 2;
    let index = known_index(&context.ports.repository).await;
    let asked = connections
        .into_iter()
        .filter(|object| asking.only.is_none_or(|only| object.name_any() == only));
    let looks = asked.map(|object| async {
        let inputs = inputs(&context.ports.reader, &object).await;
        let requirements = requirements(config, context.namespace(), &names, &object.name_any());
        let claim = context.claim(config, &requirements).await;
        let request = InspectionRequest {
            server: object.spec.vc_ip.clone(),
            datacenters: object.spec.datacenters.clone(),
            nodes: nodes.to_vec(),
            requirements,
            alone,
            surplus: asking.surplus,
            machine_tags: false,
            index: index.clone(),
            claim,
            counted: None,
        };
        // A person gave the password just now, so it is tried once.
        let inspection = inspect(&object, &inputs, request, Permission::Given, &asking.budget).await;
        Examined {
            object,
            inputs,
            inspection,
        }
    });
    futures::future::join_all(looks).await
}

/// A connection with the status that the operator would give it.
fn seen(object: Object, examined: &[Examined]) -> Object {
    let Some(one) = examined
        .iter()
        .find(|one| object.kind() == "VsphereCloudConfig" && one.object.name_any() == object.name())
    else {
        return object;
    };
    let status = fold_status(
        &one.object,
        one.inputs.credentials.as_ref(),
        Some(&one.inspection),
        None,
        &Time(now()),
    );
    let mut value = object.value().clone();
    value["status"] = json!(status);
    Object::new(value).unwrap_or(object)
}
