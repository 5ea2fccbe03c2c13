// SPDX-License-Identifier: Apache-2.0
//! Reads the JSON or YAML text of an index version by version, with limits on its size; counts unknown fields.
//!
//! Only one version at a time is in memory in the form of the file, and versions with equal facts share these facts.

use super::index::{Entry, Facts};
use super::parse::{IndexError, entry, place, typed};
use super::schema;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::mem;
use std::sync::Arc;
use vdo_api::types::DriverName;
use vdo_api::yaml;

/// Values of one version. The largest of today has 109.
const ENTRY: usize = 5_000;
/// Values of everything beside the versions: sources, preconditions, builds.
const REST: usize = 100_000;
/// Values of the whole: 5,000 versions have 320,000.
const WHOLE: usize = 600_000;

/// Letters of the name of an unknown field that are shown.
const LONGEST_NAME: usize = 100;

/// An index as it was read.
pub(super) struct Document {
    /// Everything but the versions.
    pub top: Value,
    /// The versions by driver, in the order of the text.
    pub entries: BTreeMap<DriverName, Vec<Entry>>,
    /// Fields that are not known, as messages name them; one more than [`schema::MAX_UNKNOWN`] where there are too many.
    pub unknown: Vec<String>,
    /// The first version that is wrong.
    pub wrong: Option<IndexError>,
}

/// Reads a text.
///
/// # Errors
/// When it is neither JSON nor YAML, or has more values than an index can have.
pub(super) fn read(text: &str) -> Result<Document, IndexError> {
    if text.trim_start().starts_with('{') {
        let mut reader = Reader::default();
        let mut json = serde_json::Deserializer::from_str(text);
        let top = reader.top().deserialize(&mut json).and_then(|top| json.end().map(|()| top));
        match (top, reader.full.take()) {
            (Ok(top), _) => return Ok(reader.finish(top)),
            (Err(_), Some(full)) => return Err(full),
            // The reader of YAML says where; and what begins as JSON may be YAML.
            (Err(_), None) => {}
        }
    }
    let mut reader = Reader::default();
    let top = yaml::load_seed(text, reader.top());
    match (top, reader.full.take()) {
        (Ok(top), _) => Ok(reader.finish(top)),
        (Err(_), Some(full)) => Err(full),
        (Err(error), None) => Err(IndexError::Yaml(error)),
    }
}

struct Reader {
    /// Where it stands: keys, and numbers in lists.
    path: Vec<String>,
    entries: BTreeMap<DriverName, Vec<Entry>>,
    known: SharedFacts,
    unknown: Vec<String>,
    /// Those of the version that is being read: its name may come behind them.
    pending: Vec<(Vec<String>, Option<String>)>,
    wrong: Option<IndexError>,
    /// Why it was stopped.
    full: Option<IndexError>,
    /// How many values this version, or what is beside the versions, may still have.
    here: usize,
    whole: usize,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            path: Vec::new(),
            entries: BTreeMap::new(),
            known: SharedFacts::default(),
            unknown: Vec::new(),
            pending: Vec::new(),
            wrong: None,
            full: None,
            here: REST,
            whole: WHOLE,
        }
    }
}

