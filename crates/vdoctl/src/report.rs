// SPDX-License-Identifier: Apache-2.0
//! `vdoctl report`: collects the facts of one or several clusters, or of a support bundle, and writes the HTML report.

mod bars;
mod page;

use super::args::{Global, Report as Args};
use super::context::now;
use super::several_clusters::{self, Asked};
use super::status::{attention, row};
use super::support::{Facts, unwritable, word};
use super::views::matrix::VersionView;
use super::views::status_list::ClusterStatusView;
use super::{Answer, CliError, Exit, atomic_files};
use std::path::{Path, PathBuf};
use vdo_core::matrix::Index;

/// Which Kubernetes minors the versions of an index support, as an SVG picture: the one of the page.
///
/// # Errors
/// When the template is wrong.
pub fn support_bars(index: &Index) -> Result<String, minijinja::Error> {
    bars::svg(&VersionView::all(index), None)
}

/// A report asks much more than a status: how many times as long a cluster of several may take.
const LONGER: u32 = 4;

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    if args.contexts.are_given() {
        return of_several(args, global).await;
    }
    let facts = Facts::read(args.from.as_deref(), global).await?;
    let name = word(&facts.about.cluster.name);
    let file = args
        .html
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("vdo-report-{name}.html")));
    written(&file, page::page(&[&facts], None))
}

/// One page about several clusters, problems first. What could be collected is in it, also where one of them gave no answer.
async fn of_several(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let limit = global.timeout().saturating_mul(LONGER);
    let asked = several_clusters::ask(&args.contexts, global, limit, async |global| Facts::read(None, global).await).await?;
    let exit = |facts: &Facts| facts.about.exits.get("status").copied().unwrap_or_default();
    let item = |asked: &Asked<Facts>| ClusterStatusView::of(asked, |facts| (facts.status.clone(), exit(facts)));
    let mut all: Vec<(ClusterStatusView, Asked<Facts>)> = asked.into_iter().map(|asked| (item(&asked), asked)).collect();
    all.sort_by_key(|(item, _)| attention(item));
    let rows = all.iter().map(|(item, _)| row(item, now())).collect();
    let facts: Vec<&Facts> = all.iter().filter_map(|(_, asked)| asked.answer.as_ref().ok()).collect();
    let file = args.html.clone().unwrap_or_else(|| PathBuf::from("vdo-report.html"));
    let answer = written(&file, page::page(&facts, Some(rows)))?;
    let failures = all.iter().filter_map(|(item, asked)| Some((item, asked.answer.as_ref().err()?)));
    let lines = failures
        .clone()
        .map(|(item, error)| format!("{} is only in the table, without details: {}", item.context, error.what));
    let once = several_clusters::once(all.iter().map(|(item, _)| (&item.context, &item.other_contexts)));
    let worst = failures.clone().next().map_or(Exit::Ok, |(_, error)| error.exit);
    Ok(lines.chain(once).fold(answer, Answer::note).exit(worst))
}

/// Writes the page where it belongs.
fn written(html: &Path, page: Result<String, minijinja::Error>) -> Result<Answer, CliError> {
    let page = page.map_err(|error| CliError::internal(&error))?;
    if html == Path::new("-") {
        return Ok(Answer::bytes(page.into_bytes()));
    }
    atomic_files::write_private(html, page.as_bytes()).map_err(|error| unwritable(html, &error))?;
    Ok(Answer::text("").note(format!(
        "{}: open the report in a browser, or send the report. It contains names, addresses and versions of this site, and no value of a Secret.",
        html.display()
    )))
}
