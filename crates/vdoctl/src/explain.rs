// SPDX-License-Identifier: Apache-2.0
//! `vdoctl explain`: prints the meaning and the remedy of a reason, a condition or an exit code, and lists all of them.

mod errors_md;

use super::args::ExplainReason as Args;
use super::views::explain::{ConditionView, ExitCodeView, ReasonListView, ReasonView};
use super::wrap::unbroken;
use super::{Answer, CliError, Exit, style};
use errors_md::Entry;
use strum::IntoEnumIterator as _;
use vdo_api::api::ConditionType;

/// The reasons of a condition that are shown with their meaning: more of them do not fit on a screen.
const ON_ONE_SCREEN: usize = 16;

pub(super) fn run(args: &Args) -> Result<Answer, CliError> {
    let format = args.output.or_table();
    let entries = errors_md::entries();
    let Some(word) = &args.word else {
        return Answer::view(format, &list_view(&entries), || list(&entries));
    };
    let wanted = word.trim();
    if let Some(exit) = Exit::ALL.iter().copied().find(|exit| code(*exit).to_string() == wanted) {
        return Answer::view(format, &exit_view(exit), || {
            let cause = ("Cause", exit.meaning().to_owned());
            let remedy = exit.remedy().map(|remedy| ("Remedy", remedy.to_owned()));
            let parts: Vec<_> = std::iter::once(cause).chain(remedy).collect();
            entry_text(&format!("exit code {}", code(exit)), "vdoctl", &parts)
        });
    }
    if let Some(entry) = entries.iter().find(|entry| entry.reason.eq_ignore_ascii_case(wanted)) {
        return Answer::view(format, &entry_view(entry), || entry_text(entry.reason, entry.section, &entry.parts));
    }
    match ConditionType::iter().find(|kind| kind.as_str().eq_ignore_ascii_case(wanted)) {
        Some(kind) => Answer::view(format, &condition_view(kind, &entries), || condition_text(kind, &entries)),
        None => Err(unknown(wanted, &entries)),
    }
}

/// Every word that is explained, with a few words on it.
pub(super) fn words() -> Vec<(String, String)> {
    let reasons = errors_md::entries();
    let reasons = reasons
        .iter()
        .map(|entry| (entry.reason.to_owned(), first_sentence(entry.part("Cause"))));
    let conditions = ConditionType::iter().map(|kind| (kind.as_str().to_owned(), first_sentence(Some(&kind.meaning()))));
    let codes = Exit::ALL.iter().map(|exit| (code(*exit).to_string(), exit.meaning().to_owned()));
    reasons.chain(conditions).chain(codes).collect()
}

/// The code that a process ends with.
fn code(exit: Exit) -> u8 {
    exit as u8
}

fn entry_text(title: &str, section: &str, parts: &[(&str, String)]) -> String {
    let mut text = format!("{}  {}\n", style::head(title), style::faint(&format!("({section})")));
    for (name, part) in parts {
        text.push_str(&format!("{name}:\n"));
        for line in part.lines() {
            let command = line.starts_with("    ").then(|| unbroken(line));
            text.push_str(&format!("  {}\n", command.as_deref().unwrap_or(line)));
        }
    }
    text
}

fn entry_view(entry: &Entry) -> ReasonView {
    let part = |name: &str| entry.part(name).map(str::to_owned);
    ReasonView {
        reason: entry.reason.to_owned(),
        section: entry.section.to_owned(),
        cause: part("Cause"),
        shown_in: part("Shown in"),
        evidence: part("Evidence"),
        remedy: part("Remedy"),
        note: part("Note"),
    }
}

/// The objects that have a condition.
fn objects(kind: ConditionType) -> Vec<&'static str> {
    let config = ConditionType::of_config().any(|own| own == kind).then_some("VDOConfig");
    let connection = ConditionType::of_connection()
        .any(|own| own == kind)
        .then_some("vSphere connection");
    config.into_iter().chain(connection).collect()
}

/// The reasons that a condition may have, as the page lists where each is shown.
fn reasons(kind: ConditionType, entries: &[Entry]) -> Vec<&Entry> {
    let shown = |entry: &&Entry| {
        let text = entry.part("Shown in").unwrap_or_default();
        text.split(|sign: char| !sign.is_ascii_alphanumeric())
            .any(|word| word == kind.as_str())
    };
    entries.iter().filter(shown).collect()
}

fn condition_view(kind: ConditionType, entries: &[Entry]) -> ConditionView {
    ConditionView {
        condition: kind,
        objects: objects(kind).into_iter().map(str::to_owned).collect(),
        meaning: kind.meaning(),
        absent_means: kind.when_absent().map(str::to_owned),
        reasons: reasons(kind, entries).iter().map(|entry| entry.reason.to_owned()).collect(),
    }
}

