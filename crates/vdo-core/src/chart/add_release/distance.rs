// SPDX-License-Identifier: Apache-2.0
//! Computes how much two objects differ, as a number of scalars; `learn.rs` changes a release until this number is lowest.

use serde_json::Value;

/// 0 for equal values, else about the number of scalars that would have to change.
pub(super) fn distance(original: &Value, rendered: &Value) -> usize {
    match (original, rendered) {
        _ if original == rendered => 0,
        (Value::Object(left), Value::Object(right)) => {
            let ours = left
                .iter()
                .map(|(key, value)| right.get(key).map_or_else(|| size(value), |other| distance(value, other)));
            let theirs = right
                .iter()
                .filter(|(key, _)| !left.contains_key(*key))
                .map(|(_, value)| size(value));
            ours.chain(theirs).sum()
        }
        (Value::Array(left), Value::Array(right)) => lists(left, right),
        _ => size(original).max(size(rendered)),
    }
}

/// Items of the same name belong together, as containers and variables do; of the others those that are equal.
fn lists(left: &[Value], right: &[Value]) -> usize {
    let same = |one: &Value, other: &Value| match (one.get("name"), other.get("name")) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    };
    let mut rest: Vec<&Value> = right.iter().collect();
    let mut sum = 0;
    let mut alone = Vec::new();
    for item in left {
        match rest.iter().position(|other| same(item, other)) {
            Some(at) => sum += distance(item, rest.remove(at)),
            None => alone.push(item),
        }
    }
    let paired = alone.len().min(rest.len());
    sum += alone[..paired]
        .iter()
        .zip(&rest[..paired])
        .map(|(one, other)| distance(one, other))
        .sum::<usize>();
    sum += alone[paired..].iter().chain(&rest[paired..]).map(|item| size(item)).sum::<usize>();
    sum.max(1) // the order alone
}

fn size(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(size).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn distance_falls_with_every_equal_part() {
        let original = json!({"containers": [{"name": "a", "args": ["--x", "--y=1"]}, {"name": "b", "image": "b:2"}]});
        for (rendered, expected) in [
            (original.clone(), 0),
            (
                json!({"containers": [{"name": "b", "image": "b:2"}, {"name": "a", "args": ["--x", "--y=1"]}]}),
                1,
            ),
            (
                json!({"containers": [{"name": "a", "args": ["--x", "--y=2"]}, {"name": "b", "image": "b:2"}]}),
                1,
            ),
            (
                json!({"containers": [{"name": "a", "args": ["--x"]}, {"name": "b", "image": "b:1"}]}),
                2,
            ),
            (json!({"containers": [{"name": "a", "args": []}]}), 5),
            (json!({}), 9),
        ] {
            assert_eq!(distance(&original, &rendered), expected, "{rendered}");
        }
    }
}
