// SPDX-License-Identifier: Apache-2.0
//! The type `Rules`: RBAC rules as sets of verbs on resources and paths, merged, compared and written in a fixed order.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

type Words = BTreeSet<String>;

/// What roles grant, by what it is about: verbs for each group, resource and set of names (none: whatever the name), and for each path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    resources: BTreeMap<(String, String, Words), Words>,
    paths: BTreeMap<String, Words>,
}

/// Verbs on one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SingleRule<'a> {
    /// Its API group.
    pub group: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The object; `None` for all.
    pub name: Option<&'a str>,
    /// The verbs.
    pub verbs: Vec<&'a str>,
}

impl Rules {
    /// The rules of a Role or ClusterRole.
    #[must_use]
    pub fn of(role: &Value) -> Self {
        let mut rules = Self::default();
        for rule in role.get("rules").and_then(Value::as_array).into_iter().flatten() {
            let list = |key: &str| {
                let words = rule.get(key).and_then(Value::as_array).into_iter().flatten();
                words.filter_map(Value::as_str).collect::<Vec<_>>()
            };
            let verbs = list("verbs");
            for group in list("apiGroups") {
                for resource in list("resources") {
                    rules.add(group, resource, &list("resourceNames"), &verbs);
                }
            }
            for path in list("nonResourceURLs") {
                rules
                    .paths
                    .entry(path.to_owned())
                    .or_default()
                    .extend(verbs.iter().map(|verb| (*verb).to_owned()));
            }
        }
        rules
    }

    /// Adds verbs on a resource; without names, whatever the name.
    pub fn add(&mut self, group: &str, resource: &str, names: &[&str], verbs: &[&str]) {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Words>();
        self.resources
            .entry((group.to_owned(), resource.to_owned(), owned(names)))
            .or_default()
            .extend(owned(verbs));
    }

