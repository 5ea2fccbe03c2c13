// SPDX-License-Identifier: Apache-2.0
//! Values reach their own places and no others.

use super::{chain, side_by_side};
use crate::sample::some_or_all;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use vdo_core::chart::{self, Chart, Context};
use vdo_core::drivers::is_on_request;
use vdo_source::fetch::embedded;

/// The places of a chart's values that are not made of others, by path: `any` is a key of the user's own, `[]` an item.
pub fn places(schema: &Value, whole: &Value, path: &[String], found: &mut Vec<Vec<String>>) {
    let target = schema
        .get("$ref")
        .and_then(Value::as_str)
        .map_or(schema, |target| whole.pointer(&target[1..]).unwrap());
    let below = |name: &str| path.iter().cloned().chain([name.to_owned()]).collect::<Vec<_>>();
    for (name, inner) in target["properties"].as_object().into_iter().flatten() {
        places(inner, whole, &below(name), found);
    }
    match &target["additionalProperties"] {
        inner @ Value::Object(_) => places(inner, whole, &below(&own_key(target)), found),
        Value::Bool(true) => found.push(below("any")),
        _ => {}
    }
    if target["items"].is_object() {
        places(&target["items"], whole, &below("[]"), found);
    } else if !["properties", "additionalProperties"].iter().any(|key| target.get(*key).is_some()) {
        found.push(path.to_vec());
    }
}

/// A key of a map whose keys are the user's.
pub fn own_key(schema: &Value) -> String {
    let listed = schema.pointer("/propertyNames/enum/0").and_then(Value::as_str);
    listed.unwrap_or("any").to_owned()
}

/// Everything on, so that every value has its places.
pub fn switched_on(driver: &str) -> Value {
    match driver {
        "vsphere-csi" => json!({"webhook": {"enabled": true, "caBundle": "Q0E="}, "topology": {"enabled": true}}),
        "vsphere-cpi" => json!({"skipNodeDeletion": true}),
        _ => json!({}),
    }
}

pub fn values_with(path: &[String], text: &str) -> Value {
    path.iter().rev().fold(json!(text), |value, name| match name.as_str() {
        // A class has to have a name beside the field in question.
        "[]" if matches!(&*path[0], "storageClasses" | "volumeSnapshotClasses") && value.get("name").is_none() => {
            let mut item = value;
            item["name"] = "item".into();
            json!([item])
        }
        "[]" => json!([value]),
        _ => json!({name: value}),
    })
}

/// Every leaf by its path.
pub fn leaves(path: String, value: &Value, out: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => fields.iter().for_each(|(k, v)| leaves(format!("{path}/{k}"), v, out)),
        Value::Array(items) if !items.is_empty() => items.iter().enumerate().for_each(|(i, v)| leaves(format!("{path}/{i}"), v, out)),
        leaf => out.push((path, leaf.clone())),
    }
}

/// What text may be in some place at all: the first of these that the schema takes there.
pub const PLAIN: [&str; 9] = [
    "plainmark",
    "/plainmark",
    "D:\\plainmark",
    "plainmark.example:1",
    "plain.example/mark:1",
    "ds:///plainmark",
    "plain/mark",
    "3141592",
    "cGxhaW5tYXJr",
];

pub const HOSTILE: [&str; 20] = [
    "\"",
    "'",
    "\n---\nkind: Pwned\n",
    "{{ 7 * 7 }}{% endif %}",
    ": ",
    " # x",
    "a: b",
    "\u{1f600}",
    "\0",
    "\r\n\t",
    "- x",
    "&a *a",
    "!!int 7",
    "yes",
    "0644",
    "null",
    "\u{85}\u{2028}\u{feff}\u{7f}",
    "}]\\",
    "$(X)",
    "|\n  x",
];

pub type Leaves = Vec<(String, Value)>;

pub fn rendered(chart: &Chart, values: &Value) -> Result<Leaves, String> {
    let mut all = switched_on(chart.metadata.name.as_str());
    chart::values::merge(&mut all, values);
    let objects = chart::render(chart, &all, &Context::default()).map_err(|error| chain(&error))?;
    let mut out = Vec::new();
    leaves(String::new(), &Value::from(objects), &mut out);
    Ok(out)
}

/// What a text becomes where `plain` became `text`: as it is, or with the doubled separators of Windows flags.
pub fn replaced(old: &str, plain: &str, text: &str) -> String {
    let doubled = |text: &str| text.replace('\\', "\\\\");
    if old.contains(plain) {
        old.replace(plain, text)
    } else {
        old.replace(&doubled(plain), &doubled(text))
    }
}

