// SPDX-License-Identifier: Apache-2.0
//! Writes the status of a VDOConfig while the operator lacks the rights on the Lease for the leader election.
//!
//! Nothing else is done then. This one write is made without the fence: an operator that may not read the Lease never leads, and the status
//! of a VDOConfig in the operator's own namespace has no other author.

use super::loop_memory::newest;
use super::vdoconfig::write_status;
use super::{Context, now};
use crate::cluster::version_number;
use crate::reconcile::{add_missing, report_windows};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use vdo_api::api::{Class, Reason, VDOConfig, chain};
use vdo_api::types::shell_word;
use vdo_core::status::{Failure, Report, fold};

/// That rights are missing, in the words of the API server, and the command that brings them.
pub(super) fn failure(error: &crate::cluster::ClusterError, namespace: &str) -> Failure {
    let command = add_missing(&format!(" -n {}", shell_word(namespace)));
    let message = format!("{error}; without this Lease the operator does nothing. As administrator, add the missing rights: `{command}`");
    Failure::new(Reason::RightsMissing, Class::Retry, message)
}

/// Writes it into the status, once.
pub(super) async fn report(object: &VDOConfig, failure: Failure, context: &Context) {
    let uid = object.uid().unwrap_or_default();
    let mut memory = context.memory.config(&uid);
    let old = newest(object.status.as_ref(), object.resource_version().as_deref(), memory.status.as_ref());
    let mut report = Report {
        generation: object.metadata.generation,
        failures: vec![failure],
        deleting: object.metadata.deletion_timestamp.is_some(),
        ..Report::default()
    };
    report_windows(object, now(), &mut report);
    let status = fold(&old, &report, &Time(now()));
    match write_status(object, &old, &status, None, &context.unfenced).await {
        Ok(Some(live)) => {
            memory.status = Some((version_number(live.resource_version()), status));
            context.memory.keep_config(&uid, memory);
        }
        Ok(None) => {}
        Err(error) => tracing::warn!(config = %object.name_any(), error = %chain(&error), "the status could not be written"),
    }
}
