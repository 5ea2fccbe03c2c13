// SPDX-License-Identifier: Apache-2.0
//! Waits until the drivers are healthy or a person must act, for `deploy`, `upgrade apply`, `wait` and `--wait`: loop and time limits.
//! It only reads: the operator does the work, also when vdoctl no longer waits.

use super::context::{Context, Deployed, now};
use super::operator_running::Sight;
use super::progress::Progress;
use super::status::{Judgement, Need, Picture};
use super::{CliError, Exit};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use vdo_api::types::Later as _;

const PACE: Duration = Duration::from_secs(1);

/// How long one look may take before the next one is made.
const LOOK: Duration = Duration::from_secs(10);

/// How long only a person can bring it on before the wait ends: what someone is just about to apply may arrive in parts.
const SETTLED: Duration = Duration::from_secs(5);

/// Repeated looks at an installation, by the judgement of `status`.
pub(crate) struct Watcher<'a> {
    context: &'a Context,
    /// Whether the operator has to run in its Deployment.
    deployed: bool,
    /// Whether what the operator keeps trying counts as well.
    fail_fast: bool,
    sight: Sight,
    /// What a person has to do, and since when nothing else is known.
    need: Option<(Need, Instant)>,
}

impl<'a> Watcher<'a> {
    /// Nothing was seen yet. Without `deployed` the operator may run elsewhere than in its Deployment.
    pub(crate) fn new(context: &'a Context, deployed: bool) -> Self {
        Self {
            context,
            deployed,
            fail_fast: false,
            sight: Sight::default(),
            need: None,
        }
    }

    /// Ends with the first fault, although the operator keeps trying.
    pub(crate) fn fail_fast(mut self, fail_fast: bool) -> Self {
        self.fail_fast = fail_fast;
        self
    }

    /// Looks at what was found.
    pub(crate) async fn judge(&mut self, found: &Deployed) -> Result<Judgement, CliError> {
        let picture = Picture::again(self.context, found, &mut self.sight).await?;
        let judged = picture.judge(self.deployed, now());
        let need = match &judged {
            Judgement::Person(need) => Some(need.clone()),
            Judgement::Progress { .. } if self.fail_fast => picture.first_fault(),
            _ => None,
        };
        self.need = need.map(|need| {
            let same = self.need.take().filter(|(known, _)| known.kind == need.kind);
            (need, same.map_or_else(Instant::now, |(_, since)| since))
        });
        Ok(judged)
    }

    /// What a person has to do, once that is so for a while.
    pub(crate) fn settled(&self) -> Option<&Need> {
        self.need
            .as_ref()
            .filter(|(_, since)| since.elapsed() >= SETTLED)
            .map(|(need, _)| need)
    }
}

/// That it does not come to its end, because a person has to act.
pub(crate) fn ended(need: &Need) -> CliError {
    CliError::new(Exit::TimedOut, format!("VDO is not ready: {}", need.what), need.remedy.clone())
}

/// Waits until everything is ready. The line that says what is.
pub(crate) async fn until_ready(mut watcher: Watcher<'_>, deadline: Duration, progress: &mut Progress) -> Result<String, CliError> {
    let end = Instant::now().later(deadline);
    let mut last = (
        vec!["the operator has not started".to_owned()],
        "vdoctl status shows more.".to_owned(),
    );
    loop {
        match timeout(LOOK, look(&mut watcher)).await {
            Ok(Ok(Judgement::Ready(summary))) => return Ok(summary),
            Ok(Ok(Judgement::Progress { waits, remedy, .. })) => last = (waits, remedy),
            Ok(Ok(Judgement::Person(need))) => last = (vec![need.what], need.remedy),
            // An API server that is away for a moment, as while a control plane is upgraded, is not an end.
            Ok(Err(error)) if error.exit == Exit::Cluster => last = (vec![error.what], error.remedy),
            Ok(Err(error)) => return Err(error),
            Err(_) => last.0 = vec![format!("no answer from the API server for {} s", LOOK.as_secs())],
        }
        if let Some(need) = watcher.settled() {
            return Err(ended(need));
        }
        if Instant::now() >= end {
            return Err(CliError::new(
                Exit::TimedOut,
                // The columns of the lines above are none in a sentence.
                format!(
                    "VDO is not ready after {} s: {}",
                    deadline.as_secs(),
                    last.0.join("; ").replace("  ", " ")
                ),
                format!("{}\nRun the same command again to continue waiting.", last.1),
            ));
        }
        progress.waiting(&last.0);
        sleep(PACE).await;
    }
}

async fn look(watcher: &mut Watcher<'_>) -> Result<Judgement, CliError> {
    let found = watcher.context.find_config().await?;
    if !matches!(found, Deployed::Config(_)) {
        return Err(CliError::new(
            Exit::NotFound,
            "the VDOConfig was deleted during the wait",
            "Run vdoctl status.",
        ));
    }
    watcher.judge(&found).await
}
