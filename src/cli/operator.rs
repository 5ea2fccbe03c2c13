//! Whether an operator runs that could act, as far as that can be seen from its Lease and its Deployment.

use super::context::{Context, now};
use super::style::ago;
use crate::api::VDOConfig;
use crate::cluster::{ClusterError, LEASE_NAME, LEASE_NAMESPACE, Select, Watch, get, list};
use crate::facts::Node;
use crate::health::{Verdict, assess, driver_health};
use crate::install::OPERATOR;
use crate::manifest::Object;
use crate::reconcile::nodes;
use crate::types::ObjectId;
use k8s_openapi::jiff::Timestamp;
use kube::{Client, ResourceExt};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long after its end a Lease still speaks for its holder, in seconds: clocks differ, and a renewal may be late.
const MARGIN: i64 = 15;
/// From this age on, in seconds, a status is not kept up to date any more: the operator confirms it every ten minutes.
const STALE: i64 = 25 * 60;
/// How long a Lease that seems to have run out is watched for a renewal: the holder renews it every five seconds.
const WATCHED: Duration = Duration::from_secs(7);

/// What there is of an operator.
#[derive(Debug, Clone, Default)]
pub(super) struct Presence {
    /// Its namespace.
    pub namespace: String,
    /// That namespace is being deleted.
    pub terminating: bool,
    /// Its Deployment.
    pub deployment: Deployment,
    /// What keeps its pods from being ready, where that may be seen.
    pub unready: Option<String>,
    /// The Lease, or that it may not be seen.
    pub lease: Lease,
}

/// The Deployment of the operator.
#[derive(Debug, Clone, Default)]
pub(super) enum Deployment {
    /// It may not be seen.
    #[default]
    Unknown,
    /// There is none.
    Missing,
    /// It is there.
    Found(Object),
}

/// No operator keeps a status up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Silence {
    /// Since when, where that is known.
    pub since: Option<Timestamp>,
    /// Why this is so, without the time.
    pub why: String,
    /// What to do.
    pub remedy: String,
}

/// The Lease by which one operator of several acts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Lease {
    /// It may not be seen.
    #[default]
    Unknown,
    /// No one holds it.
    Free {
        /// When its last holder renewed it last.
        renewed: Option<Timestamp>,
    },
    /// It is held.
    Held {
        /// By whom.
        holder: String,
        /// When it was renewed last.
        renewed: Timestamp,
        /// For how many seconds.
        lasts: i64,
    },
}

impl Lease {
    fn of(lease: Option<&Object>) -> Self {
        let Some(lease) = lease else { return Self::Free { renewed: None } };
        let holder = lease.text("/spec/holderIdentity");
        match lease.text("/spec/renewTime").parse().ok() {
            Some(renewed) if !holder.is_empty() => Self::Held {
                holder: holder.to_owned(),
                renewed,
                lasts: lease.number("/spec/leaseDurationSeconds").unwrap_or(MARGIN),
            },
            renewed => Self::Free { renewed },
        }
    }

    /// Reads it.
    async fn read(client: &Client) -> Result<Self, ClusterError> {
        let id = ObjectId::new("coordination.k8s.io", "Lease", LEASE_NAMESPACE, LEASE_NAME);
        let lease = seen(client, "coordination.k8s.io/v1", &id).await?;
        Ok(lease.map_or(Self::Unknown, |lease| Self::of(lease.as_ref())))
    }

    /// Whether its holder has not renewed it in time, by the clock of this machine.
    fn has_lapsed(&self, now: Timestamp) -> bool {
        matches!(self, Self::Held { renewed, lasts, .. } if renewed.as_second() + lasts + MARGIN < now.as_second())
    }
}

impl Deployment {
    /// Why it cannot run an operator; `None` where it can, or is not known.
    pub(super) fn failure(&self, whole: &str) -> Option<String> {
        match self {
            Self::Unknown => None,
            Self::Missing => Some(format!("there is no Deployment {whole}")),
            Self::Found(deployment) if is_scaled_to_zero(deployment) => Some(format!("Deployment {whole} is scaled to 0")),
            Self::Found(deployment) => match assess(deployment).0 {
                Verdict::Current => None,
                Verdict::Waiting(_, message) => Some(message),
            },
        }
    }
}

/// Whether no pods are asked for.
fn is_scaled_to_zero(deployment: &Object) -> bool {
    deployment.number("/spec/replicas") == Some(0)
}

