// SPDX-License-Identifier: Apache-2.0
//! Writes the CEL variables of the ValidatingAdmissionPolicy: the allowed content as tables, and the expression that finds a refused field.
//!
//! A value passes if its shape allows it or if the object had it before: a field that another manager has set stays.
//!
//! CEL has no recursion, so the expressions are nested as deep as the shapes. The shapes themselves are data: the API server compiles a policy at
//! each write, and the cost of its type checks grows with the square of an expression (docs/decisions/108-content-by-allow-list.md has figures).

use super::shape::{Shape, Text};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::from_json;

/// The member of a map under a key of the user's choice, and the item of a list that is not known by its name.
const OTHERS: &str = "*";

/// A refusal has paths down to this depth: a field of a container.
const DEEPEST_PATH: usize = 6;

/// What was before where nothing was: a map with a key that no object has.
const NONE: &str = "variables.none";

/// What kind of value may be at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Anything,
    Map,
    /// Its items are known by their names, if at all.
    List,
}

/// What a value may be.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    kinds: BTreeSet<Kind>,
    /// Single values as texts.
    words: BTreeSet<String>,
    /// Texts, as regular expressions.
    texts: BTreeSet<String>,
    /// The lowest and the highest number.
    ranges: BTreeSet<(i64, i64)>,
    /// The fields that a map must have.
    required: BTreeSet<String>,
    /// Fields of a map or items of a list by their names, and [`OTHERS`].
    members: BTreeMap<String, Self>,
}

impl Node {
    fn of(shape: &Shape) -> Self {
        let may_be = [
            (shape.any, Kind::Anything),
            (shape.maps > 0, Kind::Map),
            (shape.lists > 0, Kind::List),
        ];
        let more = shape.more.as_deref().map(Self::of);
        let items = shape.items.as_deref().map(Self::of);
        // A member that is known may also be what others may be.
        let with = |member: &Shape, others: &Option<Self>| others.iter().fold(Self::of(member), Self::or);
        let fields = shape.fields.iter().map(|(name, field)| (name.clone(), with(field, &more)));
        let named = shape.named.iter().map(|(name, item)| (name.clone(), with(item, &items)));
        let mut members: BTreeMap<String, Self> = fields.chain(named).collect();
        members.extend(more.or(items).map(|others| (OTHERS.to_owned(), others)));
        Self {
            kinds: may_be.into_iter().filter(|(may, _)| *may).map(|(_, kind)| kind).collect(),
            words: shape.words.iter().map(text_of).collect(),
            texts: shape.texts.iter().map(pattern).collect(),
            ranges: shape.range.into_iter().collect(),
            required: shape.required().map(str::to_owned).collect(),
            members,
        }
    }

    /// Whether single values are compared. Where a user may write `null` in the place of a map or a list, the API server keeps no `null`.
    fn has_words(&self) -> bool {
        self.kinds.is_empty() && !self.words.is_empty()
    }

    /// Both what one and what the other may be.
    fn or(mut self, other: &Self) -> Self {
        let required = match (self.kinds.contains(&Kind::Map), other.kinds.contains(&Kind::Map)) {
            (true, true) => &self.required & &other.required,
            _ => &self.required | &other.required,
        };
        self.required = required;
        self.kinds.extend(&other.kinds);
        self.words.extend(other.words.iter().cloned());
        self.texts.extend(other.texts.iter().cloned());
        self.ranges.extend(&other.ranges);
        for (name, member) in &other.members {
            let known = self.members.remove(name).unwrap_or_default();
            self.members.insert(name.clone(), known.or(member));
        }
        self
    }
}

/// Nodes by their numbers, from 1. Equal ones are one; 0 is a node that allows nothing.
#[derive(Default)]
struct Tables<'a> {
    numbers: BTreeMap<&'a Node, usize>,
    /// The nodes that are so deep in an object.
    depths: Vec<Vec<&'a Node>>,
}

impl<'a> Tables<'a> {
    fn of(nodes: impl Iterator<Item = &'a Node>) -> Self {
        let mut tables = Self::default();
        nodes.for_each(|node| tables.add(node, 0));
        tables
    }

    fn add(&mut self, node: &'a Node, depth: usize) {
        node.members.values().for_each(|member| self.add(member, depth + 1));
        if *node != Node::default() {
            let next = self.numbers.len() + 1;
            self.numbers.entry(node).or_insert(next);
        }
        if self.depths.len() <= depth {
            self.depths.resize_with(depth + 1, Vec::new);
        }
        self.depths[depth].push(node);
    }

    fn number(&self, node: Option<&Node>) -> String {
        node.and_then(|node| self.numbers.get(node))
            .copied()
            .unwrap_or_default()
            .to_string()
    }

