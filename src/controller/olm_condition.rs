// SPDX-License-Identifier: Apache-2.0
//! Writes the condition `Upgradeable` of the operator's OperatorCondition, from which OLM reads whether it may upgrade the operator.
//!
//! OLM names the object in `OPERATOR_CONDITION_NAME`, creates it, and gives the operator's account the rights to get and patch it. While
//! the condition is False, OLM keeps the next version of the operator waiting. Without the variable, nothing is written.

use super::loop_memory::lock;
use crate::cluster::{ClusterError, Writer, get};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use std::sync::Mutex;
use vdo_api::api::{ConditionType, Conditions, Reason, VDOConfigStatus, chain};
use vdo_api::types::ObjectId;

const API_VERSION: &str = "operators.coreos.com/v2";
const KIND: &str = "OperatorCondition";
const UPGRADEABLE: &str = "Upgradeable";

/// The OperatorCondition of this operator, and what it says.
pub(super) struct OperatorCondition {
    id: Option<ObjectId>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// What was written last.
    written: Option<Verdict>,
    /// That it cannot be written was logged.
    refused: bool,
}

/// Whether this operator may be replaced by another version now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    upgradeable: bool,
    reason: String,
    message: String,
}

impl Verdict {
    /// Without a VDOConfig there is nothing that an upgrade could disturb.
    pub(super) fn nothing_installed() -> Self {
        Self {
            upgradeable: true,
            reason: Reason::NotRequested.to_string(),
            message: "no drivers are installed".to_owned(),
        }
    }

    /// From the status of the VDOConfig that acts.
    ///
    /// A driver that is being changed is finished first, and a pin that keeps the drivers from the next Kubernetes minor is a person's
    /// decision that is passed on. That the matrix has no version for that minor is no reason to wait: a newer operator may bring one.
    pub(super) fn of(status: &VDOConfigStatus) -> Self {
        let condition = |kind| Conditions::find(&status.conditions, kind);
        if let Some(changing) = condition(ConditionType::Reconciling).filter(|c| c.status == "True") {
            // The message counts pods, and each count would be a write.
            return Self {
                upgradeable: false,
                reason: changing.reason.clone(),
                message: "the drivers are being changed; the status of the VDOConfig shows the progress".to_owned(),
            };
        }
        match condition(ConditionType::Upgradeable) {
            Some(own) => Self {
                upgradeable: own.status != "False" || own.reason == Reason::NoCompatibleVersion.as_str(),
                reason: own.reason.clone(),
                message: own.message.clone(),
            },
            None => Self {
                upgradeable: true,
                reason: Reason::NotChecked.to_string(),
                message: "it is not known yet whether the drivers are compatible with the next Kubernetes minor version".to_owned(),
            },
        }
    }

    fn status(&self) -> &'static str {
        if self.upgradeable { "True" } else { "False" }
    }

    /// The conditions of an OperatorCondition with this one among them; `None` where it is there already.
    fn among(&self, live: &Value, now: Timestamp) -> Option<Vec<Value>> {
        let mut conditions = live
            .pointer("/spec/conditions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let status = self.status();
        let own = conditions.iter().position(|condition| condition["type"] == UPGRADEABLE);
        let old = own.map(|at| conditions.remove(at)).unwrap_or_default();
        if old["status"] == status && old["reason"] == *self.reason && old["message"] == *self.message {
            return None;
        }
        let since = if old["status"] == status {
            old["lastTransitionTime"].clone()
        } else {
            json!(now)
        };
        conditions.push(
            json!({"type": UPGRADEABLE, "status": status, "reason": self.reason, "message": self.message,
            "lastTransitionTime": since}),
        );
        Some(conditions)
    }
}

impl OperatorCondition {
    /// The one of this name, in the namespace of the operator; OLM gives no name where it does not manage the operator.
    pub(super) fn new(namespace: &str, name: Option<&str>) -> Self {
        Self {
            id: name.map(|name| ObjectId::new("operators.coreos.com", KIND, namespace, name)),
            known: Mutex::default(),
        }
    }

