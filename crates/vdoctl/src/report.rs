//! `vdoctl report`: one page about a cluster that can be sent to the people who run the vCenter.

mod bars;
mod page;

use super::args::{Global, Report as Args};
use super::support::{Facts, unwritable};
use super::views::matrix::VersionView;
use super::{Answer, CliError, save};
use std::path::Path;
use vdo_core::matrix::Index;

/// Which Kubernetes minors the versions of an index support, as an SVG picture: the one of the page.
///
/// # Errors
/// When the template is wrong.
pub fn support_bars(index: &Index) -> Result<String, minijinja::Error> {
    bars::svg(&VersionView::all(index), None)
}

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let facts = Facts::read(args.from.as_deref(), global).await?;
    let page = page::page(&facts).map_err(|error| CliError::internal(&error))?;
    if args.html == Path::new("-") {
        return Ok(Answer::bytes(page.into_bytes()));
    }
    save::write_private(&args.html, page.as_bytes()).map_err(|error| unwritable(&args.html, &error))?;
    Ok(Answer::text("").note(format!(
        "{}: open it in a browser, or send it. It holds names, addresses and versions of this site, and no value of a Secret.",
        args.html.display()
    )))
}