fn condition_text(kind: ConditionType, entries: &[Entry]) -> String {
    let meaning = match kind.when_absent() {
        Some(status) => format!("{} If the condition is not reported, it counts as {status}.", kind.meaning()),
        None => kind.meaning(),
    };
    let section = format!("condition of a {}", objects(kind).join(" and of a "));
    let reasons = reasons(kind, entries);
    let names: Vec<&str> = reasons.iter().map(|entry| entry.reason).collect();
    let mut parts = vec![("Meaning", meaning)];
    if names.len() > ON_ONE_SCREEN {
        parts.push(("Reasons", names.join(", ")));
        parts.push(("Meaning of a reason", "    vdoctl explain REASON".to_owned()));
        return entry_text(kind.as_str(), &section, &parts);
    }
    let text = entry_text(kind.as_str(), &section, &parts);
    let row = |entry: &&Entry| vec![format!("  {}", entry.reason), first_sentence(entry.part("Cause"))];
    let rows: Vec<Vec<String>> = reasons.iter().map(row).collect();
    match rows.is_empty() {
        true => text,
        false => format!("{text}Reasons:\n{}", style::columns(rows.iter())),
    }
}

fn exit_view(exit: Exit) -> ExitCodeView {
    ExitCodeView {
        code: code(exit),
        meaning: exit.meaning().to_owned(),
        remedy: exit.remedy().map(str::to_owned),
    }
}

fn list_view(entries: &[Entry]) -> ReasonListView {
    ReasonListView {
        reasons: entries.iter().map(entry_view).collect(),
        conditions: ConditionType::iter().map(|kind| condition_view(kind, entries)).collect(),
        exit_codes: Exit::ALL.iter().copied().map(exit_view).collect(),
    }
}

/// Below the name of each section its words, each with a few words on it.
fn list(entries: &[Entry]) -> String {
    let row = |word: &str, text: &str| vec![format!("  {word}"), text.to_owned()];
    let sections = entries.chunk_by(|a, b| a.section == b.section).filter_map(|section| {
        let rows = section.iter().map(|entry| row(entry.reason, &first_sentence(entry.part("Cause"))));
        Some((section.first()?.section, rows.collect::<Vec<_>>()))
    });
    let conditions = ConditionType::iter().map(|kind| row(kind.as_str(), &first_sentence(Some(&kind.meaning()))));
    let codes = Exit::ALL.iter().map(|exit| row(&code(*exit).to_string(), exit.meaning()));
    let all: Vec<(&str, Vec<Vec<String>>)> = sections
        .chain([("Conditions", conditions.collect()), ("Exit codes", codes.collect())])
        .collect();
    let table = style::columns(all.iter().flat_map(|(_, rows)| rows));
    let mut lines = table.lines();
    let mut text = String::new();
    for (section, rows) in &all {
        text.push_str(&format!("{}\n", style::head(section)));
        lines.by_ref().take(rows.len()).for_each(|line| text.push_str(&format!("{line}\n")));
    }
    text
}

fn first_sentence(text: Option<&str>) -> String {
    let text = text.unwrap_or_default().lines().next().unwrap_or_default();
    text.split_once(". ")
        .map_or_else(|| text.to_owned(), |(first, _)| format!("{first}."))
}

/// The nearest reason is suggested; failing that, those that the word is a part of.
fn unknown(word: &str, entries: &[Entry]) -> CliError {
    let small = word.to_lowercase();
    let conditions = ConditionType::iter().map(ConditionType::as_str);
    let known: Vec<(String, &str)> = entries
        .iter()
        .map(|entry| entry.reason)
        .chain(conditions)
        .map(|word| (word.to_lowercase(), word))
        .collect();
    let near = style::nearest(&small, known.iter().map(|(lower, _)| lower.as_str()));
    let alike: Vec<&str> = known
        .iter()
        .filter(|(lower, _)| near.map_or(small.len() > 2 && lower.contains(&small), |near| near == lower))
        .map(|(_, reason)| *reason)
        .collect();
    // A misspelt reason is in no cause.
    let about: Vec<&str> = entries
        .iter()
        .filter(|entry| near.is_none() && small.len() > 2 && entry.part("Cause").is_some_and(|cause| cause.to_lowercase().contains(&small)))
        .map(|entry| entry.reason)
        .filter(|reason| !alike.contains(reason))
        .collect();
    let mut guess = String::new();
    if !alike.is_empty() {
        guess.push_str(&format!("Did you mean {}? ", alike.join(" or ")));
    }
    if !about.is_empty() {
        guess.push_str(&format!("Reasons with this word in their cause: {}. ", about.join(", ")));
    }
    CliError::new(
        Exit::NotFound,
        format!("there is no reason, condition or exit code {word:?}"),
        format!("{guess}`vdoctl explain` lists them all."),
    )
}
