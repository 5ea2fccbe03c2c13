use crate::api::{ConditionType, Conditions, Reason, VDOConfigStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Whether two statuses differ in nothing but how far a work under way has come.
#[must_use]
pub fn progress_only(old: &VDOConfigStatus, new: &VDOConfigStatus) -> bool {
    let under_way = |s: &VDOConfigStatus| {
        let ready = Conditions::find(&s.conditions, ConditionType::Ready)?;
        let progress = ready.status == "False" && Reason::PROGRESS.iter().any(|r| r.as_str() == ready.reason);
        let drivers: Vec<(String, String)> = s.drivers.iter().map(|d| (d.name.clone(), d.version.clone())).collect();
        progress.then_some((s.observed_generation, s.health, drivers))
    };
    let (old, new) = (under_way(old), under_way(new));
    old.is_some() && old == new
}

/// Something worth an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Whether somebody should look.
    pub warning: bool,
    /// The reason, from the closed list.
    pub reason: String,
    /// The sentence.
    pub message: String,
}

/// The events of a transition: becoming ready, ceasing to be, and running into another trouble. Progress makes none.
#[must_use]
pub fn notes(old: &[Condition], new: &[Condition]) -> Vec<Note> {
    let (before, after) = (
        Conditions::find(old, ConditionType::Ready),
        Conditions::find(new, ConditionType::Ready),
    );
    let Some(after) = after else { return Vec::new() };
    let changed = before.is_none_or(|b| b.status != after.status || b.reason != after.reason);
    let working = Conditions::is_true(new, ConditionType::Reconciling) && before.is_none_or(|b| b.status != "True");
    let waits = Reason::PROGRESS.iter().any(|r| r.as_str() == after.reason);
    if !changed || (working && waits) {
        return Vec::new();
    }
    vec![Note {
        warning: after.status != "True",
        reason: after.reason.clone(),
        message: after.message.clone(),
    }]
}
