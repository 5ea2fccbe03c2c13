// SPDX-License-Identifier: Apache-2.0
//! Ranks clusters for `vdoctl status` and `report` of several clusters: those that need attention come first.

use super::super::Exit;
use super::super::views::status_list::ClusterStatusView;
use vdo_api::api::Health;

/// How much a cluster asks for attention, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Attention {
    /// Nothing is known of it.
    NoAnswer,
    /// Something is wrong.
    Wrong,
    /// VDO is not deployed.
    NotDeployed,
    /// Something is under way, or paused.
    Changing,
    /// All is well.
    Well,
}

/// How much a cluster asks for attention.
pub(crate) fn attention(cluster: &ClusterStatusView) -> Attention {
    let health = cluster.status.as_ref().and_then(|status| status.config.as_ref()?.health);
    match (&cluster.status, Exit::of(cluster.exit)) {
        (None, _) => Attention::NoAnswer,
        (_, Some(Exit::NotFound)) => Attention::NotDeployed,
        (_, Some(Exit::Ok)) if health == Some(Health::Healthy) => Attention::Well,
        (_, Some(Exit::Ok)) => Attention::Changing,
        _ => Attention::Wrong,
    }
}
