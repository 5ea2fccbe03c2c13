// SPDX-License-Identifier: Apache-2.0
//! Suggests the nearest known name for an unknown variable in a template, for the error of a failed render.

use serde_json::{Map, Value};
use vdo_api::types::nearest;

/// What on a line of a template is not known, and what was probably meant. `whole` is the template, for the names it sets itself.
pub(super) fn hint(line: &str, whole: &str, variables: &Map<String, Value>) -> Option<String> {
    let own = own_names(whole);
    paths(line).into_iter().find_map(|path| unknown(&path, &own, variables))
}

fn unknown(path: &[&str], own: &[&str], variables: &Map<String, Value>) -> Option<String> {
    let (root, rest) = path.split_first()?;
    let Some(mut at) = variables.get(*root) else {
        if own.contains(root) {
            return None;
        }
        let near = nearest(root, variables.keys().map(String::as_str).chain(own.iter().copied()))?;
        return Some(format!("{root} is not known here; did you mean {near}?"));
    };
    let mut walked = (*root).to_owned();
    for name in rest {
        let fields = at.as_object()?;
        match fields.get(*name) {
            Some(next) => at = next,
            None => {
                let known = fields.keys().map(String::as_str);
                return Some(match nearest(name, known.clone()) {
                    Some(near) => format!("{walked} has no {name}; did you mean {walked}.{near}?"),
                    None => format!("{walked} has no {name}; it has {}", known.collect::<Vec<_>>().join(", ")),
                });
            }
        }
        walked = format!("{walked}.{name}");
    }
    None
}

/// Names with dots between them, outside of string literals.
pub(super) fn paths(line: &str) -> Vec<Vec<&str>> {
    let code = line.split(['"', '\'']).step_by(2);
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.');
    let split = code.flat_map(move |part| part.split(word));
    let named = split.filter(|text| text.starts_with(|c: char| c.is_ascii_alphabetic()));
    named.map(|text| text.split('.').collect()).collect()
}

/// What `set`, `for` and `macro` of the template name, roughly: words between the keyword and the first sign after them.
fn own_names(whole: &str) -> Vec<&str> {
    let tags = whole.split("{%").skip(1).map(|tag| tag.trim_start_matches(['-', '+']).trim_start());
    let named = tags.filter_map(|tag| {
        let (keyword, rest) = tag.split_once(' ')?;
        let end = match keyword {
            "set" => rest.find(['=', '%'])?,
            "for" => rest.find(" in ")?,
            "macro" | "with" => rest.find(['=', ')'])?,
            _ => return None,
        };
        Some(&rest[..end])
    });
    named
        .flat_map(|names| names.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')))
        .filter(|name| !name.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn template_hint_misspelled_variable_suggests_nearest_name() {
        let variables = json!({"values": {"name": "", "controller": {"replicas": 1}}, "release": {}, "cluster": {"minor": ""}});
        let variables = variables.as_object().unwrap();
        let whole = "{% set socket = 1 %}{% for key, value in values.name %}{% macro sidecar(kind, args) %}";
        for (line, expected) in [
            ("x: {{ values.nmae }}", Some("values has no nmae; did you mean values.name?")),
            ("x: {{ vlaues.name }}", Some("vlaues is not known here; did you mean values?")),
            (
                "{% if values.controller.replcas %}",
                Some("values.controller has no replcas; did you mean values.controller.replicas?"),
            ),
            ("x: {{ sokcet }}", Some("sokcet is not known here; did you mean socket?")),
            ("x: {{ cluster.platform }}", Some("cluster has no platform; it has minor")),
            ("x: {{ \"values.nmae\" }}", None),
            ("x: {{ socket ~ kind }}", None),
        ] {
            assert_eq!(hint(line, whole, variables).as_deref(), expected, "{line}");
        }
    }
}
