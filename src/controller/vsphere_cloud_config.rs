// SPDX-License-Identifier: Apache-2.0
//! The loop over VsphereCloudConfigs: inspects the vCenter when a check is due, and writes the status.

use super::loop_memory::{Connection, newest};
use super::vcenter_schedule::Asking;
use super::{Context, events, liveness_deadlines, now, sessions};
use crate::cluster::{ClusterError, Reader, version_number};
use crate::reconcile::connection::{self, Inputs};
use crate::reconcile::{ReconcileError, acting, configs, connection_objects, neighbours, nodes};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use serde_json::json;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::Instrument as _;
use vdo_api::api::{
    API_VERSION, ConditionType, Conditions, CredentialStatus, RECONCILE_AT, VDOConfig, VsphereCloudConfig, VsphereCloudConfigStatus,
};
use vdo_api::facts::Node;
use vdo_api::retry::{INTERVAL_JITTER, jitter};
use vdo_core::manifest::merge_patch;
use vdo_core::status::notes;
use vdo_vsphere::vsphere::login_retry::Key;
use vdo_vsphere::vsphere::{
    Claim, Inspection, InspectionRequest, LoginOutcome, ProbeOutcome, Readings, Requirements, VcenterFacts, coverage, cross_checks,
    figures, fold_status, is_settled, is_unread, with_probe_times,
};

/// A pause between two looks from which on the time of each is written down.
const WORTH_WRITING: Duration = Duration::from_secs(60);

/// The pause before the status is read again where that failed.
const UNREAD: Duration = Duration::from_secs(5);

pub(super) async fn reconcile(object: Arc<VsphereCloudConfig>, context: Arc<Context>) -> Result<Action, Infallible> {
    if !context.fence.is_open() {
        // Another operator leads. When it is our turn, everything is looked at.
        return Ok(Action::await_change());
    }
    if object.metadata.deletion_timestamp.is_some() {
        context.metrics.forget_connection(&object.name_any());
        release(&context, context.memory.forget_connection(&object.uid().unwrap_or_default()));
        return Ok(Action::await_change());
    }
    let uid = object.uid().unwrap_or_default();
    let mut memory = context.memory.connection(&uid);
    let mut object = match memory.unconfirmed {
        false => (*object).clone(),
        true => match live(&context, &object).await {
            Ok(Some(live)) => {
                memory.confirm(&live);
                live
            }
            Ok(None) => return Ok(Action::await_change()),
            Err(error) => {
                tracing::warn!(connection = %object.name_any(), error = %vdo_api::api::chain(&error), "the status cannot be read");
                return Ok(Action::requeue(UNREAD));
            }
        },
    };
    let shown = object.resource_version();
    object.status = Some(newest(object.status.as_ref(), shown.as_deref(), memory.status.as_ref()));

    let inputs = connection::inputs(&context.ports.reader, &object).await;
    let around = around(&context, &object).await;
    let asking = asking(&context, &object, &inputs, around.as_ref(), &uid);
    let before = object.status.clone().unwrap_or_default();
    // Not after a restart, when nothing is known of what it was asked with.
    let asked_differently = !memory.asked_with.is_empty() && memory.asked_with != asking.with;
    let inspection = if memory.due_in(&asking).is_zero() {
        let span = tracing::info_span!("inspection", connection = %object.name_any(), server = object.spec.vc_ip);
        let name = liveness_deadlines::name(&object);
        let asked = ask(&context, &mut object, &inputs, &mut memory, &asking, around);
        Some(liveness_deadlines::aside(&context.heartbeats, &name, asked.instrument(span)).await)
    } else {
        None
    };
    let among = memory.coverage.as_ref().map(|own| cross_checks(own, &context.memory.coverages()));
    let mut status = fold_status(&object, inputs.credentials.as_ref(), inspection.as_ref(), among, &Time(now()));
    if inspection.is_some() {
        let pause = memory.due_in(&asking);
        // When it is asked every few seconds, or once more after a restart, that alone is no news: each write wakes everyone.
        let reported = status.probes.as_ref().and_then(|probes| probes.next.as_ref());
        let over = reported.is_none_or(|next| next.0 <= now());
        if ((over || asked_differently) && pause >= WORTH_WRITING) || object.status.as_ref() != Some(&status) {
            let next = now().checked_add(SignedDuration::try_from(pause).unwrap_or_default()).ok();
            status = with_probe_times(status, Time(second(now())), next.map(second).map(Time));
        }
    }
    context
        .metrics
        .connection(&object.name_any(), Conditions::is_true(&status.conditions, ConditionType::Ready));
    context
        .metrics
        .vcenter(&object.name_any(), &status, inspection.as_ref().and_then(figures));
    let checks = status.conditions.iter().filter(|c| c.type_ != ConditionType::Ready.as_str());
    for check in checks {
        context.metrics.check(&object.name_any(), &check.type_, check.status == "False");
    }
    if let Err(error) = publish(&context, &object, &before, status, &mut memory).await {
        tracing::warn!(connection = %object.name_any(), error = %vdo_api::api::chain(&error), "the status could not be written");
        memory.asked = None;
    }
    let next = memory.due_in(&asking);
    context.memory.keep_connection(&uid, memory);
    context.sweep();
    Ok(Action::requeue(next.max(Duration::from_secs(1))))
}

