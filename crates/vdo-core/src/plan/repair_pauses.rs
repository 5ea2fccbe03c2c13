// SPDX-License-Identifier: Apache-2.0
//! Decides when repairs are paused because another field manager keeps changing a field back, and how long the pauses are.

use super::{Change, Drift, Step};
use crate::manifest::Difference;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::fmt;
use vdo_api::types::ObjectId;

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
        let (who, stop) = match self.manager.as_str() {
            "" => ("another manager", "this manager (the audit log of the API server shows its name)"),
            name => (name, name),
        };
        let until = Timestamp::from_second(self.until.as_second()).unwrap_or(self.until);
        let (what, remedy) = match self.path.as_str() {
            "" => ("deletes the object".to_owned(), format!("stop {stop}")),
            path => (
                format!("writes {path}"),
                format!("stop {stop}, or set the same value in the VDOConfig"),
            ),
        };
        write!(
            f,
            "{}: {who} {what} repeatedly, so repairs are paused until {until}; {remedy}",
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
    use crate::manifest::Object;
    use serde_json::json;

    fn time(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).expect("a time")
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
