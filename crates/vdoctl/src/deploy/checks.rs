//! Everything that the operator would find, before anything is written: its own checks and its own pipeline, run as if the installation
//! were there already.

use super::super::context::{Context, Deciding, now};
use super::super::doctor::check::{Check, Mark, Subject, Topic, worst};
use super::super::doctor::{connection_subject, kubelet};
use super::super::error::sentence;
use super::super::{CliError, Exit};
use super::configuration::Configuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use vdo::cluster::Reader;
use vdo::reconcile::connection::{Inputs, Permission, inputs, inspect, known_index, requirements};
use vdo_api::api::{VDOConfig, VDOConfigStatus, VsphereCloudConfig};
use vdo_api::facts::Node;
use vdo_core::manifest::Object;
use vdo_core::matrix::Resolution;
use vdo_vsphere::vcenter::Budget;
use vdo_vsphere::vsphere::{ConnectionReport, Inspection, InspectionRequest, fold_status, report};

/// What was found.
pub(crate) struct Checked {
    /// Everything that was looked at.
    pub(crate) subjects: Vec<Subject>,
    /// One line for each vCenter that answers.
    pub(crate) vcenters: Vec<String>,
    /// The identity of each of these.
    pub(crate) instances: Vec<String>,
    /// The chosen versions.
    pub(crate) choice: Option<Resolution>,
}

impl Checked {
    /// The code that a failed check ends with; `Ok` when none failed.
    pub(crate) fn exit(&self) -> Exit {
        worst(&self.subjects, &[])
    }

    /// Every check that failed, with what to do about it.
    pub(crate) fn failures(&self) -> impl Iterator<Item = &Check> {
        let all = self.subjects.iter().flat_map(|subject| &subject.checks);
        all.filter(|check| check.status == Mark::False)
    }

    /// How many checks passed.
    pub(crate) fn passed(&self) -> usize {
        self.subjects.iter().map(|subject| subject.count(Mark::True)).sum()
    }
}

struct Examined {
    object: VsphereCloudConfig,
    inputs: Inputs,
    inspection: Inspection,
}

/// Checks a configuration in a cluster where `installed` is supposed to be. `only` names the connection that is asked; default: all.
pub(crate) async fn check(
    context: &mut Deciding,
    configuration: &Configuration,
    only: Option<&str>,
    installed: &[Object],
    there: Option<&VDOConfig>,
) -> Result<Checked, CliError> {
    let Some(mut config) = configuration.config() else {
        return Err(CliError::new(Exit::Usage, "there is no VDOConfig to check", ""));
    };
    let namespace = context.namespace().to_owned();
    there.into_iter().for_each(|there| keep(&mut config, there));
    let supposed: Vec<Object> = installed.iter().chain(&configuration.objects).cloned().collect();
    context.suppose(supposed.clone());
    let nodes = vdo::reconcile::nodes(&context.ports.reader).await?;
    let examined = examine(context, &namespace, &config, configuration.connections(), only, &nodes).await;
    let mut checked = Checked {
        subjects: vec![Subject {
            subject: Topic::Cluster,
            name: context.name.clone(),
            about: Vec::new(),
            checks: vec![kubelet(&nodes)],
        }],
        vcenters: Vec::new(),
        instances: Vec::new(),
        choice: None,
    };
    for one in &examined {
        let reported = report(&one.inspection, false, now());
        checked.vcenters.extend(line(&one.object, &reported));
        checked
            .instances
            .extend(reported.about.iter().map(|about| about.instance_uuid.clone()));
        checked.subjects.push(connection_subject(&one.object.name_any(), &reported));
    }
    if checked.exit() == Exit::Ok {
        context.suppose(supposed.into_iter().map(|object| seen(object, &examined)).collect());
        decided(context, &config, &mut checked).await;
    }
    context.ports.reader = Reader::Once(context.ports.client.clone());
    Ok(checked)
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
    namespace: &str,
    config: &VDOConfig,
    connections: Vec<VsphereCloudConfig>,
    only: Option<&str>,
    nodes: &[Arc<Node>],
) -> Vec<Examined> {
    let names: BTreeSet<String> = connections.iter().map(ResourceExt::name_any).collect();
    let alone = connections.len() < 2;
    let index = known_index(&context.ports.repository).await;
    let asked = connections
        .into_iter()
        .filter(|object| only.is_none_or(|only| object.name_any() == only));
    let looks = asked.map(|object| async {
        let inputs = inputs(&context.ports.reader, &object).await;
        let requirements = requirements(config, namespace, &names, &object.name_any());
        let claim = context.claim(config, &requirements).await;
        let request = InspectionRequest {
            server: object.spec.vc_ip.clone(),
            datacenters: object.spec.datacenters.clone(),
            nodes: nodes.to_vec(),
            requirements,
            alone,
            surplus: false,
            machine_tags: false,
            index: index.clone(),
            claim,
        };
        // A person gave the password just now, so it is tried once.
        let inspection = inspect(&object, &inputs, request, Permission::Given, &Budget::default()).await;
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

/// The operator's pipeline up to the plan: the versions, the charts with these values, drivers of others.
async fn decided(context: &Deciding, config: &VDOConfig, checked: &mut Checked) {
    let failed = |error: &vdo::reconcile::ReconcileError| {
        use vdo_api::api::Classify as _;
        use vdo_api::types::Remedy as _;
        Check::new(
            "DriversFit",
            Some(false),
            error.reason(),
            &sentence(error),
            error.remedy().unwrap_or_default().into_owned(),
        )
    };
    let mut checks = Vec::new();
    match context.prepare(config).await {
        Ok(((_, planned), _)) => {
            checks.extend(planned.runs.failures().iter().map(|failure| failed(&failure.error)));
            checked.choice = Some(planned.runs.resolution());
        }
        Err(stopped) => checks.push(failed(&stopped.error)),
    }
    checked.subjects.push(Subject {
        subject: Topic::Drivers,
        name: "cloud provider and CSI".into(),
        about: Vec::new(),
        checks,
    });
}

fn line(object: &VsphereCloudConfig, reported: &ConnectionReport) -> Option<String> {
    let about = reported.about.as_ref()?;
    Some(format!("{} is vCenter {} build {}", object.spec.vc_ip, about.version, about.build))
}