    /// The members of a node by their numbers, where it may have any.
    fn numbers_of_members(&self, node: &Node) -> Option<String> {
        let names = node.members.keys().map(String::as_str).filter(|name| *name != OTHERS);
        let members = names
            .chain([OTHERS])
            .map(|name| (literal(name), self.number(node.members.get(name))));
        (!node.kinds.is_empty()).then(|| map(members))
    }

    /// A property of the nodes that have it, by their numbers.
    fn table(&self, property: impl Fn(&Node) -> Option<String>) -> String {
        let mut all: Vec<(usize, String)> = self
            .numbers
            .iter()
            .filter_map(|(node, number)| Some((*number, property(node)?)))
            .collect();
        all.sort_unstable();
        map(all.into_iter().map(|(number, value)| (number.to_string(), value)))
    }

    /// The numbers of some nodes.
    fn some(&self, is: impl Fn(&Node) -> bool) -> String {
        let mut all: Vec<usize> = self
            .numbers
            .iter()
            .filter(|(node, _)| is(node))
            .map(|(_, number)| *number)
            .collect();
        all.sort_unstable();
        format!("{all:?}")
    }

    /// An expression that is the path of what is refused in a value, or an empty text. The value is a map in the variable `n` with the number of
    /// its depth: `v` is what is written, `b` is what was there before, or [`NONE`], `i` is the number of the node, and `q` is the path.
    fn refused(&self, depth: usize) -> String {
        let n = format!("n{depth}");
        let path = if depth == 0 { literal("the object") } else { format!("{n}.q") };
        match self.members(depth) {
            Some((may_have, members)) if depth < DEEPEST_PATH => {
                let (value, inner) = (self.is_value(depth), self.refused(depth + 1));
                let all = format!("{members}.map(n{}, {inner}).filter(s, s != '').join(', ')", depth + 1);
                format!("({value} ? '' : {may_have} ? {all} : {path})")
            }
            _ => format!("({} ? '' : {path})", self.is_allowed(depth)),
        }
    }

    /// The same as a truth value, without a path.
    fn is_allowed(&self, depth: usize) -> String {
        let value = self.is_value(depth);
        match self.members(depth) {
            Some((may_have, members)) => format!(
                "{value} || {may_have} && {members}.all(n{}, {})",
                depth + 1,
                self.is_allowed(depth + 1)
            ),
            None => value,
        }
    }

    /// An expression that holds for a value that is allowed without a look at its members.
    fn is_value(&self, depth: usize) -> String {
        let n = format!("n{depth}");
        let mut ways = vec![format!("{n}.b == {n}.v"), format!("{n}.i in variables.anything")];
        if self.has(depth, Node::has_words) {
            ways.push(format!("{n}.i in variables.words && string({n}.v) in variables.words[{n}.i]"));
        }
        if self.has(depth, |node| !node.texts.is_empty()) {
            ways.push(format!(
                "type({n}.v) == string && variables.texts[?{n}.i].orValue([]).exists(t, {n}.v.matches(t))"
            ));
        }
        if self.has(depth, |node| !node.ranges.is_empty()) {
            ways.push(format!(
                "type({n}.v) == int && variables.ranges[?{n}.i].orValue([]).exists(r, {n}.v >= r[0] && {n}.v <= r[1])"
            ));
        }
        ways.join(" || ")
    }

    /// Whether a value may have members, and these. At the last depth nothing has any that are allowed.
    fn members(&self, depth: usize) -> Option<(String, String)> {
        let n = format!("n{depth}");
        let (is_map, is_list) = (format!("{n}.i in variables.maps"), format!("{n}.i in variables.lists"));
        let (of_map, of_list) = (members_of_map(depth), members_of_list(depth));
        let (is, members) = match [Kind::Map, Kind::List].map(|kind| self.has(depth, |node| node.kinds.contains(&kind))) {
            [true, true] => (format!("({is_map} || {is_list})"), format!("({is_map} ? {of_map} : {of_list})")),
            [true, false] => (is_map, of_map),
            [false, true] => (is_list, of_list),
            [false, false] => return None,
        };
        Some((
            format!("{is} && variables.required[?{n}.i].orValue([]).all(r, r in {n}.v)"),
            members,
        ))
    }

    fn has(&self, depth: usize, property: impl Fn(&Node) -> bool) -> bool {
        self.depths.get(depth).into_iter().flatten().any(|node| property(node))
    }
}

