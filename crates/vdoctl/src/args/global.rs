// SPDX-License-Identifier: Apache-2.0
//! The global flags, which every verb accepts: kubeconfig, context, namespace, impersonation, colours, `--timeout`, `--request-timeout`.

use super::{Color, parse};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use std::path::PathBuf;
use std::time::Duration;
use vdo_api::api::OPERATOR_NAMESPACE;
use vdo_api::types::shell_word;

/// The heading of these options.
pub(super) const GLOBAL_OPTIONS: &str = "Global options";

/// What applies to every verb.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = GLOBAL_OPTIONS)]
pub struct Global {
    /// The kubeconfig file; default: the files in KUBECONFIG, then ~/.kube/config, then the service account of the pod
    #[arg(long, env = "VDO_KUBECONFIG", value_name = "FILE", global = true)]
    pub kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig; default: the current context
    #[arg(long, env = "VDO_CONTEXT", value_name = "NAME", global = true)]
    pub context: Option<String>,
    /// The cluster in the kubeconfig; default: the cluster of the context
    #[arg(long, env = "VDO_KUBE_CLUSTER", value_name = "NAME", global = true)]
    pub kube_cluster: Option<String>,
    /// The user in the kubeconfig; default: the user of the context
    #[arg(long, env = "VDO_KUBE_USER", value_name = "NAME", global = true)]
    pub kube_user: Option<String>,
    /// A file with a token for the API server, used instead of the credentials in the kubeconfig; - means stdin
    #[arg(long, env = "VDO_TOKEN_FILE", value_name = "FILE", global = true)]
    pub token_file: Option<PathBuf>,
    /// The namespace of the operator and its configuration
    #[arg(long, short = 'n', env = "VDO_NAMESPACE", value_name = "NAME", default_value = OPERATOR_NAMESPACE, global = true)]
    pub namespace: String,
    /// The user to impersonate
    #[arg(long = "as", env = "VDO_AS", value_name = "USER", global = true)]
    pub impersonate: Option<String>,
    /// A group to impersonate, together with --as; may be repeated
    #[arg(long = "as-group", env = "VDO_AS_GROUP", value_name = "GROUP", global = true)]
    pub groups: Vec<String>,
    /// When to use colours: auto, always or never; auto uses colours on a terminal unless NO_COLOR is set
    #[arg(
        long,
        env = "VDO_COLOR",
        value_enum,
        hide_possible_values = true,
        default_value = "auto",
        value_name = "WHEN",
        global = true
    )]
    pub color: Color,
    /// How long the command waits until the cluster answers, for example 30s or 2m; default: 30s. With deploy, delete, wait, upgrade apply,
    /// users rotate, adopt --move, and any command with --wait: how long the command waits for the result; default: 15m. With selftest: how
    /// long each step may take; default: 5m
    #[arg(long, env = "VDO_TIMEOUT", value_name = "TIME", value_parser = parse::duration, global = true)]
    pub timeout: Option<Duration>,
    /// How long the API server may take to answer one request, for example 5s; 0 means no limit; default: 15s, or 60s for a request about a
    /// ValidatingAdmissionPolicy
    #[arg(long, env = "VDO_REQUEST_TIMEOUT", value_name = "TIME", value_parser = parse::request_timeout, global = true)]
    pub request_timeout: Option<Duration>,
}

/// A flag that chooses the cluster, with its name in vdoctl, kubectl and helm. The name is empty if the program has no such flag.
#[derive(Debug, Clone)]
pub struct ClusterFlag {
    /// Its name in vdoctl.
    pub vdoctl: &'static str,
    /// Its name in kubectl.
    pub kubectl: &'static str,
    /// Its name in helm.
    pub helm: &'static str,
    /// Its value, quoted for a shell where necessary.
    pub value: String,
}

impl Global {
    /// How long the cluster may take to answer.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(Duration::from_secs(30))
    }

    /// How long the drivers may take to come or to go.
    #[must_use]
    pub fn timeout_with_drivers(&self) -> Duration {
        self.timeout.unwrap_or(Duration::from_secs(15 * 60))
    }

    /// The flags that chose the cluster of this command, to append to a command that the output suggests. Each flag starts with a space.
    #[must_use]
    pub fn of_the_cluster(&self) -> String {
        let flags = self.flags();
        flags.map(|(_, flag)| format!(" --{} {}", flag.vdoctl, flag.value)).collect()
    }

    /// The flags of the cluster that the command line has; not those that the environment sets, where each further command finds them too.
    #[must_use]
    pub fn typed(&self, matches: &ArgMatches) -> Vec<ClusterFlag> {
        let is_typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        self.flags().filter(|(id, _)| is_typed(id)).map(|(_, flag)| flag).collect()
    }

    /// Each flag of the cluster that is set, with its name among the matches. The commands of kubectl and helm name the namespaces themselves.
    fn flags(&self) -> impl Iterator<Item = (&'static str, ClusterFlag)> {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let namespace = Some(&self.namespace).filter(|name| *name != OPERATOR_NAMESPACE);
        let one = [
            ("kubeconfig", "kubeconfig", "kubeconfig", "kubeconfig", path(&self.kubeconfig)),
            ("context", "context", "context", "kube-context", self.context.clone()),
            ("kube_cluster", "kube-cluster", "cluster", "", self.kube_cluster.clone()),
            ("kube_user", "kube-user", "user", "", self.kube_user.clone()),
            ("token_file", "token-file", "", "", path(&self.token_file)),
            ("namespace", "namespace", "", "", namespace.cloned()),
            ("impersonate", "as", "as", "kube-as-user", self.impersonate.clone()),
        ];
        let group = |group: &String| ("groups", "as-group", "as-group", "kube-as-group", Some(group.clone()));
        let flag = |(id, vdoctl, kubectl, helm, value): (_, _, _, _, Option<String>)| {
            let value = shell_word(&value?).into_owned();
            let flag = ClusterFlag {
                vdoctl,
                kubectl,
                helm,
                value,
            };
            Some((id, flag))
        };
        one.into_iter().chain(self.groups.iter().map(group)).filter_map(flag)
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    #[test]
    fn flags_of_the_cluster_are_those_that_were_given() {
        for (line, expected) in [
            (&[][..], ""),
            (
                &["--as", "me", "--as-group", "g", "--context", "a", "--as-group", "x y"],
                " --context a --as me --as-group g --as-group 'x y'",
            ),
            (
                &[
                    "--kubeconfig",
                    "/k",
                    "--kube-cluster",
                    "c",
                    "--kube-user",
                    "u",
                    "--token-file",
                    "-",
                    "-n",
                    "n",
                ],
                " --kubeconfig /k --kube-cluster c --kube-user u --token-file - --namespace n",
            ),
        ] {
            let words = ["vdoctl", "status"].iter().chain(line);
            let matches = super::super::command().try_get_matches_from(words).expect("a command line");
            let global = super::super::Cli::from_arg_matches(&matches).expect("arguments").global;
            assert_eq!(global.of_the_cluster(), expected);
            let typed = global.typed(&matches);
            let flags: String = typed.iter().map(|flag| format!(" --{} {}", flag.vdoctl, flag.value)).collect();
            assert_eq!(flags, expected);
        }
    }
}
