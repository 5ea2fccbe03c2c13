//! The loop over vSphere connections.

use super::memory::{Connection, newest};
use super::{Context, now};
use crate::api::{ConditionType, Conditions, VsphereCloudConfig, VsphereCloudConfigStatus};
use crate::manifest::merge_patch;
use crate::reconcile::connection::{self, Inputs, Probe};
use crate::status::notes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) async fn reconcile(object: Arc<VsphereCloudConfig>, context: Arc<Context>) -> Result<Action, Infallible> {
    if object.metadata.deletion_timestamp.is_some() {
        context.metrics.forget_connection(&object.name_any());
        return Ok(Action::await_change());
    }
    let uid = object.uid().unwrap_or_default();
    let mut memory = context.memory.connection(&uid);
    let mut object = (*object).clone();
    let shown = object.resource_version();
    object.status = Some(newest(object.status.as_ref(), shown.as_deref(), memory.status.as_ref()));

    let inputs = connection::inputs(&context.world.reader, &object).await;
    let asking_with = asking_with(&object, &inputs);
    let due = memory.due_in(&asking_with, context.connection_interval);
    let probe = if due.is_zero() {
        Some(ask(&object, &inputs, &mut memory, &asking_with).await)
    } else {
        None
    };
    let status = connection::fold(&object, &inputs, probe.as_ref(), &Time(now()));
    context
        .metrics
        .connection(&object.name_any(), Conditions::is_true(&status.conditions, ConditionType::Ready));
    if let Err(error) = publish(&context, &object, status, &mut memory).await {
        tracing::warn!(connection = %object.name_any(), error = %crate::api::chain(&error), "the status could not be written");
        memory.asked = None;
    }
    let next = memory.due_in(&asking_with, context.connection_interval);
    context.memory.keep_connection(&uid, memory);
    Ok(Action::requeue(next.max(Duration::from_secs(1))))
}

/// What decides the answer of a vCenter: when it changes, the old answer says nothing.
fn asking_with(object: &VsphereCloudConfig, inputs: &Inputs) -> String {
    format!("{}:{} {:?}", object.spec.vc_ip, object.spec.port, inputs.trust.as_ref().ok())
}

async fn ask(object: &VsphereCloudConfig, inputs: &Inputs, memory: &mut Connection, asking_with: &str) -> Probe {
    let probe = connection::probe(object, inputs).await;
    memory.well = matches!(&probe, Probe::Asked(answer) if answer.is_ok());
    memory.failures = if memory.well { 0 } else { memory.failures.saturating_add(1) };
    memory.asked = Some(Instant::now());
    asking_with.clone_into(&mut memory.asked_with);
    if let Probe::Asked(answer) = &probe {
        match &**answer {
            Ok(facts) => {
                tracing::info!(connection = %object.name_any(), version = %facts.version, build = %facts.build, "vCenter answered");
            }
            Err(error) => {
                tracing::warn!(connection = %object.name_any(), error = %crate::api::chain(error), "vCenter could not be verified");
            }
        }
    }
    probe
}

async fn publish(
    context: &Context,
    object: &VsphereCloudConfig,
    status: VsphereCloudConfigStatus,
    memory: &mut Connection,
) -> Result<(), crate::cluster::ClusterError> {
    let old = object.status.clone().unwrap_or_default();
    if old == status {
        return Ok(());
    }
    let json = |status: &VsphereCloudConfigStatus| serde_json::to_value(status).unwrap_or_default();
    let change = json!({"status": merge_patch(&json(&old), &json(&status))});
    let live = context
        .world
        .writer
        .merge("vdo.vmware.com/v1alpha1", &connection::id(object), &change, true)
        .await?;
    for note in notes(&old.conditions, &status.conditions) {
        super::drivers::record(context, &object.object_ref(&()), &note).await;
    }
    let version = live.and_then(|o| o.resource_version().parse().ok()).unwrap_or(0);
    memory.status = Some((version, status));
    Ok(())
}
