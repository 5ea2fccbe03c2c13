// SPDX-License-Identifier: Apache-2.0
//! Decides whether an installation is ready, in progress, or waits for a person, for `status`, `deploy`, `wait` and all other callers.

use super::super::remedy::names;
use super::nodes::nodes_of;
use super::problem::{Problem, Severity};
use super::read_status::{Config, Operator, Picture};
use k8s_openapi::jiff::Timestamp;
use vdo_api::api::{ConditionType, Conditions, Health, Reason};
use vdo_api::types::count;
use vdo_core::drivers::{self, short};

/// What comes of waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// Everything asked for is there and healthy, and an operator vouches for it. The sentence for it.
    Ready(String),
    /// It is under way.
    Progress {
        /// What is waited for, one line for each thing.
        waits: Vec<String>,
        /// What helps when it does not come.
        remedy: String,
        /// Why no operator vouches for what is reported, where none does.
        unsure: Option<String>,
    },
    /// Nothing goes on before a person acts.
    Person(Need),
}

/// What a person has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    /// What is the case, as a sentence without its full stop.
    pub what: String,
    /// What to do, in sentences of its own.
    pub remedy: String,
    /// What kind of need it is.
    pub kind: Kind,
    /// Whether the installation is being deleted.
    pub deleting: bool,
}

/// Which need it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No operator can act.
    Operator,
    /// The installation is being deleted.
    Deletion,
    /// Management is paused.
    Paused,
    /// A plan waits for approval.
    Approval,
    /// Something that was asked for cannot be.
    Fault,
}

impl Picture {
    /// Judges what was seen. Where it is `deployed`, the operator has to run in its Deployment; otherwise it may run elsewhere.
    pub(crate) fn judge(&self, deployed: bool, now: Timestamp) -> Judgement {
        let Some(config) = &self.config else {
            return Judgement::Person(Need {
                what: "there is no VDOConfig".into(),
                remedy: "vdoctl deploy installs VDO with a VDOConfig.".into(),
                kind: Kind::Fault,
                deleting: false,
            });
        };
        let problems = self.problems();
        if let Some(need) = absent(config, &problems, self.doubt.is_some(), now) {
            return Judgement::Person(need);
        }
        let status = &config.status;
        let ready = Conditions::find(&status.conditions, ConditionType::Ready);
        let operator = self.operator_waits(deployed);
        if operator.is_none()
            && config.silence.is_none()
            && config.current
            && let Some(ready) = ready.filter(|condition| condition.status == "True")
        {
            return Judgement::Ready(ready.message.clone());
        }
        if config.current
            && config.silence.is_none()
            && self.doubt.is_none()
            && let Some(need) = needed(config, &problems)
        {
            return Judgement::Person(need);
        }
        Judgement::Progress {
            waits: waits(config, &problems, operator, now),
            remedy: remedy(config, &problems, self.doubt.is_some()),
            unsure: self.doubt.clone().or_else(|| Some(config.silence.as_ref()?.what(now))),
        }
    }

    /// Why the operator does not run as it should.
    fn operator_waits(&self, deployed: bool) -> Option<String> {
        if let Some(doubt) = &self.doubt {
            return Some(doubt.clone());
        }
        match &self.operator {
            None => deployed.then(|| "the operator's Deployment does not exist yet".to_owned()),
            Some(Operator { version, unready, .. }) => unready.as_ref().map(|problem| format!("operator {version}: {problem}")),
        }
    }
}

