// SPDX-License-Identifier: Apache-2.0
//! Decides whether an operator runs, from its Lease, its Deployment and its pods, and names the remedy when none runs.

mod build;
mod installer;
mod lease;

pub(super) use build::Build;
pub(super) use installer::Installer;
pub(super) use lease::{Lease, Sight};

use super::ages::ago;
use super::context::{Context, now};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vdo::cluster::{ClusterError, LEASE_NAME, LEASE_NAMESPACE, Select, Watch, list};
use vdo::reconcile::nodes;
use vdo_api::api::VDOConfig;
use vdo_api::facts::Node;
use vdo_api::types::{Later as _, ObjectId};
use vdo_core::health::{Verdict, assess, driver_health};
use vdo_core::install::OPERATOR;
use vdo_core::manifest::Object;

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
    /// The program that installed it, where one did.
    pub installer: Option<Installer>,
    /// What keeps its pods from being ready, where that may be seen.
    pub unready: Option<String>,
    /// The Lease, or that it may not be seen.
    pub lease: Lease,
    /// Its holder has renewed it while it was watched.
    pub renews: bool,
    /// Its holder has not, for longer than a renewal takes.
    pub silent: bool,
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
    /// None can begin before a person does that.
    pub person: bool,
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
        "node {} has no pod network ({says}): vdoctl deploy lets the operator run in the host network of its node",
        node.name
    ))
}

impl Presence {
    /// Looks. What may not be seen is unknown.
    pub(super) async fn find(context: &Context, namespace: &str) -> Result<Self, ClusterError> {
        let client = &context.ports.client;
        let deployment = ObjectId::new("apps", "Deployment", namespace, OPERATOR);
        let deployment = match lease::seen(client, "apps/v1", &deployment).await? {
            None => Deployment::Unknown,
            Some(None) => Deployment::Missing,
            Some(Some(found)) => Deployment::Found(found),
        };
        let own = lease::seen(client, "v1", &ObjectId::new("", "Namespace", "", namespace)).await?;
        let unready = match &deployment {
            Deployment::Found(found) if !is_scaled_to_zero(found) => unready(context, found).await.or_else(|error| match error {
                ClusterError::Forbidden { .. } => Ok(None),
                error => Err(error),
            })?,
            _ => None,
        };
        let installer = match &deployment {
            Deployment::Found(found) => Installer::find(context, found).await,
            Deployment::Missing | Deployment::Unknown => None,
        };
        Ok(Self {
            namespace: namespace.to_owned(),
            installer,
            terminating: own.flatten().is_some_and(|own| own.is_terminating()),
            deployment,
            unready,
            lease: Lease::read(client).await?,
            renews: false,
            silent: false,
        })
    }

