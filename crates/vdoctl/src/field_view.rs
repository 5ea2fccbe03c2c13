// SPDX-License-Identifier: Apache-2.0
//! Prints a changed field of an object as lines with + and -: lists of named items by name, lists of words by word, texts line by line.

use super::{style, text_diff};
use serde_json::Value;
use std::collections::BTreeSet;
use vdo_core::manifest::Difference;

/// The lines of a field, below the object that has it.
pub(super) fn lines(field: &Difference) -> String {
    let mut text = String::new();
    compare(&field.path, &field.found, &field.wanted, &mut text);
    text
}

fn compare(path: &str, found: &Value, wanted: &Value, text: &mut String) {
    if let (Some(old), Some(new)) = (named(found), named(wanted)) {
        return by_name(path, &old, &new, text);
    }
    if let (Some(old), Some(new)) = (words(found), words(wanted))
        && old.len() + new.len() > 2
    {
        let gone = old
            .iter()
            .filter(|word| !new.contains(word))
            .map(|word| style::bad(&format!("- {word}")));
        let come = new
            .iter()
            .filter(|word| !old.contains(word))
            .map(|word| style::good(&format!("+ {word}")));
        let changed: Vec<String> = gone.chain(come).collect();
        // The same words in another order are shown as they are.
        if !changed.is_empty() {
            return listed(path, &changed, text);
        }
    }
    if let (Value::String(old), Value::String(new)) = (found, wanted)
        && (old.contains('\n') || new.contains('\n'))
    {
        let changed = text_diff::unified(path, old, new);
        let lines: Vec<String> = changed.lines().skip(2).map(coloured).collect();
        return listed(path, &lines, text);
    }
    if let (Value::Object(old), Value::Object(new)) = (found, wanted) {
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let (old, new) = (old.get(key).unwrap_or(&Value::Null), new.get(key).unwrap_or(&Value::Null));
            if old != new {
                compare(&format!("{path}.{key}"), old, new, text);
            }
        }
        return;
    }
    let lines = [
        style::bad(&format!("- found   {}", shown(found))),
        style::good(&format!("+ desired {}", shown(wanted))),
    ];
    listed(path, &lines, text);
}

fn listed(path: &str, lines: &[String], text: &mut String) {
    text.push_str(&format!("    {path}\n"));
    text.extend(lines.iter().map(|line| format!("      {line}\n")));
}

fn coloured(line: &str) -> String {
    match line.chars().next() {
        Some('-') => style::bad(line),
        Some('+') => style::good(line),
        _ => line.to_owned(),
    }
}

fn by_name(path: &str, old: &[(&str, &Value)], new: &[(&str, &Value)], text: &mut String) {
    let of = |all: &[(&str, &Value)], name: &str| all.iter().find(|(other, _)| *other == name).map(|(_, item)| (*item).clone());
    let (mut whole, mut parts) = (Vec::new(), String::new());
    for (name, item) in old {
        match of(new, name) {
            None => whole.push(style::bad(&format!("- {}", entry(name, item)))),
            Some(other) if other == **item => {}
            Some(other) => match (pair(item), pair(&other)) {
                (Some(_), Some(_)) => whole.extend([
                    style::bad(&format!("- {}", entry(name, item))),
                    style::good(&format!("+ {}", entry(name, &other))),
                ]),
                _ => compare(&format!("{path}[{name}]"), item, &other, &mut parts),
            },
        }
    }
    for (name, item) in new.iter().filter(|(name, _)| of(old, name).is_none()) {
        whole.push(style::good(&format!("+ {}", entry(name, item))));
    }
    if whole.is_empty() && parts.is_empty() {
        let order = |all: &[(&str, &Value)]| all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        whole = vec![
            style::bad(&format!("- found   in the order {}", order(old))),
            style::good(&format!("+ desired in the order {}", order(new))),
        ];
    }
    if !whole.is_empty() {
        listed(path, &whole, text);
    }
    text.push_str(&parts);
}

/// The items of a list by their names; none where an item has no name, or two have the same. No list at all has no items.
fn named(list: &Value) -> Option<Vec<(&str, &Value)>> {
    let items = list.as_array()?;
    let all: Option<Vec<(&str, &Value)>> = items.iter().map(|item| Some((item.get("name")?.as_str()?, item))).collect();
    let all = all?;
    let names: BTreeSet<&str> = all.iter().map(|(name, _)| *name).collect();
    (names.len() == all.len()).then_some(all)
}

/// A list of words.
fn words(list: &Value) -> Option<Vec<&str>> {
    list.as_array()?.iter().map(Value::as_str).collect()
}

/// A name with a value and nothing else, as in an environment.
fn pair(item: &Value) -> Option<&str> {
    let fields = item.as_object().filter(|fields| fields.len() == 2)?;
    fields.get("value")?.as_str()
}

fn entry(name: &str, item: &Value) -> String {
    match (pair(item), item.as_object()) {
        (Some(value), _) => format!("{name}={value}"),
        (None, Some(fields)) => {
            let mut rest = fields.clone();
            rest.remove("name");
            match rest.is_empty() {
                true => name.to_owned(),
                false => format!("{name} {}", Value::Object(rest)),
            }
        }
        (None, None) => name.to_owned(),
    }
}

/// A value on one line; nothing at all is a word and not `null`.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::String(text) if !text.contains('\n') => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn field_view_lists_are_compared_by_name_or_word() {
        let env = |all: &[(&str, &str)]| -> Value { all.iter().map(|(name, value)| json!({"name": name, "value": value})).collect() };
        for (found, wanted, expected) in [
            (json!("a"), json!("b"), "    f\n      - found   a\n      + desired b\n"),
            (
                json!(null),
                json!(["a"]),
                "    f\n      - found   nothing\n      + desired [\"a\"]\n",
            ),
            (
                env(&[("A", "1"), ("B", "1"), ("C", "1")]),
                env(&[("A", "1"), ("C", "2"), ("D", "1")]),
                "    f\n      - B=1\n      - C=1\n      + C=2\n      + D=1\n",
            ),
            (json!(["--a", "--b"]), json!(["--a", "--c"]), "    f\n      - --b\n      + --c\n"),
            (
                json!([{"name": "a", "configMap": {"name": "x"}}, {"name": "b", "emptyDir": {}}]),
                json!([{"name": "a", "configMap": {"name": "y"}}]),
                "    f\n      - b {\"emptyDir\":{}}\n    f[a].configMap.name\n      - found   x\n      + desired y\n",
            ),
            (
                json!([{"name": "a"}, {"name": "b"}]),
                json!([{"name": "b"}, {"name": "a"}]),
                "    f\n      - found   in the order a, b\n      + desired in the order b, a\n",
            ),
            (
                json!("a\nb\n"),
                json!("a\nc\n"),
                "    f\n      @@ -1,2 +1,2 @@\n       a\n      -b\n      +c\n",
            ),
        ] {
            let field = Difference {
                path: "f".into(),
                wanted,
                found,
            };
            let text = anstream::adapter::strip_str(&lines(&field)).to_string();
            assert_eq!(text, expected, "{field}");
        }
    }
}
