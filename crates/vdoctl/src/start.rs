// SPDX-License-Identifier: Apache-2.0
//! `vdoctl` without a verb: prints the state of the cluster and the next commands for this state.

use super::args::{GROUPS, Global, command};
use super::context::{Context, Deployed, now};
use super::status::{Judgement, Kind, Picture};
use super::style::head;
use super::{Answer, CliError};
use std::fmt::Write as _;
use std::time::Duration;
use vdo_api::api::Health;

/// How long the cluster may take: a person waits for a help text.
const SOON: Duration = Duration::from_secs(3);

/// What a next step depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// No kubeconfig, and not a pod.
    NoCluster,
    /// A cluster that does not answer, or refuses.
    Unreachable(String),
    /// Neither the operator nor its definitions, or no VDOConfig.
    NotDeployed(String),
    /// All is well.
    Healthy,
    /// Something is under way.
    Progressing,
    /// A plan waits for approval.
    Approval,
    /// Management is paused.
    Paused,
    /// A person has to do something.
    Ill(String),
}

/// A command, and what it does.
type Step = (&'static str, &'static str);

pub(super) async fn run(global: &Global) -> Result<Answer, CliError> {
    let about = command().get_about().map(ToString::to_string).unwrap_or_default();
    let (said, steps) = steps(&state(global).await);
    Ok(Answer::text(screen(&about, &said, steps)))
}

/// Looks at the cluster, if it answers soon.
async fn state(global: &Global) -> State {
    let soon = Global {
        timeout: Some(global.timeout.unwrap_or(SOON).min(SOON)),
        ..global.clone()
    };
    let look = async {
        let context = Context::open(&soon).await?;
        let deployed = context.find_config().await?;
        let Deployed::Config(config) = &deployed else {
            return Ok::<_, CliError>(State::NotDeployed(context.name));
        };
        // Drivers that are well stay so while management is paused.
        if config.status.as_ref().and_then(|status| status.health) == Some(Health::Paused) {
            return Ok(State::Paused);
        }
        Ok(of(Picture::take(&context, &deployed).await?.judge(false, now())))
    };
    match tokio::time::timeout(soon.timeout(), look).await {
        Ok(Ok(state)) => state,
        Ok(Err(error)) if error.no_cluster => State::NoCluster,
        Ok(Err(error)) => State::Unreachable(error.what),
        Err(_) => State::Unreachable(CliError::timed_out(soon.timeout()).what),
    }
}

fn of(judgement: Judgement) -> State {
    match judgement {
        Judgement::Ready(_) => State::Healthy,
        Judgement::Progress { .. } => State::Progressing,
        Judgement::Person(need) => match need.kind {
            Kind::Approval => State::Approval,
            Kind::Paused => State::Paused,
            Kind::Operator | Kind::Deletion | Kind::Fault => State::Ill(need.what),
        },
    }
}

const DOCTOR: Step = ("vdoctl doctor", "checks everything, and shows remedies");
const STATUS: Step = ("vdoctl status", "shows versions, health and problems");
const WATCH: Step = ("vdoctl status --watch", "shows each change as it happens");
const PLAN: Step = ("vdoctl plan", "shows what the operator would do");
const EVENTS: Step = ("vdoctl events", "shows what happened");
const LOGS: Step = ("vdoctl logs", "shows the log of the operator");
const LIST: Step = ("vdoctl matrix list", "shows which driver fits which cluster");

