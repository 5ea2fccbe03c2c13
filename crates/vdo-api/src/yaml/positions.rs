// SPDX-License-Identifier: Apache-2.0
//! Finds the line of each key and list item of a YAML text, for error messages.

use super::{long, repaired};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use std::collections::BTreeMap;
use std::fmt;

/// The line of every key and of every item of a list, from 1, by its path: keys, and places in lists counted from 0.
///
/// A text that is not YAML has none, and what stands deeper than [`DEEPEST`] steps has none either.
#[must_use]
pub fn lines(text: &str) -> BTreeMap<Vec<String>, u64> {
    let mut found = BTreeMap::new();
    if let Ok(node) = repaired(text, |text| serde_saphyr::from_str_with_options::<Node>(text, long())) {
        node.collect(&mut Vec::new(), &mut found);
    }
    found
}

/// The line, from 1, where the key or item at the end of a path stands. When the path goes further than the text, the line of the
/// last step that is there; nothing when not even the first is, or the text is not YAML.
#[must_use]
pub fn line_of(text: &str, path: &[String]) -> Option<u64> {
    let lines = lines(text);
    (1..=path.len()).map_while(|steps| lines.get(&path[..steps]).copied()).last()
}

/// Steps of a path that is noted: a text of a megabyte could have thousands of paths with hundreds of steps each.
const DEEPEST: usize = 16;

enum Node {
    Leaf,
    Map(Vec<(Spanned<String>, Node)>),
    List(Vec<Spanned<Node>>),
}

impl Node {
    fn collect(&self, path: &mut Vec<String>, found: &mut BTreeMap<Vec<String>, u64>) {
        if path.len() == DEEPEST {
            return;
        }
        let mut note = |name: String, line: u64, node: &Self| {
            path.push(name);
            found.insert(path.clone(), line);
            node.collect(path, found);
            path.pop();
        };
        match self {
            Self::Leaf => {}
            Self::Map(fields) => fields
                .iter()
                .for_each(|(key, node)| note(key.value.clone(), key.referenced.line(), node)),
            Self::List(items) => items
                .iter()
                .enumerate()
                .for_each(|(i, item)| note(i.to_string(), item.referenced.line(), &item.value)),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_none<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Node, D::Error> {
        Node::deserialize(inner)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut fields = Vec::new();
        while let Some(key) = map.next_key()? {
            fields.push((key, map.next_value()?));
        }
        Ok(Node::Map(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_lines_every_path_has_its_line() {
        let text = "# comment\na:\n  b: 1\n  c:\n  - x\n\n  - d: yes\n    e: [1,\n      2]\n\"f.g\": {}\n";
        let found = lines(text);
        let line = |path: &str| found.get(&path.split('/').map(str::to_owned).collect::<Vec<_>>()).copied();
        for (path, expected) in [
            ("a", Some(2)),
            ("a/b", Some(3)),
            ("a/c", Some(4)),
            ("a/c/0", Some(5)),
            ("a/c/1", Some(7)),
            ("a/c/1/d", Some(7)),
            ("a/c/1/e", Some(8)),
            ("a/c/1/e/1", Some(9)),
            ("f.g", Some(10)),
            ("a/x", None),
        ] {
            assert_eq!(line(path), expected, "{path}");
        }
    }

    #[test]
    fn yaml_lines_json_text_has_lines() {
        let json = lines("{\n  \"a\": {\n    \"b\": [\n      1,\n      {\"c\": 2}]}}\n");
        assert_eq!(json.values().copied().collect::<Vec<_>>(), [2, 3, 4, 5, 5]);
    }

    #[test]
    fn yaml_lines_broken_text_is_empty() {
        assert!(lines("a: [\n").is_empty());
    }
}