/// That the second render is the first one with `text` in place of `plain`, in names as in values.
pub fn same_but_for(before: &Leaves, after: &Leaves, plain: &str, text: &str, place: &str) {
    assert_eq!(before.len(), after.len(), "{place}");
    for ((old_path, old), (new_path, new)) in before.iter().zip(after) {
        assert!(
            *new_path == replaced(old_path, plain, text),
            "{place}: {old_path} became another place"
        );
        match old.as_str() {
            Some(old) => assert!(*new == replaced(old, plain, text), "{place} at {old_path}"),
            None => assert!(old == new, "{place} changed {old_path}"),
        }
    }
}

pub fn newest_charts() -> Vec<Chart> {
    let newest = |source: chart::Source| {
        let version = source.versions().last().unwrap().clone();
        chart::open(&chart::package(&source, &version).unwrap()).unwrap()
    };
    embedded::sources().into_values().map(newest).collect()
}

#[test]
fn chart_value_hostile_text_stays_in_its_place() {
    let large = "x\n".repeat(1 << 19);
    let (taken, refused, large_ones) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    for chart in newest_charts() {
        let mut paths = Vec::new();
        places(chart.schema(), chart.schema(), &[], &mut paths);
        let least = if is_on_request(&chart.metadata.name) { 5 } else { 20 };
        assert!(paths.len() >= least, "{}: {paths:?}", chart.label());
        side_by_side(paths, |path| {
            let place = path.join(".").replace("[]", "0");
            let plain = PLAIN
                .iter()
                .find_map(|plain| Some((*plain, rendered(&chart, &values_with(&path, plain)).ok()?)));
            let tails: Vec<String> = HOSTILE[..8]
                .iter()
                .map(|tail| format!("{}{tail}", plain.as_ref().map_or("", |plain| plain.0)))
                .collect();
            let texts: Vec<&str> = HOSTILE.iter().copied().chain(tails.iter().map(String::as_str)).collect();
            for text in some_or_all(&place, &texts, 9).into_iter().chain([large.as_str()]) {
                match (rendered(&chart, &values_with(&path, text)), &plain) {
                    (Ok(after), Some((plain, before))) => {
                        same_but_for(before, &after, plain, text, &place);
                        taken.fetch_add(1, Ordering::Relaxed);
                        large_ones.fetch_add(u64::from(text.len() > 1000), Ordering::Relaxed);
                    }
                    (Ok(_), None) => panic!("{place} takes {:?} and none of {PLAIN:?}", text.get(..20)),
                    // what stands in several places can be too much when it is a mebibyte
                    (Err(error), _) if text.len() > 1000 && error.contains("MiB") => {}
                    (Err(error), _) => {
                        assert!(error.contains(&format!("{place}: ")), "{place} with {:?}: {error}", text.get(..20));
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
    }
    let (taken, refused, large_ones) = (taken.into_inner(), refused.into_inner(), large_ones.into_inner());
    println!("{taken} texts in their places, {refused} refused by name, {large_ones} mebibytes");
    assert!(taken > 100 && refused > 150 && large_ones >= 4, "{taken} {refused} {large_ones}");
}

/// The maps whose keys are the user's.
pub fn open_maps(schema: &Value, whole: &Value, path: &[String], found: &mut Vec<(Vec<String>, Value)>) {
    let target = schema
        .get("$ref")
        .and_then(Value::as_str)
        .map_or(schema, |target| whole.pointer(&target[1..]).unwrap());
    let sample = match target.pointer("/additionalProperties/type") {
        Some(kind) if kind == "boolean" => json!(true),
        _ => json!("1"),
    };
    if target["additionalProperties"].is_object() || target["additionalProperties"] == true {
        found.push((path.to_vec(), sample));
    }
    for (name, inner) in target["properties"].as_object().into_iter().flatten() {
        let below: Vec<String> = path.iter().cloned().chain([name.clone()]).collect();
        open_maps(inner, whole, &below, found);
    }
}

#[test]
fn chart_value_hostile_key_stays_a_key() {
    let mut taken = 0;
    for chart in newest_charts() {
        let mut maps = Vec::new();
        open_maps(chart.schema(), chart.schema(), &[], &mut maps);
        let least = if is_on_request(&chart.metadata.name) { 0 } else { 3 };
        assert!(maps.len() >= least, "{}: {maps:?}", chart.label());
        for (path, sample) in maps {
            let with = |key: &str| {
                let inner = json!({key: sample});
                path.iter().rev().fold(inner, |value, name| json!({name: value}))
            };
            let place = path.join(".");
            let Ok(before) = rendered(&chart, &with("plainmark")) else {
                assert_eq!(place, "featureStates", "it takes no key of the user's");
                continue;
            };
            for key in some_or_all(&place, &HOSTILE, 8) {
                match rendered(&chart, &with(key)) {
                    Ok(after) => {
                        same_but_for(&before, &after, "plainmark", key, &place);
                        taken += 1;
                    }
                    Err(error) => assert!(error.contains(&place), "{place} with {key:?}: {error}"),
                }
            }
        }
    }
    assert!(taken >= 30, "only {taken}");
}
