// SPDX-License-Identifier: Apache-2.0
//! Adds a driver version to the text of `matrix-index/facts.yaml`: its Kubernetes minors, its sources, and the index's next publication.
//!
//! A patch release joins the entry of its minor, whose ranges hold for it too; the first version of a minor
//! gets an entry of its own, in which everything that is not stated is marked as copied from the older minor.

use super::{line, scalar};
use jiff::civil::Date;
use serde_json::Value;
use vdo_api::types::{DriverVersion, VersionRange};
use vdo_api::yaml;

/// The text of the facts with the version in the line that lists the other one. Nothing where that one is of another minor or not
/// listed, or its line is not written as `versions: ["3.7.2"]`: then a person has to state what the version works with.
#[must_use]
pub fn with_version(text: &str, driver: &str, from: &DriverVersion, version: &DriverVersion) -> Option<String> {
    if from.minor() != version.minor() {
        return None;
    }
    let facts = yaml::load_value(text).ok()?;
    let group = group_of(&facts, driver, from)?;
    let at = line(text, &["drivers", driver, "lines", &group.to_string(), "versions"])?;
    let changed: String = text
        .split_inclusive('\n')
        .enumerate()
        .map(|(number, line)| match number == at {
            true => line.replacen("versions: [", &format!("versions: [\"{version}\", "), 1),
            false => line.to_owned(),
        })
        .collect();
    let after = yaml::load_value(&changed).ok()?;
    (group_of(&after, driver, version)? == group).then_some(changed)
}

/// What a publisher states of the first version of a minor.
#[derive(Debug, Clone, PartialEq)]
pub struct Stated<'a> {
    /// The Kubernetes minors that it supports.
    pub kubernetes: &'a VersionRange,
    /// Where that is written: names of sources of the facts, each with its address where it is new.
    pub sources: &'a [(String, Option<String>)],
}

/// The text of the facts with a line for the first version of a minor, before that of the version it was made from: with the Kubernetes
/// minors that are stated, and everything else taken over. Nothing where that line is not written as the others are.
#[must_use]
pub fn with_line(text: &str, driver: &str, from: &DriverVersion, version: &DriverVersion, stated: &Stated<'_>) -> Option<String> {
    const FIELD: &str = "      ";
    let facts = yaml::load_value(text).ok()?;
    let group = group_of(&facts, driver, from)?;
    let place = |group: usize| line(text, &["drivers", driver, "lines", &group.to_string(), "versions"]);
    let start = place(group)?;
    let lines: Vec<&str> = text.lines().collect();
    let is_inside = |line: &&&str| line.starts_with(FIELD) || line.trim().is_empty();
    let end = start + 1 + lines[start + 1..].iter().take_while(is_inside).count();
    let mut own = vec![format!("    - versions: [\"{version}\"]")];
    let mut field = "";
    for old in &lines[start + 1..end] {
        if !old.starts_with("       ") {
            field = old.trim().split(':').next().unwrap_or_default();
            if field == "kubernetes" {
                own.extend(kubernetes(stated));
            }
        }
        match (field, old.trim().split(':').next().unwrap_or_default()) {
            ("kubernetes" | "except", _) => {}
            ("vsphere", "confidence") => own.extend([
                "        confidence: unverified".to_owned(),
                format!("        note: Taken over from {from}; nothing was found that states it for {version}."),
            ]),
            ("vsphere", "note") => {}
            _ => own.push((*old).to_owned()),
        }
    }
    let mut changed: Vec<String> = lines[..start].iter().map(|line| (*line).to_owned()).collect();
    changed.extend(own);
    changed.extend(lines[start..].iter().map(|line| (*line).to_owned()));
    let changed = changed.join("\n") + "\n";
    let changed = with_sources(&changed, stated.sources)?;
    let after = yaml::load_value(&changed).ok()?;
    let new = &after["drivers"][driver]["lines"][group];
    let bound = |name: &str| new["kubernetes"][name].as_str();
    let is_right = bound("min") == stated.kubernetes.min() && bound("max") == stated.kubernetes.max() && new.get("except").is_none();
    (is_right && group_of(&after, driver, version)? == group && new["vsphere"]["confidence"] == "unverified").then_some(changed)
}

