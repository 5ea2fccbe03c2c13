// SPDX-License-Identifier: Apache-2.0
//! The fields that a patch writes: merge keys of lists, two patches that write the same field, and fields that no patch may write.
//! Items of lists are identified by their merge keys, so that two patches may each add one.

use crate::admission::below;
use serde_json::Value;
use std::fmt;
use vdo_api::api::{MANAGED_BY_LABEL, PART_OF_LABEL};

/// The merge keys of lists, as Kubernetes defines them for its own kinds: those that a chart of a driver may have. Every other list is
/// written as a whole. A place is one of [`below`].
const MERGE_KEYS: [(&str, &str); 15] = [
    ("MutatingWebhookConfiguration.webhooks", "name"),
    ("Service.spec.ports", "port"),
    ("ServiceAccount.imagePullSecrets", "name"),
    ("ServiceAccount.secrets", "name"),
    ("ValidatingWebhookConfiguration.webhooks", "name"),
    ("pod.containers", "name"),
    ("pod.containers[].env", "name"),
    ("pod.containers[].ports", "containerPort"),
    ("pod.containers[].volumeDevices", "devicePath"),
    ("pod.containers[].volumeMounts", "mountPath"),
    ("pod.hostAliases", "ip"),
    ("pod.imagePullSecrets", "name"),
    ("pod.resourceClaims", "name"),
    ("pod.topologySpreadConstraints", "topologyKey"),
    ("pod.volumes", "name"),
];

/// The key by which the items of the list at a place are known.
pub(super) fn merge_key(place: &str) -> Option<&'static str> {
    let found = MERGE_KEYS.iter().find(|(known, _)| *known == place);
    found.map(|(_, key)| *key)
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathStep {
    /// A key of a map.
    Field(String),
    /// An item of a list, by its key or, where it has none, by what it is.
    Item(String),
}

/// A field of an object, with the place by which its kind of content is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    steps: Vec<PathStep>,
    place: String,
}

impl Path {
    /// The whole object.
    pub fn of_kind(kind: &str) -> Self {
        Self {
            steps: Vec::new(),
            place: kind.to_owned(),
        }
    }

    pub fn field(&self, name: &str) -> Self {
        let place = below(&self.place, name);
        self.then(PathStep::Field(name.to_owned()), place)
    }

    pub fn item(&self, item: &Value) -> Self {
        let key = self.merge_key().and_then(|key| item.get(key));
        let name = match key.unwrap_or(item) {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.then(PathStep::Item(name), format!("{}[]", self.place))
    }

    fn then(&self, step: PathStep, place: String) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Self { steps, place }
    }

    /// The key by which the items of the list here are known.
    pub fn merge_key(&self) -> Option<&'static str> {
        merge_key(&self.place)
    }

    fn is_around(&self, other: &Self) -> bool {
        self.steps.len() < other.steps.len() && other.steps.starts_with(&self.steps)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            match step {
                PathStep::Field(name) if name.contains(['.', '/']) => write!(f, "[{name}]")?,
                PathStep::Field(name) if at == 0 => f.write_str(name)?,
                PathStep::Field(name) => write!(f, ".{name}")?,
                PathStep::Item(name) => write!(f, "[{name}]")?,
            }
        }
        Ok(())
    }
}

/// A field that a patch writes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Written {
    /// Which.
    pub path: Path,
    /// The value; `None` where the field is removed.
    pub value: Option<Value>,
}

/// Notes that a value is written, field by field.
pub(super) fn note(path: &Path, value: &Value, written: &mut Vec<Written>) {
    match value {
        Value::Object(map) if !map.is_empty() => map.iter().for_each(|(key, value)| note(&path.field(key), value, written)),
        Value::Array(items) if path.merge_key().is_some() && !items.is_empty() => {
            items.iter().for_each(|item| note(&path.item(item), item, written));
        }
        value => written.push(Written {
            path: path.clone(),
            value: Some(value.clone()),
        }),
    }
}

/// Notes that what was here is no longer, but for what is written to the same fields.
pub(super) fn note_removed(path: &Path, old: &Value, written: &mut Vec<Written>) {
    let mut gone = Vec::new();
    note(path, old, &mut gone);
    gone.retain(|old| !written.iter().any(|new| new.path == old.path || new.path.is_around(&old.path)));
    written.extend(gone.into_iter().map(|gone| Written { value: None, ..gone }));
}

/// The earlier patch that writes another value to a field that is written now, with the field. A map that stays empty takes nothing from
/// what another patch puts into it.
pub(super) fn collision(earlier: &[(usize, Written)], now: &[Written]) -> Option<(usize, Path)> {
    let is_empty = |written: &Written| matches!(&written.value, Some(Value::Object(map)) if map.is_empty());
    let collides = |old: &Written, new: &Written| {
        let around = |one: &Written, other: &Written| one.path.is_around(&other.path) && !is_empty(one) && other.value.is_some();
        (old.path == new.path && old.value != new.value) || around(old, new) || around(new, old)
    };
    now.iter().find_map(|new| {
        let (patch, _) = earlier.iter().find(|(_, old)| collides(old, new))?;
        Some((*patch, new.path.clone()))
    })
}

/// Why no patch may write a field: identity, ownership and what the API server writes.
pub(super) fn forbidden(path: &Path) -> Option<String> {
    let fields: Vec<&str> = path
        .steps
        .iter()
        .map(|step| match step {
            PathStep::Field(name) | PathStep::Item(name) => name.as_str(),
        })
        .collect();
    match fields.as_slice() {
        [] => return Some("no patch may replace the whole object".into()),
        [field @ ("apiVersion" | "kind" | "status"), ..] => return Some(format!("no patch may change {field}")),
        ["metadata"] => return Some("no patch may replace metadata".into()),
        ["metadata", field, ..] if !matches!(*field, "labels" | "annotations") => {
            return Some(format!("no patch may change metadata.{field}"));
        }
        _ => {}
    }
    let marked = fields
        .windows(2)
        .find(|pair| matches!(pair[0], "labels" | "annotations") && is_ours(pair[1]));
    marked.map(|pair| format!("{} is set only by the operator, and no patch may change it", pair[1]))
}

/// Whether a label or an annotation says whose an object is, or what was applied of it.
fn is_ours(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let ours = ["vdo.vmware.com", "applyset.kubernetes.io"];
    let named = [
        MANAGED_BY_LABEL,
        PART_OF_LABEL,
        "app.kubernetes.io/part-of",
        "app.kubernetes.io/version",
    ];
    named.contains(&key) || ours.iter().any(|own| domain == *own || domain.ends_with(&format!(".{own}")))
}
