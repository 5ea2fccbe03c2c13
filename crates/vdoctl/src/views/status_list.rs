// SPDX-License-Identifier: Apache-2.0
//! The document of `vdoctl status` for several clusters.

use super::super::Exit;
use super::super::fleet::Asked;
use super::super::output::View;
use super::status::StatusView;
use schemars::JsonSchema;
use serde::Serialize;
use vdo_api::api::Health;

/// The status of several clusters.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct StatusListView {
    /// An entry for each cluster, problems first.
    pub items: Vec<ClusterStatusView>,
}

/// The status of one of several clusters, or the error.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterStatusView {
    /// The context of the kubeconfig.
    pub context: String,
    /// The other contexts that lead to the same cluster as the same user.
    pub other_contexts: Vec<String>,
    /// The exit code of `vdoctl status` for this cluster alone.
    pub exit: u8,
    /// The document of `vdoctl status` for this cluster alone; null if there is an error.
    pub status: Option<StatusView>,
    /// Why there is no status; null if there is a status.
    pub error: Option<ErrorView>,
}

/// What happened, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ErrorView {
    pub message: String,
    pub remedy: String,
}

impl View for StatusListView {
    const KIND: &'static str = "StatusList";

    /// What is listed are contexts: names of objects could be the same in every cluster.
    fn names(&self) -> Option<Vec<String>> {
        Some(self.items.iter().map(|item| item.context.clone()).collect())
    }
}

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

impl ClusterStatusView {
    /// From what came of asking, with the status and the exit code in an answer.
    pub(crate) fn of<T>(asked: &Asked<T>, seen: impl FnOnce(&T) -> (Option<StatusView>, u8)) -> Self {
        let (status, exit, error) = match &asked.answer {
            Ok(answer) => {
                let (status, exit) = seen(answer);
                (status, exit, None)
            }
            Err(error) => (
                None,
                error.exit as u8,
                Some(ErrorView {
                    message: error.what.clone(),
                    remedy: error.remedy.clone(),
                }),
            ),
        };
        Self {
            context: asked.context.clone(),
            other_contexts: asked.others.clone(),
            exit,
            status,
            error,
        }
    }

    /// How much it asks for attention.
    pub(crate) fn attention(&self) -> Attention {
        let health = self.status.as_ref().and_then(|status| status.config.as_ref()?.health);
        match (&self.status, Exit::of(self.exit)) {
            (None, _) => Attention::NoAnswer,
            (_, Some(Exit::NotFound)) => Attention::NotDeployed,
            (_, Some(Exit::Ok)) if health == Some(Health::Healthy) => Attention::Well,
            (_, Some(Exit::Ok)) => Attention::Changing,
            _ => Attention::Wrong,
        }
    }
}