/// That no operator goes on with it. What it has reported is not taken for true where it is `doubtful` that one is left.
fn absent(config: &Config, problems: &[Problem], doubtful: bool, now: Timestamp) -> Option<Need> {
    if let Some((what, remedy)) = &config.stuck {
        return Some(Need {
            what: what.clone(),
            remedy: remedy.clone(),
            kind: Kind::Operator,
            deleting: config.deleting,
        });
    }
    if let Some(silence) = config.silence.as_ref().filter(|silence| silence.person) {
        return Some(Need {
            what: silence.what(now),
            remedy: silence.remedy.clone(),
            kind: Kind::Operator,
            deleting: config.deleting,
        });
    }
    if !config.deleting {
        return None;
    }
    let vouched = config.current && config.silence.is_none() && !doubtful;
    let fault = Some(config).filter(|_| vouched).and_then(|config| fault(config, problems));
    Some(fault.unwrap_or_else(|| Need {
        what: format!("VDOConfig {} is being deleted", config.id),
        remedy: "vdoctl wait --for deleted waits until the VDOConfig is deleted; vdoctl deploy then installs VDO again.".into(),
        kind: Kind::Deletion,
        deleting: true,
    }))
}

/// What only a person can change, of an installation that is not ready, as the operator reports it.
fn needed(config: &Config, problems: &[Problem]) -> Option<Need> {
    let conditions = &config.status.conditions;
    let ready = Conditions::find(conditions, ConditionType::Ready)?;
    let id = &config.id;
    if config.paused {
        let what = match ready.message.contains("paused") {
            true => format!("VDOConfig {id}: {}", ready.message),
            false => format!("management of VDOConfig {id} is paused: {}", ready.message),
        };
        return Some(Need {
            what,
            remedy: "To continue: vdoctl resume".into(),
            kind: Kind::Paused,
            deleting: false,
        });
    }
    let plan = config.status.plan.as_ref().filter(|plan| !plan.approved);
    if let Some(plan) = plan.filter(|_| ready.reason == Reason::ApprovalRequired.as_str()) {
        let steps = count(usize::try_from(plan.steps).unwrap_or(0), "step");
        return Some(Need {
            what: format!("VDOConfig {id} waits for approval of plan {} ({steps})", plan.hash),
            remedy: format!("Check the plan with vdoctl plan, then run: vdoctl approve {}", plan.hash),
            kind: Kind::Approval,
            deleting: false,
        });
    }
    let mut failing = config.status.drivers.iter().filter(|driver| driver.ready != "True");
    if let Some(driver) = failing.find(|driver| config.paused_drivers.contains(&driver.name)) {
        let name = short(&driver.name);
        return Some(Need {
            what: format!("{name} is paused: {}", ready.message),
            remedy: format!("To continue: vdoctl resume {}", name.to_lowercase()),
            kind: Kind::Paused,
            deleting: false,
        });
    }
    fault(config, problems)
}

impl Picture {
    /// The first thing that is marked as wrong, whether or not the operator keeps trying.
    pub(crate) fn first_fault(&self) -> Option<Need> {
        let config = self.config.as_ref().filter(|config| config.current)?;
        let problems = self.problems();
        let problem = problems.iter().find(|problem| problem.severity == Severity::Fault)?;
        Some(Need {
            what: problem.message.clone(),
            remedy: advice(config, problem),
            kind: Kind::Fault,
            deleting: config.deleting,
        })
    }
}

/// What was asked for and cannot be, as the operator reports it.
fn fault(config: &Config, problems: &[Problem]) -> Option<Need> {
    let conditions = &config.status.conditions;
    let stalled = Conditions::find(conditions, ConditionType::Stalled).filter(|condition| condition.status == "True");
    let stalled = stalled.filter(|condition| condition.reason != Reason::DeadlineExceeded.as_str());
    let is_final = |problem: &&Problem| {
        let listed = Reason::PERSON.iter().any(|reason| reason.as_str() == problem.reason);
        listed || stalled.is_some_and(|condition| condition.reason == problem.reason)
    };
    let problem = problems.iter().find(is_final)?;
    Some(Need {
        what: problem.message.clone(),
        remedy: advice(config, problem),
        kind: Kind::Fault,
        deleting: config.deleting,
    })
}

