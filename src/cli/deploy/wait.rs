//! Watches an installation until its drivers are healthy. It only looks: the operator does the work, also when no one looks.

use super::super::context::{Context, Deployed, id};
use super::super::operator::unready;
use super::super::progress::Progress;
use super::super::status::{Problem, nodes_of, problems_of};
use super::super::{CliError, Exit};
use crate::api::{ConditionType, Conditions, Health};
use crate::cluster::get;
use crate::drivers::{self, short};
use crate::install::{OPERATOR, operator_version};
use crate::types::ObjectId;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

const PACE: Duration = Duration::from_secs(1);

/// How long one look may take before the next one is made.
const LOOK: Duration = Duration::from_secs(10);

/// What one look shows.
struct Seen {
    /// What is waited for, one line for each thing; empty when nothing is.
    waiting: Vec<String>,
    /// What is there in the end.
    summary: String,
}

/// Waits until everything is ready. The line that says what is. Without `deployed` the operator may run elsewhere than in its Deployment.
pub(in crate::cli) async fn until_ready(
    context: &Context,
    deployed: bool,
    deadline: Duration,
    progress: &mut Progress,
) -> Result<String, CliError> {
    let end = Instant::now() + deadline;
    let mut last = vec!["the operator to start".to_owned()];
    loop {
        match timeout(LOOK, look(context, deployed)).await {
            Ok(Ok(seen)) if seen.waiting.is_empty() => return Ok(seen.summary),
            Ok(Ok(seen)) => last = seen.waiting,
            // An API server that is away for a moment, as while a control plane is upgraded, is no end.
            Ok(Err(error)) if error.exit == Exit::Cluster => last = vec![error.what],
            Ok(Err(error)) => return Err(error),
            Err(_) => last = vec![format!("no answer from the API server for {} s", LOOK.as_secs())],
        }
        if Instant::now() >= end {
            return Err(CliError::new(
                Exit::TimedOut,
                format!("not ready after {} s: {}", deadline.as_secs(), last.join("; ")),
                "The operator goes on by itself; vdoctl status shows how far it is, and the same command again goes on waiting.",
            ));
        }
        progress.waiting(&last);
        sleep(PACE).await;
    }
}

async fn look(context: &Context, deployed: bool) -> Result<Seen, CliError> {
    let mut waiting: Vec<String> = operator(context, deployed).await?.into_iter().collect();
    let Deployed::Config(config) = context.deployed().await? else {
        return Err(CliError::new(
            Exit::NotFound,
            "the VDOConfig was deleted while it was waited for",
            "vdoctl status says what is there.",
        ));
    };
    let status = config.status.clone().unwrap_or_default();
    let ready = Conditions::find(&status.conditions, ConditionType::Ready);
    let current = status.observed_generation == config.metadata.generation;
    if current && ready.is_some_and(|c| c.status == "True") && waiting.is_empty() {
        let summary = ready.map(|c| c.message.clone()).unwrap_or_default();
        return Ok(Seen { waiting, summary });
    }
    if waiting.is_empty() && !current {
        waiting.push(format!("the operator to look at VDOConfig {}", id(&config)));
    }
    for driver in status.drivers.iter().filter(|driver| driver.ready != "True") {
        let nodes = nodes_of(&driver.name, &status).map(|(done, all)| format!(" · nodes {done}/{all}"));
        let reason = drivers::known(&driver.name).and_then(|known| Conditions::find(&status.conditions, known.condition));
        let message = reason.map_or(driver.message.as_str(), |c| c.message.as_str());
        let counted = match driver.pods.as_str() {
            "" => String::new(),
            pods => format!("  {pods} pods{}", nodes.unwrap_or_default()),
        };
        waiting.push(format!("{} {}{counted}: {message}", short(&driver.name), driver.version));
    }
    let reported = waiting.join(" ");
    let problems = problems_of(&status);
    let stuck = matches!(status.health, Some(Health::Blocked | Health::Degraded));
    let news = problems.iter().filter(|problem| current && !reported.contains(&problem.message));
    waiting.extend(news.map(|Problem { reason, message, .. }| match stuck {
        true => format!("{message} (vdoctl explain {reason})"),
        false => message.clone(),
    }));
    if waiting.is_empty() {
        waiting.push(ready.map_or_else(|| "the operator to begin".into(), |c| c.message.clone()));
    }
    Ok(Seen {
        waiting,
        summary: String::new(),
    })
}

/// Why the operator does not run yet.
async fn operator(context: &Context, deployed: bool) -> Result<Option<String>, CliError> {
    let client = &context.ports.client;
    let id = ObjectId::new("apps", "Deployment", context.namespace(), OPERATOR);
    let Some(deployment) = get(client, "apps/v1", &id).await? else {
        return Ok(deployed.then(|| format!("{OPERATOR} to be there: its Deployment is gone")));
    };
    let Some(problem) = unready(context, &deployment).await? else {
        return Ok(None);
    };
    let version = operator_version(&deployment).unwrap_or_default();
    Ok(Some(format!("operator {version}: {problem}")))
}
