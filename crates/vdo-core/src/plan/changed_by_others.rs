// SPDX-License-Identifier: Apache-2.0
//! Who changed an object of ours, and whether another manager keeps changing it back.

use super::managed_fields::writer;
use super::{Change, Step};
use crate::manifest::{Difference, Object};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use vdo_api::types::ObjectId;

/// One field that another manager changed, or an object that another manager deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The object.
    pub id: ObjectId,
    /// The field, for example `spec.replicas`; empty when the object was deleted.
    pub path: String,
    /// What is wanted there, shortened; masked in a Secret.
    pub wanted: String,
    /// What was found there.
    pub found: String,
    /// The field manager that wrote it, as the object says; empty when it does not say.
    pub manager: String,
    /// When, as the object says.
    pub at: Option<Timestamp>,
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return write!(f, "{} was deleted and is recreated", self.id);
        }
        write!(f, "{}: {} is {} instead of {}", self.id, self.path, self.found, self.wanted)?;
        match (self.manager.as_str(), self.at) {
            ("", _) => f.write_str(" (the manager is not known)"),
            (manager, Some(at)) => write!(f, ", changed by {manager} at {at}"),
            (manager, None) => write!(f, ", changed by {manager}"),
        }
    }
}

impl Drift {
    /// An object that another manager deleted. Who it was, only the audit log of the API server knows.
    #[must_use]
    pub fn deleted(id: ObjectId) -> Self {
        Self {
            id,
            path: String::new(),
            wanted: String::new(),
            found: String::new(),
            manager: String::new(),
            at: None,
        }
    }
}

/// How much of a value is shown.
const SHOWN: usize = 80;

/// The drift that these differences are, where `live` is the object with its record of field managers.
#[must_use]
pub fn attribute(id: &ObjectId, differences: &[Difference], live: &Object) -> Vec<Drift> {
    differences
        .iter()
        .map(|difference| {
            let (manager, at) = writer(live, &difference.path).unwrap_or_default();
            let show = |value: &Value| shown(value, live.is_secret() && !difference.path.starts_with("metadata"));
            Drift {
                id: id.clone(),
                path: difference.path.clone(),
                wanted: show(&difference.wanted),
                found: show(&difference.found),
                manager,
                at,
            }
        })
        .collect()
}

fn shown(value: &Value, secret: bool) -> String {
    if value.is_null() {
        return "absent".into();
    }
    if secret {
        return "******".into();
    }
    let text = value.to_string();
    if text.chars().count() <= SHOWN {
        return text;
    }
    text.chars().take(SHOWN - 1).chain(['…']).collect()
}

/// How many times a field is written again within [`WINDOW`] before it is a contention.
pub const REWRITES: usize = 3;
/// How long a rewrite counts.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// How long the first pause of a contention is; each following one is twice as long, up to [`LONGEST`].
const PAUSE: SignedDuration = SignedDuration::from_mins(5);
const LONGEST: SignedDuration = SignedDuration::from_hours(1);

/// The repairs of the past, as far as they matter. It may be lost: then a contention is noticed three repairs later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepairHistory(BTreeMap<(ObjectId, String), Repairs>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Repairs {
    /// When the field was repaired within the window.
    repaired: Vec<Timestamp>,
    /// Who wrote it last.
    manager: String,
    /// Pauses in a row, and until when the last of them is.
    pauses: u32,
    until: Option<Timestamp>,
}

/// Another manager keeps writing a field that we keep writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contention {
    /// The object.
    pub id: ObjectId,
    /// The field.
    pub path: String,
    /// The opponent.
    pub manager: String,
    /// Until when the object is left as it is.
    pub until: Timestamp,
}

impl fmt::Display for Contention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = if self.manager.is_empty() {
            "another manager"
        } else {
            &self.manager
        };
        let until = Timestamp::from_second(self.until.as_second()).unwrap_or(self.until);
        let what = match self.path.as_str() {
            "" => "deletes it".to_owned(),
            path => format!("writes {path}"),
        };
        write!(
            f,
            "{}: {who} {what} repeatedly, so repairs are paused until {until}; stop {who}, or set the value that it wants in the VDOConfig",
            self.id
        )
    }
}

/// Whether a time is not further ahead than any pause is long. One that is was written down before the clock was set back.
fn is_near(time: Timestamp, now: Timestamp) -> bool {
    time.duration_since(now) <= LONGEST
}

impl RepairHistory {
    /// The history with a repair in it. The repair that makes it a contention begins a pause, and so does each that follows a pause.
    pub fn repaired(&mut self, drift: &Drift, now: Timestamp) {
        self.forget(now);
        let repairs = self.0.entry((drift.id.clone(), drift.path.clone())).or_default();
        repairs.repaired.push(now);
        drift.manager.clone_into(&mut repairs.manager);
        if repairs.repaired.len() >= REWRITES {
            let pause = (0..repairs.pauses).fold(PAUSE, |pause, _| pause.saturating_mul(2).min(LONGEST));
            repairs.pauses += 1;
            repairs.until = now.checked_add(pause).ok();
        }
    }

