//! The last lines of `status`: what comes next.

use super::super::style::ago;
use super::super::views::status::StatusView;
use super::judgement::{Judgement, Kind};
use super::model::{Config, Operator, Picture};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use vdo_api::api::{ConditionType, Conditions, DriftStatus, Health, Reason};
use vdo_core::drivers::short;

/// How long a repair is shown, in seconds.
const RECENT: i64 = 24 * 3600;

/// What was repaired last, if that is not long ago.
fn last_drift(drift: &DriftStatus, now: Timestamp) -> Option<String> {
    if now.as_second() - drift.repaired.0.as_second() > RECENT {
        return None;
    }
    let what = match (drift.path.as_str(), drift.by.as_str()) {
        ("", _) => format!("{} was deleted", drift.object),
        (path, "") => format!("{}: {path} was changed", drift.object),
        (path, by) => format!("{}: {path} was changed by {by}", drift.object),
    };
    Some(format!("Last drift: {what}, and repaired {} ago.", ago(drift.repaired.0, now)))
}

const PAUSED: &str = "Management is paused: nothing is written or repaired before spec.managementState is Managed.";

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
    let mut lines = Vec::new();
    if let Some(Operator {
        failure: Some(failure), ..
    }) = &picture.operator
    {
        lines.push(format!("The operator does not run as it should, so this may be old: {failure}."));
    }
    if !config.current && config.status.health.is_some() {
        lines.push("The operator has not yet acted on the newest change of the VDOConfig.".into());
    }
    let faults = picture.has_faults();
    let need = match picture.judge(false, now) {
        Judgement::Person(need) if need.kind != Kind::Deletion => Some(need),
        _ => None,
    };
    let person = need.is_some();
    let covered = need.as_ref().is_some_and(|need| need.kind == Kind::Fault);
    lines.extend(need.iter().flat_map(|need| need.remedy.lines()).map(str::to_owned));
    if faults && !covered {
        let reason = picture
            .problems()
            .into_iter()
            .next()
            .map(|problem| problem.reason)
            .unwrap_or_default();
        lines.push(format!(
            "Fix what is marked ✗: vdoctl doctor checks it again and says how, vdoctl explain {reason} says more."
        ));
    }
    match config.status.health {
        None => lines.push(format!(
            "The operator has not looked at VDOConfig {} yet. Does it run? kubectl -n {} get pods",
            config.id,
            config.id.split('/').next().unwrap_or_default()
        )),
        Some(Health::Paused) => lines.push(PAUSED.into()),
        Some(_) if is_paused(config) => lines.push(PAUSED.into()),
        Some(_) if person => lines.push("The operator goes on when that is done.".into()),
        Some(Health::Healthy) => lines.extend(config.upgradeable().map(|c| {
            format!(
                "{}: {}.",
                if c.status == "True" { "Upgradeable" } else { "Not upgradeable" },
                c.message
            )
        })),
        Some(Health::Progressing) if config.deleting => {
            lines.push("The drivers are being removed; `vdoctl status --watch` follows it.".into())
        }
        Some(Health::Progressing | Health::Blocked) if faults => lines.push("The operator then continues by itself.".into()),
        Some(Health::Progressing) => {
            lines.push("Nothing to do: the operator goes on by itself; `vdoctl status --watch` follows it.".into())
        }
        Some(Health::Blocked) => lines.push("The operator goes on when the above is fixed.".into()),
        Some(Health::Degraded | Health::Unknown) => lines.push("What runs is left as it is; the operator keeps trying.".into()),
    }
    // What a problem says already is not repeated.
    let problems = picture.problems();
    let is_shown = |c: &Condition| problems.iter().any(|problem| problem.reason == c.reason);
    lines.extend(
        config
            .upgrade_available()
            .filter(|c| !is_shown(c))
            .map(|c| format!("{}.", c.message)),
    );
    lines.extend(config.unfinished_upgrade());
    lines.extend(config.kept.iter().map(|(driver, revision)| {
        let name = short(driver);
        format!(
            "{name} is kept at revision {revision}; `vdoctl rollback {} --lift` lets it go on.",
            name.to_lowercase()
        )
    }));
    if config.status.nodes.as_ref().is_some_and(|nodes| !nodes.waiting.is_empty()) {
        lines.push("`vdoctl doctor nodes` compares every node with its virtual machine.".into());
    }
    // A driver that the specification does not name, or removes.
    let reported = [Reason::NotRequested, Reason::Removed].map(Reason::as_str);
    for kind in [ConditionType::CloudProviderReady, ConditionType::StorageReady] {
        let found = Conditions::find(&config.status.conditions, kind).filter(|c| reported.contains(&c.reason.as_str()));
        let installed = |c: &&Condition| c.status != "Unknown" || c.reason == Reason::Removed.as_str();
        lines.extend(found.filter(installed).map(|c| format!("{}.", c.message)));
    }
    lines
}