    /// The same, without the two ways in which a Lease misleads: the clock of this machine may be wrong, so that a Lease only seems to have
    /// run out; and an operator that was just removed leaves its Lease held. In both cases it is awaited that the holder renews it. An operator
    /// may run without its Deployment, so that a missing Deployment raises doubts only while the VDOConfig is `deleting`.
    pub(super) async fn confirmed(mut self, context: &Context, deleting: bool) -> Result<Self, ClusterError> {
        let end = Instant::now().later(WATCHED);
        let removed = |presence: &Self| {
            let missing = matches!(presence.deployment, Deployment::Missing) && !presence.terminating;
            presence.is_doubtful() && (deleting || !missing)
        };
        let mut sight = Sight::default();
        sight.compare(&mut self);
        while (self.lease.has_lapsed(now()) && self.failure().is_none()) || removed(&self) {
            if Instant::now() >= end {
                self.silent = removed(&self);
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.lease = Lease::read(&context.ports.client).await?;
            sight.compare(&mut self);
        }
        Ok(self)
    }

    /// Whether the Lease may be the rest of an operator that was removed: it is held, no operator runs where one should, and no renewal was seen.
    pub(super) fn is_doubtful(&self) -> bool {
        matches!(self.lease, Lease::Held { .. }) && !self.renews && !self.may_begin()
    }

    /// Whether the holder of the Lease does not act any more.
    fn has_lapsed(&self, now: Timestamp) -> bool {
        matches!(self.lease, Lease::Held { .. }) && (self.silent || self.lease.has_lapsed(now))
    }

    /// The name of the Deployment.
    pub(super) fn whole(&self) -> String {
        format!("{}/{OPERATOR}", self.namespace)
    }

    /// Why there cannot be an operator, by its namespace and its Deployment.
    pub(super) fn failure(&self) -> Option<String> {
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
            Lease::Held { holder, renewed, .. } if self.has_lapsed(now) => format!("{holder} {}", last_renewed(*renewed, now)),
            Lease::Held { .. } => return None,
            Lease::Free { .. } => format!("Lease {LEASE_NAMESPACE}/{LEASE_NAME} has no holder"),
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
            Lease::Held { holder, renewed, .. } if self.has_lapsed(now) => {
                (Some(*renewed), format!("{holder} {}", last_renewed(*renewed, now)))
            }
            Lease::Held { holder, .. } => (
                Some(old?),
                format!("{holder} holds the Lease {LEASE_NAMESPACE}/{LEASE_NAME}, but does not update the status"),
            ),
            Lease::Free { renewed: Some(at) } if self.may_begin() && at.as_second() + 2 * MARGIN >= now.as_second() => return None,
            Lease::Free { renewed: None } if failure.is_none() && old.is_none() => return None,
            Lease::Free { renewed: None } => (None, format!("Lease {LEASE_NAMESPACE}/{LEASE_NAME} has no holder")),
            Lease::Free { renewed } => (*renewed, format!("Lease {LEASE_NAMESPACE}/{LEASE_NAME} was released")),
            Lease::Unknown if failure.is_none() => (Some(old?), "the status is no longer updated".to_owned()),
            Lease::Unknown => (None, String::new()),
        };
        let parts: Vec<String> = [why].into_iter().filter(|why| !why.is_empty()).chain(failure).collect();
        Some(Silence {
            since,
            why: parts.join("; "),
            remedy: self.remedy(),
            person: !self.may_begin(),
        })
    }

    /// How to get an operator that runs.
    pub(super) fn remedy(&self) -> String {
        let namespace = &self.namespace;
        match &self.deployment {
            _ if self.terminating => "After the namespace is deleted, install the operator again: vdoctl deploy.".into(),
            Deployment::Missing => "Install the operator again: vdoctl deploy, or apply the operator's manifests.".into(),
            Deployment::Found(found) if is_scaled_to_zero(found) => {
                format!("Start the operator: kubectl -n {namespace} scale deployment {OPERATOR} --replicas=1")
            }
            _ => {
                format!("Check pods and log: kubectl -n {namespace} get pods; kubectl -n {namespace} logs deployment/{OPERATOR}")
            }
        }
    }

    /// That a deletion cannot be finished, and what to do: as two sentences. `None` where it can.
    pub(super) fn stuck(&self, config: &VDOConfig, now: Timestamp) -> Option<(String, String)> {
        config.metadata.deletion_timestamp.as_ref()?;
        let why = self.absence(now)?;
        let what = format!(
            "VDOConfig {}/{} is being deleted, and no operator runs to finish the deletion: {why}",
            self.namespace,
            config.name_any()
        );
        let again = if self.terminating {
            ""
        } else {
            ", or apply the operator's manifests again"
        };
        Some((what, format!("Run vdoctl delete, which needs no operator{again}.")))
    }
}

fn last_renewed(renewed: Timestamp, now: Timestamp) -> String {
    format!("last renewed the Lease {LEASE_NAMESPACE}/{LEASE_NAME} {} ago", ago(renewed, now))
}

impl Silence {
    /// What happened, as the beginning of a sentence.
    pub(super) fn what(&self, now: Timestamp) -> String {
        not_running(self.since, &self.why, now)
    }
}

