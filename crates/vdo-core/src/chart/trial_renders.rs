// SPDX-License-Identifier: Apache-2.0
//! Renders a chart many times with choices and placeholder values, to find which fields of its objects a user can set (`probe`).
//! The admission policy is learnt from these renders.

use super::opened_chart::Chart;
use super::render::{Known, everything, render_unknown};
use super::schema_errors::resolved;
use super::values::{effective, merge};
use super::{Connection, Context, ControlPlane};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Where a user may write whatever structure, this is the value that is found there.
pub const ANYTHING: &str = "vdo-anything";

/// Is in every word that stands for a user's text, but those of digits alone.
pub const MARK: &str = "vdomark";

/// Stands for a word of each item's own.
const NAME: &str = "vdo-name";

/// More numbers than this are not tried one by one.
const FEW: i64 = 20;

/// A number that was rendered in place of all that a schema allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number {
    /// The number that was rendered.
    pub word: i64,
    /// The lowest that the schema allows.
    pub lowest: i64,
    /// The highest.
    pub highest: i64,
}

/// What stands in rendered objects for the values of users.
#[derive(Debug, Clone, Default)]
pub struct Placeholders {
    /// Texts that stand for whatever text a user writes there, longer ones first: one may be in another.
    pub words: Vec<String>,
    /// The same, where only digits are allowed.
    pub digits: Vec<String>,
    /// Numbers that stand for others.
    pub numbers: Vec<Number>,
}

/// Renders a chart with its defaults, with every choice that its schema lists, and with words in the place of what users may write freely.
/// What a template refuses is left out, so what is found is what a chart can render. `base` are values that stay.
/// `seen` gets the new objects of each render, and says when it has seen enough. The usual values come first.
pub fn probe(chart: &Chart, base: &Value, seen: Seen<'_>) {
    let mut search = Search {
        chart,
        base: base.clone(),
        found: Placeholders::default(),
        choices: BTreeMap::new(),
        switches: Vec::new(),
        words: Vec::new(),
        context: Context::default(),
        sought: Vec::new(),
        refused: BTreeSet::new(),
        known: Known::default(),
        seen,
    };
    let _enough = search.run();
}

/// Gets the objects that a render has and no render before had.
type Seen<'a> = &'a mut dyn FnMut(&[Value], &Placeholders) -> ControlFlow<()>;

/// A step towards a value: a key, or an item with what else the schema wants in it.
#[derive(Clone)]
enum Step {
    Key(String),
    Item(Map<String, Value>),
}

/// A value that is tried, with the word that shows where it was rendered.
struct Trial {
    values: Value,
    word: String,
}

struct Search<'a> {
    chart: &'a Chart,
    base: Value,
    found: Placeholders,
    /// The choices of each place, as values for the whole chart. A place with several forms has all their choices.
    choices: BTreeMap<String, Vec<Value>>,
    /// What can be on or off, both for the whole chart.
    switches: Vec<[Value; 2]>,
    words: Vec<Trial>,
    context: Context,
    /// The words that were not found in any render yet.
    sought: Vec<String>,
    /// Values that a template refuses by themselves. They would be searched for again among all the others in each round.
    refused: BTreeSet<String>,
    known: Known,
    seen: Seen<'a>,
}

