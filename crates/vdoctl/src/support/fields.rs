// SPDX-License-Identifier: Apache-2.0
//! Filters objects and changed fields for a support bundle by the lists in `allow.rs`, and remembers the values that it leaves out.

use super::allow;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use vdo_api::types::{MASKED, is_shown_variable};
use vdo_core::drivers::KNOWN;
use vdo_core::manifest::{Difference, Object};

/// How a field is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// A word or a number as it is, and lists of these.
    Plain,
    /// With everything below.
    All,
    /// The known flags of a list of arguments.
    Arguments,
    /// The names of an environment, and the values of known ones.
    Environment,
    /// Known keys of labels.
    Labels,
    /// Known keys of annotations.
    Annotations,
    /// Known keys of the parameters of a StorageClass.
    Parameters,
    /// Keys, without values.
    Keys,
    /// Keys, with the sizes of values.
    Sizes,
    /// What is on, off, or a small number.
    Switches,
    /// Names of volumes of our drivers.
    Volumes,
    /// Names of drivers, and more of ours.
    Drivers,
}

impl How {
    fn of(word: &str) -> Self {
        match word {
            "all" => Self::All,
            "arguments" => Self::Arguments,
            "environment" => Self::Environment,
            "labels" => Self::Labels,
            "annotations" => Self::Annotations,
            "parameters" => Self::Parameters,
            "keys" => Self::Keys,
            "sizes" => Self::Sizes,
            "switches" => Self::Switches,
            "volumes" => Self::Volumes,
            "drivers" => Self::Drivers,
            _ => Self::Plain,
        }
    }
}

/// The fields below a place.
#[derive(Debug, Default)]
struct Fields {
    how: Option<How>,
    below: BTreeMap<&'static str, Self>,
}

impl Fields {
    fn add(&mut self, path: impl Iterator<Item = &'static str>, how: How) {
        let mut at = self;
        for step in path {
            at = at.below.entry(step).or_default();
        }
        at.how = Some(how);
    }

    fn list(&mut self, before: &'static str, list: &[&'static str]) {
        for entry in list {
            let (path, how) = entry.split_once('|').unwrap_or((entry, ""));
            self.add(
                before.split('.').chain(path.split('.')).filter(|step| !step.is_empty()),
                How::of(how),
            );
        }
    }
}

static KINDS: LazyLock<BTreeMap<&'static str, Fields>> = LazyLock::new(|| {
    let mut all: BTreeMap<&'static str, Fields> = BTreeMap::new();
    for (kind, list) in allow::OF_KINDS {
        let fields = all.entry(kind).or_default();
        fields.list("", allow::OF_ALL);
        fields.list("", list);
    }
    for (kind, before) in allow::PODS {
        let pods = all.entry(kind).or_default();
        let (spec, containers) = if before.is_empty() {
            ("spec", ["spec.containers", "spec.initContainers", "spec.ephemeralContainers"])
        } else {
            (
                "spec.template.spec",
                [
                    "spec.template.spec.containers",
                    "spec.template.spec.initContainers",
                    "spec.template.spec.ephemeralContainers",
                ],
            )
        };
        pods.list(spec, allow::OF_PODS);
        for list in containers {
            pods.list(list, allow::OF_CONTAINERS);
            for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
                for entry in allow::OF_PROBES {
                    let (path, how) = entry.split_once('|').unwrap_or((entry, ""));
                    pods.add(list.split('.').chain([probe]).chain(path.split('.')), How::of(how));
                }
            }
        }
    }
    all
});

/// Values that were not shown. They are looked for in everything else.
#[derive(Debug, Default)]
pub(super) struct Withheld {
    hidden: BTreeSet<String>,
    shown: BTreeSet<String>,
}

/// Shorter than this, a value is found in every other word.
const SHORTEST: usize = 6;

/// More than this are not looked for: a cluster may be full of annotations.
const MOST: usize = 5_000;