    /// Writes the verdict where it is a new one. OLM may have taken the object or the rights away, which stops nothing.
    pub(super) async fn keep(&self, verdict: Verdict, client: &Client, writer: &Writer, now: Timestamp) {
        let Some(id) = self.id.as_ref().filter(|_| lock(&self.known).written.as_ref() != Some(&verdict)) else {
            return;
        };
        let why = match write(id, &verdict, client, writer, now).await {
            Ok(true) => {
                *lock(&self.known) = Known {
                    written: Some(verdict),
                    refused: false,
                };
                return;
            }
            Ok(false) => "there is no such object".to_owned(),
            // The API server is away; the next run writes it.
            Err(error) if !error.is_lasting() => return,
            Err(error) => chain(&error),
        };
        let mut known = lock(&self.known);
        known.written = Some(verdict);
        if !std::mem::replace(&mut known.refused, true) {
            tracing::warn!(object = %id, error = why, "the operator could not report to OLM whether it may be upgraded");
        }
    }
}

/// Whether the object is there.
async fn write(id: &ObjectId, verdict: &Verdict, client: &Client, writer: &Writer, now: Timestamp) -> Result<bool, ClusterError> {
    let Some(live) = get(client, API_VERSION, id).await? else {
        return Ok(false);
    };
    if let Some(conditions) = verdict.among(live.value(), now) {
        // Not by apply: the list has no keys, and what others wrote there stays.
        let change = json!({"metadata": {"resourceVersion": live.resource_version()}, "spec": {"conditions": conditions}});
        writer.merge(API_VERSION, id, &change, false).await?;
        tracing::info!(object = %id, reason = verdict.reason, "Upgradeable is {} for OLM", verdict.status());
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

    fn status(conditions: &[(ConditionType, &str, Reason)]) -> VDOConfigStatus {
        let conditions = conditions.iter().map(|(kind, status, reason)| Condition {
            type_: kind.as_str().to_owned(),
            status: (*status).to_owned(),
            reason: reason.to_string(),
            message: "its words".to_owned(),
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
            observed_generation: None,
        });
        VDOConfigStatus {
            conditions: conditions.collect(),
            ..VDOConfigStatus::default()
        }
    }

    #[test]
    fn operator_condition_is_false_while_drivers_change_or_are_pinned() {
        const WORKING: ConditionType = ConditionType::Reconciling;
        const NEXT: ConditionType = ConditionType::Upgradeable;
        for (conditions, upgradeable, reason) in [
            (&[][..], true, Reason::NotChecked),
            (&[(NEXT, "True", Reason::Healthy)], true, Reason::Healthy),
            (&[(NEXT, "Unknown", Reason::NotChecked)], true, Reason::NotChecked),
            (&[(NEXT, "False", Reason::IncompatiblePin)], false, Reason::IncompatiblePin),
            // A newer operator may bring the version that is missing.
            (&[(NEXT, "False", Reason::NoCompatibleVersion)], true, Reason::NoCompatibleVersion),
            (
                &[(NEXT, "True", Reason::Healthy), (WORKING, "True", Reason::Progressing)],
                false,
                Reason::Progressing,
            ),
            (
                &[(NEXT, "True", Reason::Healthy), (WORKING, "False", Reason::Idle)],
                true,
                Reason::Healthy,
            ),
        ] {
            let found = Verdict::of(&status(conditions));
            assert_eq!(
                (found.upgradeable, found.reason),
                (upgradeable, reason.to_string()),
                "{conditions:?}"
            );
        }
    }

    #[test]
    fn operator_condition_keeps_what_others_wrote_and_the_time_of_its_last_change() {
        let verdict = |upgradeable: bool, message: &str| Verdict {
            upgradeable,
            reason: "Healthy".to_owned(),
            message: message.to_owned(),
        };
        let other =
            json!({"type": "Other", "status": "False", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let now = Timestamp::UNIX_EPOCH;
        let first = verdict(true, "a")
            .among(&json!({"spec": {"conditions": [other]}}), now)
            .expect("a change");
        assert_eq!(first[0], other);
        assert_eq!(
            first[1],
            json!({"type": "Upgradeable", "status": "True", "reason": "Healthy", "message": "a", "lastTransitionTime": "1970-01-01T00:00:00Z"})
        );
        let live = json!({"spec": {"conditions": first}});
        let later: Timestamp = "2026-11-27T00:00:00Z".parse().expect("a time");
        assert_eq!(verdict(true, "a").among(&live, later), None);
        let same = verdict(true, "b").among(&live, later).expect("another message");
        assert_eq!(same[1]["lastTransitionTime"], "1970-01-01T00:00:00Z");
        let changed = verdict(false, "b").among(&live, later).expect("another status");
        assert_eq!(changed[1]["lastTransitionTime"], "2026-11-27T00:00:00Z");
        // OLM creates the object without a specification.
        assert_eq!(verdict(true, "a").among(&json!({}), now).map(|all| all.len()), Some(1));
    }
}
