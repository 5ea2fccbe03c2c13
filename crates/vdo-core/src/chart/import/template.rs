// SPDX-License-Identifier: Apache-2.0
//! Writes imported objects as templates: YAML in which some scalars are expressions, in files below the size limit of a template.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use vdo_api::yaml;

/// Bytes of a template, after which the next one begins: the engine takes 60,000.
const LIMIT: usize = 48_000;

/// Kinds whose pods Kubernetes makes, and where the pod is.
const PODS: [(&str, &str); 7] = [
    ("Pod", "/spec"),
    ("Deployment", "/spec/template/spec"),
    ("DaemonSet", "/spec/template/spec"),
    ("StatefulSet", "/spec/template/spec"),
    ("ReplicaSet", "/spec/template/spec"),
    ("Job", "/spec/template/spec"),
    ("CronJob", "/spec/jobTemplate/spec/template/spec"),
];

/// What a word that no manifest has stands for until the YAML is written.
enum Place {
    /// A whole value.
    Expression(String),
    /// The items of a list of pull secrets, after those that the manifest has.
    PullSecrets(Vec<Value>),
}

pub(super) struct Templates {
    /// The beginning of every word.
    mark: String,
    places: Vec<Place>,
    /// Kind, and the YAML of each object: in pieces between which a template may end.
    objects: Vec<(String, Vec<String>)>,
}

impl Templates {
    /// The objects decide which word is free.
    pub(super) fn new(objects: &[Value]) -> Self {
        let text = Value::from(objects.to_vec()).to_string();
        let mut mark = "vdoplace".to_owned();
        while text.contains(&mark) {
            mark.push('x');
        }
        Self {
            mark,
            places: Vec::new(),
            objects: Vec::new(),
        }
    }

    fn word(&mut self, place: Place) -> String {
        self.places.push(place);
        format!("{}{:06}z", self.mark, self.places.len() - 1)
    }

    /// A word that becomes `{{ expression }}`.
    pub(super) fn expression(&mut self, expression: String) -> String {
        self.word(Place::Expression(expression))
    }

    /// Lets the pods of an object take the value `imagePullSecrets` besides their own.
    pub(super) fn pull_secrets(&mut self, object: &mut Value) {
        let Some((_, path)) = PODS.iter().find(|(kind, _)| object["kind"] == *kind) else {
            return;
        };
        let Some(pod) = object.pointer_mut(path).and_then(Value::as_object_mut) else {
            return;
        };
        let own = pod
            .shift_remove("imagePullSecrets")
            .and_then(|own| own.as_array().cloned())
            .unwrap_or_default();
        let word = self.word(Place::PullSecrets(own));
        pod.insert(word, Value::Null);
    }

    pub(super) fn add(&mut self, object: Value) {
        let kind = object["kind"].as_str().unwrap_or_default().to_ascii_lowercase();
        let object = self.escaped(object);
        let text = yaml::dump(&object).unwrap_or_default();
        let pieces = text.lines().map(|line| self.line(line)).collect();
        self.objects.push((kind, pieces));
    }

    /// Text that the engine would read as its own becomes an expression that yields it.
    fn escaped(&mut self, value: Value) -> Value {
        let own = |text: &str| ["{{", "{%", "{#"].iter().any(|open| text.contains(open));
        match value {
            Value::String(text) if own(&text) => self.expression(Value::from(text).to_string()).into(),
            Value::Array(items) => items.into_iter().map(|item| self.escaped(item)).collect::<Vec<_>>().into(),
            Value::Object(fields) => {
                let mut escaped = Map::new();
                for (key, value) in fields {
                    let key = if own(&key) {
                        self.expression(Value::from(key).to_string())
                    } else {
                        key
                    };
                    escaped.insert(key, self.escaped(value));
                }
                escaped.into()
            }
            other => other,
        }
    }

    /// A line of YAML with what its words stand for.
    fn line(&self, line: &str) -> String {
        let mut out = String::new();
        let mut rest = line;
        while let Some(at) = rest.find(&self.mark) {
            let number = &rest[at + self.mark.len()..];
            let place = number.get(..6).and_then(|number| self.places.get(number.parse::<usize>().ok()?));
            let after = number.get(7..).unwrap_or_default();
            match place {
                Some(Place::PullSecrets(own)) => return secrets(own, at),
                Some(Place::Expression(expression)) => out += &format!("{}{{{{ {expression} }}}}", &rest[..at]),
                None => out += &rest[..at],
            }
            rest = after;
        }
        out + rest + "\n"
    }

    /// The templates, one for each kind; of many objects several. An object that is larger than a template is put together from parts.
    pub(super) fn files(self) -> Vec<(String, Vec<u8>)> {
        let mut files: Vec<(String, String)> = Vec::new();
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        for (kind, pieces) in self.objects {
            let mut parts = vec![String::new()];
            for piece in pieces {
                match parts.last_mut() {
                    Some(part) if part.is_empty() || part.len() + piece.len() <= LIMIT => *part += &piece,
                    _ => parts.push(piece),
                }
            }
            let number = numbers.entry(kind.clone()).or_insert(0);
            let name = |number: usize| match number {
                1 => kind.clone(),
                more => format!("{kind}-{more}"),
            };
            let is_last = |path: &str| *number > 0 && path == name(*number);
            match files.iter_mut().find(|(path, _)| is_last(path)) {
                Some((_, file)) if parts.len() == 1 && file.len() + parts[0].len() <= LIMIT => *file += &format!("---\n{}", parts[0]),
                _ => {
                    *number += 1;
                    let name = name(*number);
                    if parts.len() == 1 {
                        files.extend(parts.into_iter().map(|part| (name.clone(), part)));
                        continue;
                    }
                    let named = |at: usize| format!("_{name}-part-{}", at + 1);
                    let include = |at: usize| format!("{{% include \"templates/{}.yaml\" %}}\n", named(at));
                    files.push((name.clone(), (0..parts.len()).map(include).collect()));
                    files.extend(parts.into_iter().enumerate().map(|(at, part)| (named(at), part)));
                }
            }
        }
        let file = |(name, text): (String, String)| (format!("templates/{name}.yaml"), text.into_bytes());
        files.into_iter().map(file).collect()
    }
}

/// Pull secrets at a depth: those of the manifest, then those of the value.
fn secrets(own: &[Value], depth: usize) -> String {
    let item = |line: &str| format!("{:depth$}{line}\n", "");
    let head = item("imagePullSecrets:");
    let each = item("{% for secret in values.imagePullSecrets %}") + &item("- name: {{ secret }}") + &item("{% endfor %}");
    if own.is_empty() {
        return item("{% if values.imagePullSecrets %}") + &head + &each + &item("{% endif %}");
    }
    own.iter().fold(head, |text, own| text + &item(&format!("- {{{{ {own} }}}}"))) + &each
}
