// SPDX-License-Identifier: Apache-2.0
//! `vdoctl wait --for` and `--wait` of other verbs: waits for healthy drivers, a condition, a handled request, or the end of a deletion.

use super::args::{Format, Global, Wait as Args};
use super::context::{Context, Deployed};
use super::error::unknown;
use super::pause_resume_reconcile::wake;
use super::printer::Printer;
use super::progress::{Mark, Progress};
use super::status::{Judgement, Kind, Need};
use super::wait_until_healthy::{Watcher, until_ready};
use super::{Answer, CliError, Exit};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use vdo_api::api::{ConditionType, Conditions, VDOConfig};
use vdo_api::types::Later as _;

const PACE: Duration = Duration::from_secs(1);

/// What is waited for.
#[derive(Debug, PartialEq, Eq)]
enum Goal {
    Healthy,
    Deleted,
    Condition(ConditionType, String),
    /// The operator has acted on this annotation.
    Handled(String),
}

/// What is waited for after a change, with `--wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The operator has acted on it.
    Handled,
    /// Everything is healthy with it.
    Healthy,
}

/// Waits, where `wait` is asked for, until what was done has come about. What has no effect, because no operator acts, is not waited for.
pub(super) async fn after(
    wait: Option<After>,
    done: Result<Answer, CliError>,
    format: Format,
    global: &Global,
    printer: &Printer,
) -> Result<Answer, CliError> {
    let answer = done?;
    let Some(wait) = wait.filter(|_| answer.exit == Exit::Ok) else {
        return Ok(answer);
    };
    let mut progress = Progress::new(printer, format);
    if !progress.is_data() {
        answer.talk.iter().for_each(|line| progress.step(Mark::Done, line));
    }
    let context = patient(global).await?;
    let reached = come_about(&context, wait, global.timeout_with_drivers(), &mut progress).await;
    reached.map(|line| progress.step(Mark::Done, &line))?;
    let answer = match progress.is_data() {
        true => answer,
        false => Answer::text(""),
    };
    Ok(match progress.end() {
        Some(exit) => answer.exit(exit),
        None => answer,
    })
}

/// Asks the operator to act, and waits until it has.
pub(super) async fn come_about(context: &Context, wait: After, patience: Duration, progress: &mut Progress) -> Result<String, CliError> {
    let mark = wake(context).await?;
    until(context, &Goal::Handled(mark), patience, progress).await?;
    match wait {
        After::Handled => Ok("the operator has acted on the request".to_owned()),
        After::Healthy => until_ready(Watcher::new(context, false), patience, progress).await,
    }
}

/// The cluster, for a verb whose `--timeout` is that of the wait.
async fn patient(global: &Global) -> Result<Context, CliError> {
    let global = Global {
        timeout: None,
        ..global.clone()
    };
    Context::open(&global).await
}

pub(super) async fn run(args: &Args, global: &Global, printer: &Printer) -> Result<Answer, CliError> {
    let goal = goal(&args.what)?;
    let mut progress = Progress::new(printer, args.output.or_table());
    let context = patient(global).await?;
    let patience = global.timeout_with_drivers();
    let reached = match &goal {
        Goal::Healthy => {
            context.acting().await?;
            until_ready(Watcher::new(&context, false).fail_fast(args.fail_fast), patience, &mut progress).await
        }
        goal => until(&context, goal, patience, &mut progress).await,
    };
    let answer = reached.map(|line| {
        progress.step(Mark::Done, &line);
        Answer::text("")
    });
    match progress.end() {
        Some(exit) => answer.map(|answer| answer.exit(exit)),
        None => answer,
    }
}