    /// What no one has touched for a window after the last pause is over: the opponent has stopped.
    fn forget(&mut self, now: Timestamp) {
        self.0.retain(|_, repairs| {
            let over = repairs.until.or(repairs.repaired.last().copied());
            over.is_some_and(|over| now.duration_since(over) < WINDOW && is_near(over, now))
        });
        for repairs in self.0.values_mut() {
            if repairs.until.is_none() {
                repairs.repaired.retain(|at| now.duration_since(*at) < WINDOW && *at <= now);
            }
        }
    }

    /// The contentions in which a pause is on. After it one repair is made; if that is undone, the next pause is longer.
    #[must_use]
    pub fn contentions(&self, now: Timestamp) -> Vec<Contention> {
        self.0
            .iter()
            .filter_map(|((id, path), repairs)| {
                Some(Contention {
                    id: id.clone(),
                    path: path.clone(),
                    manager: repairs.manager.clone(),
                    until: repairs.until.filter(|until| *until > now && is_near(*until, now))?,
                })
            })
            .collect()
    }
}

/// The pause that a step would break: a repair of what another manager keeps changing.
pub(super) fn contended<'a>(step: &Step, contentions: &'a [Contention]) -> Option<&'a Contention> {
    let Step::Apply { object, change, .. } = step else { return None };
    let fields: &[Difference] = match change {
        Change::Repair(fields) => fields,
        // Deleting it repeatedly is contention, too.
        Change::Restore => &[],
        _ => return None,
    };
    let id = object.identity();
    contentions
        .iter()
        .find(|contention| contention.id == *id && (contention.path.is_empty() || fields.iter().any(|d| d.path == contention.path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::differences;
    use serde_json::json;

    fn time(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).expect("a time")
    }

    fn entry(manager: &str, minute: i64, fields: &Value) -> Value {
        json!({"manager": manager, "operation": "Update", "time": time(minute).to_string(), "fieldsV1": fields})
    }

    #[test]
    fn drift_changed_field_names_its_manager_and_time() {
        let container = |image: &str| json!({"name": "a", "image": image});
        let wanted = json!({"kind": "Deployment", "spec": {"replicas": 1, "containers": [container("wanted")]}, "data": {"a.b/c": "x", "gone": "y"}});
        let mut live = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 3, "containers": [container("found")]}, "data": {"a.b/c": "z"}});
        live["metadata"]["managedFields"] = json!([
            {"manager": "vdo", "operation": "Apply", "time": time(50).to_string(), "fieldsV1": {"f:spec": {"f:replicas": {}}, "f:data": {"f:a.b/c": {}}}},
            // As kubectl scale writes it.
            {"manager": "kubectl", "operation": "Update", "subresource": "scale", "time": time(2).to_string(), "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            entry("kubectl-edit", 3, &json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {"f:image": {}}, "k:{\"name\":\"b\"}": {}}}})),
            entry("older", 1, &json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {"f:image": {}}}}})),
            entry("k9s", 9, &json!({"f:data": {"f:a.b/c": {}}})),
            {"manager": "kubelet", "operation": "Update", "subresource": "status", "time": time(99).to_string(), "fieldsV1": {"f:status": {}}},
        ]);
        let live = Object::new(live).expect("an object");
        let found = differences(&wanted, live.value());
        let said: Vec<String> = attribute(&live.id(), &found, &live)
            .iter()
            .map(|d| {
                format!(
                    "{} {}->{} {} {:?}",
                    d.path,
                    d.wanted,
                    d.found,
                    d.manager,
                    d.at.map(|at| at.as_second() / 60)
                )
            })
            .collect();
        assert_eq!(
            said,
            [
                "spec.replicas 1->3 kubectl Some(2)",
                "spec.containers[0].image \"wanted\"->\"found\" kubectl-edit Some(3)",
                "data[a.b/c] \"x\"->\"z\" k9s Some(9)",
                // Removed: no one owns it, so it was the last one that wrote next to it.
                "data.gone \"y\"->absent k9s Some(9)",
            ]
        );
        assert!(
            attribute(&live.id(), &found, &live)[0]
                .to_string()
                .ends_with("spec.replicas is 3 instead of 1, changed by kubectl at 1970-01-01T00:02:00Z")
        );
    }

    #[test]
    fn drift_without_managed_fields_names_no_manager() {
        let found = differences(&json!({"spec": {"replicas": 1}}), &json!({"spec": {"replicas": 3}}));
        // An object without a record names no one.
        let bare = Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}})).expect("an object");
        assert_eq!(attribute(&bare.id(), &found, &bare)[0].manager, "");
    }

    #[test]
    fn drift_in_secret_is_masked() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"a": "found"}}, "data": {"password": "aHVudGVyMg=="}});
        let wanted = json!({"metadata": {"labels": {"a": "wanted"}}, "data": {"password": "b3RoZXI="}});
        let secret = Object::new(secret).expect("an object");
        let found = attribute(&secret.id(), &differences(&wanted, secret.value()), &secret);
        assert_eq!((found[0].found.as_str(), found[1].found.as_str()), ("\"found\"", "******"));
        assert!(!format!("{found:?}").contains("aHVudGVyMg") && !format!("{found:?}").contains("b3RoZXI"));
    }

    #[test]
    fn drift_long_value_is_truncated() {
        assert_eq!(shown(&"x".repeat(200).into(), false).chars().count(), SHOWN);
    }

    fn slip(manager: &str) -> Drift {
        Drift {
            path: "spec.replicas".into(),
            manager: manager.into(),
            ..Drift::deleted(ObjectId::new("apps", "Deployment", "n", "d"))
        }
    }

    /// The minutes in which an opponent that undoes every repair at once is repaired.
    #[test]
    fn drift_repeated_by_same_manager_backoff_grows_and_ends() {
        let mut history = RepairHistory::default();
        let mut repairs = Vec::new();
        for minute in 0..200 {
            if history.contentions(time(minute)).is_empty() {
                history.repaired(&slip("tuner"), time(minute));
                repairs.push(minute);
            }
        }
        assert_eq!(
            repairs,
            [0, 1, 2, 7, 17, 37, 77, 137, 197],
            "5, 10, 20, 40 minutes and then an hour"
        );
        let contention = &history.contentions(time(198))[0];
        assert_eq!(
            (contention.manager.as_str(), contention.path.as_str(), contention.until),
            ("tuner", "spec.replicas", time(257))
        );
        assert!(
            contention.to_string().contains("tuner writes spec.replicas repeatedly") && contention.to_string().contains("stop tuner"),
            "{contention}"
        );
        // The opponent has stopped: the next slip is one like any other.
        history.repaired(&slip("kubectl-edit"), time(267));
        assert_eq!(history.contentions(time(267)), []);
    }

    #[test]
    fn drift_repair_counts_for_ten_minutes() {
        for (minutes, contentions) in [([0, 5, 9], 1), ([0, 5, 10], 0), ([0, 9, 18], 0)] {
            let mut history = RepairHistory::default();
            minutes.iter().for_each(|minute| history.repaired(&slip("tuner"), time(*minute)));
            assert_eq!(history.contentions(time(minutes[2])).len(), contentions, "{minutes:?}");
        }
    }

    #[test]
    fn drift_rare_repairs_have_no_backoff() {
        // Slips that are far apart are none at all.
        let mut history = RepairHistory::default();
        for minute in [0, 9, 20, 31, 42] {
            history.repaired(&slip("kubectl-edit"), time(minute));
            assert_eq!(history.contentions(time(minute)), [], "after minute {minute}");
        }
        assert_eq!(history.0.len(), 1, "it does not grow");
    }

    /// A pause that the clock has put a day ahead is over, and what was repaired then counts no more.
    #[test]
    fn drift_clock_set_back_ends_pauses() {
        const DAY: i64 = 24 * 60;
        let mut history = RepairHistory::default();
        (DAY..DAY + 3).for_each(|minute| history.repaired(&slip("tuner"), time(minute)));
        assert_eq!(
            (history.contentions(time(DAY + 3)).len(), history.contentions(time(3)).len()),
            (1, 0)
        );
        (3..5).for_each(|minute| history.repaired(&slip("tuner"), time(minute)));
        assert_eq!(history.contentions(time(5)).len(), 0);
        history.repaired(&slip("tuner"), time(5));
        assert_eq!(history.contentions(time(6)).len(), 1);
    }

    #[test]
    fn drift_backoff_holds_only_repair_of_that_field() {
        let mut history = RepairHistory::default();
        (0..3).for_each(|minute| history.repaired(&slip("tuner"), time(minute)));
        let object = |name: &str| {
            Object::new(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "n"}}))
                .expect("an object")
        };
        let difference = |path: &str| Difference {
            path: path.into(),
            wanted: 1.into(),
            found: 2.into(),
        };
        let held = |name: &str, change: Change| {
            let apply = Step::Apply {
                object: object(name),
                change,
                wave: 4,
                driver: "vsphere-csi".into(),
                take: false,
            };
            contended(&apply, &history.contentions(time(3))).is_some()
        };
        assert!(held("d", Change::Repair(vec![difference("spec.replicas")])));
        assert!(!held("d", Change::Repair(vec![difference("spec.paused")])), "another field");
        assert!(!held("e", Change::Repair(vec![difference("spec.replicas")])), "another object");
        assert!(
            !held("d", Change::Update(vec![difference("spec.replicas")])),
            "something else is wanted"
        );
        assert!(!held("d", Change::Restore), "it was not deleted repeatedly");
    }
}