/// That no operator runs, as the beginning of a sentence.
pub(super) fn not_running(since: Option<Timestamp>, why: &str, now: Timestamp) -> String {
    let runs = since.map_or_else(|| "runs".to_owned(), |since| format!("has run for {}", ago(since, now)));
    format!("no operator {runs} ({why})")
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
            installer: None,
            terminating: false,
            deployment,
            unready: None,
            lease,
            renews: false,
            silent: false,
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
                Some("there is no Deployment n/vdo-operator, and vdo-operator-0 last renewed the Lease kube-system/vdo-operator 5m ago"),
            ),
            (lapsed.clone(), none(), true, Some("Namespace n is being deleted")),
            (lapsed, Deployment::Unknown, false, None),
            (free(), none(), false, Some("Lease kube-system/vdo-operator has no holder")),
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

    /// The Lease of an operator that was just removed is held until it runs out; one that is renewed belongs to an operator elsewhere.
    #[test]
    fn held_lease_is_doubtful_where_no_operator_can_run_until_it_is_renewed() {
        let now = at("00:10:00");
        let fresh = held("00:09:55");
        let scaled = || found(0, json!({"observedGeneration": 1}));
        for (lease, deployment, expected) in [
            (fresh.clone(), deployment(1), false),
            (fresh.clone(), Deployment::Unknown, false),
            (fresh.clone(), scaled(), true),
            (fresh.clone(), Deployment::Missing, true),
            (Lease::Free { renewed: None }, scaled(), false),
        ] {
            assert_eq!(presence(lease, deployment).is_doubtful(), expected);
        }
        let mut seen = presence(fresh.clone(), scaled());
        let mut sight = Sight::default();
        sight.compare(&mut seen);
        assert!(seen.is_doubtful());
        let mut seen = presence(fresh.clone(), scaled());
        sight.compare(&mut seen);
        assert!(seen.is_doubtful(), "it is the same");
        let mut seen = presence(held("00:09:58"), scaled());
        sight.compare(&mut seen);
        assert!(!seen.is_doubtful() && seen.silence(None, now).is_none(), "it was renewed");
        let silent = Presence {
            silent: true,
            ..presence(fresh, scaled())
        };
        let silence = silent.silence(None, now).expect("no operator runs");
        assert!(silence.person && silence.why.ends_with("is scaled to 0"), "{silence:?}");
        assert!(silent.absence(now).is_some());
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
                    "no operator has run for 40m (vdo-operator-0 holds the Lease kube-system/vdo-operator, but does not update the status)",
                ),
            ),
            // By a clock that was held against the Lease twice, see `confirmed`.
            (
                lapsed.clone(),
                deployment(1),
                recent,
                Some("no operator has run for 3m (vdo-operator-0 last renewed the Lease kube-system/vdo-operator 3m ago)"),
            ),
            (free("00:59:40"), deployment(1), recent, None),
            (
                free("00:59:40"),
                Deployment::Missing,
                recent,
                Some("no operator has run for 20s (Lease kube-system/vdo-operator was released; there is no Deployment n/vdo-operator)"),
            ),
            (
                free("00:57:00"),
                scaled(),
                recent,
                Some("no operator has run for 3m (Lease kube-system/vdo-operator was released; Deployment n/vdo-operator is scaled to 0)"),
            ),
            (Lease::Free { renewed: None }, deployment(1), None, None),
            (
                Lease::Free { renewed: None },
                Deployment::Missing,
                recent,
                Some("no operator runs (Lease kube-system/vdo-operator has no holder; there is no Deployment n/vdo-operator)"),
            ),
            (Lease::Unknown, deployment(1), recent, None),
            (Lease::Unknown, Deployment::Unknown, recent, None),
            (
                Lease::Unknown,
                Deployment::Unknown,
                old,
                Some("no operator has run for 40m (the status is no longer updated)"),
            ),
            (
                Lease::Unknown,
                scaled(),
                recent,
                Some("no operator runs (Deployment n/vdo-operator is scaled to 0)"),
            ),
        ] {
            let presence = presence(lease, deployment);
            let found = presence.silence(confirmed, now).map(|silence| silence.what(now));
            assert_eq!(found.as_deref(), expected, "{presence:?} {confirmed:?}");
        }
        let remedy = |presence: &Presence| presence.silence(old, now).map(|silence| silence.remedy);
        assert_eq!(
            remedy(&presence(lapsed, scaled())).as_deref(),
            Some("Start the operator: kubectl -n n scale deployment vdo-operator --replicas=1")
        );
    }
}
