// SPDX-License-Identifier: Apache-2.0
//! Queries several clusters in parallel (`--contexts`, `--all-contexts`), each cluster once and with its own deadline.

use super::args::{Contexts, Global};
use super::{CliError, Exit};
use futures::future::join_all;
use std::time::Duration;
use tokio::time::timeout;
use vdo_api::types::count;

/// What came of asking a cluster.
pub(super) struct Asked<T> {
    /// Its context in the kubeconfig.
    pub context: String,
    /// The other contexts that lead to the same cluster as the same user, for which it was not asked again.
    pub others: Vec<String>,
    /// Its answer.
    pub answer: Result<T, CliError>,
}

/// Asks every cluster that the command line names, each for at most this long.
///
/// # Errors
/// Before any cluster is asked: when a context does not exist, there is none, or another flag names one cluster.
pub(super) async fn ask<T>(
    contexts: &Contexts,
    global: &Global,
    limit: Duration,
    one: impl AsyncFn(&Global) -> Result<T, CliError>,
) -> Result<Vec<Asked<T>>, CliError> {
    let one = &one;
    let each = named(contexts, global)?.into_iter().map(|(context, others)| async move {
        let own = Global {
            context: Some(context.clone()),
            ..global.clone()
        };
        let answer = timeout(limit, one(&own)).await;
        Asked {
            context,
            others,
            answer: answer.unwrap_or_else(|_| Err(CliError::timed_out(limit))),
        }
    });
    Ok(join_all(each).await)
}

/// The contexts, each cluster once.
fn named(contexts: &Contexts, global: &Global) -> Result<Vec<(String, Vec<String>)>, CliError> {
    if let Some(cluster) = &global.kube_cluster {
        return Err(CliError::new(
            Exit::Usage,
            format!("--kube-cluster (VDO_KUBE_CLUSTER) names one cluster, {cluster:?}, but the command asks for several clusters"),
            "Leave out --kube-cluster, or leave out --contexts and --all-contexts.",
        ));
    }
    let found = super::api_server_connection::options(global)?.contexts(&contexts.names)?;
    if found.is_empty() {
        return Err(CliError::new(
            Exit::NotFound,
            "the kubeconfig has no contexts",
            "Name another kubeconfig with --kubeconfig or KUBECONFIG.",
        ));
    }
    Ok(found)
}

/// That some contexts were not asked because another leads to the same, if there are any.
pub(super) fn once<'a>(all: impl Iterator<Item = (&'a String, &'a Vec<String>)>) -> Vec<String> {
    let line = |(context, others): (&String, &Vec<String>)| {
        let what = count(others.len(), "other context");
        format!(
            "{context} has the same cluster and user as {what} ({}), so vdoctl queried this cluster once",
            others.join(", ")
        )
    };
    all.filter(|(_, others)| !others.is_empty()).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::args::{Cli, command};
    use super::*;
    use clap::FromArgMatches as _;
    use std::future::pending;

    #[tokio::test]
    async fn clusters_have_a_deadline_each_and_are_asked_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config");
        let text = "{clusters: [{name: a, cluster: {}}, {name: b, cluster: {}}], contexts: [{name: silent, context: {cluster: a, user: u}}, \
                    {name: good, context: {cluster: b, user: u}}, {name: same, context: {cluster: b, user: u}}]}";
        std::fs::write(&file, text).expect("written");
        let line = ["vdoctl", "options", "--kubeconfig", &file.display().to_string()].map(str::to_owned);
        let matches = command().try_get_matches_from(line).expect("a command line");
        let global = Cli::from_arg_matches(&matches).expect("arguments").global;
        let one = async |global: &Global| match global.context.as_deref() {
            Some("silent") => pending().await,
            context => Ok(context.unwrap_or_default().to_owned()),
        };
        let all = Contexts {
            all_contexts: true,
            ..Contexts::default()
        };
        let asked = ask(&all, &global, Duration::from_millis(50), one).await.expect("contexts");
        let seen: Vec<_> = asked
            .iter()
            .map(|asked| (asked.context.as_str(), asked.answer.as_ref().map_err(|error| error.exit)))
            .collect();
        let good = "good".to_owned();
        assert_eq!(seen, [("silent", Err(Exit::TimedOut)), ("good", Ok(&good))]);
        let lines = once(asked.iter().map(|asked| (&asked.context, &asked.others)));
        assert_eq!(
            lines,
            ["good has the same cluster and user as 1 other context (same), so vdoctl queried this cluster once"]
        );
    }
}
