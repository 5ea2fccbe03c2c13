// SPDX-License-Identifier: Apache-2.0
//! Records the events about objects that the operator repaired, and limits their number in one reconcile.

use super::{Context, events};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use vdo_api::api::{Reason, VDOConfig};
use vdo_core::plan::Drift;
use vdo_core::status::{Note, Report};

/// How many objects that were brought back in one run have an event; the status and the log have all.
const DRIFT_EVENTS: usize = 10;

/// One event for each object that was brought back. The object is named as related, so that those of one object are counted and
/// those of two are not taken for one.
pub(super) async fn record(context: &Context, config: &VDOConfig, report: &Report) {
    let mut objects: Vec<&Drift> = report.drift.iter().collect();
    objects.dedup_by_key(|drift| &drift.id);
    for drift in objects.into_iter().take(DRIFT_EVENTS) {
        let note = Note {
            warning: true,
            reason: Reason::DriftRepaired.to_string(),
            action: "Repair".into(),
            message: drift.to_string(),
        };
        let related = ObjectReference {
            kind: Some(drift.id.kind().to_owned()),
            namespace: Some(drift.id.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            name: Some(drift.id.name.clone()),
            ..ObjectReference::default()
        };
        events::record(context, &config.object_ref(&()), &note, Some(related)).await;
    }
}
