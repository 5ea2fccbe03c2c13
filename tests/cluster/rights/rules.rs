// SPDX-License-Identifier: Apache-2.0
//! Rights as rules: as a role holds them, and as a person reads of one that is missing.

use crate::rights::granted::Right;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The rules that the conditions of an object name.
pub fn named(config: &Value) -> BTreeSet<String> {
    let all = config["status"]["conditions"].as_array().into_iter().flatten();
    all.flat_map(|condition| rules(condition["message"].as_str().unwrap_or_default()))
        .collect()
}

/// The rules in a text, ours with the place where each belongs: in our words, else in those of the API server for an account that grants what it does not have.
pub fn rules(text: &str) -> Vec<String> {
    let ours = text
        .split("{apiGroups: ")
        .skip(1)
        .map(|rest| format!("{{apiGroups: {}", rest.split(')').next().unwrap_or_default()));
    let theirs = text
        .split("{APIGroups:")
        .skip(1)
        .map(|rest| format!("{{APIGroups:{}", rest.split('}').next().unwrap_or_default()));
    let ours: Vec<String> = ours.collect();
    if ours.is_empty() { theirs.collect() } else { ours }
}

impl Right {
    /// Whether it allows everything that the other allows.
    pub fn covers(&self, other: &Self) -> bool {
        let place = self.namespace.is_none() || self.namespace == other.namespace;
        let name = self.name.is_none() || self.name == other.name;
        place && name && (&self.group, &self.resource, &self.verb) == (&other.group, &other.resource, &other.verb)
    }

    pub fn rule(&self) -> Value {
        let mut rule = json!({"apiGroups": [self.group], "resources": [self.resource], "verbs": [self.verb]});
        if let Some(name) = &self.name {
            rule["resourceNames"] = json!([name]);
        }
        rule
    }

    /// Whether this rule, as a person reads it, is the one that is missing.
    pub fn is_in(&self, rule: &str) -> bool {
        let lists = |word: &str, text: &str| {
            let bare = rule.to_lowercase().replace("\" \"", ",").replace(['"', ' '], "");
            let word = word.to_lowercase();
            let list = bare.split(&format!("{word}:[")).nth(1).and_then(|rest| rest.split(']').next());
            list.is_some_and(|list| list.split(',').any(|entry| entry == text.to_lowercase()))
        };
        let name = self
            .name
            .as_ref()
            .is_none_or(|name| lists("resourceNames", name) || rule.starts_with("{APIGroups"));
        // What a Role could hold a ClusterRole may hold as well.
        let place = match &self.namespace {
            Some(namespace) => rule.ends_with(&format!("(Role in namespace {namespace}")) || rule.starts_with("{APIGroups"),
            None => true,
        };
        place && lists("apiGroups", &self.group) && lists("resources", &self.resource) && lists("verbs", &self.verb) && name
    }
}

#[test]
fn rule_in_our_words_or_those_of_the_api_server_is_known() {
    let right = |name: Option<&str>| Right {
        namespace: None,
        group: "apps".into(),
        resource: "deployments".into(),
        verb: "patch".into(),
        name: name.map(str::to_owned),
    };
    let ours = r#"x; add this rule to the role of the operator: {apiGroups: ["apps"], resources: [deployments], verbs: [patch], resourceNames: [a]} (Role in namespace n)"#;
    let theirs = r#"is attempting to grant RBAC permissions not currently held: {APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "patch"]}"#;
    for (text, right, known) in [
        (ours, right(Some("a")), true),
        (ours, right(Some("b")), false),
        (
            ours,
            Right {
                namespace: Some("n".into()),
                ..right(Some("a"))
            },
            true,
        ),
        (
            ours,
            Right {
                namespace: Some("m".into()),
                ..right(Some("a"))
            },
            false,
        ),
        (
            ours,
            Right {
                verb: "get".into(),
                ..right(Some("a"))
            },
            false,
        ),
        (theirs, right(None), true),
        (
            theirs,
            Right {
                group: String::new(),
                ..right(None)
            },
            false,
        ),
    ] {
        let found = rules(text);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(right.is_in(&found[0]), known, "{right} in {text}");
    }
}
