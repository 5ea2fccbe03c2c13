// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix publish`: publishes new driver versions into a matrix, or refuses all of them with the list of problems.

mod candidate;
mod resolve;
mod server;

use super::super::args::{Global, Publish};
use super::super::views::publish::MatrixPublishView;
use super::super::{Answer, CliError, Exit, style};
use super::publish_target::Place;
use candidate::{Candidate, Checked};
use serde_json::json;
use std::collections::BTreeMap;
use vdo_api::types::count;
use vdo_author::publish::Facts;

pub(super) async fn run(args: &Publish, global: &Global) -> Result<Answer, CliError> {
    let (place, mut draft) = Place::open(&args.publishing).await?;
    if args.charts.is_empty() {
        return resolve::listed(args, place, draft).await;
    }
    let facts = facts(args)?;
    let mut all = Vec::new();
    let mut charts = BTreeMap::new();
    for candidate in candidate::read(args, draft.index())? {
        let mut checked = candidate.check(&place, &draft, &facts).await?;
        if args.resolving.resolve_digests {
            resolve::candidate(args, &candidate, &mut checked).await;
        }
        if let Some(entry) = &checked.entry {
            let role = candidate.chart.metadata.role;
            let added = draft.add(&candidate.chart.metadata.name, role, entry.clone());
            if added.map_err(|error| CliError::of(Exit::Refused, &error))? {
                charts.insert(candidate.path(), candidate.bytes.clone());
                if let Some(day) = &candidate.chart.release.date {
                    draft.released(&candidate.chart.metadata.name, &candidate.chart.metadata.version, day);
                }
            }
        }
        all.push((candidate, checked));
    }
    if global.kubeconfig.is_some() || global.context.is_some() {
        for (candidate, checked) in &mut all {
            server::dry_run(candidate, checked, global).await?;
        }
    }
    refused(&all, args)?;
    draft.explain("sources", &facts.sources);
    draft.explain("preconditions", &facts.preconditions);
    if !draft.is_changed() {
        place.settle(&args.publishing)?;
        return Ok(Answer::text(format!(
            "{} {}: nothing to publish\n",
            style::good("✓"),
            args.publishing.to
        )));
    }
    let published = place.publish(draft, charts, &args.publishing).await?;
    let view = MatrixPublishView {
        dry_run: args.publishing.dry_run,
        versions: all.iter().map(|(candidate, checked)| checked.view(candidate)).collect(),
        matrix: published.view(),
    };
    let text = || {
        let mut text = published.diff.clone().unwrap_or_default();
        for (candidate, checked) in &all {
            text.push_str(&checked.text(candidate));
        }
        let done = if args.publishing.dry_run { "would be published: " } else { "" };
        text + done + &published.line()
    };
    let answer = Answer::view(args.publishing.output.or_table(), &view, text)?;
    Ok(published.answer(answer))
}

/// What the publisher states, in a file and by flags; a flag wins.
fn facts(args: &Publish) -> Result<Facts, CliError> {
    let mut facts = match &args.facts {
        None => Facts::default(),
        Some(path) => {
            let text = super::super::chart::text("the facts", path)?;
            Facts::parse(&text).map_err(|error| CliError::of(Exit::Refused, &error))?
        }
    };
    for (field, range) in [("kubernetes", &args.kubernetes), ("vsphere", &args.vsphere)] {
        if let Some(range) = range {
            facts.range(field, range);
        }
    }
    if let Some(from) = &args.upgrades_from {
        facts.fields.insert("upgradesFrom".to_owned(), json!({"min": from.to_string()}));
    }
    Ok(facts)
}

/// Everything that keeps the charts from being published, as one error.
fn refused(all: &[(Candidate, Checked)], args: &Publish) -> Result<(), CliError> {
    let mut lines = Vec::new();
    let mut only_breaking = true;
    for (candidate, checked) in all {
        let label = candidate.chart.label();
        only_breaking &= checked.problems.is_empty();
        lines.extend(checked.problems.iter().map(|problem| format!("{label}: {problem}")));
        if let Some((before, comparison)) = checked.comparison.as_ref().filter(|_| !args.allow_breaking) {
            let breaking = comparison.breaking.iter();
            lines.extend(breaking.map(|what| format!("{label}: breaking change from {before}: {what}")));
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    let remedy = if only_breaking {
        "Correct the chart, or publish it anyway with --allow-breaking. Nothing was written."
    } else {
        "Correct the chart. Nothing was written."
    };
    Err(CliError::new(
        Exit::Refused,
        format!(
            "{} in the versions to publish:\n{}",
            count(lines.len(), "problem"),
            lines.join("\n")
        ),
        remedy,
    ))
}
