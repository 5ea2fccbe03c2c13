// SPDX-License-Identifier: Apache-2.0
//! Decides since when objects, pods and nodes have made no progress, and whether `spec.progressDeadline` has passed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::SignedDuration;
use vdo_api::api::{DriverStatus, VDOConfigStatus};

/// How long nothing may move on while something is waited for. As long as a Deployment gives its pods by default.
pub const PROGRESS_DEADLINE: SignedDuration = SignedDuration::from_mins(10);

/// Since when nothing has moved on, between the last status and the next, of which the conditions do not matter here.
pub(super) fn waiting_since(old: &VDOConfigStatus, next: &VDOConfigStatus, now: &Time) -> Time {
    let stands = old.observed_generation == next.observed_generation && measure(old) == measure(next);
    old.waiting_since.clone().filter(|_| stands).unwrap_or_else(|| now.clone())
}

/// Whether the deadline has passed, which is that of the specification where it has one.
pub(super) fn is_over(since: &Time, now: &Time, deadline: Option<SignedDuration>) -> bool {
    now.0.duration_since(since.0) > deadline.unwrap_or(PROGRESS_DEADLINE)
}

/// What moves when work moves on: objects, pods and nodes. Words and reasons do not count; they may go back and forth.
fn measure(status: &VDOConfigStatus) -> impl PartialEq {
    let driver = |d: &DriverStatus| (d.name.clone(), d.version.clone(), d.objects, d.pods.clone());
    let nodes = status.nodes.as_ref().map(|n| (n.total, n.initialized, n.csi_registered));
    let objects = status.inventory.as_ref().map(|i| i.objects);
    (status.drivers.iter().map(driver).collect::<Vec<_>>(), nodes, objects)
}
