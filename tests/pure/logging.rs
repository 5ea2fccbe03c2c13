// SPDX-License-Identifier: Apache-2.0
//! Log lines of the operator: one span for each reconcile and for each inspection of a vCenter, and one name for one thing in all fields.

use crate::sources::product_texts;
use std::collections::BTreeMap;

/// The names of fields. What is not a name of something (a count, a flag, a state) belongs to the line that has it.
const FIELDS: &str = "
config connection server object driver reason error            the objects and errors that lines are searched by
generation version build kubernetes before now answer          versions
watch inventory source uid resource_version pod container      what a request was about
user identity holder                                           who
address signal limit objects steps news ready because          the rest of a sentence
";

/// The arguments of a macro from behind its opening bracket, up to its text.
fn arguments(code: &str) -> Vec<&str> {
    let (mut depth, mut start, mut all) = (0, 0, Vec::new());
    for (at, c) in code.char_indices() {
        match c {
            '"' | ')' if depth == 0 => {
                all.push(&code[start..at]);
                break;
            }
            ',' if depth == 0 => {
                all.push(&code[start..at]);
                start = at + 1;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    let names = all.into_iter().map(|argument| argument.split('=').next().unwrap_or_default());
    let names = names.map(|name| name.trim().trim_start_matches(['%', '?']));
    names.filter(|name| !name.is_empty()).collect()
}

/// The fields of each call of a macro of `tracing`, with the macro and the file.
fn calls() -> Vec<(String, String, Vec<String>)> {
    let mut found = Vec::new();
    for (file, text) in product_texts() {
        for call in text.split("tracing::").skip(1) {
            let Some((name, rest)) = call.split_once("!(") else { continue };
            if name.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
                // The name of a span is its first argument.
                let rest = if name.ends_with("span") {
                    rest.split_once(',').map_or("", |(_, rest)| rest)
                } else {
                    rest
                };
                let fields = arguments(rest).into_iter().map(str::to_owned).collect();
                found.push((name.to_owned(), file.clone(), fields));
            }
        }
    }
    found
}

#[test]
fn log_fields_are_of_a_closed_list() {
    let known: Vec<&str> = FIELDS
        .lines()
        .flat_map(|line| line.split("  ").next().unwrap_or_default().split(' '))
        .collect();
    let all = calls();
    assert!(all.len() > 50, "only {} calls were read", all.len());
    let unknown: Vec<_> = all
        .iter()
        .flat_map(|(_, file, fields)| fields.iter().map(move |field| (file, field)))
        .filter(|(_, field)| !known.contains(&field.as_str()))
        .collect();
    assert!(
        unknown.is_empty(),
        "fields that no other line has, or that it calls otherwise: {unknown:?}"
    );
}

#[test]
fn log_spans_are_one_for_each_reconcile_and_each_inspection() {
    let spans: BTreeMap<String, Vec<String>> = calls()
        .into_iter()
        .filter(|(name, ..)| name.ends_with("span"))
        .map(|(_, file, fields)| (file, fields))
        .collect();
    let fields = |of: &[&str]| of.iter().map(|field| (*field).to_owned()).collect::<Vec<_>>();
    let expected = [
        ("src/controller/vdoconfig.rs".to_owned(), fields(&["config", "generation"])),
        (
            "src/controller/vsphere_cloud_config.rs".to_owned(),
            fields(&["connection", "server"]),
        ),
    ];
    assert_eq!(spans, expected.into());
}