/// What is the case, in a sentence, and five steps.
fn steps(state: &State) -> (String, [Step; 5]) {
    match state {
        State::NoCluster => (
            "No cluster is configured here: name a kubeconfig with --kubeconfig or KUBECONFIG.".into(),
            [
                LIST,
                ("vdoctl matrix resolve --help", "finds the drivers that fit a cluster"),
                ("vdoctl rights", "prints the roles and namespaces that are needed"),
                ("vdoctl mirror --help", "copies matrix and images to other sites"),
                ("vdoctl explain", "lists every reason with its meaning"),
            ],
        ),
        State::Unreachable(what) => (
            format!("The cluster could not be read: {what}."),
            [
                ("vdoctl version", "shows both versions, once the cluster answers"),
                ("vdoctl options", "lists the global flags (cluster, user, timeouts)"),
                LIST,
                ("vdoctl rights", "prints the roles and namespaces that are needed"),
                ("vdoctl explain 5", "explains exit code 5"),
            ],
        ),
        State::NotDeployed(cluster) => (
            format!("VDO is not deployed in cluster {cluster}."),
            [
                ("vdoctl doctor --pre --vcenter HOST --user NAME", "checks before an installation"),
                ("vdoctl deploy --vcenter HOST --user NAME", "installs operator and drivers"),
                ("vdoctl matrix resolve", "shows which drivers fit"),
                ("vdoctl adopt", "finds drivers of other tools"),
                ("vdoctl rights", "prints roles and namespaces"),
            ],
        ),
        State::Healthy => (
            "VDO is deployed, and the drivers are healthy.".into(),
            [
                STATUS,
                ("vdoctl upgrade plan", "shows what an upgrade would change"),
                ("vdoctl selftest", "tests storage with pods and volumes"),
                DOCTOR,
                ("vdoctl report --html report.html", "writes a page about the installation"),
            ],
        ),
        State::Progressing => (
            "VDO is deployed, but the drivers are not ready yet, or the operator has not finished its work.".into(),
            [WATCH, PLAN, EVENTS, LOGS, DOCTOR],
        ),
        State::Approval => (
            "A plan waits for approval.".into(),
            [
                PLAN,
                ("vdoctl diff", "shows each field that the plan changes"),
                ("vdoctl approve --help", "shows how to approve the plan"),
                STATUS,
                ("vdoctl history", "shows the revisions that were applied"),
            ],
        ),
        State::Paused => (
            "Management is paused: nothing is written or repaired.".into(),
            [
                ("vdoctl resume", "ends the pause"),
                PLAN,
                ("vdoctl diff", "compares the live drivers with the desired state"),
                STATUS,
                DOCTOR,
            ],
        ),
        State::Ill(what) => (
            format!("There is a problem: {what}."),
            [
                STATUS,
                DOCTOR,
                ("vdoctl doctor volumes", "shows why volumes do not work"),
                EVENTS,
                ("vdoctl support-bundle", "collects status, events and logs"),
            ],
        ),
    }
}

fn screen(about: &str, said: &str, steps: [Step; 5]) -> String {
    let mut text = format!("{about}\n\n{said}\n\n{}\n", head("Next:"));
    let width = steps.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
    for (command, what) in steps {
        let _ = writeln!(text, "  {command:width$}  {what}");
    }
    let _ = writeln!(text, "\n{}", head("Commands:"));
    for (_, verbs) in GROUPS {
        let _ = writeln!(text, "  {}", verbs.join(", "));
    }
    text.push_str("\nvdoctl --help describes all commands, vdoctl COMMAND --help describes one command with its flags.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn all() -> Vec<State> {
        let what = || "the password was refused".to_owned();
        vec![
            State::NoCluster,
            State::Unreachable(what()),
            State::NotDeployed("demo".into()),
            State::Healthy,
            State::Progressing,
            State::Approval,
            State::Paused,
            State::Ill(what()),
        ]
    }

    /// Each can be typed as it is, and is not there twice.
    #[test]
    fn steps_are_commands_that_exist_and_fit_a_terminal() {
        for state in all() {
            let (said, steps) = steps(&state);
            let words: BTreeSet<&str> = steps.iter().map(|(command, _)| *command).collect();
            assert_eq!(words.len(), steps.len(), "{state:?}");
            for command_line in words {
                let parsed = command().try_get_matches_from(command_line.split(' '));
                let is_help = parsed
                    .as_ref()
                    .is_err_and(|error| error.kind() == clap::error::ErrorKind::DisplayHelp);
                assert!(parsed.is_ok() || is_help, "{command_line}: {:?}", parsed.err());
            }
            let text = screen("What it is.", &said, steps);
            for line in text.lines().filter(|line| line.starts_with("  vdoctl")) {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }

    #[test]
    fn steps_follow_from_what_is_judged() {
        let need = |kind| {
            Judgement::Person(super::super::status::Need {
                what: "x".into(),
                remedy: String::new(),
                kind,
                deleting: false,
            })
        };
        for (judgement, first) in [
            (Judgement::Ready(String::new()), "vdoctl status"),
            (need(Kind::Approval), "vdoctl plan"),
            (need(Kind::Paused), "vdoctl resume"),
            (need(Kind::Fault), "vdoctl status"),
        ] {
            assert_eq!(steps(&of(judgement)).1[0].0, first);
        }
    }
}
