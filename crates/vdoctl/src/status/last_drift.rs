// SPDX-License-Identifier: Apache-2.0
//! The line of `status` about the last repaired drift, which is shown for a day.

use super::super::ages::ago;
use k8s_openapi::jiff::Timestamp;
use vdo_api::api::DriftStatus;

/// How long a repair is shown, in seconds.
const RECENT: i64 = 24 * 3600;

/// What was repaired last, if that is not long ago.
pub(super) fn last_drift(drift: &DriftStatus, now: Timestamp) -> Option<String> {
    if now.as_second() - drift.repaired.0.as_second() > RECENT {
        return None;
    }
    let what = match (drift.path.as_str(), drift.by.as_str()) {
        ("", _) => format!("{} was deleted", drift.object),
        (path, "") => format!("{}: {path} was changed", drift.object),
        (path, by) => format!("{}: {path} was changed by {by}", drift.object),
    };
    Some(format!("Last drift: {what}, and repaired {} ago.", ago(drift.repaired.0, now)))
}
