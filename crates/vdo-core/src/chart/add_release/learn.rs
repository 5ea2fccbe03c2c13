// SPDX-License-Identifier: Apache-2.0
//! Finds the images and switches of a release with which a chart renders the given manifests.
//!
//! A release is data and a render is a function of it, so a switch is learnt by rendering it with a marker and reading the value that the
//! manifests have at the place of the marker.

use super::super::opened_chart::Chart;
use super::super::release::ImageSource;
use super::super::render::render;
use super::super::schema_errors::resolved;
use super::super::{Context, document};
use super::distance::distance;
use crate::manifest::pointer::escaped;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use vdo_api::types::ObjectId;

const MARKER: &str = "vdo-marker.invalid";
const NUMBER: i64 = 987_654_321;

/// Changes a release until its render is as near to the manifests as images and switches bring it. `known` are other releases of the
/// chart: what a switch was once it may be again.
pub(super) fn learn(chart: &Chart, start: Value, values: &Value, objects: &[Value], known: &[Value]) -> Value {
    let learner = Learner {
        chart,
        values,
        original: by_id(objects.to_vec()),
    };
    let mut release = learner.images(start);
    let schema = chart.release_schema.clone().unwrap_or_default();
    let mut switches = Vec::new();
    collect(&schema, &schema, &mut Vec::new(), &mut switches);
    let mut left = learner.distance(&release);
    while left > 0 {
        let all = switches.iter().flat_map(|(path, schema)| {
            let mut candidates = learner.learnt(&release, path, schema);
            candidates.extend(known.iter().filter_map(|release| release.pointer(path).cloned()));
            let now = release.pointer(path);
            let mut tried: Vec<Value> = Vec::new();
            candidates.retain(|value| {
                Some(value) != now && !tried.contains(value) && {
                    tried.push(value.clone());
                    true
                }
            });
            candidates
                .into_iter()
                .map(|value| with(&release, path, value))
                .collect::<Vec<Value>>()
        });
        let best = all
            .map(|release| (learner.distance(&release), release))
            .min_by_key(|(distance, _)| *distance);
        match best {
            Some((distance, better)) if distance < left => (left, release) = (distance, better),
            _ => break,
        }
    }
    release
}

/// The switches that a schema describes, as JSON pointers: what is below an open map is not one.
fn collect(schema: &Value, whole: &Value, path: &mut Vec<String>, found: &mut Vec<(String, Value)>) {
    for (key, inner) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if path.is_empty() && ["version", "date", "upstream", "images"].contains(&key.as_str()) {
            continue;
        }
        let inner = resolved(inner, whole);
        path.push(escaped(key));
        if inner.get("properties").is_some() {
            collect(inner, whole, path, found);
        } else {
            found.push((format!("/{}", path.join("/")), inner.clone()));
        }
        path.pop();
    }
}

fn with(release: &Value, path: &str, value: Value) -> Value {
    let mut release = release.clone();
    if let Some(at) = release.pointer_mut(path) {
        *at = value;
    }
    release
}

struct Learner<'a> {
    chart: &'a Chart,
    values: &'a Value,
    original: BTreeMap<ObjectId, Value>,
}

/// A step into a value. An item of a list is found again by its name, where it has one.
#[derive(Clone)]
enum Step {
    Key(String),
    Item(usize, Option<String>),
}

