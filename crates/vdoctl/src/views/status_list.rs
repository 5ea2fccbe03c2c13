// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML document of `vdoctl status --contexts`: `StatusList`, with the status or the error of each cluster.

use super::super::output::View;
use super::super::several_clusters::Asked;
use super::status::StatusView;
use schemars::JsonSchema;
use serde::Serialize;

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
}
