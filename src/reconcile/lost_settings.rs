// SPDX-License-Identifier: Apache-2.0
//! Finds settings of another tool's driver that an adoption would lose and `accepted-losses` does not list; the plan waits (pure).

use super::observe::ClusterState;
use super::planned::Planned;
use kube::ResourceExt;
use std::collections::BTreeMap;
use vdo_adopt::{Installation, Loss, Objects, lost};
use vdo_api::api::{ACCEPTED_LOSSES, VDOConfig, accepted_losses};
use vdo_api::types::name_list;
use vdo_core::installed::Installed;
use vdo_core::manifest::{Object, is_owned};

/// The settings of drivers that other tools installed that are lost with these configurations, as one sentence.
pub(super) fn lost_settings(config: &VDOConfig, workloads: &[Installed], replaced: &[(Object, Object)]) -> Option<String> {
    let (before, after): (Vec<Object>, Vec<Object>) = replaced.iter().cloned().unzip();
    sentence(config, workloads, &Objects::new(before), &Objects::new(after))
}

/// The configurations that others made, with what takes their place.
pub(super) fn replaced(state: &ClusterState, planned: &Planned) -> Vec<(Object, Object)> {
    let (live, apply_set) = (&planned.observed.live, state.apply_set.as_str());
    let desired = planned.desired.iter().filter(|desired| !planned.is_apart(&desired.driver));
    let is_configuration = |object: &Object| matches!(object.identity().kind(), "Secret" | "ConfigMap");
    let pairs = desired.filter(|desired| is_configuration(&desired.object)).filter_map(|desired| {
        let before = live.get(desired.object.identity())?;
        (!is_owned(before, apply_set)).then(|| (before.clone(), desired.object.clone()))
    });
    pairs.collect()
}

fn sentence(config: &VDOConfig, workloads: &[Installed], before: &Objects, after: &Objects) -> Option<String> {
    let namespace = config.namespace().unwrap_or_default();
    let installation = Installation {
        workloads,
        objects: before,
        charts: &BTreeMap::new(),
        connections: &[],
        control_planes: 1,
        namespace: &namespace,
        name: &config.name_any(),
    };
    let losses = match lost(&installation, after) {
        Ok(losses) => losses,
        Err(error) => return Some(format!("the settings of the installed driver cannot be read: {error}")),
    };
    let accepted = config.annotations().get(ACCEPTED_LOSSES).map(String::as_str);
    let is_accepted = |loss: &&Loss| accepted_losses(accepted).any(|key| key == loss.key);
    let lost: Vec<String> = losses
        .iter()
        .filter(|loss| !is_accepted(loss))
        .map(|loss| format!("{} ({})", loss.key, loss.origin))
        .collect();
    (!lost.is_empty()).then(|| {
        format!(
            "the installed drivers would lose {}; vdoctl adopt keeps these settings",
            name_list(&lost)
        )
    })
}
