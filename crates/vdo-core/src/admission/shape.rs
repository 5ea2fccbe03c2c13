// SPDX-License-Identifier: Apache-2.0
//! The allow list of one object (`Shape`): learns permitted values from rendered objects, and finds the first value that is not permitted.

use super::field_rules::{Rule, below, fields, rule};
use crate::chart::{ANYTHING, MARK, Number};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use vdo_api::types::from_json;

/// A text with a part that the user writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Text {
    pub before: String,
    pub after: String,
}

/// The values that are allowed at one place of an object: the union of all that were seen there.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    /// Whatever.
    pub any: bool,
    /// How often a value was seen here.
    seen: usize,
    /// Numbers, texts and truth values, as JSON.
    pub words: BTreeSet<String>,
    pub texts: BTreeSet<Text>,
    /// The lowest and the highest number.
    pub range: Option<(i64, i64)>,
    /// How often a map was seen here.
    pub maps: usize,
    pub fields: BTreeMap<String, Shape>,
    /// Fields that need not be there, because nothing depends on them.
    optional: BTreeSet<String>,
    /// The values under keys of the user's choice.
    pub more: Option<Box<Shape>>,
    /// How often a list was seen here.
    pub lists: usize,
    pub named: BTreeMap<String, Shape>,
    /// Items that are not known by their names.
    pub items: Option<Box<Shape>>,
}

/// How the values of users are recognised.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Marks<'a> {
    /// Longer ones first.
    pub words: &'a [String],
    pub digits: &'a [String],
    pub numbers: &'a [Number],
    /// What leads to something else in the cluster is not the user's to choose.
    pub pinned: bool,
}

impl Marks<'_> {
    /// The parts of a text around what a user writes there.
    pub fn find(&self, text: &str) -> Option<Text> {
        // Of a thousand texts in a chart a few are a user's.
        let words = if text.contains(MARK) { self.words } else { &[] };
        let word = words.iter().chain(self.digits).find_map(|word| text.split_once(word.as_str()));
        let (before, after) = word.or_else(|| self.find_number(text))?;
        let (before, after) = (before.to_owned(), after.to_owned());
        Some(Text { before, after })
    }

    /// The parts of a text around the first number, digits and all, that stands for another one.
    fn find_number<'a>(&self, text: &'a str) -> Option<(&'a str, &'a str)> {
        let mut rest = 0;
        while let Some(start) = text[rest..].find(|c: char| c.is_ascii_digit()).map(|at| rest + at) {
            let end = text[start..]
                .find(|c: char| !c.is_ascii_digit())
                .map_or(text.len(), |at| start + at);
            let number = text[start..end].parse::<i64>();
            if self.numbers.iter().any(|mark| number == Ok(mark.word)) {
                return Some((&text[..start], &text[end..]));
            }
            rest = end;
        }
        None
    }
}

impl Shape {
    /// Whatever is there.
    pub fn anything() -> Self {
        Self {
            any: true,
            ..Self::default()
        }
    }

    /// Adds a value that is allowed at a place.
    pub fn learn(&mut self, value: &Value, place: &str, marks: Marks<'_>) {
        self.seen += 1;
        self.add(value, place, marks);
    }

    fn add(&mut self, value: &Value, place: &str, marks: Marks<'_>) {
        match value {
            _ if self.any => {}
            Value::Object(map) => self.add_map(map, place, marks),
            Value::Array(items) => {
                self.lists += 1;
                items.iter().for_each(|item| self.add_item(item, place, marks));
            }
            Value::String(text) => match marks.find(text) {
                Some(_) if marks.pinned => {}
                Some(text) => drop(self.texts.insert(text)),
                None => drop(self.words.insert(value.to_string())),
            },
            Value::Number(number) => {
                let mark = marks.numbers.iter().find(|mark| Some(mark.word) == number.as_i64());
                match mark {
                    Some(_) if marks.pinned => {}
                    Some(mark) => self.range = Some(wider(self.range, (mark.lowest, mark.highest))),
                    None => drop(self.words.insert(value.to_string())),
                }
            }
            Value::Bool(_) | Value::Null => drop(self.words.insert(value.to_string())),
        }
    }

    fn add_map(&mut self, map: &Map<String, Value>, place: &str, marks: Marks<'_>) {
        if map.values().any(|value| value == ANYTHING) && !marks.pinned {
            *self = Self::anything();
            return;
        }
        self.maps += 1;
        for (field, filled) in fields(place) {
            match filled {
                Rule::Free => {
                    self.fields.insert(field.to_owned(), Self::anything());
                    self.optional.insert(field.to_owned());
                }
                Rule::Filled(values) if !map.contains_key(field) => {
                    let shape = self.fields.entry(field.to_owned()).or_default();
                    for value in values {
                        let value: Value = from_json(value).unwrap_or_default();
                        shape.add(&value, &below(place, field), Marks::default());
                    }
                }
                // The API server stores no empty text.
                Rule::Filled(values) if map[field] == "" && values.contains(&"\"\"") => drop(self.optional.insert(field.to_owned())),
                Rule::Filled(_) | Rule::Charts | Rule::Named | Rule::Pinned | Rule::Never => {}
            }
        }
        for (field, value) in map {
            let judged = rule(place, field);
            let marks = Marks {
                pinned: marks.pinned || judged == Rule::Pinned,
                ..marks
            };
            let place = below(place, field);
            if judged == Rule::Never {
                continue;
            }
            if marks.find(field).is_some() {
                self.more.get_or_insert_default().learn(value, &place, marks);
            } else {
                self.fields.entry(field.clone()).or_default().learn(value, &place, marks);
            }
        }
        self.fill_copies(map, place);
    }