impl Search<'_> {
    fn run(&mut self) -> ControlFlow<()> {
        let chart = self.chart;
        self.render_base()?;
        merge(&mut self.base, &everything(chart));
        self.render_base()?;
        self.render_contexts()?;
        self.collect(&chart.schema, &mut Vec::new(), Some(&chart.values));
        self.render_choices()?;
        self.render_words()
    }

    fn word(&mut self) -> String {
        // Twelve characters, so that base64 is one of the things that the word can be.
        let word = format!("{MARK}{:04}x", self.found.words.len());
        self.stand_in(word.clone());
        word
    }

    fn stand_in(&mut self, word: String) {
        let words = if word.contains(MARK) {
            &mut self.found.words
        } else {
            &mut self.found.digits
        };
        let at = words.partition_point(|known| known.len() >= word.len());
        words.insert(at, word);
    }

    /// A value at its place in values for the whole chart. Each item has names of its own.
    fn put(&mut self, path: &[Step], value: Value) -> Value {
        path.iter().rev().fold(value, |value, step| match step {
            Step::Key(key) => json!({key: value}),
            Step::Item(more) => match value {
                Value::Object(fields) => {
                    let mut item = more.clone();
                    for text in item.values_mut().filter(|text| **text == NAME) {
                        *text = self.word().into();
                    }
                    item.extend(fields);
                    json!([item])
                }
                other => json!([other]),
            },
        })
    }

    /// Adds choices of a place. Those of one place exclude each other, so they are rendered one after the other.
    fn choose(&mut self, path: &[Step], more: impl IntoIterator<Item = Value>) {
        let key: Vec<&str> = path
            .iter()
            .map(|step| match step {
                Step::Key(key) => key,
                Step::Item(_) => "[]",
            })
            .collect();
        let key = key.join("/");
        for value in more {
            let value = self.put(path, value);
            self.choices.entry(key.clone()).or_default().push(value);
        }
    }

    fn whole(&self, values: &Value) -> Value {
        let mut all = self.base.clone();
        merge(&mut all, values);
        all
    }

    fn accepts(&self, values: &Value) -> bool {
        effective(self.chart, &self.whole(values)).is_ok()
    }

    fn show(&mut self, objects: &[Value]) -> ControlFlow<()> {
        for object in objects {
            if self.sought.is_empty() {
                break;
            }
            let text = object.to_string();
            self.sought.retain(|word| !text.contains(word.as_str()));
        }
        (self.seen)(objects, &self.found)
    }

    fn render_base(&mut self) -> ControlFlow<()> {
        match render_unknown(self.chart, &self.base, &Context::default(), &mut self.known) {
            Ok(objects) => self.show(&objects),
            Err(_) => ControlFlow::Continue(()),
        }
    }

    /// Where the connections and names of the cluster are words, and with any number of control-plane nodes.
    fn render_contexts(&mut self) -> ControlFlow<()> {
        let [uid, distribution, name, server, datacenter] = std::array::from_fn(|_| self.word());
        let mut context = Context {
            connections: vec![Connection {
                name,
                server,
                port: 443,
                datacenters: vec![datacenter],
            }],
            ..Context::default()
        };
        context.cluster.uid = uid;
        context.cluster.distribution = Some(distribution);
        for count in [0, 1, 2, 3] {
            context.cluster.control_plane = ControlPlane { count };
            if let Ok(objects) = render_unknown(self.chart, &self.base, &context, &mut self.known) {
                self.show(&objects)?;
            }
        }
        self.context = context;
        ControlFlow::Continue(())
    }

    fn collect(&mut self, schema: &Value, path: &mut Vec<Step>, default: Option<&Value>) {
        let chart = self.chart;
        let schema = resolved(schema, &chart.schema).clone();
        for key in ["anyOf", "oneOf"] {
            for alternative in schema[key].as_array().into_iter().flatten() {
                self.collect(alternative, path, default);
            }
        }
        if let Some(listed) = schema["enum"].as_array() {
            self.choose(path, listed.iter().cloned());
            return;
        }
        if let Some(value) = schema.get("const") {
            self.choose(path, [value.clone()]);
            return;
        }
        let is = |name: &str| schema["type"] == name || schema["type"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        if is("boolean") {
            let both = [true, false].map(|state| self.put(path, state.into()));
            self.switches.push(both);
        }
        if is("string") {
            self.text(path, default.and_then(Value::as_str));
        }
        if is("integer") || is("number") {
            self.number(&schema, path);
        }
        if is("array") {
            self.items(&schema["items"], path);
        }
        if is("object") {
            self.fields(&schema, path, default);
        }
    }

    fn fields(&mut self, schema: &Value, path: &mut Vec<Step>, default: Option<&Value>) {
        let properties = schema["properties"].as_object();
        for (name, inner) in properties.into_iter().flatten() {
            // In another namespace they would be other objects, for which the operator has no rights.
            if path.is_empty() && name == "namespace" {
                continue;
            }
            path.push(Step::Key(name.clone()));
            self.collect(inner, path, default.and_then(|default| default.get(name)));
            path.pop();
        }
        match &schema["additionalProperties"] {
            inner @ Value::Object(_) => self.named_by_users(schema, inner, path),
            Value::Bool(false) => {}
            _ if properties.is_some() => {}
            _ => {
                let word = self.word();
                let values = self.put(path, json!({word.clone(): ANYTHING}));
                self.words.push(Trial { values, word });
            }
        }
    }

    /// A map whose keys are the user's.
    fn named_by_users(&mut self, schema: &Value, inner: &Value, path: &mut Vec<Step>) {
        if let Some(Value::String(first)) = schema.pointer("/propertyNames/enum/0") {
            path.push(Step::Key(first.clone()));
        } else {
            path.push(Step::Key(self.word()));
        }
        self.collect(inner, path, None);
        path.pop();
    }

    fn items(&mut self, schema: &Value, path: &mut Vec<Step>) {
        let chart = self.chart;
        let schema = resolved(schema, &chart.schema).clone();
        let mut more = Map::new();
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let field = resolved(&schema["properties"][name], &chart.schema).clone();
            let value = match (field["enum"].get(0), field["type"].as_str()) {
                (Some(first), _) => first.clone(),
                (_, Some("boolean")) => true.into(),
                (_, Some("integer" | "number")) => field["minimum"].as_i64().unwrap_or(1).into(),
                (_, Some("array")) => json!([]),
                (_, Some("object")) => json!({}),
                _ => NAME.into(),
            };
            more.insert(name.to_owned(), value);
        }
        if schema["type"] == "object" {
            // The item with nothing but what it must have.
            path.push(Step::Item(more));
            self.choose(path, [json!({})]);
        } else {
            path.push(Step::Item(more));
        }
        self.collect(&schema, path, None);
        path.pop();
    }

    /// The first text that the schema takes. A path keeps its root and its last folder.
    fn text(&mut self, path: &[Step], default: Option<&str>) {
        let word = self.word();
        let separator = default.and_then(|default| default.find(['/', '\\']).map(|at| &default[at..=at]));
        if let (Some(default), Some(separator)) = (default, separator)
            && let (Some((root, _)), Some((_, last))) = (default.split_once(separator), default.rsplit_once(separator))
            && !default.contains("://")
        {
            let values = self.put(path, [root, &word, last].join(separator).into());
            if self.accepts(&values) {
                self.words.push(Trial { values, word });
                return;
            }
        }
        let number = format!("31415{}", &word[7..11]);
        let shapes = [
            word.clone(),
            format!("/{word}"),
            format!("D:\\{word}"),
            format!("{word}.example:1"),
            format!("{word}.example/mark:1"),
            format!("ds:///{word}/"),
            format!("https://{word}.example"),
            format!("{word}/mark"),
            format!("{word}.example"),
            number,
        ];
        for text in shapes {
            let values = self.put(path, text.clone().into());
            if self.accepts(&values) {
                if text != word {
                    self.stand_in(text.clone());
                }
                self.words.push(Trial { values, word: text });
                return;
            }
        }
    }

    fn number(&mut self, schema: &Value, path: &[Step]) {
        let bound = |key: &str| schema[key].as_i64();
        let (lowest, highest) = (bound("minimum"), bound("maximum"));
        if let (Some(lowest), Some(highest)) = (lowest, highest)
            && highest.saturating_sub(lowest) <= FEW
        {
            self.choose(path, (lowest..=highest).map(Value::from));
            return;
        }
        let (lowest, highest) = (lowest.unwrap_or(0), highest.unwrap_or(i64::from(i32::MAX)));
        // As unusual as the bounds allow, so that it is found again.
        let mut word = [1387, 31_415, 223, 97, 31]
            .into_iter()
            .find(|word| (lowest..=highest).contains(word));
        let used = |word: i64, all: &[Number]| all.iter().any(|number| number.word == word);
        while let Some(number) = word.filter(|number| used(*number, &self.found.numbers)) {
            word = Some(number - 1).filter(|number| *number > lowest);
        }
        let word = word.unwrap_or(highest);
        self.found.numbers.push(Number { word, lowest, highest });
        let (values, word) = (self.put(path, word.into()), word.to_string());
        self.words.push(Trial { values, word });
        self.choose(path, [lowest.into(), highest.into()]);
    }

    /// Every choice, as many places at a time as the chart takes together.
    fn render_choices(&mut self) -> ControlFlow<()> {
        let choices = std::mem::take(&mut self.choices);
        let longest = choices.values().map(Vec::len).max().unwrap_or_default();
        let switches = std::mem::take(&mut self.switches);
        // With everything on and with everything off, because a choice may show in one of the two only.
        for side in 0..2 {
            for round in 0..longest.max(1) {
                let chosen = choices.values().filter_map(|all| all.get(round % all.len().max(1)));
                let values: Vec<&Value> = chosen.chain(switches.iter().map(|both| &both[side])).collect();
                self.render_together(&values)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Every word, until each is found somewhere or was tried without those that hide it.
    fn render_words(&mut self) -> ControlFlow<()> {
        let mut left = std::mem::take(&mut self.words);
        while !left.is_empty() {
            let before = left.len();
            let values: Vec<&Value> = left.iter().map(|trial| &trial.values).collect();
            self.sought = left.iter().map(|trial| trial.word.clone()).collect();
            self.render_together(&values)?;
            let sought = std::mem::take(&mut self.sought);
            left.retain(|trial| sought.contains(&trial.word));
            if left.len() == before {
                break;
            }
        }
        ControlFlow::Continue(())
    }

    fn render_together(&mut self, all: &[&Value]) -> ControlFlow<()> {
        let is_rendered = |values: &&&Value| !self.refused.contains(&values.to_string());
        let all: Vec<&Value> = all.iter().filter(is_rendered).copied().collect();
        let mut together = json!({});
        all.iter().for_each(|values| join(&mut together, values));
        match render_unknown(self.chart, &self.whole(&together), &self.context, &mut self.known) {
            Ok(objects) => self.show(&objects),
            Err(_) if all.len() > 1 => {
                let (one, other) = all.split_at(all.len() / 2);
                self.render_together(one)?;
                self.render_together(other)
            }
            Err(_) => {
                self.refused.extend(all.iter().map(ToString::to_string));
                ControlFlow::Continue(())
            }
        }
    }
}

/// Joins values for the whole chart: maps key by key, lists one after the other.
fn join(base: &mut Value, more: &Value) {
    match (base, more) {
        (Value::Object(base), Value::Object(more)) => {
            for (key, value) in more {
                match base.get_mut(key) {
                    Some(old) => join(old, value),
                    None => drop(base.insert(key.clone(), value.clone())),
                }
            }
        }
        (Value::Array(base), Value::Array(more)) => base.extend(more.iter().cloned()),
        (base, more) => *base = more.clone(),
    }
}
