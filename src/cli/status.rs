//! `vdoctl status`: what runs, what is wrong, what to do next. From what the operator has written down, so that it needs few
//! rights and tells the same as the operator knows.

mod picture;
mod screen;

use super::args::{Global, Status as Args};
use super::printer::Printer;
use super::session::{Deployed, Session, now};
use super::{Answer, CliError, Exit};
use crate::api::Health;
use picture::Picture;
use serde_json::Value;
use std::time::Duration;

/// How often `--watch` looks.
const PACE: Duration = Duration::from_secs(2);

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let session = Session::open(global).await?;
    Ok(look(&session, args, global).await?.0)
}

/// Shows the status whenever it is another one, until interrupted. That the cluster does not answer once does not end it. On
/// a terminal the ages go on counting; a pipe hears of real changes only.
pub(super) async fn watch(args: &Args, global: &Global, printer: &mut Printer) -> Result<Answer, CliError> {
    let session = Session::open(global).await?;
    let mut last = None;
    loop {
        let silent = |what: String| (Answer::text("").say(&what), Value::String(what));
        let (answer, state) = match tokio::time::timeout(global.timeout, look(&session, args, global)).await {
            Ok(Ok(seen)) => seen,
            Ok(Err(error)) if error.exit == Exit::Cluster => silent(error.what),
            Ok(Err(error)) => return Err(error),
            Err(_) => silent(CliError::timed_out(global.timeout).what),
        };
        let new = last.as_ref() != Some(&state);
        if let Err(exit) = printer.redraw(&answer, new, last.is_some()) {
            return Ok(Answer::text("").exit(exit));
        }
        last = Some(state);
        tokio::time::sleep(PACE).await;
    }
}

/// What is to be shown, and the state behind it.
async fn look(session: &Session, args: &Args, global: &Global) -> Result<(Answer, Value), CliError> {
    let deployed = session.deployed().await?;
    let picture = Picture::take(session, &deployed, global).await?;
    let format = args.output.or_table();
    let state = picture.json();
    let answer = Answer::formatted(format, || state.clone(), || screen::draw(&picture, format, now()))?;
    let answer = match &deployed {
        Deployed::Config(config) => {
            let health = config.status.as_ref().and_then(|status| status.health);
            answer.exit(match health {
                Some(Health::Healthy | Health::Progressing) => Exit::Ok,
                Some(Health::Degraded | Health::Blocked | Health::Unknown) | None => Exit::Differences,
            })
        }
        other => {
            let missing = session.missing(other);
            answer.say(missing.what).say(format!("  {}", missing.remedy)).exit(missing.exit)
        }
    };
    Ok((answer, state))
}