impl Learner<'_> {
    fn render(&self, release: &Value) -> Option<BTreeMap<ObjectId, Value>> {
        let mut chart = self.chart.clone();
        chart.release = serde_json::from_value(release.clone()).ok()?;
        chart.release_data = release.clone();
        render(&chart, self.values, &Context::default()).ok().map(by_id)
    }

    fn distance(&self, release: &Value) -> usize {
        let Some(rendered) = self.render(release) else { return usize::MAX };
        let shared = self.original.iter().filter_map(|(id, object)| Some((object, rendered.get(id)?)));
        let missing = self.original.keys().filter(|id| !rendered.contains_key(*id)).count();
        let added = rendered.keys().filter(|id| !self.original.contains_key(*id)).count();
        shared.map(|(original, rendered)| distance(original, rendered)).sum::<usize>() + (missing + added) * 100
    }

    /// Every place of a render, with the same place of the manifests.
    fn places(&self, rendered: &BTreeMap<ObjectId, Value>, mut visit: impl FnMut(&Value, OriginalField<'_>)) {
        for (id, object) in rendered {
            if let Some(original) = self.original.get(id) {
                walk(object, &mut Vec::new(), &mut |value, path| {
                    visit(value, OriginalField { original, path })
                });
            }
        }
    }

    /// The images as the manifests name them, each where the release uses it.
    fn images(&self, release: Value) -> Value {
        let Some(images) = release.get("images").and_then(Value::as_object).cloned() else {
            return release;
        };
        let mut marked = release.clone();
        for name in images.keys() {
            marked["images"][name] = json!({"registry": MARKER, "repository": name, "tag": "0"});
        }
        let mut found: BTreeMap<String, String> = BTreeMap::new();
        self.places(&self.render(&marked).unwrap_or_default(), |value, place| {
            let name = value
                .as_str()
                .and_then(|text| text.strip_prefix(MARKER)?.strip_prefix('/')?.strip_suffix(":0"));
            if let Some((name, reference)) = name.zip(place.value().and_then(Value::as_str)) {
                found.entry(name.to_owned()).or_insert_with(|| reference.to_owned());
            }
        });
        let mut release = release;
        for (name, reference) in found {
            let reference = self.with_version(reference, &images[&name], &release);
            let is = |image: &Value| serde_json::from_value::<ImageSource>(image.clone()).is_ok_and(|image| image.reference() == reference);
            if !images.get(&name).is_some_and(is) {
                release["images"][&name] = ImageSource::parse(&reference).to_value();
            }
        }
        release
    }

    /// The reference of an image. Where the manifests say `latest`, which is not a version, the tag is that of the release before, with the new
    /// version in the place of the old one.
    fn with_version(&self, reference: String, before: &Value, release: &Value) -> String {
        let mut image = ImageSource::parse(&reference);
        let (old, new) = (
            self.chart.release.version.to_string(),
            release["version"].as_str().unwrap_or_default(),
        );
        match before["tag"].as_str() {
            Some(tag) if image.tag == "latest" && tag.contains(&old) => {
                image.tag = tag.replace(&old, new);
                image.reference()
            }
            _ => reference,
        }
    }

    /// What a switch may be by what the manifests have in its places.
    fn learnt(&self, release: &Value, path: &str, schema: &Value) -> Vec<Value> {
        let shapes: Vec<&Value> = match schema.get("anyOf").and_then(Value::as_array) {
            Some(all) => all.iter().collect(),
            None => vec![schema],
        };
        let render = |value: Value| self.render(&with(release, path, value)).unwrap_or_default();
        let mut found = Vec::new();
        for shape in shapes {
            found.extend(shape.get("enum").and_then(Value::as_array).into_iter().flatten().cloned());
            let types: Vec<&str> = match shape.get("type") {
                Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
                Some(one) => one.as_str().into_iter().collect(),
                None => Vec::new(),
            };
            for kind in types {
                match kind {
                    "null" => found.push(Value::Null),
                    "boolean" => found.extend([true.into(), false.into()]),
                    "string" => found.extend(self.text(&render(MARKER.into()), MARKER).map(Value::from)),
                    "integer" => found.extend(self.number(&render(NUMBER.into()))),
                    "array" => {
                        let rendered = render(json!([MARKER]));
                        found.extend(self.list(&rendered));
                        found.extend(self.list_of_parts(&rendered));
                    }
                    "object" if shape.get("properties").is_some() => found.extend(self.map(shape, &render)),
                    "object" => {
                        let current = release.pointer(path).and_then(Value::as_object).cloned().unwrap_or_default();
                        let is_bool = shape.pointer("/additionalProperties/type") == Some(&"boolean".into());
                        let mut marked = current.clone();
                        marked.insert(MARKER.to_owned(), if is_bool { true.into() } else { MARKER.into() });
                        found.extend(self.open_map(&current, is_bool, &render(marked.into())));
                    }
                    _ => {}
                }
            }
        }
        found
    }

    /// The text where the marker came out, without what stands around it.
    fn text(&self, rendered: &BTreeMap<ObjectId, Value>, marker: &str) -> Option<String> {
        let mut found = None;
        self.places(rendered, |value, place| {
            if let Some((prefix, suffix)) = value.as_str().and_then(|text| text.split_once(marker)) {
                let inner = |value: &Value| Some(value.as_str()?.strip_prefix(prefix)?.strip_suffix(suffix)?.to_owned());
                found = found.take().or_else(|| place.candidates().into_iter().find_map(inner));
            }
        });
        found
    }

    fn number(&self, rendered: &BTreeMap<ObjectId, Value>) -> Option<Value> {
        let mut found = None;
        self.places(rendered, |value, place| {
            if value.as_i64() == Some(NUMBER) {
                found = found.take().or_else(|| place.value().filter(|value| value.is_i64()).cloned());
            }
        });
        let text = || self.text(rendered, &NUMBER.to_string())?.parse::<i64>().ok().map(Value::from);
        found.or_else(text)
    }

    /// What a list of the manifests has besides what the chart writes into it anyway.
    fn list(&self, rendered: &BTreeMap<ObjectId, Value>) -> Option<Value> {
        let mut found = None;
        self.places(rendered, |value, place| {
            let items = value.as_array().filter(|items| items.contains(&MARKER.into()));
            if let Some((items, original)) = items.zip(place.value().and_then(Value::as_array)) {
                let own: Vec<Value> = original
                    .iter()
                    .filter(|item| item.is_string() && !items.contains(item))
                    .cloned()
                    .collect();
                found = found.take().or(Some(own.into()));
            }
        });
        found
    }

    /// A list of which each item becomes an item of a list of objects: the same part of each of these.
    fn list_of_parts(&self, rendered: &BTreeMap<ObjectId, Value>) -> Option<Value> {
        let mut found = None;
        self.places(rendered, |value, place| {
            let Some((prefix, suffix)) = value.as_str().and_then(|text| text.split_once(MARKER)) else {
                return;
            };
            let inner = |value: &Value| Some(Value::from(value.as_str()?.strip_prefix(prefix)?.strip_suffix(suffix)?));
            // the outermost list in which every item has such a part
            let lists = place
                .path
                .iter()
                .enumerate()
                .filter(|(_, step)| matches!(step, Step::Item(_, None)));
            for (depth, _) in lists {
                let Some(items) = at(place.original, &place.path[..depth]).and_then(Value::as_array) else {
                    continue;
                };
                let parts = items.iter().map(|item| inner(at(item, &place.path[depth + 1..])?));
                let parts: Option<Vec<Value>> = parts.collect();
                if let Some(parts) = parts.filter(|parts| !parts.is_empty() && depth + 1 < place.path.len()) {
                    found = found.take().or(Some(parts.into()));
                }
            }
        });
        found
    }

    /// A map of texts that appear in several places.
    fn map(&self, shape: &Value, render: &impl Fn(Value) -> BTreeMap<ObjectId, Value>) -> Option<Value> {
        let keys: Vec<&String> = shape.get("properties")?.as_object()?.keys().collect();
        let marker = |at: usize| format!("{MARKER}-{at}-");
        let marked: Map<String, Value> = keys
            .iter()
            .enumerate()
            .map(|(at, key)| ((*key).clone(), marker(at).into()))
            .collect();
        let rendered = render(marked.into());
        let learnt = keys
            .iter()
            .enumerate()
            .map(|(at, key)| Some(((*key).clone(), self.text(&rendered, &marker(at))?.into())));
        learnt.collect::<Option<Map<String, Value>>>().map(Value::from)
    }

    /// The entries of a map of the manifests, without those that the chart writes anyway.
    fn open_map(&self, current: &Map<String, Value>, is_bool: bool, rendered: &BTreeMap<ObjectId, Value>) -> Option<Value> {
        let mut found = None;
        self.places(rendered, |value, place| {
            let fields = value.as_object().filter(|fields| fields.contains_key(MARKER));
            if let Some((fields, original)) = fields.zip(place.value().and_then(Value::as_object)) {
                let own = original
                    .iter()
                    .filter(|(key, _)| current.contains_key(*key) || !fields.contains_key(*key));
                let typed = |value: &Value| match value {
                    Value::String(text) if is_bool => text.parse::<bool>().ok().map(Value::from),
                    Value::String(_) => Some(value.clone()),
                    Value::Bool(_) if is_bool => Some(value.clone()),
                    _ => None,
                };
                let own: Option<Map<String, Value>> = own.map(|(key, value)| Some((key.clone(), typed(value)?))).collect();
                found = found.take().or(own.map(Value::from));
            }
        });
        found
    }
}