impl Withheld {
    /// What must not be shown anywhere: what was withheld in one place and is shown in no other.
    pub(super) fn values(self) -> Vec<String> {
        self.hidden.into_iter().filter(|value| !self.shown.contains(value)).collect()
    }

    fn hide(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.hide_text(text),
            Value::Array(items) => items.iter().for_each(|item| self.hide(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.hide(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn hide_text(&mut self, text: &str) {
        if self.hidden.len() < MOST && (SHORTEST..256).contains(&text.len()) {
            self.hidden.insert(text.to_owned());
        }
    }
}

/// Whether something of this object is shown at all. Volumes and what belongs to them are of our drivers only.
pub(super) fn is_included(object: &Object) -> bool {
    let ours = |pointer: &str| {
        KNOWN
            .iter()
            .any(|driver| driver.csi_driver.is_some_and(|name| object.text(pointer) == name))
    };
    match object.kind() {
        "PersistentVolume" => ours("/spec/csi/driver"),
        "VolumeAttachment" => ours("/spec/attacher"),
        "StorageClass" => ours("/provisioner"),
        _ => true,
    }
}

/// What may be shown of an object. What may not is remembered.
pub(super) fn shown(object: &Object, withheld: &mut Withheld) -> Value {
    match KINDS.get(object.kind()) {
        Some(fields) => show(fields, &object.masked(), withheld).unwrap_or_else(|| json!({})),
        None => {
            json!({"apiVersion": object.api_version(), "kind": object.kind(), "metadata": {"name": object.name(), "namespace": object.namespace()}})
        }
    }
}

/// A changed field of an object of this kind.
pub(super) fn difference(kind: &str, field: &Difference) -> Difference {
    Difference {
        path: field.path.clone(),
        wanted: value(kind, &field.path, &field.wanted),
        found: value(kind, &field.path, &field.found),
    }
}

/// The value at a place of an object of this kind, as far as it may be shown.
pub(super) fn value(kind: &str, path: &str, value: &Value) -> Value {
    let hidden = || if value.is_null() { Value::Null } else { MASKED.into() };
    let Some(mut fields) = KINDS.get(kind) else { return hidden() };
    let steps = steps(path);
    let mut rest = steps.iter();
    while fields.how.is_none() {
        let Some(step) = rest.next() else { break };
        match fields.below.get(step.as_str()) {
            Some(below) => fields = below,
            None => return hidden(),
        }
    }
    let rest: Vec<&str> = rest.map(String::as_str).collect();
    let unseen = &mut Withheld::default();
    let shown = match (fields.how, rest.as_slice()) {
        // One argument of a list is judged as one.
        (Some(How::Arguments), []) if value.is_string() => arguments(&json!(["", value]), unseen).pointer("/1").cloned(),
        (Some(How::Arguments | How::Environment | How::Volumes | How::Drivers), []) if !value.is_array() => None,
        (Some(How::Labels | How::Annotations | How::Parameters | How::Keys | How::Sizes), []) if !value.is_object() => None,
        (Some(How::All), _) | (_, []) => show(fields, value, unseen),
        (Some(How::Labels), [key]) if is_label(key) => Some(value.clone()),
        (Some(How::Annotations), [key]) if is_annotation(key) => Some(value.clone()),
        (Some(How::Parameters), [key]) if allow::PARAMETERS.contains(key) => Some(value.clone()),
        (Some(How::Switches), _) => show(fields, value, unseen),
        _ => None,
    };
    shown.unwrap_or_else(hidden)
}

/// The steps of a path such as `spec.containers[driver].env[NAME].value`, without the places in lists and the names of containers.
fn steps(path: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut inside = false;
    for c in path.chars() {
        match c {
            '[' => {
                inside = true;
                all.push(String::new());
            }
            ']' => inside = false,
            '.' if !inside => all.push(String::new()),
            c => {
                if let Some(last) = all.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    let is_list = |step: &String| matches!(step.as_str(), "containers" | "initContainers");
    let named: Vec<bool> = std::iter::once(false).chain(all.iter().map(is_list)).collect();
    let mut steps: Vec<(String, bool)> = all.into_iter().zip(named).collect();
    steps.retain(|(step, named)| !named && !step.is_empty() && !step.bytes().all(|byte| byte.is_ascii_digit()));
    steps.into_iter().map(|(step, _)| step).collect()
}

fn show(fields: &Fields, value: &Value, withheld: &mut Withheld) -> Option<Value> {
    if let Some(how) = fields.how {
        return Some(by(how, value, withheld));
    }
    match value {
        Value::Object(map) => {
            let mut all = Map::new();
            for (key, value) in map {
                match fields.below.get(key.as_str()) {
                    Some(below) => drop(show(below, value, withheld).map(|shown| all.insert(key.clone(), shown))),
                    None => withheld.hide(value),
                }
            }
            (!all.is_empty() || map.is_empty()).then_some(Value::Object(all))
        }
        Value::Array(items) => Some(items.iter().filter_map(|item| show(fields, item, withheld)).collect()),
        Value::Null => Some(Value::Null),
        other => {
            withheld.hide(other);
            Some(MASKED.into())
        }
    }
}

fn by(how: How, value: &Value, withheld: &mut Withheld) -> Value {
    match how {
        How::Plain => plain(value, withheld),
        How::All => all(value, withheld),
        How::Arguments => arguments(value, withheld),
        How::Environment => list(value, |item| variable(item, withheld)),
        How::Labels => keys(value, withheld, |key, _| is_label(key)),
        How::Annotations => keys(value, withheld, |key, _| is_annotation(key)),
        How::Parameters => keys(value, withheld, |key, _| allow::PARAMETERS.contains(&key)),
        How::Keys => map(value, |_| MASKED.into()),
        How::Sizes => map(value, |content| {
            format!("({} characters)", content.as_str().map_or(0, |text| text.chars().count())).into()
        }),
        How::Switches => switches(value, withheld),
        How::Volumes => volumes(value),
        How::Drivers => list(value, |item| driver(item, withheld)),
    }
}

fn plain(value: &Value, withheld: &mut Withheld) -> Value {
    match value {
        Value::Object(_) => {
            withheld.hide(value);
            MASKED.into()
        }
        Value::Array(items) => items.iter().map(|item| plain(item, withheld)).collect(),
        other => all(other, withheld),
    }
}

fn all(value: &Value, withheld: &mut Withheld) -> Value {
    match value {
        Value::String(text) if withheld.shown.len() < 20 * MOST && text.len() < 256 => drop(withheld.shown.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| drop(all(item, withheld))),
        Value::Object(fields) => fields.values().for_each(|field| drop(all(field, withheld))),
        _ => {}
    }
    value.clone()
}

fn list(value: &Value, of: impl FnMut(&Value) -> Value) -> Value {
    value.as_array().into_iter().flatten().map(of).collect()
}

fn map(value: &Value, of: impl Fn(&Value) -> Value) -> Value {
    let entries = value.as_object().into_iter().flatten();
    entries
        .map(|(key, content)| (key.clone(), of(content)))
        .collect::<Map<_, _>>()
        .into()
}

fn keys(value: &Value, withheld: &mut Withheld, may: impl Fn(&str, &Value) -> bool) -> Value {
    let mut shown = Map::new();
    for (key, content) in value.as_object().into_iter().flatten() {
        if may(key, content) {
            shown.insert(key.clone(), plain(content, withheld));
        } else {
            withheld.hide(content);
        }
    }
    shown.into()
}

/// The known flags of a list, with their values; a program, by its name alone.
fn arguments(value: &Value, withheld: &mut Withheld) -> Value {
    let mut first = true;
    let mut flag = false;
    list(value, |item| {
        let word = item.as_str().unwrap_or_default();
        let program = first && is_program(word);
        let shown = program || is_argument(word) || (flag && is_simple(word));
        flag = is_argument(word) && !word.contains('=');
        first = false;
        if shown {
            return plain(item, withheld);
        }
        withheld.hide_text(word);
        if let Some((_, value)) = word.split_once('=') {
            withheld.hide_text(value);
        }
        MASKED.into()
    })
}

/// Whether a word is the path of a program.
fn is_program(word: &str) -> bool {
    let name = |part: &str| {
        part.len() <= 40
            && part
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b'_'))
    };
    allow::PROGRAMS.contains(&word) || word.starts_with('/') && word.split('/').all(name) || word.ends_with(".exe") && name(word)
}

/// Whether a word is a known flag, alone or with its value.
fn is_argument(word: &str) -> bool {
    let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
    let name = name.map(|name| name.split_once('=').map_or(name, |(name, _)| name));
    name.is_some_and(|name| allow::ARGUMENTS.contains(&name))
}

/// Whether a word that follows a flag can only be a number, a duration or a switch.
fn is_simple(word: &str) -> bool {
    matches!(word, "true" | "false")
        || (word.len() <= 8
            && word.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
            && word
                .bytes()
                .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b's' | b'm' | b'h')))
}

/// A variable of an environment: its name, where its value comes from, and the value of a known one.
fn variable(item: &Value, withheld: &mut Withheld) -> Value {
    let name = item["name"].as_str().unwrap_or_default();
    let mut shown = json!({"name": name});
    if let Some(from) = item.get("valueFrom") {
        shown["valueFrom"] = all(from, withheld);
    }
    if let Some(value) = item.get("value") {
        shown["value"] = if is_shown_variable(name) {
            plain(value, withheld)
        } else {
            withheld.hide(value);
            MASKED.into()
        };
    }
    shown
}

/// Switches and small numbers anywhere below; the names of all values.
fn switches(value: &Value, withheld: &mut Withheld) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), switches(value, withheld)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(|item| switches(item, withheld)).collect(),
        Value::Null | Value::Bool(_) => value.clone(),
        Value::Number(number) if number.as_i64().is_some_and(|number| (0..1000).contains(&number)) => value.clone(),
        other => {
            withheld.hide(other);
            MASKED.into()
        }
    }
}