    /// What the API server copies from another field: a port of a Service without a target leads to the port of that number, and the account
    /// of pods has an older name.
    fn fill_copies(&mut self, map: &Map<String, Value>, place: &str) {
        let (from, to) = match place {
            "Service.spec.ports[]" => ("port", "targetPort"),
            "pod" => ("serviceAccountName", "serviceAccount"),
            _ => return,
        };
        if let (Some(value), None) = (map.get(from), map.get(to)) {
            self.fields.entry(to.to_owned()).or_default().add(value, "", Marks::default());
        }
    }

    fn add_item(&mut self, item: &Value, place: &str, marks: Marks<'_>) {
        let inner = format!("{place}[]");
        let name = item.get("name").and_then(Value::as_str).filter(|_| is_named(place));
        match name.filter(|name| marks.find(name).is_none()) {
            Some(name) => self.named.entry(name.to_owned()).or_default().learn(item, &inner, marks),
            None => self.items.get_or_insert_default().learn(item, &inner, marks),
        }
    }

    /// The fields that are in every map that was seen here. A user can take away what a user can fill, with `null`.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        let always = |field: &str, shape: &Self| shape.seen == self.maps && !self.optional.contains(field) && !shape.is_of_users();
        let fields = self.fields.iter().filter(move |(field, shape)| always(field, shape));
        fields.map(|(field, _)| field.as_str())
    }

    /// Whether a user's value is here or below.
    fn is_of_users(&self) -> bool {
        let here = self.any || !self.texts.is_empty() || self.range.is_some() || self.more.is_some();
        here || self.fields.values().chain(self.named.values()).any(Self::is_of_users)
            || self.items.as_deref().is_some_and(Self::is_of_users)
    }

    /// Whether a value is allowed.
    ///
    /// # Errors
    /// With the place of the first that is not, below `path`.
    pub fn check(&self, value: &Value, path: &str) -> Result<(), Violation> {
        let refuse = |path: &str, why: String| {
            let path = path.trim_start_matches('.').to_owned();
            Err(Violation { path, why })
        };
        match value {
            _ if self.any => Ok(()),
            Value::Object(map) if self.maps > 0 => {
                for (field, value) in map {
                    let path = format!("{path}.{field}");
                    let known = self.fields.get(field).map(|shape| shape.check(value, &path));
                    let other = || self.more.as_ref().map(|shape| shape.check(value, &path));
                    match known {
                        Some(Ok(())) => {}
                        Some(Err(why)) => other().filter(Result::is_ok).unwrap_or(Err(why))?,
                        None => match other() {
                            Some(result) => result?,
                            None => return refuse(&path, "no chart has this field".into()),
                        },
                    }
                }
                match self.required().find(|field| !map.contains_key(*field)) {
                    Some(field) => refuse(&format!("{path}.{field}"), "the field is missing, and every chart has it".into()),
                    None => Ok(()),
                }
            }
            Value::Array(items) if self.lists > 0 => items.iter().enumerate().try_for_each(|(at, item)| self.check_item(item, at, path)),
            Value::String(text) if self.texts.iter().any(|one| one.fits(text)) => Ok(()),
            Value::Number(number)
                if self
                    .range
                    .zip(number.as_i64())
                    .is_some_and(|((low, high), n)| (low..=high).contains(&n)) =>
            {
                Ok(())
            }
            scalar if self.words.contains(&scalar.to_string()) => Ok(()),
            Value::Object(_) => refuse(path, "no chart has a map in this field".into()),
            Value::Array(_) => refuse(path, "no chart has a list in this field".into()),
            scalar => refuse(path, format!("no chart has the value {scalar} in this field")),
        }
    }

    fn check_item(&self, item: &Value, at: usize, path: &str) -> Result<(), Violation> {
        let name = item.get("name").and_then(Value::as_str);
        let path = match name {
            Some(name) => format!("{path}[{name}]"),
            None => format!("{path}[{at}]"),
        };
        let known = name.and_then(|name| self.named.get(name)).map(|shape| shape.check(item, &path));
        let other = || self.items.as_ref().map(|shape| shape.check(item, &path));
        match known {
            Some(Ok(())) => Ok(()),
            Some(Err(why)) => other().filter(Result::is_ok).unwrap_or(Err(why)),
            None => other().unwrap_or_else(|| {
                let path = path.trim_start_matches('.').to_owned();
                let why = "no chart has this item".to_owned();
                Err(Violation { path, why })
            }),
        }
    }
}

impl Text {
    pub fn fits(&self, text: &str) -> bool {
        let long = text.len() >= self.before.len() + self.after.len();
        long && text.starts_with(&self.before) && text.ends_with(&self.after)
    }
}

fn wider(known: Option<(i64, i64)>, more: (i64, i64)) -> (i64, i64) {
    known.map_or(more, |known| (known.0.min(more.0), known.1.max(more.1)))
}

/// Whether the items of a list are known by their names.
fn is_named(place: &str) -> bool {
    let (above, field) = place.rsplit_once('.').unwrap_or(("", place));
    rule(above, field) == Rule::Named
}

/// A value that no chart has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Its place in the object, such as `spec.template.spec.containers[csi-attacher].args[0]`.
    pub path: String,
    /// What is wrong there.
    pub why: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}
