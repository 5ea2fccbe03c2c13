// SPDX-License-Identifier: Apache-2.0
//! What kubectl shows while OLM works, word for word: the record of a test, held against a file.

use crate::common::Bed;
use anyhow::{Result, ensure};
use std::process::Command;
use vdo_testbed::{Binaries, Part};

/// Subscriptions, InstallPlans and ClusterServiceVersions with their states.
pub const SUBSCRIPTIONS: &str = "get subscription --namespace vmware-system-vdo --output custom-columns=NAME:.metadata.name,CHANNEL:.spec.channel,INSTALLED:.status.installedCSV,STATE:.status.state";
pub const PLANS: &str = "get installplan --namespace vmware-system-vdo --output custom-columns=VERSIONS:.spec.clusterServiceVersionNames,APPROVAL:.spec.approval,APPROVED:.spec.approved,PHASE:.status.phase";
pub const VERSIONS: &str = "get csv --namespace vmware-system-vdo --output custom-columns=NAME:.metadata.name,REPLACES:.spec.replaces,PHASE:.status.phase,REASON:.status.reason,MESSAGE:.status.message";
/// The drivers' workloads: a change of one raises its generation, and a pod that was replaced has a younger one.
pub const WORKLOADS: &str = "get deployment,daemonset --all-namespaces --selector app.kubernetes.io/name!=vdo-operator --output custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name,GENERATION:.metadata.generation";
pub const DRIVERS: &str = "get vdoconfig --namespace vmware-system-vdo --output custom-columns=NAME:.metadata.name,DRIVERS:.status.drivers[*].name,VERSIONS:.status.drivers[*].version";

/// The commands of a test and what they print. Columns are named, so that nothing in it is different in the next run.
#[derive(Default)]
pub struct Transcript(String);

impl Transcript {
    /// What happens next.
    pub fn say(&mut self, text: &str) {
        let gap = if self.0.is_empty() { "" } else { "\n" };
        self.0.push_str(&format!("{gap}# {text}\n"));
    }

    /// Runs kubectl as an administrator does, and keeps what a terminal would show. Returns that, and the exit code.
    pub async fn kubectl(&mut self, bed: &Bed, line: &str) -> Result<(i32, String)> {
        let kubectl = tokio::task::spawn_blocking(|| Binaries::ensure(&[Part::Kubectl]))
            .await??
            .path(Part::Kubectl);
        let words = shlex::split(line).unwrap_or_default();
        ensure!(!words.is_empty(), "{line} is not a command line");
        let mut command = Command::new(kubectl);
        command.env("KUBECONFIG", bed.cluster.kubeconfig()).args(words);
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let shown = [output.stdout, output.stderr].concat();
        let shown = String::from_utf8(shown)?;
        let shown: Vec<&str> = shown.lines().map(str::trim_end).collect();
        let shown = shown.join("\n");
        self.0.push_str(&format!("$ kubectl {line}\n{shown}\n"));
        Ok((output.status.code().unwrap_or(-1), shown))
    }

    /// Holds all of it against the file of this name in `transcripts`.
    pub fn hold(&self, name: &str) {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false, snapshot_path => "transcripts" }, {
            insta::assert_snapshot!(name, self.0);
        });
    }
}