    /// Each of them about one resource, and one name where they are about names.
    pub fn single(&self) -> impl Iterator<Item = SingleRule<'_>> {
        self.resources.iter().flat_map(|((group, resource, names), verbs)| {
            let rule = move |name| SingleRule {
                group,
                resource,
                name,
                verbs: verbs.iter().map(String::as_str).collect(),
            };
            let any = names.is_empty().then(|| rule(None));
            any.into_iter().chain(names.iter().map(move |name| rule(Some(name.as_str()))))
        })
    }

    /// Adds everything that others grant.
    pub fn merge(&mut self, other: &Self) {
        for (about, verbs) in &other.resources {
            self.resources.entry(about.clone()).or_default().extend(verbs.iter().cloned());
        }
        for (path, verbs) in &other.paths {
            self.paths.entry(path.clone()).or_default().extend(verbs.iter().cloned());
        }
    }

    /// As in a role, in a fixed order: resources with the same names and verbs in one rule.
    #[must_use]
    pub fn json(&self) -> Vec<Value> {
        let mut merged: BTreeMap<(&str, &Words, &Words), BTreeSet<&str>> = BTreeMap::new();
        for ((group, resource, names), verbs) in &self.resources {
            merged.entry((group, names, verbs)).or_default().insert(resource);
        }
        let resources = merged.into_iter().map(|((group, names, verbs), resources)| {
            let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
            if !names.is_empty() {
                rule["resourceNames"] = json!(names);
            }
            rule
        });
        let paths = self
            .paths
            .iter()
            .map(|(path, verbs)| json!({"nonResourceURLs": [path], "verbs": verbs}));
        resources.chain(paths).collect()
    }

    /// What of these rules others do not grant.
    #[must_use]
    pub fn beyond(&self, granted: &Self) -> Self {
        let mut beyond = Self::default();
        for ((group, resource, names), verbs) in &self.resources {
            let missing = verbs.iter().filter(|verb| {
                let grants = |name: Option<&String>| granted.grants(group, resource, name, verb);
                !if names.is_empty() {
                    grants(None)
                } else {
                    names.iter().all(|name| grants(Some(name)))
                }
            });
            let missing: Words = missing.cloned().collect();
            if !missing.is_empty() {
                beyond.resources.insert((group.clone(), resource.clone(), names.clone()), missing);
            }
        }
        for (path, verbs) in &self.paths {
            let missing: Words = verbs.iter().filter(|verb| !granted.opens(path, verb)).cloned().collect();
            if !missing.is_empty() {
                beyond.paths.insert(path.clone(), missing);
            }
        }
        beyond
    }

    /// As the API server reads rules: `*` is everything, and `*/status` that part of every resource.
    fn grants(&self, group: &str, resource: &str, name: Option<&String>, verb: &str) -> bool {
        let part = resource.split_once('/').map(|(_, part)| format!("*/{part}"));
        self.resources.iter().any(|((groups, resources, names), verbs)| {
            (groups == "*" || groups == group)
                && (resources == "*" || resources == resource || part.as_ref() == Some(resources))
                && (names.is_empty() || name.is_some_and(|name| names.contains(name)))
                && (verbs.contains("*") || verbs.contains(verb))
        })
    }

    fn opens(&self, path: &str, verb: &str) -> bool {
        self.paths.iter().any(|(granted, verbs)| {
            let below = granted.strip_suffix('*').is_some_and(|above| path.starts_with(above));
            (below || granted == path) && (verbs.contains("*") || verbs.contains(verb))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(rules: Value) -> Rules {
        Rules::of(&json!({"rules": rules}))
    }

    #[test]
    fn rbac_beyond_each_missing_right_is_found_and_wildcards_grant() {
        let pods = |verbs: &[&str]| json!([{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]);
        for (wanted, granted, missing) in [
            (pods(&["get", "list"]), pods(&["list", "get", "watch"]), json!([])),
            (pods(&["get", "list"]), pods(&["get"]), pods(&["list"])),
            (pods(&["get"]), json!([]), pods(&["get"])),
            (pods(&["get"]), pods(&["*"]), json!([])),
            (pods(&["*"]), pods(&["get"]), pods(&["*"])),
            (
                pods(&["get"]),
                json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]}]),
                json!([]),
            ),
            (
                pods(&["get"]),
                json!([{"apiGroups": ["apps"], "resources": ["pods"], "verbs": ["get"]}]),
                pods(&["get"]),
            ),
            // One name is not all of them, and all are every one.
            (
                pods(&["get"]),
                json!([{"apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"], "verbs": ["get"]}]),
                pods(&["get"]),
            ),
            (
                json!([{"apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"], "verbs": ["get"]}]),
                pods(&["get"]),
                json!([]),
            ),
            (
                json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["a", "b"]}]),
                json!([{"apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"], "verbs": ["get"]}]),
                json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["a", "b"]}]),
            ),
            // A part of a resource is a resource of its own.
            (
                json!([{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}]),
                pods(&["get"]),
                json!([{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}]),
            ),
            (
                json!([{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}]),
                json!([{"apiGroups": [""], "resources": ["*/log"], "verbs": ["get"]}]),
                json!([]),
            ),
            (
                json!([{"nonResourceURLs": ["/metrics", "/healthz"], "verbs": ["get"]}]),
                json!([{"nonResourceURLs": ["/health*"], "verbs": ["get"]}]),
                json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]),
            ),
        ] {
            let beyond = rules(wanted.clone()).beyond(&rules(granted.clone()));
            assert_eq!(beyond, rules(missing), "{wanted} beyond {granted}");
        }
    }

    #[test]
    fn rbac_single_rules_are_about_one_resource_and_one_name() {
        let all = rules(json!([
            {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["a", "b"], "verbs": ["get"]},
        ]));
        let reported = all.single().map(|rule| (rule.group, rule.resource, rule.name, rule.verbs));
        assert_eq!(
            reported.collect::<Vec<_>>(),
            [
                ("", "nodes", None, vec!["get", "list"]),
                ("", "pods", None, vec!["get", "list"]),
                ("apps", "deployments", Some("a"), vec!["get"]),
                ("apps", "deployments", Some("b"), vec!["get"]),
            ]
        );
    }

    #[test]
    fn rbac_merge_is_union_and_json_reads_back() {
        let mut all = rules(json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]));
        all.merge(&rules(json!([
            {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list"]},
            {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
        ])));
        let expected = json!([
            {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list"]},
            {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
        ]);
        assert_eq!(json!(all.json()), expected);
        assert_eq!(rules(expected), all);
    }
}
