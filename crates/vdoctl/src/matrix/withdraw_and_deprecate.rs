// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix withdraw` and `vdoctl matrix deprecate`: marks a driver version in a published matrix.

use super::super::args::Mark;
use super::super::context::now;
use super::super::views::publish::MatrixMarkView;
use super::super::{Answer, CliError, Exit, style};
use super::driver;
use super::publish_target::Place;
use serde_json::json;
use std::collections::BTreeMap;

/// `state` is the word of the matrix: `withdrawn` or `deprecated`.
pub(super) async fn run(args: &Mark, state: &str) -> Result<Answer, CliError> {
    let (place, mut draft) = Place::open(&args.publishing).await?;
    let name = driver(draft.index(), &args.driver)?.0.into();
    let refused = |error| CliError::of(Exit::Refused, &error);
    let since = now().to_zoned(jiff::tz::TimeZone::UTC).date().to_string();
    let mut verdict = json!({"kind": state, "reason": args.reason, "since": since});
    if let Some(instead) = &args.instead {
        verdict["use"] = instead.to_string().into();
    }
    draft.mark(&name, &args.version, verdict).map_err(refused)?;
    let published = place.publish(draft, BTreeMap::new(), &args.publishing).await?;
    let view = MatrixMarkView {
        driver: name,
        version: args.version.clone(),
        state: state.to_owned(),
        instead: args.instead.clone(),
        dry_run: args.publishing.dry_run,
        matrix: published.view(),
    };
    let text = || {
        let diff = published.diff.as_deref().unwrap_or_default();
        let done = if view.dry_run { "would be" } else { "is" };
        let line = published.line();
        format!("{diff}{} {} {} {done} {state}\n{line}", style::good("✓"), view.driver, view.version)
    };
    let answer = Answer::view(args.publishing.output.or_table(), &view, text)?;
    Ok(published.answer(answer))
}