fn members_of_map(depth: usize) -> String {
    let n = format!("n{depth}");
    let path = match depth {
        0 => "k".to_owned(),
        _ => format!("[{n}.q, k].join('.')"),
    };
    let node = format!("variables.members[{n}.i][k in variables.members[{n}.i] ? k : '{OTHERS}']");
    let before = format!("{n}.b[?k].orValue({NONE})");
    format!("{n}.v.map(k, {})", value(depth, &format!("{n}.v[k]"), &before, &node, &path))
}

fn members_of_list(depth: usize) -> String {
    let n = format!("n{depth}");
    let is_named = format!("{n}.i in variables.named");
    let known = format!("{is_named} && i.name in variables.members[{n}.i]");
    let node = format!("variables.members[{n}.i][{known} ? i.name : '{OTHERS}']");
    let before = format!("({n}.b == {NONE} ? [] : {n}.b).filter(b, {is_named} ? b.name == i.name : b == i)[?0].orValue({NONE})");
    let path = format!("[{n}.q, dyn('['), {is_named} ? i.name : dyn(''), dyn(']')].join()");
    format!("{n}.v.map(i, {})", value(depth, "i", &before, &node, &path))
}

/// A member of a value at a depth.
fn value(depth: usize, value: &str, before: &str, node: &str, path: &str) -> String {
    let path = if depth < DEEPEST_PATH {
        format!(", 'q': dyn({path})")
    } else {
        String::new()
    };
    format!("{{'v': dyn({value}), 'b': dyn({before}), 'i': dyn({node}){path}}}")
}

/// The variables of a policy, with a shape for each place of the cluster. `refused` is a text with what no chart has in an object, or empty.
pub(super) fn variables<'a>(shapes: impl Iterator<Item = (&'a String, &'a Shape)>) -> Vec<Value> {
    let places: Vec<(&str, Node)> = shapes.map(|(place, shape)| (place.as_str(), Node::of(shape))).collect();
    let tables = Tables::of(places.iter().map(|(_, node)| node));
    let ranges = |node: &Node| list(node.ranges.iter().map(|(lowest, highest)| format!("[{lowest}, {highest}]")));
    let is_named = |node: &Node| node.kinds.contains(&Kind::List) && node.members.keys().any(|name| name != OTHERS);
    // What is not in a namespace comes without one.
    let place = "[has(request.namespace) ? request.namespace : ''].map(n, request.kind.kind + '/' + n + '/')\
                 .map(p, p + object.metadata.name in variables.places ? p + object.metadata.name : p + '*')[0]";
    let root = format!(
        "{{'v': dyn(object), 'b': dyn(oldObject == null ? {NONE} : dyn(oldObject)), \
                'i': dyn(variables.places[variables.place])}}"
    );
    [
        (
            "places",
            map(places.iter().map(|(place, node)| (literal(place), tables.number(Some(node))))),
        ),
        ("place", place.to_owned()),
        ("none", "dyn({'': ''})".to_owned()),
        ("anything", tables.some(|node| node.kinds.contains(&Kind::Anything))),
        ("maps", tables.some(|node| node.kinds.contains(&Kind::Map))),
        ("lists", tables.some(|node| node.kinds.contains(&Kind::List))),
        ("named", tables.some(is_named)),
        ("words", tables.table(|node| literals(&node.words).filter(|_| node.has_words()))),
        ("texts", tables.table(|node| literals(&node.texts))),
        ("ranges", tables.table(ranges)),
        ("required", tables.table(|node| literals(&node.required))),
        ("members", tables.table(|node| tables.numbers_of_members(node))),
        ("refused", format!("[{root}].map(n0, {})[0]", tables.refused(0))),
    ]
    .into_iter()
    .map(|(name, expression)| json!({"name": name, "expression": expression}))
    .collect()
}

/// A word as CEL writes its value into a text.
fn text_of(word: &String) -> String {
    from_json(word).unwrap_or_else(|_| word.clone())
}

/// A regular expression of RE2 for texts with a beginning and an end.
fn pattern(text: &Text) -> String {
    format!("^(?s:{}.*{})$", regex::escape(&text.before), regex::escape(&text.after))
}

/// A text in CEL.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n"))
}

fn literals(texts: &BTreeSet<String>) -> Option<String> {
    list(texts.iter().map(|text| literal(text)))
}

/// A list with something in it.
fn list(items: impl Iterator<Item = String>) -> Option<String> {
    let items: Vec<String> = items.collect();
    (!items.is_empty()).then(|| format!("[{}]", items.join(", ")))
}

fn map(members: impl Iterator<Item = (String, String)>) -> String {
    let members: Vec<String> = members.map(|(key, value)| format!("{key}: {value}")).collect();
    format!("{{{}}}", members.join(", "))
}
