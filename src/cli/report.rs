//! `vdoctl report`: one page about a cluster that can be sent to the people who run the vCenter.

mod bars;
mod html;

use super::args::{Global, Report as Args};
use super::context::{Context, now};
use super::support::documents::Documents;
use super::support::{read, unwritable};
use super::{Answer, CliError, matrix, save};
use crate::matrix::Index;
use serde_json::{Value, json};
use std::path::Path;

/// The documents that a page is made of.
const PARTS: [&str; 5] = ["status", "doctor", "history", "matrix", "outlook"];

/// Which Kubernetes minors the versions of an index support, as an SVG picture: the one of the page.
#[must_use]
pub fn support_bars(index: &Index) -> String {
    bars::svg(&matrix::entries(index), None)
}

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let facts = match &args.from {
        Some(file) => {
            let bundle = read(file)?;
            facts(&bundle.manifest, |verb| bundle.json(verb).unwrap_or(Value::Null))
        }
        None => {
            let context = Context::open(global).await?;
            let taken = now();
            let documents = Documents::collect(&context, global).await?;
            let manifest = json!({
                "vdoctl": env!("CARGO_PKG_VERSION"),
                "taken": taken,
                "cluster": {"name": context.name, "server": context.server, "version": context.kubernetes.raw()},
                "missing": documents.missing(),
            });
            facts(&manifest, |verb| documents.json(verb))
        }
    };
    let page = html::page(&facts);
    if args.html == Path::new("-") {
        return Ok(Answer::bytes(page.into_bytes()));
    }
    save::write(&args.html, page.as_bytes()).map_err(|error| unwritable(&args.html, &error))?;
    Ok(Answer::text("").note(format!(
        "{}: open it in a browser, or send it; it holds no secret.",
        args.html.display()
    )))
}

/// What a bundle says of itself, with its documents.
fn facts(manifest: &Value, document: impl Fn(&str) -> Value) -> Value {
    let mut facts = manifest.clone();
    for part in PARTS {
        facts[part] = document(part);
    }
    facts
}