fn kubernetes(stated: &Stated<'_>) -> Vec<String> {
    let bound = |bound: Option<&str>| bound.map_or("null".to_owned(), |bound| format!("\"{bound}\""));
    let names: Vec<&str> = stated.sources.iter().map(|(name, _)| name.as_str()).collect();
    let mut lines = vec![
        "      kubernetes:".to_owned(),
        format!("        min: {}", bound(stated.kubernetes.min())),
        format!("        max: {}", bound(stated.kubernetes.max())),
    ];
    match names.is_empty() {
        true => lines.push("        confidence: unverified".to_owned()),
        false => lines.extend([
            format!("        evidence: [{}]", names.join(", ")),
            "        confidence: primary".to_owned(),
        ]),
    }
    lines
}

/// The text with the sources that have an address, at the end of those there are.
fn with_sources(text: &str, sources: &[(String, Option<String>)]) -> Option<String> {
    let at = line(text, &["sources"])?;
    let lines: Vec<&str> = text.lines().collect();
    let end = at + 1 + lines[at + 1..].iter().take_while(|line| line.starts_with("  ")).count();
    let known = yaml::load_value(text).ok()?;
    let new = sources
        .iter()
        .filter(|(name, _)| known["sources"].get(name).is_none())
        .filter_map(|(name, url)| {
            let url = url.as_ref()?;
            Some(format!(
                "  {name}:\n    url: {}\n    kind: {}",
                scalar(&url.as_str().into()),
                kind(url)
            ))
        });
    let before = lines[..end].iter().map(|line| (*line).to_owned());
    let after = lines[end..].iter().map(|line| (*line).to_owned());
    Some(before.chain(new).chain(after).collect::<Vec<String>>().join("\n") + "\n")
}

/// What a page is, by its address.
fn kind(url: &str) -> &'static str {
    let of = [
        ("/releases", "release-notes"),
        ("/issues/", "issue"),
        ("/pull/", "issue"),
        ("/blob/", "code"),
        ("/tree/", "code"),
    ];
    of.into_iter()
        .find(|(part, _)| url.contains(part))
        .map_or("documentation", |(_, kind)| kind)
}

/// The text of the facts as those of the next publication: its version is one more than that of the index, and it is good for as long as
/// the last one was. Nothing where that is so already.
#[must_use]
pub fn with_publication(text: &str, published: u64, today: Date) -> Option<String> {
    let facts = yaml::load_value(text).ok()?;
    let version = facts["version"].as_u64()?;
    if version > published {
        return None;
    }
    let day = |field: &str| facts[field].as_str()?.get(..10)?.parse::<Date>().ok();
    let days = day("generated")?.until(day("expires")?).ok()?.get_days();
    let expires = today.checked_add(jiff::Span::new().days(days)).ok()?;
    let line = |line: &str| match line.split(':').next() {
        Some("version") => format!("version: {}", published.saturating_add(1)),
        Some("generated") => format!("generated: \"{today}T00:00:00Z\""),
        Some("expires") => format!("expires: \"{expires}T00:00:00Z\""),
        _ => line.to_owned(),
    };
    Some(text.lines().map(line).collect::<Vec<String>>().join("\n") + "\n")
}

/// The line of the facts that lists a version.
fn group_of(facts: &Value, driver: &str, version: &DriverVersion) -> Option<usize> {
    let lists = |group: &Value| {
        let listed = group["versions"].as_array().into_iter().flatten().filter_map(Value::as_str);
        listed.into_iter().any(|listed| listed.parse().as_ref() == Ok(version))
    };
    facts
        .pointer(&format!("/drivers/{driver}/lines"))?
        .as_array()?
        .iter()
        .position(lists)
}