impl Reader {
    fn top(&mut self) -> Node<'_> {
        Node {
            reader: self,
            schema: schema::published(),
        }
    }

    fn finish(self, top: Value) -> Document {
        Document {
            top,
            entries: self.entries,
            unknown: self.unknown,
            wrong: self.wrong,
        }
    }

    /// The driver whose versions are listed here.
    fn driver(&self) -> Option<DriverName> {
        match self.path.as_slice() {
            [drivers, name, versions] if drivers == "drivers" && versions == "versions" => Some(name.clone()),
            _ => None,
        }
    }

    /// Counts a value.
    fn count<E: Error>(&mut self) -> Result<(), E> {
        let left = self.here.checked_sub(1).zip(self.whole.checked_sub(1));
        let Some((here, whole)) = left else {
            let at = match self.path.as_slice() {
                [drivers, name, _, i, ..] if drivers == "drivers" => format!("drivers.{name} entry {}", i.parse().unwrap_or(0) + 1),
                _ => "the top level".to_owned(),
            };
            let problem = format!("it has too many values (at most {ENTRY} in one version and {WHOLE} in all)");
            self.full = Some(IndexError::Invalid { at, problem });
            return Err(E::custom("too many values"));
        };
        (self.here, self.whole) = (here, whole);
        Ok(())
    }

    /// Notes a field that is not known, below the place where it stands.
    fn skipped(&mut self, name: &str, known: &Map<String, Value>) {
        if self.unknown.len() + self.pending.len() > schema::MAX_UNKNOWN {
            return;
        }
        // A name may be as long as the text; comparing it takes as long as it is.
        let short: String = name.chars().take(LONGEST_NAME).collect();
        let nearest = schema::nearest_known(&short, known);
        let path: Vec<String> = self.path.iter().cloned().chain([short]).collect();
        match path.as_slice() {
            [drivers, _, _, _, rest @ ..] if drivers == "drivers" && !rest.is_empty() => self.pending.push((rest.to_vec(), nearest)),
            all => self.unknown.push(named(&all.join("."), nearest)),
        }
    }

    /// Takes a version in.
    fn version(&mut self, driver: &DriverName, i: usize, value: Value) {
        let at = place(driver, i, &value);
        let unknown = mem::take(&mut self.pending).into_iter();
        self.unknown
            .extend(unknown.map(|(path, nearest)| named(&format!("{at}.{}", path.join(".")), nearest)));
        if self.wrong.is_some() {
            return;
        }
        match typed(value, &at).and_then(|raw| entry(raw).map_err(|problem| IndexError::Invalid { at, problem })) {
            Ok(mut entry) => {
                self.known.share(&mut entry);
                self.entries.entry(driver.clone()).or_default().push(entry);
            }
            Err(error) => self.wrong = Some(error),
        }
    }
}

/// A field, as messages name it, with what was probably meant.
fn named(at: &str, nearest: Option<String>) -> String {
    match nearest {
        Some(near) => format!("{at} (did you mean {near}?)"),
        None => at.to_owned(),
    }
}

/// A value that is being read, with what the schema says of it.
struct Node<'r> {
    reader: &'r mut Reader,
    schema: &'static Value,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.reader.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(yaml::number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let Self { reader, schema } = self;
        let driver = reader.driver();
        let rest = reader.here;
        let mut items = Vec::new();
        for i in 0.. {
            reader.path.push(i.to_string());
            if driver.is_some() {
                reader.here = ENTRY;
            }
            let item = list.next_element_seed(Node {
                reader: &mut *reader,
                schema: &schema["items"],
            })?;
            reader.path.pop();
            match (item, &driver) {
                (None, _) => break,
                (Some(version), Some(driver)) => reader.version(driver, i, version),
                (Some(item), None) => items.push(item),
            }
        }
        if driver.is_some() {
            reader.here = rest;
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let Self { reader, schema } = self;
        let mut map = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let inner = match reader.path.is_empty() && super::legacy_format::is_table(&name) {
                // Of the original format, which no schema describes.
                true => &Value::Null,
                false => schema::of_field(schema, &name),
            };
            if *inner == Value::Bool(false) {
                fields.next_value::<IgnoredAny>()?;
                reader.skipped(&name, schema::fields(schema));
                continue;
            }
            if map.contains_key(&name) {
                return Err(A::Error::custom(format!("{name:?} occurs twice")));
            }
            reader.path.push(name);
            let value = fields.next_value_seed(Node {
                reader: &mut *reader,
                schema: inner,
            })?;
            let name = reader.path.pop().unwrap_or_default();
            map.insert(name, value);
        }
        Ok(map.into())
    }
}

/// What is known of versions, each once.
#[derive(Default)]
struct SharedFacts(HashSet<Arc<Facts>>);

impl SharedFacts {
    /// Lets an entry have what another one has, if it is the same.
    fn share(&mut self, entry: &mut Entry) {
        match self.0.get(&entry.facts) {
            Some(known) => entry.facts = known.clone(),
            None => {
                self.0.insert(entry.facts.clone());
            }
        }
    }
}
