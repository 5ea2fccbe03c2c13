//! report: the one effect at the end of every path.

use super::id;
use crate::api::VDOConfig;
use crate::api::{Class, VDOConfigStatus};
use crate::cluster::{ClusterError, Writer};
use crate::manifest::merge_patch;
use crate::status::{Report, progress_only};
use serde_json::json;
use std::time::Duration;

/// When to look again, if nothing wakes us before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// After the regular interval.
    Steady,
    /// Soon, because something is under way that a watch may not show.
    Soon,
    /// After a delay that grows with each failure in a row.
    Backoff,
}

impl Next {
    /// From what a reconcile had to say.
    #[must_use]
    pub fn after(report: &Report) -> Self {
        match report.troubles.first().map(|t| t.class) {
            Some(Class::Retry) => Self::Backoff,
            Some(Class::Wait | Class::Terminal) => Self::Steady,
            None if report.waiting.is_empty() && (!report.deleting || report.removed) => Self::Steady,
            None => Self::Soon,
        }
    }

    /// The delay, where `failures` is how many there were in a row: 1 s, 2 s, 4 s … up to five minutes.
    #[must_use]
    pub fn delay(self, failures: u32, steady: Duration) -> Duration {
        match self {
            Self::Steady => steady,
            Self::Soon => Duration::from_secs(20).min(steady),
            Self::Backoff => Duration::from_secs(1 << failures.min(9)).min(Duration::from_secs(300)).min(steady),
        }
    }
}

/// Writes the status if it says anything new. A message that only counts on is held back while `recent` is true: somebody
/// who reads it gains nothing from ten writes a second.
///
/// # Errors
/// When the API server does not accept it.
pub async fn publish(
    config: &VDOConfig,
    old: &VDOConfigStatus,
    new: &VDOConfigStatus,
    recent: bool,
    writer: &Writer,
) -> Result<Option<crate::manifest::Object>, ClusterError> {
    if old == new || (recent && progress_only(old, new)) {
        return Ok(None);
    }
    let json = |status: &VDOConfigStatus| serde_json::to_value(status).unwrap_or_default();
    let change = merge_patch(&json(old), &json(new));
    writer
        .merge("vdo.vmware.com/v1alpha1", &id(config), &json!({"status": change}), true)
        .await
}
