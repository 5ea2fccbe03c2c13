// SPDX-License-Identifier: Apache-2.0
//! Readers of the drivers' files after the rules of the drivers, which share no code with the writers. The tests of the drivers' files use them too.

#![allow(clippy::unwrap_used, reason = "what a driver cannot read is a finding")]

use std::collections::BTreeMap;
use vdo_api::types::Secret;

/// A reader of gcfg after the rules of `gopkg.in/gcfg.v1` 1.2.3: `(section, subsection, key) -> value`, the last one wins.
pub fn read_gcfg(text: &str) -> Result<BTreeMap<(String, String, String), String>, String> {
    let mut values = BTreeMap::new();
    let mut at = (String::new(), String::new());
    if text.contains('\0') || text.starts_with('\u{feff}') {
        return Err("NUL or byte order mark".into());
    }
    for line in text.split('\n') {
        let line = line.trim_matches([' ', '\t', '\r']);
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let header = header.strip_suffix(']').ok_or("header without ]")?;
            at = match header.split_once(' ') {
                None => (header.to_lowercase(), String::new()),
                Some((name, sub)) => (name.to_lowercase(), value_of(sub, false)?),
            };
            continue;
        }
        let (key, value) = line.split_once('=').ok_or("no =")?;
        values.insert(
            (at.0.clone(), at.1.clone(), key.trim().to_lowercase()),
            value_of(value.trim(), true)?,
        );
    }
    Ok(values)
}

fn value_of(raw: &str, newline_and_tab: bool) -> Result<String, String> {
    let (mut value, mut keep, mut quoted) = (String::new(), 0, false);
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '\r' => continue,
            ';' | '#' if !quoted => break,
            '"' => quoted = !quoted,
            '\\' if quoted => value.push(match chars.next() {
                Some(c @ ('\\' | '"')) => c,
                Some('n') if newline_and_tab => '\n',
                Some('t') if newline_and_tab => '\t',
                other => return Err(format!("unknown escape {other:?}")),
            }),
            '\\' => return Err("unquoted backslash".into()),
            other => value.push(other),
        }
        if quoted || !matches!(c, ' ' | '\t') {
            keep = value.len();
        }
    }
    value.truncate(keep);
    if quoted { Err("string not terminated".into()) } else { Ok(value) }
}

/// The credentials the CPI finds for each server, after the rules of its credential manager.
pub fn read_cpi_secret(data: &BTreeMap<String, Secret>) -> BTreeMap<String, (String, String)> {
    let mut found: BTreeMap<String, (String, String)> = BTreeMap::new();
    let mut rest = vec![];
    for (key, value) in data {
        assert!(
            key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) && key.len() <= 253,
            "{key} is not a Secret key"
        );
        let trimmed = value.expose().strip_suffix('\n').unwrap_or(value.expose()).to_owned();
        if key.ends_with("password") {
            found.entry(key.split(".password").next().unwrap().to_owned()).or_default().1 = trimmed;
        } else if key.ends_with("username") {
            found.entry(key.split(".username").next().unwrap().to_owned()).or_default().0 = trimmed;
        } else {
            rest.push(key);
        }
    }
    for key in rest {
        if let Some(id) = key.strip_prefix("server_") {
            let get = |prefix: &str| data[&format!("{prefix}{id}")].expose().to_owned();
            found.insert(get("server_"), (get("username_"), get("password_")));
        } else {
            assert!(key.starts_with("username_") || key.starts_with("password_"), "unknown key {key}");
        }
    }
    found
}