fn goal(word: &str) -> Result<Goal, CliError> {
    match word.to_lowercase().as_str() {
        "healthy" | "ready" => return Ok(Goal::Healthy),
        "deleted" | "delete" | "removed" => return Ok(Goal::Deleted),
        _ => {}
    }
    // `kubectl wait` writes condition=NAME, or condition=NAME=STATUS.
    let word = word.strip_prefix("condition=").unwrap_or(word);
    let (name, status) = word.split_once('=').unwrap_or((word, "True"));
    let status = ["True", "False", "Unknown"]
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(status))
        .ok_or_else(|| {
            CliError::new(
                Exit::Usage,
                format!("{status:?} is not a status of a condition"),
                format!("Write {name}=True, {name}=False or {name}=Unknown."),
            )
        })?;
    let kind = ConditionType::of_config().find(|kind| kind.as_str().eq_ignore_ascii_case(name));
    let kind = kind.ok_or_else(|| {
        let known: Vec<&str> = ConditionType::of_config().map(ConditionType::as_str).collect();
        CliError {
            exit: Exit::Usage,
            ..unknown("condition", name, &known)
        }
    })?;
    Ok(Goal::Condition(kind, status.to_owned()))
}

/// What is still missing of a goal; `None` where it is reached.
fn missing(goal: &Goal, config: Option<&VDOConfig>) -> Option<String> {
    match (goal, config) {
        (Goal::Deleted, None) => None,
        (Goal::Deleted, Some(config)) => {
            let status = config.status.as_ref();
            let ready = status.and_then(|status| Conditions::find(&status.conditions, ConditionType::Ready));
            Some(ready.map_or_else(|| "the VDOConfig still exists".to_owned(), |ready| ready.message.clone()))
        }
        (_, None) => Some("there is no VDOConfig".to_owned()),
        (Goal::Healthy, Some(_)) => None,
        (Goal::Handled(mark), Some(config)) => {
            let handled = config.status.as_ref().and_then(|status| status.last_handled_reconcile_at.as_ref());
            (handled != Some(mark)).then(|| "the operator has not acted on the request yet".to_owned())
        }
        (Goal::Condition(kind, wanted), Some(config)) => {
            let status = config.status.as_ref().filter(|_| observed(config));
            match status.map(|status| Conditions::find(&status.conditions, *kind)) {
                None => Some("the operator has not reported on the newest specification".to_owned()),
                Some(Some(found)) if found.status == *wanted => None,
                Some(Some(found)) => Some(format!("{kind} is {}: {}", found.status, found.message)),
                Some(None) if kind.when_absent() == Some(wanted) => None,
                Some(None) => Some(format!("{kind} is not reported")),
            }
        }
    }
}

/// Whether the status is about the newest specification.
fn observed(config: &VDOConfig) -> bool {
    let seen = config.status.as_ref().and_then(|status| status.observed_generation);
    seen == config.metadata.generation
}

/// What is still missing of a goal, and what helps; `None` where it is reached. What no operator vouches for is not reached.
async fn look(context: &Context, goal: &Goal, watcher: &mut Watcher<'_>) -> Result<Option<(String, String)>, CliError> {
    let found = context.find_config().await?;
    let Deployed::Config(config) = &found else {
        return Ok(missing(goal, None).map(|waits| (waits, "Run vdoctl status.".to_owned())));
    };
    let judged = watcher.judge(&found).await?;
    let missing = missing(goal, Some(config));
    Ok(match judged {
        Judgement::Person(need) if ends(goal, &need) => Some((need.what, need.remedy)),
        Judgement::Progress {
            unsure: Some(why), remedy, ..
        } => Some((why, remedy)),
        _ => missing.map(|waits| (waits, "vdoctl status shows what the operator waits for.".to_owned())),
    })
}

/// Whether a goal is not reached before a person does this. Other conditions than those of the drivers are reported all the while.
fn ends(goal: &Goal, need: &Need) -> bool {
    match (goal, need.kind) {
        (Goal::Deleted, Kind::Operator) => need.deleting,
        (Goal::Deleted, kind) => kind == Kind::Fault && need.deleting,
        (Goal::Healthy, _) | (_, Kind::Operator) => true,
        (Goal::Handled(_), _) => false,
        (Goal::Condition(kind, wanted), _) => {
            let drivers = [ConditionType::Ready, ConditionType::CloudProviderReady, ConditionType::StorageReady];
            drivers.contains(kind) && wanted == "True"
        }
    }
}

