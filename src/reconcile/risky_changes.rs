// SPDX-License-Identifier: Apache-2.0
//! Lists what a plan takes away from volumes, drivers or workloads; such a plan waits for approval even if `spec.approval` is Automatic.

use super::observe::ClusterState;
use super::planned::Planned;
use super::{change_affects_volumes, config_used_by_workloads, lost_settings};
use crate::cluster::{ClusterError, Reader};
use vdo_api::api::VDOConfig;

/// Something that a plan takes away, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakenAway {
    /// Volumes depend on it.
    FromVolumes(String),
    /// Drivers that another tool installed have it among their settings.
    FromDrivers(String),
    /// A workload that is no driver uses it.
    FromOthers(String),
}

impl TakenAway {
    /// The sentence alone.
    #[must_use]
    pub fn sentence(&self) -> &str {
        match self {
            Self::FromVolumes(sentence) | Self::FromDrivers(sentence) | Self::FromOthers(sentence) => sentence,
        }
    }

    /// The sentence with what depends on it.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::FromVolumes(sentence) => format!("volumes depend on settings that this change affects: {sentence}"),
            Self::FromDrivers(sentence) | Self::FromOthers(sentence) => sentence.clone(),
        }
    }

    /// What a person does about it before the change is written.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::FromVolumes(_) => {
                "Keep these settings, or delete the volumes first. With --ignore-checks the change is written, and the operator leaves the \
                 drivers as they are until the plan is approved with vdoctl approve."
            }
            Self::FromDrivers(_) => {
                "Keep these settings: vdoctl adopt shows them, and vdoctl adopt --write creates the objects of VDO with these settings. With --ignore-checks the \
                 change is written, and the operator leaves the drivers as they are until the plan is approved with vdoctl approve."
            }
            Self::FromOthers(_) => {
                "Create a copy of the object under another name, and let that workload use the copy. With --ignore-checks the change is \
                 written, and the operator leaves the drivers as they are until the plan is approved with vdoctl approve."
            }
        }
    }
}

/// Everything that a plan takes away (effect: reads volumes and workloads where it may be something that they depend on).
///
/// # Errors
/// When they cannot be read.
pub async fn taken_away(
    reader: &Reader,
    config: &VDOConfig,
    state: &ClusterState,
    planned: &Planned,
) -> Result<Vec<TakenAway>, ClusterError> {
    let from_volumes = change_affects_volumes::endangered(reader, config, state, planned).await?;
    let replaced = lost_settings::replaced(state, planned);
    let from_drivers = lost_settings::lost_settings(config, &state.of_others, &replaced);
    let from_others = config_used_by_workloads::used_by_others(reader, &state.apply_set, planned, &replaced).await?;
    let from_volumes = from_volumes.into_iter().map(TakenAway::FromVolumes);
    let from_drivers = from_drivers.map(TakenAway::FromDrivers);
    let from_others = from_others.into_iter().map(TakenAway::FromOthers);
    Ok(from_volumes.chain(from_drivers).chain(from_others).collect())
}
