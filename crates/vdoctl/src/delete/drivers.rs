// SPDX-License-Identifier: Apache-2.0
//! Deletes the VDOConfigs, and waits until the operator has removed the drivers; without an operator, vdoctl removes them itself.

use super::objects_to_delete::{Scope, Target};
use super::{PACE, transient};
use crate::context::{Context, id, now};
use crate::progress::{Mark, Progress};
use crate::{CliError, stopping};
use kube::ResourceExt;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use vdo::cluster::{ClusterError, Election, Fence, LEASE_NAME, Writer};
use vdo::reconcile::{self, configs};
use vdo_api::api::{API_VERSION, ConditionType, Conditions, DeletionPolicy, VDOConfig};
use vdo_core::manifest::Object;
use vdo_core::status::Report;

/// Removes them. The Lease decides who acts, so that an operator that starts meanwhile and this process never both do.
pub(super) async fn remove(context: &mut Context, target: &Target, namespace: &str, progress: &mut Progress) -> Result<(), CliError> {
    let client = context.ports.client.clone();
    let plain = context.ports.writer.clone();
    let fence = Fence::shut();
    context.ports.writer = plain.clone().behind(fence.clone());
    let identity = format!("vdoctl-{}-{}", std::process::id(), now().as_millisecond());
    let mut election = Election::new(client, LEASE_NAME, identity, fence.clone());
    let _armed = stopping::arm();
    let removed = tokio::select! {
        biased;
        exit = stopping::asked() => Err(stopping::failure(exit)),
        removed = rounds(context, target, namespace, &plain, &fence, progress) => removed,
        () = election.run(|_| {}) => Ok(()),
    };
    context.ports.writer = plain;
    // It runs out by itself where it cannot be released.
    let _ = election.release().await;
    removed
}

async fn rounds(
    context: &Context,
    target: &Target,
    namespace: &str,
    plain: &Writer,
    fence: &Fence,
    progress: &mut Progress,
) -> Result<(), CliError> {
    let mut reported = false;
    let mut known = BTreeSet::new();
    loop {
        let found = match round(context, target, namespace, plain, fence).await {
            Ok(None) => return Ok(()),
            Ok(Some(found)) => found,
            Err(error) if transient(&error) => Obstacles::waits(error.what),
            Err(error) => return Err(error),
        };
        if fence.is_open() && !std::mem::replace(&mut reported, true) {
            progress.step(
                Mark::Note,
                "No operator holds the operator's Lease, so vdoctl removes the drivers itself.",
            );
        }
        for failure in found.failures {
            if known.insert(failure.clone()) {
                progress.step(Mark::Failed, &failure);
            }
        }
        progress.waiting(&found.waits);
        tokio::time::sleep(PACE).await;
    }
}

/// Why the removal has not ended after a round.
#[derive(Debug, Default)]
struct Obstacles {
    /// What stands in the way.
    failures: Vec<String>,
    /// What is waited for.
    waits: Vec<String>,
}

impl Obstacles {
    fn waits(what: String) -> Self {
        Self {
            failures: Vec::new(),
            waits: vec![what],
        }
    }
}

/// One step further: what is waited for, or `None` when no VDOConfig is left.
async fn round(context: &Context, target: &Target, namespace: &str, plain: &Writer, fence: &Fence) -> Result<Option<Obstacles>, CliError> {
    let mut all = match configs(&context.ports.reader, namespace).await {
        Err(ClusterError::NotServed { .. }) => return Ok(None),
        found => found?,
    };
    // The one that acts is deleted last: the next would act in its place, and install.
    all.sort_by_key(|config| std::cmp::Reverse((config.creation_timestamp().map(|at| at.0), config.name_any())));
    for config in &all {
        delete(config, target.scope, plain).await?;
    }
    let Some(acting) = reconcile::acting(all.iter().map(AsRef::as_ref)) else {
        return Ok(None);
    };
    if !fence.is_open() || acting.metadata.deletion_timestamp.is_none() {
        return Ok(Some(published(acting)));
    }
    let report = reconcile::reconcile(&context.input(acting), &context.ports).await;
    Ok(Some(found(&report, acting)))
}

/// Asks for the deletion of one, with what becomes of its drivers.
async fn delete(config: &Arc<VDOConfig>, scope: Scope, writer: &Writer) -> Result<(), CliError> {
    if scope == Scope::Operator && config.spec.deletion_policy != DeletionPolicy::Orphan {
        let keep = json!({"spec": {"deletionPolicy": "Orphan"}, "metadata": {"uid": config.uid()}});
        writer.merge(API_VERSION, &config.id(), &keep, false).await?;
        // The next round sees it with its new content, and deletes that.
        return Ok(());
    }
    if config.metadata.deletion_timestamp.is_none() {
        let seen = json!({"apiVersion": API_VERSION, "kind": "VDOConfig", "metadata": config.metadata});
        let seen = Object::new(seen).map_err(|error| CliError::internal(&error))?;
        // One that changed meanwhile is deleted in the next round.
        writer.delete_as_seen(API_VERSION, &seen, false).await?;
    }
    Ok(())
}

/// What the operator has published.
fn published(config: &VDOConfig) -> Obstacles {
    let status = config.status.as_ref();
    let current = status.is_some_and(|status| status.observed_generation == config.metadata.generation);
    let ready = status.and_then(|status| Conditions::find(&status.conditions, ConditionType::Ready));
    Obstacles::waits(match ready.filter(|_| current) {
        Some(ready) if ready.status != "True" => format!("VDOConfig {}: {}", id(config), ready.message),
        _ => format!("VDOConfig {} is being deleted", id(config)),
    })
}

/// What this process has found itself.
fn found(report: &Report, config: &VDOConfig) -> Obstacles {
    let unique = |messages: Vec<&String>| {
        let mut all: Vec<String> = Vec::new();
        for message in messages {
            if !all.contains(message) {
                all.push(message.clone());
            }
        }
        all
    };
    let failures = unique(report.failures.iter().map(|failure| &failure.message).collect());
    let mut waits = unique(report.waiting.iter().map(|wait| &wait.message).chain(&failures).collect());
    if waits.is_empty() {
        waits.push(format!("VDOConfig {} is being deleted", id(config)));
    }
    Obstacles { failures, waits }
}
