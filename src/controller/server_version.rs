//! The version of the API server: asked for when it may have changed, and not besides.

use super::state::lock;
use crate::cluster::{ClusterError, server_version};
use kube::Client;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use vdo_api::api::chain;
use vdo_api::facts::Node;
use vdo_api::retry::{VERSION, VERSION_AFTER_WATCHES};
use vdo_api::types::KubernetesVersion;

/// How long an answer counts for a reconcile where nothing shows that the version may have changed.
const AGE: Duration = Duration::from_secs(300);

/// How many answers in a row must give an older version before it counts, and the time between them. While a control plane of several
/// servers is upgraded, both versions answer, and drivers must not go back and forth.
const OLDER: u32 = 4;
const OLDER_PAUSE: Duration = Duration::from_secs(10);

/// What is known of the version.
pub(super) struct ServerVersion {
    client: Client,
    known: Mutex<Known>,
    /// Kubelets are upgraded after their API server.
    kubelets: Mutex<BTreeSet<String>>,
    doubts: Notify,
}

#[derive(Debug, Default)]
struct Known {
    version: Option<KubernetesVersion>,
    asked: Option<Instant>,
    /// Answers in a row that gave an older version.
    older: u32,
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
        let known = {
            let known = lock(&self.known);
            known
                .version
                .clone()
                .map(|version| (version, known.asked.is_some_and(|asked| asked.elapsed() < AGE)))
        };
        match known {
            Some((version, true)) => Ok(version),
            // An old answer is better than none: versions do not change while a server is away.
            Some((version, false)) => Ok(match self.ask().await {
                Ok((version, answer)) => {
                    if answer == Answer::Older {
                        self.doubts.notify_one();
                    }
                    version
                }
                Err(_) => version,
            }),
            None => Ok(self.ask().await?.0),
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

    /// Asks whenever watches were interrupted or the kubelets have changed, and calls `changed` when the version has.
    pub(super) async fn follow(&self, mut interrupted: watch::Receiver<()>, changed: impl Fn()) {
        let mut in_a_row = 0;
        loop {
            let rest = Instant::now();
            tokio::select! {
                Ok(()) = interrupted.changed() => {}
                () = self.doubts.notified() => {}
            }
            let quiet = rest.elapsed();
            let new = self.find_out().await;
            if new {
                changed();
            }
            in_a_row = questions(in_a_row, quiet, new);
            sleep(VERSION_AFTER_WATCHES.after(in_a_row)).await;
        }
    }

    /// Asks until there is an answer that counts. Whether the version is another one.
    async fn find_out(&self) -> bool {
        let mut failures: u32 = 0;
        loop {
            match self.ask().await {
                Ok((_, Answer::Same)) => return false,
                Ok((_, Answer::New)) => return true,
                Ok((_, Answer::Older)) => sleep(OLDER_PAUSE).await,
                Err(error) => {
                    tracing::debug!(error = %chain(&error), "the API server does not give its version and is asked again");
                    failures = failures.saturating_add(1);
                    sleep(VERSION.after(failures)).await;
                }
            }
        }
    }

    /// Asks once. The version that counts afterwards.
    async fn ask(&self) -> Result<(KubernetesVersion, Answer), ClusterError> {
        let version = server_version(&self.client).await?;
        let mut known = lock(&self.known);
        let before = known.version.clone();
        let answer = known.take(version.clone());
        known.asked = Some(Instant::now());
        match (&before, &answer) {
            (Some(before), Answer::New) => tracing::info!(%before, now = %version, "the API server has another version"),
            (Some(before), Answer::Older) => {
                tracing::info!(%before, answer = %version, "an API server has an older version, which counts when it is repeated");
            }
            _ => {}
        }
        Ok((known.version.clone().unwrap_or(version), answer))
    }
}

/// How many questions were asked in a row, after one more. The row ends when the version is new, or when there was no cause for a question for
/// longer than the last pause.
fn questions(before: u32, quiet: Duration, new: bool) -> u32 {
    match new || quiet > VERSION_AFTER_WATCHES.after(before) {
        true => 1,
        false => before.saturating_add(1),
    }
}

impl Known {
    fn take(&mut self, answer: KubernetesVersion) -> Answer {
        let Some(known) = &self.version else {
            self.version = Some(answer);
            return Answer::New;
        };
        if *known == answer {
            self.older = 0;
            return Answer::Same;
        }
        if answer.numbers() < known.numbers() {
            self.older += 1;
            if self.older < OLDER {
                return Answer::Older;
            }
        }
        (self.version, self.older) = (Some(answer), 0);
        Answer::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_newer_counts_at_once_and_older_after_four_answers() {
        for (answers, expected) in [
            ("v1.34.4 v1.34.4", "new same"),
            ("v1.34.4 v1.35.0", "new new"),
            ("v1.34.4 v1.34.4+vendor.2", "new new"),
            ("v1.34.4 v1.33.1 v1.33.1 v1.33.1 v1.33.1 v1.33.1", "new older older older new same"),
            // A control plane of several servers that is being upgraded.
            (
                "v1.34.4 v1.35.0 v1.34.4 v1.34.4 v1.35.0 v1.34.4 v1.34.4 v1.34.4 v1.35.0",
                "new new older older same older older older same",
            ),
            ("v1.35.0 v1.34.4 v1.36.0 v1.35.0", "new older new older"),
        ] {
            let mut known = Known::default();
            let said: Vec<&str> = answers
                .split(' ')
                .map(|answer| match known.take(answer.parse().expect("a version")) {
                    Answer::Same => "same",
                    Answer::New => "new",
                    Answer::Older => "older",
                })
                .collect();
            assert_eq!(said.join(" "), expected, "{answers}");
        }
    }

    #[test]
    fn version_pause_grows_while_watches_keep_coming_back() {
        let seconds = Duration::from_secs;
        let mut in_a_row = 0;
        let pauses: Vec<u64> = [
            (0, true),
            (0, false),
            (1, false),
            (0, false),
            (3, false),
            (0, false),
            (31, false),
            (5, false),
            (0, true),
        ]
        .into_iter()
        .map(|(quiet, new)| {
            in_a_row = questions(in_a_row, seconds(quiet), new);
            VERSION_AFTER_WATCHES.after(in_a_row).as_secs()
        })
        .collect();
        assert_eq!(pauses, [2, 4, 8, 16, 30, 30, 2, 2, 2]);
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
