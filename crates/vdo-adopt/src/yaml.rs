// SPDX-License-Identifier: Apache-2.0
//! Writes an adopted object as YAML, with a comment on each line that names the origin of the setting.

use crate::draft::Draft;
use std::collections::BTreeMap;
use vdo_api::yaml::{dump, lines};

/// One document.
pub(crate) fn commented(draft: &Draft) -> String {
    let text = dump(&draft.object).unwrap_or_else(|_| draft.object.to_string());
    let places = lines(&text);
    let mut comments: BTreeMap<u64, String> = BTreeMap::new();
    for (path, origin) in &draft.origins {
        // A text of several lines, or what stands in one line with its parent.
        let line = (1..=path.len()).rev().find_map(|steps| places.get(path.get(..steps)?).copied());
        if let Some(line) = line {
            let comment = comments.entry(line).or_default();
            let origin = origin.to_string();
            if !comment.contains(&origin) {
                let comma = if comment.is_empty() { "" } else { "; " };
                comment.push_str(comma);
                comment.push_str(&origin);
            }
        }
    }
    let mut out = String::new();
    for (number, line) in (1..).zip(text.lines()) {
        out.push_str(line);
        if let Some(comment) = comments.get(&number) {
            out.push_str("  # ");
            out.push_str(&plain(comment));
        }
        out.push('\n');
    }
    out
}

/// A comment ends with its line.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