/// What keeps the pods of an operator from being ready; `None` where they are.
pub(super) async fn unready(context: &Context, deployment: &Object) -> Result<Option<String>, ClusterError> {
    if matches!(assess(deployment).0, Verdict::Current) {
        return Ok(None);
    }
    let labels = Select::Labels(format!("app.kubernetes.io/name={OPERATOR}"));
    let pods = list(&context.ports.client, &Watch::new("v1", "Pod", deployment.namespace(), labels)).await?;
    let pods: Vec<&Object> = pods.iter().collect();
    let message = driver_health(OPERATOR, &[deployment], &pods, &[], &[]).message;
    // A user without the right to list nodes still gets the rest.
    let nodes = nodes(&context.ports.reader).await.unwrap_or_default();
    let without = pods.iter().find_map(|pod| without_network(pod, &nodes));
    Ok(Some(
        without.map_or_else(|| message.clone(), |without| format!("{message}; {without}")),
    ))
}

/// That a pod cannot begin because its node has no pod network. The kubelet reports it only in an event.
fn without_network(pod: &Object, nodes: &[Arc<Node>]) -> Option<String> {
    let needs = pod.value().pointer("/spec/hostNetwork").and_then(Value::as_bool) != Some(true);
    let node = nodes.iter().find(|node| needs && *node.name == *pod.text("/spec/nodeName"))?;
    let says = node.network.as_ref()?;
    Some(format!(
        "node {} has no pod network ({says}): vdoctl deploy lets the operator run in the network of its node",
        node.name
    ))
}