async fn until(context: &Context, goal: &Goal, patience: Duration, progress: &mut Progress) -> Result<String, CliError> {
    let end = Instant::now().later(patience);
    let mut watcher = Watcher::new(context, false);
    loop {
        let (waits, remedy) = match look(context, goal, &mut watcher).await {
            Ok(None) => {
                return Ok(match goal {
                    Goal::Deleted => "the VDOConfig is deleted".to_owned(),
                    Goal::Condition(kind, status) => format!("{kind} is {status}"),
                    Goal::Healthy => "healthy".to_owned(),
                    Goal::Handled(_) => "handled".to_owned(),
                });
            }
            Ok(Some(waits)) => waits,
            Err(error) if error.exit == Exit::Cluster => (error.what, error.remedy),
            Err(error) => return Err(error),
        };
        if let Some(need) = watcher.settled().filter(|need| ends(goal, need)) {
            return Err(CliError::new(
                Exit::TimedOut,
                format!("the requested state was not reached: {}", need.what),
                need.remedy.clone(),
            ));
        }
        if Instant::now() >= end {
            return Err(CliError::new(
                Exit::TimedOut,
                format!("the requested state was not reached after {} s: {waits}", patience.as_secs()),
                format!("{remedy}\nWait longer with --timeout."),
            ));
        }
        progress.waiting(&[waits]);
        sleep(PACE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn wait_goal_is_a_word_or_a_condition() {
        assert_eq!(goal("Healthy").ok(), Some(Goal::Healthy));
        for same in ["deleted", "delete", "removed"] {
            assert_eq!(goal(same).ok(), Some(Goal::Deleted), "{same}");
        }
        let condition = |kind, status: &str| Some(Goal::Condition(kind, status.to_owned()));
        for same in ["MatrixFresh", "condition=MatrixFresh", "condition=MatrixFresh=True"] {
            assert_eq!(goal(same).ok(), condition(ConditionType::MatrixFresh, "True"), "{same}");
        }
        assert_eq!(
            goal("UpgradeAvailable=false").ok(),
            condition(ConditionType::UpgradeAvailable, "False")
        );
        for wrong in ["MatrixFrsh", "MatrixFresh=Yes"] {
            assert_eq!(goal(wrong).map_err(|error| error.exit), Err(Exit::Usage), "{wrong}");
        }
        assert!(goal("MatrixFrsh").is_err_and(|error| error.remedy.contains("Did you mean MatrixFresh?")));
    }

    #[test]
    fn wait_condition_says_what_is_missing() {
        let config = |status: &str| -> VDOConfig {
            serde_json::from_value(json!({"metadata": {"name": "vdo"}, "spec": {}, "status": {"conditions": [
                {"type": "MatrixFresh", "status": status, "reason": "MatrixExpired", "message": "it is old", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}))
            .expect("a VDOConfig")
        };
        let goal = Goal::Condition(ConditionType::MatrixFresh, "True".into());
        assert_eq!(missing(&goal, Some(&config("True"))), None);
        assert_eq!(
            missing(&goal, Some(&config("False"))).as_deref(),
            Some("MatrixFresh is False: it is old")
        );
        let absent = |status: &str| Goal::Condition(ConditionType::UpgradeAvailable, status.into());
        assert_eq!(missing(&absent("False"), Some(&config("True"))), None);
        assert_eq!(
            missing(&absent("True"), Some(&config("True"))).as_deref(),
            Some("UpgradeAvailable is not reported")
        );
        assert_eq!(missing(&goal, None).as_deref(), Some("there is no VDOConfig"));
        assert_eq!(missing(&Goal::Deleted, None), None);
        assert!(missing(&Goal::Deleted, Some(&config("True"))).is_some());
    }
}