/// The connection as it is now, whatever the watch shows.
async fn live(context: &Context, object: &VsphereCloudConfig) -> Result<Option<VsphereCloudConfig>, ReconcileError> {
    let reader = Reader::Once(context.ports.client.clone());
    let all = connection_objects(&reader, &object.namespace().unwrap_or_default()).await?;
    Ok(all.into_iter().find(|one| one.name_any() == object.name_any()))
}

/// A status speaks of whole seconds.
fn second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// What is around a connection in the cluster.
struct Around {
    connections: Vec<Arc<VsphereCloudConfig>>,
    nodes: Vec<Arc<Node>>,
    requirements: Requirements,
    /// The VDOConfig that acts.
    config: Option<VDOConfig>,
    /// The cluster id that is about to be used for the first time, if the storage driver uses this connection.
    claim: Option<String>,
}

async fn around(context: &Context, object: &VsphereCloudConfig) -> Option<Around> {
    let reader = &context.ports.reader;
    let own = async {
        Ok(futures::try_join!(
            neighbours(reader, &context.namespace),
            configs(reader, &context.namespace)
        )?)
    };
    let found = async {
        let ((connections, configs), nodes) = futures::try_join!(own, nodes(reader))?;
        let config = acting(configs.iter().map(AsRef::as_ref)).cloned();
        let requirements = requirements(config.as_ref(), &context.namespace, &object.name_any(), &connections);
        let claim = match &config {
            Some(config) => connection::claimed_id(reader, config, &requirements).await?,
            None => None,
        };
        Ok::<_, ReconcileError>(Around {
            connections,
            nodes,
            requirements,
            config,
            claim,
        })
    };
    let unreadable = |error: &ReconcileError| {
        tracing::warn!(connection = %object.name_any(), error = %vdo_api::api::chain(error), "the VDOConfig and the nodes of a connection cannot be read");
    };
    found.await.inspect_err(unreadable).ok()
}

