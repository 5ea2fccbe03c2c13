// SPDX-License-Identifier: Apache-2.0
//! Decides which Kubernetes events a change of status emits: transitions of conditions, selected versions, running versions.

use crate::drivers::short;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use vdo_api::api::{ConditionType, Conditions, DriverStatus, Reason, VDOConfigStatus};

/// Something worth an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Whether a person should look.
    pub warning: bool,
    /// The reason, from the closed list.
    pub reason: String,
    /// What was done, in a few words: an event of another action is another event, whatever its reason.
    pub action: String,
    /// The sentence.
    pub message: String,
}

/// What the operator did where there is nothing particular to say.
const ACTION: &str = "Reconcile";

/// The events of a VDOConfig: that work has begun and has succeeded, which versions were chosen and which run, and what went wrong.
#[must_use]
pub fn config_notes(old: &VDOConfigStatus, new: &VDOConfigStatus) -> Vec<Note> {
    let chosen = chosen(old, new);
    let mut all = chosen.clone();
    all.extend(transitions(&old.conditions, &new.conditions, !chosen.is_empty()));
    all.extend(version_changes(old, new));
    all
}

/// The events of a transition: becoming ready, ceasing to be, and running into another failure; and of each driver, that it is no longer
/// requested, or is being removed, or removed. How far work has come makes none.
#[must_use]
pub fn notes(old: &[Condition], new: &[Condition]) -> Vec<Note> {
    transitions(old, new, false)
}

fn transitions(old: &[Condition], new: &[Condition], chosen: bool) -> Vec<Note> {
    let drivers = [ConditionType::CloudProviderReady, ConditionType::StorageReady].into_iter();
    let reported = [Reason::NotRequested, Reason::Deleting, Reason::Removed].map(Reason::as_str);
    let apart = drivers.filter_map(|kind| {
        let (before, after) = (Conditions::find(old, kind)?, Conditions::find(new, kind)?);
        let news = before.reason != after.reason && reported.contains(&after.reason.as_str()) && before.status != "Unknown";
        news.then(|| Note {
            // A removal is what was asked for; a driver that stays although no one asks for it is not.
            warning: after.reason == Reason::NotRequested.as_str(),
            reason: after.reason.clone(),
            action: ACTION.into(),
            message: after.message.clone(),
        })
    });
    ready(old, new, chosen).into_iter().chain(apart).collect()
}

/// The events of drivers of which another version is to run than before.
fn chosen(old: &VDOConfigStatus, new: &VDOConfigStatus) -> Vec<Note> {
    let of = |driver: &DriverStatus| {
        let before = old.drivers.iter().find(|before| before.name == driver.name);
        if driver.version.is_empty() || before.is_some_and(|before| before.version == driver.version) {
            return None;
        }
        let because = if driver.because.is_empty() {
            String::new()
        } else {
            format!(": {}", driver.because)
        };
        Some(Note {
            warning: false,
            reason: Reason::VersionChosen.to_string(),
            action: format!("Choose {} {}", short(&driver.name), driver.version),
            message: format!("{} {} was chosen{because}", short(&driver.name), driver.version),
        })
    };
    new.drivers.iter().filter_map(of).collect()
}

/// The events of drivers that run in another version than before.
fn version_changes(old: &VDOConfigStatus, new: &VDOConfigStatus) -> Vec<Note> {
    let changed = |driver: &DriverStatus| {
        let before = old.drivers.iter().find(|before| before.name == driver.name)?;
        let (from, to) = (before.running.as_str(), driver.running.as_str());
        (!from.is_empty() && !to.is_empty() && from != to).then(|| Note {
            warning: false,
            reason: Reason::VersionChanged.to_string(),
            action: format!("Run {} {to}", short(&driver.name)),
            message: format!("{0} {from} was replaced by {0} {to}, which is healthy", short(&driver.name)),
        })
    };
    new.drivers.iter().filter_map(changed).collect()
}

/// What the operator did where work has begun.
const BEGIN: &str = "Begin";

fn ready(old: &[Condition], new: &[Condition], chosen: bool) -> Option<Note> {
    let (before, after) = (
        Conditions::find(old, ConditionType::Ready),
        Conditions::find(new, ConditionType::Ready),
    );
    let after = after?;
    let note = |warning: bool, action: &str| {
        Some(Note {
            warning,
            reason: after.reason.clone(),
            action: action.into(),
            message: after.message.clone(),
        })
    };
    if before.is_some_and(|b| b.status == after.status && b.reason == after.reason) {
        return None;
    }
    // Paused is what was asked for.
    if after.status == "True" || after.reason == Reason::Paused.as_str() {
        return note(false, ACTION);
    }
    if !is_progress(after, new) {
        return note(true, ACTION);
    }
    let asked =
        before.is_none_or(|b| b.observed_generation != after.observed_generation) || chosen || after.reason == Reason::Deleting.as_str();
    match before {
        // What was healthy, and that no one has changed, is not any more.
        Some(before) if before.status == "True" && !asked => note(true, ACTION),
        Some(before) if before.status != "True" && !asked => None,
        _ => note(false, BEGIN),
    }
}

/// Whether something goes on by itself. A connection that was not asked yet will be; one that fails is a failure.
fn is_progress(ready: &Condition, all: &[Condition]) -> bool {
    if ready.reason == Reason::ConnectionNotReady.as_str() {
        return Conditions::find(all, ConditionType::ConnectionsReady).is_none_or(|connections| connections.status != "False");
    }
    let waits = [Reason::NotChecked, Reason::Idle];
    Reason::PROGRESS.iter().chain(&waits).any(|reason| reason.as_str() == ready.reason)
}

#[cfg(test)]
mod tests;
