//! `vdoctl status`: what runs, what is wrong, what to do next. From what the operator has written down, so that it needs few
//! rights and tells the same as the operator knows.

mod outlook;
mod picture;
mod screen;

use super::args::{Global, Status as Args};
use super::printer::Printer;
use super::session::{Deployed, Session, now};
use super::{Answer, CliError, Exit};
use crate::api::Health;
use picture::Picture;
use std::time::Duration;

/// How often `--watch` looks.
const PACE: Duration = Duration::from_secs(2);

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let session = Session::open(global).await?;
    look(&session, args, global).await
}

/// Shows the status whenever it is another one, until interrupted. That the cluster does not answer once does not end it.
pub(super) async fn watch(args: &Args, global: &Global, printer: &mut Printer) -> Result<Answer, CliError> {
    let mut last = None;
    let session = Session::open(global).await?;
    loop {
        let result = tokio::time::timeout(global.timeout, look(&session, args, global)).await;
        let answer = match result {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) if error.exit == Exit::Cluster => Answer::text("").say(error.what),
            Ok(Err(error)) => return Err(error),
            Err(_) => Answer::text("").say(CliError::timed_out(global.timeout).what),
        };
        if last.as_ref() != Some(&answer) && printer.redraw(&answer).is_err() {
            return Ok(Answer::text(""));
        }
        last = Some(answer);
        tokio::time::sleep(PACE).await;
    }
}

async fn look(session: &Session, args: &Args, global: &Global) -> Result<Answer, CliError> {
    let deployed = session.deployed().await?;
    let picture = Picture::take(session, &deployed, global).await?;
    let format = args.output.or_table();
    let answer = Answer::formatted(format, || picture.json(), || screen::draw(&picture, format, now()))?;
    Ok(match &deployed {
        Deployed::Config(config, _) => {
            let health = config.status.as_ref().and_then(|status| status.health);
            answer.exit(match health {
                Some(Health::Healthy | Health::Progressing) | None => Exit::Ok,
                Some(Health::Degraded | Health::Blocked | Health::Unknown) => Exit::Differences,
            })
        }
        other => {
            let missing = session.missing(other);
            answer.say(missing.what).say(format!("  {}", missing.remedy)).exit(missing.exit)
        }
    })
}
