// SPDX-License-Identifier: Apache-2.0
//! `vdoctl chart compare`: compares rendered objects with the driver's own manifest, field by field, and applies `deviations.yaml`.
//!
//! Every difference is either in the chart's `deviations.yaml` with a reason, or a mistake; every deviation listed there must still
//! exist. That keeps a chart honest about what it changes.

use super::document::{DocumentError, object_id};
use crate::manifest::pointer::escaped;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use vdo_api::types::{DriverVersion, ObjectId};

/// The kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Only the original has the object or field.
    Absent,
    /// Only the chart has the object or field.
    Added,
    /// The original and the chart have the object or field with different content.
    Changed,
}

/// One place where the chart and the original differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The object.
    pub object: ObjectId,
    /// A JSON pointer into it; empty for the whole object.
    pub path: String,
    /// What kind of difference it is.
    pub kind: Kind,
    /// What the original has there.
    pub original: Option<Value>,
    /// What the chart renders there.
    pub rendered: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), Value::to_string);
        let whole = match self.kind {
            Kind::Absent => "only the original has this object",
            Kind::Added => "only the chart has this object",
            Kind::Changed => "the object differs",
        };
        match self.path.as_str() {
            "" => write!(f, "{}: {whole}", self.object),
            path => write!(
                f,
                "{}: {path}: the original has {}, the chart has {}",
                self.object,
                show(&self.original),
                show(&self.rendered)
            ),
        }
    }
}

/// A difference that is intended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deviation {
    /// The object.
    pub object: ObjectId,
    /// A JSON pointer into it; empty for the whole object.
    #[serde(default)]
    pub path: String,
    /// What kind of difference it is.
    pub kind: Kind,
    /// What the original has there, where the path names a place that the original has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Value>,
    /// Why it is intended.
    pub reason: String,
    /// The versions of the driver that have it; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<DriverVersion>,
    /// A value of the chart, as `webhook.enabled`, without which the difference is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

impl Deviation {
    /// Whether this is the deviation that a difference was listed as.
    #[must_use]
    pub fn intends(&self, difference: &Difference) -> bool {
        self.object == difference.object && self.path == difference.path && self.kind == difference.kind
    }

    fn applies(&self, version: &DriverVersion, values: &Value) -> bool {
        let is_on = |path: &String| values.pointer(&format!("/{}", path.replace('.', "/"))) == Some(&Value::Bool(true));
        (self.versions.is_empty() || self.versions.contains(version)) && self.when.as_ref().is_none_or(is_on)
    }
}

/// The deviations of a chart that one version has with these values, defaults included.
#[must_use]
pub fn applicable(deviations: &[Deviation], version: &DriverVersion, values: &Value) -> Vec<Deviation> {
    deviations.iter().filter(|d| d.applies(version, values)).cloned().collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Deviations {
    pub(super) deviations: Vec<Deviation>,
}

/// What remains after the intended differences are taken away.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Judgement {
    /// Differences that are not listed.
    pub unexpected: Vec<Difference>,
    /// Listed deviations that do not exist.
    pub stale: Vec<Deviation>,
}

/// All differences between two lists of objects. The order of objects and of map keys does not matter, the order of lists does.
///
/// # Errors
/// When a document of either side is not a Kubernetes object.
pub fn compare(original: &[Value], rendered: &[Value]) -> Result<Vec<Difference>, DocumentError> {
    let (original, rendered) = (by_id(original)?, by_id(rendered)?);
    let mut found = Vec::new();
    for (id, object) in &original {
        match rendered.get(id) {
            Some(ours) => walk(id, String::new(), object, ours, &mut found),
            None => found.push(difference(id, String::new(), Some(object), None)),
        }
    }
    let added = rendered.iter().filter(|(id, _)| !original.contains_key(*id));
    found.extend(added.map(|(id, object)| difference(id, String::new(), None, Some(object))));
    Ok(found)
}

/// Separates mistakes from intentions.
#[must_use]
pub fn judge(differences: &[Difference], deviations: &[Deviation]) -> Judgement {
    Judgement {
        unexpected: differences
            .iter()
            .filter(|difference| !deviations.iter().any(|deviation| deviation.intends(difference)))
            .cloned()
            .collect(),
        stale: deviations
            .iter()
            .filter(|deviation| !differences.iter().any(|difference| deviation.intends(difference)))
            .cloned()
            .collect(),
    }
}

fn by_id(objects: &[Value]) -> Result<BTreeMap<ObjectId, &Value>, DocumentError> {
    objects.iter().map(|object| Ok((object_id(object)?, object))).collect()
}

fn walk(id: &ObjectId, path: String, original: &Value, rendered: &Value, found: &mut Vec<Difference>) {
    match (original, rendered) {
        (Value::Object(left), Value::Object(right)) => {
            for (key, value) in left {
                let path = format!("{path}/{}", escaped(key));
                match right.get(key) {
                    Some(ours) => walk(id, path, value, ours, found),
                    None => found.push(difference(id, path, Some(value), None)),
                }
            }
            for (key, value) in right.iter().filter(|(key, _)| !left.contains_key(*key)) {
                let path = format!("{path}/{}", escaped(key));
                found.push(difference(id, path, None, Some(value)));
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() && left.iter().all(|v| !is_scalar(v)) => {
            for (index, (theirs, ours)) in left.iter().zip(right).enumerate() {
                walk(id, format!("{path}/{index}"), theirs, ours, found);
            }
        }
        _ if original == rendered => {}
        _ => found.push(difference(id, path, Some(original), Some(rendered))),
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

fn difference(id: &ObjectId, path: String, original: Option<&Value>, rendered: Option<&Value>) -> Difference {
    Difference {
        object: id.clone(),
        path,
        kind: match (original, rendered) {
            (Some(_), None) => Kind::Absent,
            (None, _) => Kind::Added,
            (Some(_), Some(_)) => Kind::Changed,
        },
        original: original.cloned(),
        rendered: rendered.cloned(),
    }
}
