// SPDX-License-Identifier: Apache-2.0
//! report: the one effect at the end of every path.

use super::id;
use crate::cluster::{ClusterError, Writer};
use serde_json::json;
use std::time::Duration;
use vdo_api::api::{API_VERSION, VDOConfig, VDOConfigStatus};
use vdo_core::manifest::merge_patch;
use vdo_core::status::pace;

/// Writes the status if it says anything new. One that only counts on is held back for a while after the one before, which was
/// written so long `ago`.
///
/// # Errors
/// When the API server does not accept it.
pub async fn write_status(
    config: &VDOConfig,
    old: &VDOConfigStatus,
    new: &VDOConfigStatus,
    ago: Option<Duration>,
    writer: &Writer,
) -> Result<Option<vdo_core::manifest::Object>, ClusterError> {
    if old == new || ago.is_some_and(|ago| ago < pace(old, new)) {
        return Ok(None);
    }
    let json = |status: &VDOConfigStatus| serde_json::to_value(status).unwrap_or_default();
    let change = merge_patch(&json(old), &json(new));
    writer.merge(API_VERSION, &id(config), &json!({"status": change}), true).await
}