/// An object, if there is one; `None` where it may not be seen.
async fn seen(client: &Client, api_version: &str, id: &ObjectId) -> Result<Option<Option<Object>>, ClusterError> {
    match get(client, api_version, id).await {
        Ok(found) => Ok(Some(found)),
        Err(ClusterError::Forbidden { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Presence {
    /// Looks. What may not be seen is unknown.
    pub(super) async fn find(context: &Context, namespace: &str) -> Result<Self, ClusterError> {
        let client = &context.ports.client;
        let deployment = ObjectId::new("apps", "Deployment", namespace, OPERATOR);
        let deployment = match seen(client, "apps/v1", &deployment).await? {
            None => Deployment::Unknown,
            Some(None) => Deployment::Missing,
            Some(Some(found)) => Deployment::Found(found),
        };
        let own = seen(client, "v1", &ObjectId::new("", "Namespace", "", namespace)).await?;
        let unready = match &deployment {
            Deployment::Found(found) if !is_scaled_to_zero(found) => unready(context, found).await.or_else(|error| match error {
                ClusterError::Forbidden { .. } => Ok(None),
                error => Err(error),
            })?,
            _ => None,
        };
        Ok(Self {
            namespace: namespace.to_owned(),
            terminating: own.flatten().is_some_and(|own| own.is_terminating()),
            deployment,
            unready,
            lease: Lease::read(client).await?,
        })
    }

    /// The same, where a Lease that has run out by the clock of this machine alone does not count as such: its holder is waited for to
    /// renew it. Not where the Deployment says already that no operator runs.
    pub(super) async fn confirmed(mut self, context: &Context) -> Result<Self, ClusterError> {
        let end = Instant::now() + WATCHED;
        while self.lease.has_lapsed(now()) && self.failure().is_none() && Instant::now() < end {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let again = Lease::read(&context.ports.client).await?;
            if let (Lease::Held { holder, lasts, .. }, true) = (&again, again != self.lease) {
                self.lease = Lease::Held {
                    holder: holder.clone(),
                    renewed: now(),
                    lasts: *lasts,
                };
            }
        }
        Ok(self)
    }

    /// The name of the Deployment.
    pub(super) fn whole(&self) -> String {
        format!("{}/{OPERATOR}", self.namespace)
    }

    /// Why there cannot be an operator, by its namespace and its Deployment.
    fn failure(&self) -> Option<String> {
        match self.terminating {
            true => Some(format!("Namespace {} is being deleted", self.namespace)),
            false => {
                let failure = self.deployment.failure(&self.whole())?;
                Some(self.unready.clone().unwrap_or(failure))
            }
        }
    }

    /// Whether another operator may be about to take a Lease that was released.
    fn may_begin(&self) -> bool {
        let none = match &self.deployment {
            Deployment::Missing => true,
            Deployment::Found(deployment) => is_scaled_to_zero(deployment),
            Deployment::Unknown => false,
        };
        !none && !self.terminating
    }

    /// Why no operator acts; `None` where one does, or may. For the decision to do its work: in doubt there is one.
    pub(super) fn absence(&self, now: Timestamp) -> Option<String> {
        let lapsed = match &self.lease {
            Lease::Held { holder, renewed, .. } if self.lease.has_lapsed(now) => format!("{holder} {}", last_renewed(*renewed, now)),
            Lease::Held { .. } => return None,
            Lease::Free { .. } => format!("nothing holds the Lease {LEASE_NAMESPACE}/{LEASE_NAME}"),
            Lease::Unknown => String::new(),
        };
        // Without trouble the Lease may have been read on a machine whose clock is wrong.
        let why = self.failure()?;
        Some(if lapsed.is_empty() { why } else { format!("{why}, and {lapsed}") })
    }

    /// That a status is not kept up to date, for the person who reads it: no operator holds the Lease, or the one that does has not
    /// `confirmed` the status.
    pub(super) fn silence(&self, confirmed: Option<Timestamp>, now: Timestamp) -> Option<Silence> {
        let failure = self.failure();
        let old = confirmed.filter(|at| at.as_second() + STALE < now.as_second());
        let (since, why) = match &self.lease {
            Lease::Held { holder, renewed, .. } if self.lease.has_lapsed(now) => {
                (Some(*renewed), format!("{holder} {}", last_renewed(*renewed, now)))
            }
            Lease::Held { holder, .. } => (
                Some(old?),
                format!("{holder} holds the Lease {LEASE_NAMESPACE}/{LEASE_NAME}, and does not confirm its status"),
            ),
            Lease::Free { renewed: Some(at) } if self.may_begin() && at.as_second() + 2 * MARGIN >= now.as_second() => return None,
            Lease::Free { renewed: None } if failure.is_none() && old.is_none() => return None,
            Lease::Free { renewed: None } => (None, format!("nothing holds the Lease {LEASE_NAMESPACE}/{LEASE_NAME}")),
            Lease::Free { renewed } => (*renewed, format!("Lease {LEASE_NAMESPACE}/{LEASE_NAME} released")),
            Lease::Unknown if failure.is_none() => (Some(old?), "its status is not confirmed any more".to_owned()),
            Lease::Unknown => (None, String::new()),
        };
        let parts: Vec<String> = [why].into_iter().filter(|why| !why.is_empty()).chain(failure).collect();
        Some(Silence {
            since,
            why: parts.join("; "),
            remedy: self.remedy(),
        })
    }

    /// How to get an operator that runs.
    fn remedy(&self) -> String {
        let namespace = &self.namespace;
        match &self.deployment {
            _ if self.terminating => "Install it again when the namespace is deleted: vdoctl deploy.".into(),
            Deployment::Missing => "Install it again: vdoctl deploy, or apply the operator's manifests.".into(),
            Deployment::Found(found) if is_scaled_to_zero(found) => {
                format!("Start it: kubectl -n {namespace} scale deployment {OPERATOR} --replicas=1")
            }
            _ => {
                format!("Look at its pods and its log: kubectl -n {namespace} get pods; kubectl -n {namespace} logs deployment/{OPERATOR}")
            }
        }
    }

    /// That a deletion cannot be finished, and what to do: as two sentences. `None` where it can.
    pub(super) fn stuck(&self, config: &VDOConfig, now: Timestamp) -> Option<(String, String)> {
        config.metadata.deletion_timestamp.as_ref()?;
        let why = self.absence(now)?;
        let what = format!(
            "VDOConfig {}/{} is being deleted, and no operator runs that could finish it: {why}",
            self.namespace,
            config.name_any()
        );
        let again = if self.terminating {
            ""
        } else {
            ", or apply the operator's manifests again"
        };
        Some((what, format!("Run vdoctl delete, which finishes it without an operator{again}.")))
    }
}

fn last_renewed(renewed: Timestamp, now: Timestamp) -> String {
    format!("renewed the Lease {LEASE_NAMESPACE}/{LEASE_NAME} last {} ago", ago(renewed, now))
}

impl Silence {
    /// What happened, as the beginning of a sentence.
    pub(super) fn what(&self, now: Timestamp) -> String {
        let since = self.since.map(|since| format!(" for {}", ago(since, now))).unwrap_or_default();
        format!("operator not running{since} ({})", self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(ready: i64) -> Deployment {
        let status = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": ready, "readyReplicas": ready,
            "conditions": [{"type": "Available", "status": if ready > 0 { "True" } else { "False" }}]});
        found(1, status)
    }

    fn found(replicas: i64, status: serde_json::Value) -> Deployment {
        let metadata = json!({"name": OPERATOR, "namespace": "n", "generation": 1});
        let object =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": replicas}, "status": status});
        Deployment::Found(Object::new(object).expect("an object"))
    }

    fn at(time: &str) -> Timestamp {
        format!("2026-01-01T{time}Z").parse().expect("a time")
    }

    fn held(renewed: &str) -> Lease {
        Lease::Held {
            holder: "vdo-operator-0".into(),
            renewed: at(renewed),
            lasts: 15,
        }
    }

    fn presence(lease: Lease, deployment: Deployment) -> Presence {
        Presence {
            namespace: "n".into(),
            terminating: false,
            deployment,
            unready: None,
            lease,
        }
    }

    #[test]
    fn absence_of_operator_follows_lease_then_deployment() {
        let now = at("00:10:00");
        let (fresh, lapsed) = (held("00:09:35"), held("00:05:00"));
        let free = || Lease::Free { renewed: None };
        let none = || Deployment::Missing;
        for (lease, deployment, terminating, expected) in [
            (fresh.clone(), none(), true, None),
            (fresh, none(), false, None),
            (lapsed.clone(), deployment(1), false, None),
            (
                lapsed.clone(),
                none(),
                false,
                Some("there is no Deployment n/vdo-operator, and vdo-operator-0 renewed the Lease kube-system/vdo-operator last 5m ago"),
            ),
            (lapsed.clone(), none(), true, Some("Namespace n is being deleted")),
            (lapsed, Deployment::Unknown, false, None),
            (free(), none(), false, Some("nothing holds the Lease")),
            (Lease::Unknown, none(), false, Some("there is no Deployment n/vdo-operator")),
            (Lease::Unknown, deployment(1), false, None),
            (free(), deployment(0), false, Some("0 of 1")),
            (free(), found(0, json!({"observedGeneration": 1})), false, Some("is scaled to 0")),
        ] {
            let presence = Presence {
                terminating,
                ..presence(lease, deployment)
            };
            let found = presence.absence(now);
            match expected {
                Some(words) => assert!(found.as_ref().is_some_and(|found| found.contains(words)), "{words:?}: {found:?}"),
                None => assert_eq!(found, None, "{presence:?}"),
            }
        }
    }

    /// A status is only believed while someone keeps it up to date.
    #[test]
    fn silence_of_operator_follows_lease_deployment_and_confirmation() {
        let now = at("01:00:00");
        let (fresh, lapsed) = (held("00:59:35"), held("00:57:00"));
        let free = |renewed: &str| Lease::Free {
            renewed: Some(at(renewed)),
        };
        let scaled = || found(0, json!({"observedGeneration": 1}));
        let (recent, old) = (Some(at("00:50:00")), Some(at("00:20:00")));
        for (lease, deployment, confirmed, expected) in [
            (fresh.clone(), deployment(1), recent, None),
            (fresh.clone(), Deployment::Missing, None, None),
            (
                fresh.clone(),
                deployment(1),
                old,
                Some(
                    "operator not running for 40m (vdo-operator-0 holds the Lease kube-system/vdo-operator, and does not confirm its status)",
                ),
            ),
            // By a clock that was held against the Lease twice, see `confirmed`.
            (
                lapsed.clone(),
                deployment(1),
                recent,
                Some("operator not running for 3m (vdo-operator-0 renewed the Lease kube-system/vdo-operator last 3m ago)"),
            ),
            (free("00:59:40"), deployment(1), recent, None),
            (
                free("00:59:40"),
                Deployment::Missing,
                recent,
                Some("operator not running for 20s (Lease kube-system/vdo-operator released; there is no Deployment n/vdo-operator)"),
            ),
            (
                free("00:57:00"),
                scaled(),
                recent,
                Some("operator not running for 3m (Lease kube-system/vdo-operator released; Deployment n/vdo-operator is scaled to 0)"),
            ),
            (Lease::Free { renewed: None }, deployment(1), None, None),
            (
                Lease::Free { renewed: None },
                Deployment::Missing,
                recent,
                Some("operator not running (nothing holds the Lease kube-system/vdo-operator; there is no Deployment n/vdo-operator)"),
            ),
            (Lease::Unknown, deployment(1), recent, None),
            (Lease::Unknown, Deployment::Unknown, recent, None),
            (
                Lease::Unknown,
                Deployment::Unknown,
                old,
                Some("operator not running for 40m (its status is not confirmed any more)"),
            ),
            (
                Lease::Unknown,
                scaled(),
                recent,
                Some("operator not running (Deployment n/vdo-operator is scaled to 0)"),
            ),
        ] {
            let presence = presence(lease, deployment);
            let found = presence.silence(confirmed, now).map(|silence| silence.what(now));
            assert_eq!(found.as_deref(), expected, "{presence:?} {confirmed:?}");
        }
        let remedy = |presence: &Presence| presence.silence(old, now).map(|silence| silence.remedy);
        assert_eq!(
            remedy(&presence(lapsed, scaled())).as_deref(),
            Some("Start it: kubectl -n n scale deployment vdo-operator --replicas=1")
        );
    }
}