/// What decides the answer of a vCenter: when it changes, the old answer says nothing. Nodes come and go in numbers, so they are
/// waited for a little.
fn asking(context: &Context, object: &VsphereCloudConfig, inputs: &Inputs, around: Option<&Around>, uid: &str) -> Asking {
    let (spec, trust) = (&object.spec, inputs.trust.as_ref().ok());
    let version = inputs.credentials.as_ref().map(|found| (&found.secret, &found.version)).ok();
    let requirements = around.map(|around| &around.requirements);
    let person = object.annotations().get(RECONCILE_AT);
    let mut crowd = DefaultHasher::new();
    for node in around.iter().flat_map(|around| &around.nodes) {
        (&node.name, &node.system_uuid, &node.provider_id, &node.addresses).hash(&mut crowd);
    }
    let waits = |node: &&Arc<Node>| node.uninitialized || node.provider_id.is_empty();
    let mark = |node: &Arc<Node>| {
        let mut own = DefaultHasher::new();
        (&node.name, &node.system_uuid).hash(&mut own);
        own.finish()
    };
    let nodes = around.iter().flat_map(|around| &around.nodes);
    Asking {
        waiting: nodes.filter(waits).map(mark).collect(),
        with: format!(
            "{}:{} {:?} {trust:?} {version:?} {requirements:?} {person:?}",
            spec.vc_ip, spec.port, spec.datacenters
        ),
        crowd: crowd.finish(),
        claim: around.and_then(|around| around.claim.clone()),
        interval: jitter(context.connection_interval, INTERVAL_JITTER, uid),
    }
}

async fn ask(
    context: &Context,
    object: &mut VsphereCloudConfig,
    inputs: &Inputs,
    memory: &mut Connection,
    asking: &Asking,
    around: Option<Around>,
) -> Inspection {
    let mut request = InspectionRequest {
        server: object.spec.vc_ip.clone(),
        datacenters: object.spec.datacenters.clone(),
        index: connection::known_index(&context.ports.repository).await,
        ..InspectionRequest::default()
    };
    let mut others = None;
    if let Some(around) = around {
        request.alone = around.connections.len() < 2;
        request.claim = claim_of(context, object, &around).await;
        request.counted = connection::counted(around.config.as_ref(), &around.requirements);
        (request.requirements, request.nodes) = (around.requirements, around.nodes);
        others = Some(around.connections);
    }
    let server = connection::endpoint(object, inputs).map_or_else(|| object.spec.vc_ip.clone(), |endpoint| endpoint.address());
    let budget = context.sessions.inspections.begin(&server).await;
    let mut inspection = Inspection {
        request,
        probe: connection::probe(object, inputs, &budget).await,
        login: LoginOutcome::NotTried,
    };
    if let ProbeOutcome::Asked(answer) = &inspection.probe {
        match &**answer {
            Ok(facts) => {
                tracing::debug!(connection = %object.name_any(), version = %facts.version, build = %facts.build, "vCenter answered");
                let key = sessions::key(inputs, facts);
                let unread = inputs.credentials.as_ref().is_err_and(is_unread);
                if memory.login != key && !unread {
                    let old = std::mem::replace(&mut memory.login, key);
                    context.memory.keep_connection(&object.uid().unwrap_or_default(), memory.clone());
                    release(context, old);
                }
                // Without knowing what others have tried, nothing is tried.
                if let Some(others) = others {
                    inspection.login =
                        sessions::inspect(context, object, inputs, facts, memory, &others, &inspection.request, &budget).await;
                }
            }
            Err(error) => {
                tracing::warn!(connection = %object.name_any(), error = %vdo_api::api::chain(error), "vCenter could not be verified");
            }
        }
    }
    if let Some(coverage) = coverage(&object.name_any(), &inspection) {
        memory.coverage = Some(Arc::new(coverage));
    } else if memory.asked_with != asking.with {
        memory.coverage = None;
    }
    memory.well = matches!(&inspection.login, LoginOutcome::Succeeded(readings) if is_answered(asking, readings));
    memory.failures = if memory.well { 0 } else { memory.failures.saturating_add(1) };
    memory.asked = Some(Instant::now());
    asking.with.clone_into(&mut memory.asked_with);
    memory.crowd = asking.crowd;
    memory.claim.clone_from(&asking.claim);
    memory.waiting.clone_from(&asking.waiting);
    inspection
}