/// A place of the manifests that corresponds to one of a render.
struct OriginalField<'a> {
    original: &'a Value,
    path: &'a [Step],
}

impl OriginalField<'_> {
    fn value(&self) -> Option<&Value> {
        at(self.original, self.path)
    }

    /// The value; of an item without a name every item of its list, because the places of flags shift.
    fn candidates(&self) -> Vec<&Value> {
        match self.path.split_last() {
            Some((Step::Item(_, None), list)) => at(self.original, list).and_then(Value::as_array).into_iter().flatten().collect(),
            _ => self.value().into_iter().collect(),
        }
    }
}

fn at<'a>(value: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Item(_, Some(name)) => value
            .as_array()?
            .iter()
            .find(|item| item.get("name").and_then(Value::as_str) == Some(name)),
        Step::Item(index, None) => value.get(index),
    })
}

fn walk(value: &Value, path: &mut Vec<Step>, visit: &mut impl FnMut(&Value, &[Step])) {
    visit(value, path);
    let mut below = |step: Step, value: &Value| {
        path.push(step);
        walk(value, path, visit);
        path.pop();
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| below(Step::Key(key.clone()), value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| {
            // a name that is being learnt finds nothing
            let name = item.get("name").and_then(Value::as_str).filter(|name| !name.contains(MARKER));
            below(Step::Item(index, name.map(ToOwned::to_owned)), item);
        }),
        _ => {}
    }
}

fn by_id(objects: Vec<Value>) -> BTreeMap<ObjectId, Value> {
    objects
        .into_iter()
        .filter_map(|object| Some((document::object_id(&object).ok()?, object)))
        .collect()
}
