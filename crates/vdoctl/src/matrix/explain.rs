// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix explain`: prints the chosen versions with their sources, and why each other version was not chosen.

use super::super::args::{Explain, Format, Global};
use super::super::views::matrix::VersionView;
use super::super::views::matrix_resolve::{CandidateView, ExplainedView, ExplanationView, PickView};
use super::super::{Answer, CliError, Exit, style};
use super::notes::remarks;
use super::why_not::runs;
use super::{Loaded, confidence, query, resolve};
use vdo_api::types::DriverVersion;
use vdo_core::drivers::short as short_name;
use vdo_core::matrix::{self, Entry, Index, Pick, Rejection, Support};

pub(super) async fn explain(args: &Explain, global: &Global) -> Result<Answer, CliError> {
    let loaded = Loaded::read(&args.index, global).await?;
    let question = query::question(&args.platform, global, &loaded.index).await?;
    let result = matrix::resolve(&loaded.index, &question.query());
    let candidates = matrix::candidates(&loaded.index, &question.query());
    let exit = if result.is_ok() { Exit::Ok } else { Exit::Differences };
    let pick = |name: &str| result.as_ref().ok().and_then(|resolution| resolution.picks.get(name));
    let entry = |name: &str| {
        let version = &pick(name)?.target;
        loaded.index.drivers.get(name)?.entry(version)
    };
    let format = args.output.or_table();
    let drivers = candidates.iter().map(|(name, candidates)| ExplainedView {
        driver: name.clone(),
        choice: pick(name).map(|pick| picked(&loaded, pick)),
        facts: entry(name).map(|entry| VersionView::of(name, entry)),
        candidates: candidates
            .iter()
            .map(|(version, reason)| CandidateView {
                version: version.clone(),
                rejected: reason.as_ref().map(ToString::to_string),
            })
            .collect(),
    });
    let view = ExplanationView {
        matrix: loaded.view(),
        fits: result.is_ok(),
        drivers: drivers.collect(),
    };
    let text = || {
        let mut text = format!("{}{}\n", loaded.header(), question.title());
        for (name, candidates) in &candidates {
            match pick(name) {
                Some(pick) => {
                    text.push_str(&format!(
                        "\n{}\n  {}\n",
                        style::head(&format!("{name} {}", pick.version)),
                        pick.because
                    ));
                    entry(name)
                        .into_iter()
                        .for_each(|entry| text.push_str(&facts(&loaded, name, entry)));
                    for line in remarks(&loaded.index, name, pick) {
                        text.push_str(&format!("  {line}\n"));
                    }
                }
                None => text.push_str(&format!("\n{}\n", style::head(name))),
            }
            let others: Candidates<'_> = candidates
                .iter()
                .filter(|(version, _)| pick(name).is_none_or(|pick| pick.version != *version))
                .collect();
            let target = pick(name).map(|pick| &pick.target);
            text.push_str(&if format == Format::Wide {
                each(&others, target)
            } else {
                short(&others)
            });
        }
        if let Err(error) = &result {
            for error in error.all() {
                text.push_str(&format!("\n{} {}\n", style::bad("✗"), resolve::headline(error)));
                error.advice.iter().for_each(|advice| text.push_str(&format!("  {advice}.\n")));
            }
            text.push_str(&resolve::fitting(error));
        }
        text
    };
    let answer = Answer::view(format, &view, text)?;
    Ok(question.answer(loaded.answer(answer)).exit(exit))
}

fn picked(loaded: &Loaded, pick: &Pick) -> PickView {
    PickView {
        version: pick.version.clone(),
        target: pick.target.clone(),
        from: pick.from.clone(),
        path: resolve::path(&pick.path),
        because: pick.because.clone(),
        steps: resolve::steps(loaded, &pick.path),
        preconditions: pick.preconditions().to_vec(),
        waits: pick.waits.as_ref().map(ToString::to_string),
    }
}

/// Versions that were not chosen, each with the reason if it does not fit.
type Candidates<'a> = Vec<&'a (DriverVersion, Option<Rejection>)>;

/// A line for each.
fn each(others: &Candidates<'_>, target: Option<&DriverVersion>) -> String {
    let rows: Vec<Vec<String>> = others
        .iter()
        .map(|(version, reason)| {
            let fits = if target == Some(version) {
                "is the target of the upgrade path"
            } else {
                "also fits"
            };
            vec![
                format!("  {version}"),
                reason.as_ref().map_or_else(|| fits.to_owned(), ToString::to_string),
            ]
        })
        .collect();
    if rows.is_empty() {
        String::new()
    } else {
        style::table(&["  NOT CHOSEN", "THIS VERSION"], &rows)
    }
}

/// A line for each kind of reason.
fn short(others: &Candidates<'_>) -> String {
    let owned: Vec<(DriverVersion, Option<Rejection>)> = others.iter().map(|other| (*other).clone()).collect();
    let fitting = runs(&owned);
    let mut lines = Vec::new();
    if !fitting.is_empty() {
        lines.push(format!("also fits: {}", fitting.join(", ")));
    }
    let rejected = owned.iter().filter_map(|(version, reason)| Some((version, reason.as_ref()?)));
    lines.extend(resolve::folded(rejected).into_iter().map(|line| format!("not chosen: {line}")));
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// What a version supports, and the sources of that.
fn facts(loaded: &Loaded, name: &str, entry: &Entry) -> String {
    let index: &Index = &loaded.index;
    let line = |what: &str, support: &Support| {
        let note = support.note.as_ref().map(|note| format!(" {note}")).unwrap_or_default();
        format!(
            "  {what} {}: {}, {}.{note}\n",
            support.range,
            confidence(support.confidence),
            evidence(index, support)
        )
    };
    let show = format!(
        "vdoctl matrix show {} {}{}",
        short_name(name).to_lowercase(),
        entry.version,
        loaded.flags
    );
    format!(
        "{}{}  {}\n",
        line("Kubernetes", &entry.kubernetes),
        line("vCenter", &entry.vsphere),
        style::faint(&format!("list of the sources: {show}"))
    )
}

/// The kinds of the sources, in words.
fn evidence(index: &Index, support: &Support) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for source in &support.evidence {
        let kind = match index.sources.get(source).map_or("", |source| source.kind.as_str()) {
            "release-notes" => "release notes",
            "issue" => "an issue",
            "downstream" => "a downstream project",
            "" => source,
            kind => kind,
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    match kinds.is_empty() {
        true => "without evidence".to_owned(),
        false => format!("from {}", kinds.join(" and ")),
    }
}