/// The cluster id with the volumes that the cluster knows. Without those, nothing can be said of others.
async fn claim_of(context: &Context, object: &VsphereCloudConfig, around: &Around) -> Option<Arc<Claim>> {
    let (ports, config) = (&context.ports, around.config.as_ref()?);
    match connection::claim(&ports.client, &ports.reader, config, &around.requirements).await {
        Ok(claim) => claim.map(Arc::new),
        Err(error) => {
            tracing::warn!(connection = %object.name_any(), error = %vdo_api::api::chain(&error), "the cluster id cannot be checked");
            None
        }
    }
}

/// Whether the vCenter has answered what the storage driver waits for. What changes the answer may be done in the vCenter, or to
/// PersistentVolumes, and nothing wakes us then.
fn is_answered(asking: &Asking, readings: &Readings) -> bool {
    asking.claim.is_none() || readings.volumes.as_ref().is_some_and(is_settled)
}

/// What the VDOConfig that acts asks of a connection.
fn requirements(config: Option<&VDOConfig>, namespace: &str, connection: &str, all: &[Arc<VsphereCloudConfig>]) -> Requirements {
    let existing = all.iter().map(|other| other.name_any()).collect();
    config.map_or_else(Requirements::default, |config| {
        connection::requirements(config, namespace, &existing, connection)
    })
}

/// Ends the sessions of a login that no connection uses any more.
fn release(context: &Context, login: Option<Key>) {
    if let Some(key) = login
        && !context.memory.uses(&key)
    {
        context.sessions.forget(&key);
    }
}

/// Writes down that a login is about to be made, unless another manager has changed the object in between.
pub(super) async fn claim(
    context: &Context,
    object: &mut VsphereCloudConfig,
    facts: &VcenterFacts,
    record: &CredentialStatus,
    memory: &mut Connection,
) -> Result<(), ClusterError> {
    let old = object.status.clone().unwrap_or_default();
    let verified = old.credential.as_ref().and_then(|c| c.verified.clone());
    let same = old.about.as_ref().is_none_or(|about| about.instance_uuid == facts.instance_uuid);
    let status = VsphereCloudConfigStatus {
        about: Some(facts.about()),
        credential: Some(CredentialStatus {
            verified: verified.filter(|version| same && *version != record.version),
            ..record.clone()
        }),
        ..old.clone()
    };
    let shown = object.resource_version().and_then(|version| version.parse::<u64>().ok());
    let newest = shown.into_iter().chain(memory.status.as_ref().map(|(version, _)| *version)).max();
    write(context, object, &old, &status, newest, memory).await?;
    object.status = Some(status);
    Ok(())
}

async fn publish(
    context: &Context,
    object: &VsphereCloudConfig,
    before: &VsphereCloudConfigStatus,
    status: VsphereCloudConfigStatus,
    memory: &mut Connection,
) -> Result<(), ClusterError> {
    let old = object.status.clone().unwrap_or_default();
    if old == status {
        return Ok(());
    }
    write(context, object, &old, &status, None, memory).await?;
    let notes = notes(&before.conditions, &status.conditions);
    events::record_all(context, &object.object_ref(&()), notes).await;
    Ok(())
}

/// Writes what has changed; with a resource version, only into exactly that object.
async fn write(
    context: &Context,
    object: &VsphereCloudConfig,
    old: &VsphereCloudConfigStatus,
    status: &VsphereCloudConfigStatus,
    only: Option<u64>,
    memory: &mut Connection,
) -> Result<(), ClusterError> {
    let json = |status: &VsphereCloudConfigStatus| serde_json::to_value(status).unwrap_or_default();
    let mut change = json!({"status": merge_patch(&json(old), &json(status))});
    if let Some(version) = only {
        change["metadata"] = json!({"resourceVersion": version.to_string()});
    }
    let written = context
        .ports
        .writer
        .merge(API_VERSION, &connection::id(object), &change, true)
        .await;
    // A later write confirms nothing: its change was computed from the same old status.
    memory.unconfirmed |= written.is_err();
    let live = written?;
    memory.status = Some((live.map_or(0, |live| version_number(live.resource_version())), status.clone()));
    Ok(())
}
