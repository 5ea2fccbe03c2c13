// SPDX-License-Identifier: Apache-2.0
//! The flags `--contexts` and `--all-contexts` of `vdoctl status` and `vdoctl report`, which query several clusters.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

/// The clusters of a verb that can ask several at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Contexts {
    /// Queries the clusters of these contexts in parallel, instead of the cluster of --context; separate the names by commas, or repeat the
    /// flag
    #[arg(
        long = "contexts",
        id = "contexts",
        value_name = "NAMES",
        value_parser = NonEmptyStringValueParser::new(),
        conflicts_with = "all_contexts"
    )]
    pub names: Vec<String>,
    /// Queries the clusters of all contexts of the kubeconfig in parallel
    #[arg(long)]
    pub all_contexts: bool,
}

impl Contexts {
    /// Whether several clusters may be asked.
    #[must_use]
    pub fn are_given(&self) -> bool {
        self.all_contexts || !self.names.is_empty()
    }
}
