// SPDX-License-Identifier: Apache-2.0
//! Decides which of several VDOConfigs takes effect for the cluster (the oldest), and what the others report (pure).

use kube::ResourceExt;
use vdo_api::api::{Class, Reason, VDOConfig};
use vdo_core::status::Failure;

/// The VDOConfig that acts, of all in the operator's namespace: the oldest, and of equally old ones the first by name.
#[must_use]
pub fn acting<'a>(configs: impl IntoIterator<Item = &'a VDOConfig>) -> Option<&'a VDOConfig> {
    configs
        .into_iter()
        .min_by_key(|c| (c.creation_timestamp().map(|t| t.0), c.name_any()))
}

pub(super) fn not_active(acting: &str) -> Failure {
    let message = format!("VDOConfig {acting} acts for this cluster, so this VDOConfig has no effect; delete one of the two");
    Failure::new(Reason::NotActive, Class::Wait, message)
}