/// Names of volumes, and of volumes that are attached.
fn volumes(value: &Value) -> Value {
    let ours = |name: &str| {
        KNOWN
            .iter()
            .filter_map(|driver| driver.csi_driver)
            .any(|driver| name.contains(driver))
    };
    let items = value.as_array().into_iter().flatten();
    items
        .filter(|item| item.as_str().or_else(|| item["name"].as_str()).is_some_and(ours))
        .map(|item| {
            if item.is_string() {
                item.clone()
            } else {
                json!({"name": item["name"]})
            }
        })
        .collect()
}

/// A driver of a node.
fn driver(item: &Value, withheld: &mut Withheld) -> Value {
    let ours = KNOWN
        .iter()
        .filter_map(|driver| driver.csi_driver)
        .any(|name| item["name"] == *name);
    if ours { all(item, withheld) } else { json!({"name": item["name"]}) }
}

fn is_label(key: &str) -> bool {
    allow::LABELS.contains(&key) || key.starts_with(allow::LABELS_OF_TOPOLOGY) || is_own(key)
}

fn is_annotation(key: &str) -> bool {
    allow::ANNOTATIONS.contains(&key) || is_own(key)
}

/// Whether a key is one of this project: a known name behind its domain, or the name of a driver behind the one for revisions.
fn is_own(key: &str) -> bool {
    key.split_once('/').is_some_and(|(domain, name)| {
        (domain == vdo_api::api::GROUP || domain.ends_with(".vdo.vmware.com"))
            && (allow::OURS.contains(&name) || domain == vdo_api::api::REVISION_PREFIX.trim_end_matches('/'))
    })
}

#[cfg(test)]
mod tests;