/// What to do about a problem that only a person can solve.
fn advice(config: &Config, problem: &Problem) -> String {
    let reason = &problem.reason;
    let of = |reasons: &[Reason]| reasons.iter().any(|one| one.as_str() == reason);
    let mut lines = Vec::new();
    if of(&[Reason::IncompatiblePin, Reason::UnknownVersion]) {
        let pins = config.pins.iter().filter(|(driver, _)| names(&problem.message, driver));
        for (driver, version) in pins {
            let name = short(driver).to_lowercase();
            lines.push(format!("To see what the version needs: vdoctl matrix why-not {name} {version}"));
        }
    }
    lines.extend(problem.command.as_ref().map(|command| format!("To fix the problem: {command}")));
    lines.push(format!("To see the remedy: vdoctl explain {}", problem.cause()));
    lines.join("\n")
}

/// What is waited for.
fn waits(config: &Config, problems: &[Problem], operator: Option<String>, now: Timestamp) -> Vec<String> {
    let status = &config.status;
    let mut waits: Vec<String> = operator.into_iter().collect();
    if waits.is_empty() {
        waits.extend(config.silence.as_ref().map(|silence| silence.what(now)));
    }
    if waits.is_empty() && !config.current {
        waits.push(format!("the operator has not checked VDOConfig {} yet", config.id));
    }
    for driver in status.drivers.iter().filter(|driver| driver.ready != "True") {
        let nodes = nodes_of(driver, status).map(|(done, all)| format!(" · nodes {done}/{all}"));
        let condition = drivers::known(&driver.name).and_then(|known| Conditions::find(&status.conditions, known.condition));
        let message = condition.map_or(driver.message.as_str(), |c| c.message.as_str());
        let counted = match driver.pods.as_str() {
            "" => String::new(),
            pods => format!("  {pods} pods{}", nodes.unwrap_or_default()),
        };
        waits.push(counted_as(
            &format!("{} {}", short(&driver.name), driver.version),
            &counted,
            message,
        ));
    }
    let reported = waits.join(" ");
    let stuck = matches!(status.health, Some(Health::Blocked | Health::Degraded));
    let news = problems
        .iter()
        .filter(|problem| config.current && !reported.contains(&problem.message));
    waits.extend(news.map(|problem| match stuck {
        true => format!("{} (vdoctl explain {})", problem.message, problem.cause()),
        false => problem.message.clone(),
    }));
    if waits.is_empty() {
        let ready = Conditions::find(&status.conditions, ConditionType::Ready);
        waits.push(ready.map_or_else(|| "the operator has not reported a state yet".into(), |c| c.message.clone()));
    }
    waits
}

/// What is waited for of a driver, whose name and version its message may begin with.
fn counted_as(driver: &str, counted: &str, message: &str) -> String {
    match message.strip_prefix(driver).filter(|rest| rest.starts_with([' ', ':'])) {
        Some(_) if counted.is_empty() => message.to_owned(),
        Some(rest) => format!("{driver}{counted}:{}", rest.trim_start_matches(':')),
        None => format!("{driver}{counted}: {message}"),
    }
}

/// What helps when what is under way does not come to its end.
fn remedy(config: &Config, problems: &[Problem], doubtful: bool) -> String {
    let namespace = config.id.split('/').next().unwrap_or_default();
    if let Some(silence) = &config.silence {
        return silence.remedy.clone();
    }
    if doubtful {
        return format!("Check whether an operator runs: kubectl -n {namespace} get deployments,pods");
    }
    if config.status.health.is_none() {
        return format!("Check the operator's log: kubectl -n {namespace} logs deployment/vdo-operator");
    }
    let fault = problems
        .iter()
        .find(|problem| config.current && problem.severity == Severity::Fault);
    match fault {
        Some(problem) => {
            let fix = problem.command.as_ref().map(|command| format!("To fix the problem: {command}\n"));
            let cause = problem.cause();
            let background = format!("vdoctl explain {cause} shows what to do; the operator then continues.");
            fix.unwrap_or_default() + &background
        }
        None => "The operator continues by itself; vdoctl status shows the progress.".into(),
    }
}

#[cfg(test)]
mod tests;
