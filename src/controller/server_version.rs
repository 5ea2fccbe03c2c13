// SPDX-License-Identifier: Apache-2.0
//! Remembers the version of the API server, and asks for it when watches start again, kubelets change or the answer is old.

use super::loop_memory::lock;
use crate::cluster::{ClusterError, server_version};
use kube::Client;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use vdo_api::api::chain;
use vdo_api::facts::Node;
use vdo_api::retry::VERSION;
use vdo_api::types::KubernetesVersion;

/// Between two questions. Watches come back one after the other, and one question is for all of them; some load balancers end every watch that is
/// idle for a minute.
const PAUSE: Duration = Duration::from_secs(30);

/// How old an answer gets before a reconcile causes the question, for what neither watches nor kubelets have shown.
const AGE: Duration = Duration::from_secs(300);

/// What is known of the version.
pub(super) struct ServerVersion {
    client: Client,
    /// With the time of the last answer.
    known: Mutex<Option<(KubernetesVersion, Instant)>>,
    /// Kubelets are upgraded after their API server.
    kubelets: Mutex<BTreeSet<String>>,
    doubts: Notify,
}

impl ServerVersion {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
            kubelets: Mutex::default(),
            doubts: Notify::new(),
        }
    }

    /// The version for a reconcile.
    ///
    /// # Errors
    /// When it was never known and the server does not answer.
    pub(super) async fn get(&self) -> Result<KubernetesVersion, ClusterError> {
        let known = lock(&self.known).clone();
        if known.as_ref().is_some_and(|(_, asked)| asked.elapsed() > AGE) {
            self.doubts.notify_one();
        }
        match known {
            Some((version, _)) => Ok(version),
            None => {
                let version = server_version(&self.client).await?;
                Ok(lock(&self.known).get_or_insert((version, Instant::now())).0.clone())
            }
        }
    }

    /// Takes note of the kubelets' versions. When they change, the API server may have changed unseen: behind a load balancer the watches
    /// may lead to another server.
    pub(super) fn seen(&self, nodes: &[Arc<Node>]) {
        let now: BTreeSet<String> = nodes.iter().filter_map(|node| node.kubelet.clone()).collect();
        let mut known = lock(&self.kubelets);
        if *known != now && !std::mem::replace(&mut *known, now).is_empty() {
            self.doubts.notify_one();
        }
    }

    /// Asks whenever watches begin again or the kubelets have changed, and calls `changed` when the version has.
    pub(super) async fn follow(&self, mut again: watch::Receiver<()>, changed: impl Fn()) {
        let mut older = None;
        loop {
            // An older version is asked for once more.
            if older.is_none() {
                tokio::select! {
                    Ok(()) = again.changed() => {}
                    () = self.doubts.notified() => {}
                }
            }
            let answer = self.answer().await;
            let before = lock(&self.known).clone().map(|(version, _)| version);
            let judged = judge(before.as_ref(), older.as_ref(), &answer);
            let before = before.map(tracing::field::display);
            older = None;
            match judged {
                Answer::Same => self.learn(answer),
                Answer::Older => {
                    tracing::info!(before, %answer, "an API server reports an older version; the operator uses this version if an API server reports it again");
                    older = Some(answer);
                }
                Answer::New => {
                    tracing::info!(before, now = %answer, "the API server has another version");
                    self.learn(answer);
                    changed();
                }
            }
            sleep(PAUSE).await;
        }
    }

    fn learn(&self, version: KubernetesVersion) {
        *lock(&self.known) = Some((version, Instant::now()));
    }

    /// Asks until there is an answer.
    async fn answer(&self) -> KubernetesVersion {
        let mut failures: u32 = 0;
        loop {
            match server_version(&self.client).await {
                Ok(version) => return version,
                Err(error) => {
                    tracing::debug!(error = %chain(&error), "the API server does not report its version; the request is repeated");
                    failures = failures.saturating_add(1);
                    sleep(VERSION.after(failures)).await;
                }
            }
        }
    }
}

/// What an answer leads to.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// It is the known version.
    Same,
    /// It is the version from now on.
    New,
    /// It is older, and is asked for once more.
    Older,
}

/// While a control plane of several servers is upgraded, both versions answer, and drivers must not go back and forth: an older version counts
/// when it is the answer twice in a row.
fn judge(known: Option<&KubernetesVersion>, older: Option<&KubernetesVersion>, answer: &KubernetesVersion) -> Answer {
    match known {
        Some(known) if known == answer => Answer::Same,
        Some(known) if answer.numbers() < known.numbers() && older != Some(answer) => Answer::Older,
        _ => Answer::New,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_newer_counts_at_once_and_older_after_two_answers() {
        for (answers, expected) in [
            ("v1.34.4 v1.34.4", "new same"),
            ("v1.34.4 v1.35.0", "new new"),
            ("v1.34.4 v1.34.4+vendor.2", "new new"),
            ("v1.34.4 v1.33.1 v1.33.1 v1.33.1", "new older new same"),
            // A control plane of several servers that is being upgraded.
            ("v1.34.4 v1.35.0 v1.34.4 v1.35.0 v1.34.4 v1.35.0", "new new older same older same"),
            ("v1.35.0 v1.34.4 v1.36.0 v1.35.0 v1.34.4", "new older new older older"),
        ] {
            let (mut known, mut older) = (None, None);
            let mut said = Vec::new();
            for answer in answers.split(' ').map(|answer| answer.parse().expect("a version")) {
                let judged = judge(known.as_ref(), older.as_ref(), &answer);
                older = None;
                match judged {
                    Answer::Older => older = Some(answer),
                    Answer::New | Answer::Same => known = Some(answer),
                }
                said.push(format!("{judged:?}").to_lowercase());
            }
            assert_eq!(said.join(" "), expected, "{answers}");
        }
    }

    #[tokio::test]
    async fn kubelets_of_another_version_cause_a_doubt() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = kube::Config::new("http://127.0.0.1:1".parse().expect("an address"));
        let version = ServerVersion::new(Client::try_from(config).expect("a client"));
        let nodes = |kubelets: &[&str]| -> Vec<Arc<Node>> {
            let node = |kubelet: &&str| Node {
                kubelet: Some((*kubelet).to_owned()),
                ..Node::default()
            };
            kubelets.iter().map(node).map(Arc::new).collect()
        };
        for (kubelets, doubt) in [
            (&[][..], false),
            (&["v1.34.4", "v1.34.4"], false),
            (&["v1.34.4"], false),
            (&["v1.34.4", "v1.35.0"], true),
            (&["v1.35.0", "v1.34.4", "v1.35.0"], false),
            (&["v1.35.0"], true),
        ] {
            version.seen(&nodes(kubelets));
            let doubted = futures::FutureExt::now_or_never(version.doubts.notified()).is_some();
            assert_eq!(doubted, doubt, "{kubelets:?}");
        }
    }
}
