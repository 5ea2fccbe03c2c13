// SPDX-License-Identifier: Apache-2.0
//! The last lines of `status`: the operator's next attempt, and what a person must or can do next.

use super::super::views::status::StatusView;
use super::judgement::{Judgement, Kind};
use super::last_drift::last_drift;
use super::read_status::{Config, Picture};
use crate::error::capital;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use vdo_api::api::{ConditionType, Conditions, Health, Reason};
use vdo_core::drivers::short;

const PAUSED: &str = "Management is paused: nothing is written or repaired until spec.managementState is Managed.";

fn is_paused(config: &Config) -> bool {
    let working = Conditions::find(&config.status.conditions, ConditionType::Reconciling);
    working.is_some_and(|condition| condition.reason == Reason::Paused.as_str())
}

/// The lines that count from now: what was repaired last, and when the next attempt is made.
pub(super) fn timed(view: &StatusView, now: Timestamp) -> Vec<String> {
    let attempt = view.config.as_ref().and_then(|config| config.next_attempt.as_ref()).map(|attempt| {
        let wait = attempt.at.0.as_second() - now.as_second();
        match wait > 0 {
            true => format!("Next attempt in {wait} s ({}).", attempt.because),
            false => format!("The next attempt is due ({}).", attempt.because),
        }
    });
    let drift = view.last_drift.as_ref().and_then(|drift| last_drift(drift, now));
    drift.into_iter().chain(attempt).collect()
}

/// What comes next: what the operator does, what a person has to do, or what could be done. One text for each line; none where a deletion
/// cannot end, which the screen shows by itself.
pub(super) fn next(picture: &Picture, config: &Config, now: Timestamp) -> Vec<String> {
    if config.stuck.is_some() {
        return Vec::new();
    }
    if let Some(silence) = &config.silence {
        let doctor = "vdoctl doctor checks everything now, without the operator.";
        return vec![silence.remedy.clone(), doctor.into()];
    }
    let need = match picture.judge(false, now) {
        Judgement::Person(need) if need.kind != Kind::Deletion => Some(need),
        _ => None,
    };
    let mut lines = doubts(config);
    lines.extend(need.iter().flat_map(|need| need.remedy.lines()).map(str::to_owned));
    if picture.has_faults() && need.as_ref().is_none_or(|need| need.kind != Kind::Fault) {
        let reason = picture.problems().into_iter().next().map(|problem| problem.cause().to_owned());
        lines.push(format!(
            "Fix the problems marked ✗: vdoctl doctor checks again and shows the remedies; vdoctl explain {} shows more.",
            reason.unwrap_or_default()
        ));
    }
    lines.extend(of_health(config, picture.has_faults(), need.is_some()));
    lines.extend(possible(picture, config));
    lines.extend(not_requested(config));
    lines
}

/// Why the rest may not be true any more.
fn doubts(config: &Config) -> Vec<String> {
    let mut lines = Vec::new();
    if !config.current && config.status.health.is_some() {
        lines.push("The operator has not yet acted on the newest change of the VDOConfig.".into());
    }
    lines
}

/// What the operator does next. `faults`: whether something is marked as wrong; `person`: whether a person has something to do first.
fn of_health(config: &Config, faults: bool, person: bool) -> Option<String> {
    let line = match config.status.health {
        None => {
            return Some(format!(
                "The operator has not checked VDOConfig {} yet. Does the operator run? kubectl -n {} get pods",
                config.id,
                config.id.split('/').next().unwrap_or_default()
            ));
        }
        Some(Health::Paused) => PAUSED,
        Some(_) if is_paused(config) => PAUSED,
        Some(_) if person => "The operator continues after you have done the steps above.",
        Some(Health::Healthy) => {
            return config.upgradeable().map(|c| {
                let word = if c.status == "True" { "Upgradeable" } else { "Not upgradeable" };
                format!("{word}: {}.", c.message)
            });
        }
        Some(Health::Progressing) if config.deleting => "The drivers are being removed; `vdoctl status --watch` shows the progress.",
        Some(Health::Progressing | Health::Blocked) if faults => "The operator then continues by itself.",
        Some(Health::Progressing) => "Nothing to do: the operator continues by itself; `vdoctl status --watch` shows the progress.",
        Some(Health::Blocked) => "The operator continues when the problems above are fixed.",
        Some(Health::Degraded | Health::Unknown) if faults => "Running drivers are not changed; the operator continues after the fix.",
        Some(Health::Degraded | Health::Unknown) => "Running drivers are not changed; the operator keeps trying.",
    };
    Some(line.to_owned())
}

/// What a person could do.
fn possible(picture: &Picture, config: &Config) -> Vec<String> {
    // What a problem says already is not repeated.
    let problems = picture.problems();
    let is_shown = |c: &Condition| problems.iter().any(|problem| problem.reason == c.reason);
    let newer = config.upgrade_available().filter(|c| !is_shown(c));
    let mut lines: Vec<String> = newer.map(|c| format!("{}.", c.message)).into_iter().collect();
    let window = config.window().filter(|c| !is_shown(c) && lines.is_empty());
    lines.extend(window.map(|c| capital(&c.message)));
    lines.extend(config.unfinished_upgrade());
    lines.extend(config.kept.iter().map(|(driver, revision)| {
        let name = short(driver);
        format!(
            "{name} is kept at revision {revision}; `vdoctl rollback {} --lift` ends the rollback.",
            name.to_lowercase()
        )
    }));
    if config.status.nodes.as_ref().is_some_and(|nodes| !nodes.waiting.is_empty()) {
        lines.push("`vdoctl doctor nodes` compares every node with its virtual machine.".into());
    }
    lines
}

/// Drivers that the specification does not name, or removes.
fn not_requested(config: &Config) -> Vec<String> {
    let reported = [Reason::NotRequested, Reason::Removed].map(Reason::as_str);
    let found = [ConditionType::CloudProviderReady, ConditionType::StorageReady]
        .into_iter()
        .filter_map(|kind| {
            let found = Conditions::find(&config.status.conditions, kind).filter(|c| reported.contains(&c.reason.as_str()))?;
            let is_installed = found.status != "Unknown" || found.reason == Reason::Removed.as_str();
            is_installed.then(|| format!("{}.", found.message))
        });
    found.collect()
}
