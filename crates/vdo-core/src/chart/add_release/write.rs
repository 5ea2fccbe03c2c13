// SPDX-License-Identifier: Apache-2.0
//! Inserts a version's entry into the text of a release file (`releases/3.7.yaml`), and keeps comments and order of the rest.

use super::super::release_files;
use super::super::source::Source;
use super::{AddError, line, text};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use vdo_api::types::DriverVersion;
use vdo_api::yaml;

/// The longest line on which a map is written.
const WIDTH: usize = 140;

/// The text of the release file of a version with an entry that makes the release. A file for a new minor takes over what the
/// releases of the older one share.
pub(in super::super) fn with_entry(
    source: &Source,
    (from, version): (&DriverVersion, &DriverVersion),
    release: &Value,
) -> Result<String, AddError> {
    let file = release_files::path(version);
    let refused = |problem: &str| AddError::Text {
        file: file.clone(),
        problem: problem.to_owned(),
    };
    let before = match text(&source.files, &file) {
        Some(text) => text.to_owned(),
        None => {
            let older = text(&source.files, &release_files::path(from)).unwrap_or_default();
            let end = line(older, &["versions"]).ok_or_else(|| refused(&format!("{} lists no versions", release_files::path(from))))?;
            let renamed = |line: &str| match line.starts_with('#') {
                true => line.replace(&from.minor(), &version.minor()),
                false => line.to_owned(),
            };
            let kept: Vec<String> = older.lines().take(end).map(renamed).collect();
            let end = if kept.is_empty() { "" } else { "\n" };
            kept.join("\n") + end + "versions:\n"
        }
    };
    let known = yaml::load_value(&before).map_err(|error| refused(&error.to_string()))?;
    let common = known.get("common").cloned().unwrap_or(json!({}));
    let schema = text(&source.files, "release.schema.json")
        .and_then(|text| yaml::load_value(text).ok())
        .unwrap_or_default();
    let mut without = common.clone();
    release_files::fill(&mut without, &schema, &schema);
    // in the order of the other entries
    let first = ["date", "upstream", "images"];
    let mut own = release.as_object().cloned().unwrap_or_default();
    own.shift_remove("version");
    let first: Vec<(String, Value)> = first.into_iter().filter_map(|key| own.shift_remove_entry(key)).collect();
    let own: Value = first.into_iter().chain(own).collect::<Map<String, Value>>().into();
    let entry = missing(&common, &without, &own).unwrap_or(json!({}));
    let mut lines = format!("  {version}:{}\n", if entry == json!({}) { " {}" } else { "" });
    block(&entry, 4, &mut lines);

    let after =
        inserted(&before, version, &lines).ok_or_else(|| refused("write versions as a block, with each version on a line of its own"))?;
    let mut expected = known.clone();
    if !expected["versions"].is_object() {
        expected["versions"] = json!({});
    }
    expected["versions"][version.to_string()] = entry;
    let mut changed = source.clone();
    changed.files.insert(file.clone(), after.clone().into_bytes());
    if yaml::load_value(&after).as_ref() != Ok(&expected) || changed.release(version)? != *release {
        return Err(refused("write versions as a block, with each version on a line of its own"));
    }
    Ok(after)
}

/// What merges with `common` to the release, where `without` is what there would be with nothing written.
fn missing(common: &Value, without: &Value, release: &Value) -> Option<Value> {
    if without == release {
        return None;
    }
    let (Value::Object(wanted), Some(base)) = (release, without.as_object()) else {
        return Some(release.clone());
    };
    let of_common = |key: &str| common.get(key).unwrap_or(&Value::Null);
    let mut entry = Map::new();
    for (key, value) in wanted {
        match base.get(key) {
            Some(now) if now == value => {}
            // only a map of `common` is merged with; a default is replaced whole
            Some(now) if of_common(key).is_object() => {
                drop(missing(of_common(key), now, value).map(|value| entry.insert(key.clone(), value)))
            }
            _ => drop(entry.insert(key.clone(), value.clone())),
        }
    }
    let common = common.as_object().into_iter().flatten();
    entry.extend(
        common
            .filter(|(key, _)| !wanted.contains_key(*key))
            .map(|(key, _)| (key.clone(), Value::Null)),
    );
    Some(entry.into())
}

/// The text with the lines of an entry before those of the next version.
fn inserted(text: &str, version: &DriverVersion, entry: &str) -> Option<String> {
    let known = yaml::load_value(text).ok()?;
    let start = line(text, &["versions"])?;
    let listed = known["versions"].as_object().into_iter().flatten();
    let mut later: Vec<(DriverVersion, usize)> = listed
        .filter_map(|(key, _)| Some((key.parse().ok()?, line(text, &["versions", key])?)))
        .filter(|(listed, _)| listed > version)
        .collect();
    later.sort();
    let lines: Vec<&str> = text.lines().collect();
    let next_key = |from: usize| (from + 1..lines.len()).find(|at| lines[*at].starts_with(|first: char| !matches!(first, ' ' | '#')));
    let mut at = later
        .first()
        .map(|(_, line)| *line)
        .or_else(|| next_key(start))
        .unwrap_or(lines.len());
    // a comment above a version belongs to it
    while at > start + 1 && at < lines.len() && lines[at - 1].trim_start().starts_with('#') {
        at -= 1;
    }
    let join = |lines: &[&str]| lines.iter().fold(String::new(), |text, line| text + line + "\n");
    Some(join(&lines[..at]) + entry + &join(&lines[at..]))
}

/// A map as lines; what fits on one line is written on one.
pub(in super::super) fn block(value: &Value, indent: usize, out: &mut String) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let key = scalar(&key.as_str().into());
        let flow = flow(value);
        let digests = |fields: &Map<String, Value>| fields.values().any(|value| value.as_str().is_some_and(|text| text.len() == 64));
        let deep = |fields: &Map<String, Value>| indent == 4 || fields.values().any(Value::is_object) || digests(fields);
        let whole = !matches!(value, Value::Object(fields) if !fields.is_empty() && deep(fields));
        if whole && indent + key.len() + 2 + flow.len() <= WIDTH || !value.is_object() {
            let _ = writeln!(out, "{:indent$}{key}: {flow}", "");
        } else {
            let _ = writeln!(out, "{:indent$}{key}:", "");
            block(value, indent + 2, out);
        }
    }
}

fn flow(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let all: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{}: {}", scalar(&key.as_str().into()), flow(value)))
                .collect();
            format!("{{{}}}", all.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        scalar_value => scalar(scalar_value),
    }
}

/// Text stands without quotes where every reader takes it for text.
pub(in super::super) fn scalar(value: &Value) -> String {
    let plain = |text: &&str| {
        let inner = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte));
        let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic()) || text.starts_with("--");
        inner && first && yaml::load_value(text).as_ref() == Ok(&Value::from(*text))
    };
    let digest = |text: &&str| {
        text.len() == 64
            && text.bytes().all(|byte| byte.is_ascii_hexdigit())
            && text.bytes().any(|byte| byte.is_ascii_alphabetic() && byte != b'e')
    };
    match value.as_str().filter(|text| plain(text) || digest(text)) {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}
