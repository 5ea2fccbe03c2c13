// SPDX-License-Identifier: Apache-2.0
//! What deploy/ grants as single rights, and what no right may be.

use crate::common::NS;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fmt;
use std::path::Path;
use vdo_testbed::Entry;

/// One verb on one resource, maybe by one name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The namespace of the Role; none for a ClusterRole.
    pub namespace: Option<String>,
    pub group: String,
    pub resource: String,
    pub verb: String,
    /// The name it is restricted to, if any.
    pub name: Option<String>,
}

impl Right {
    /// Whether it is about the definitions of snapshots, without which the drivers run.
    pub fn is_of_snapshots(&self) -> bool {
        self.name.as_ref().is_some_and(|name| name.ends_with(".snapshot.storage.k8s.io"))
    }

    /// Whether a request makes use of it.
    pub fn allows(&self, entry: &Entry) -> bool {
        let resource = match entry.subresource.as_str() {
            "" => entry.resource.clone(),
            sub => format!("{}/{sub}", entry.resource),
        };
        // Server-side apply of an object that is not there needs both verbs; the answer 201 says that it was made.
        let verb = entry.verb == self.verb || (self.verb == "create" && entry.verb == "patch" && entry.code == 201);
        let namespace = self.namespace.as_ref().is_none_or(|namespace| *namespace == entry.namespace);
        let name = self.name.as_ref().is_none_or(|name| *name == entry.name);
        verb && namespace && name && self.group == entry.api_group && self.resource == resource
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(f, "{} {}{dot}{}", self.verb, self.resource, self.group)?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in {namespace}"),
            None => write!(f, " everywhere"),
        }
    }
}

/// All objects of a file in deploy/.
pub fn documents(file: &str) -> Result<Vec<Value>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file);
    Ok(vdo_api::yaml::load_all(&std::fs::read_to_string(file)?)?)
}

/// The file with the rights of the operator.
const OPERATOR: &str = "rbac.yaml";

/// The roles of a file, cluster-wide and in namespaces.
fn roles(file: &str) -> Result<Vec<Value>> {
    let all = documents(file)?;
    let found: Vec<Value> = all
        .into_iter()
        .filter(|d| matches!(d["kind"].as_str(), Some("Role" | "ClusterRole")))
        .collect();
    ensure!(!found.is_empty(), "no role in {file}");
    Ok(found)
}

/// The rights that a role gives, one by one.
pub fn rights(role: &Value) -> Result<Vec<Right>> {
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut all = Vec::new();
    for rule in role["rules"].as_array().context("rules")? {
        let names = texts(&rule["resourceNames"]);
        let names: Vec<Option<String>> = if names.is_empty() {
            vec![None]
        } else {
            names.into_iter().map(Some).collect()
        };
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    all.extend(names.iter().map(|name| Right {
                        namespace: role["metadata"]["namespace"].as_str().map(str::to_owned),
                        group: group.clone(),
                        resource: resource.clone(),
                        verb: verb.clone(),
                        name: name.clone(),
                    }));
                }
            }
        }
    }
    Ok(all)
}

/// The roles of the operator, each with its rights.
pub struct Roles(pub Vec<(Value, Vec<Right>)>);

impl Roles {
    pub fn read() -> Result<Self> {
        let roles = roles(OPERATOR)?.into_iter().map(|role| {
            let rights = rights(&role)?;
            Ok((role, rights))
        });
        Ok(Self(roles.collect::<Result<_>>()?))
    }

    /// Everything the operator may do, as single rights.
    pub fn all(&self) -> Vec<Right> {
        self.0.iter().flat_map(|(_, rights)| rights.clone()).collect()
    }
}

/// What is wrong with a right, no matter who holds it.
fn objection(right: &Right, written: bool) -> Option<&'static str> {
    let texts = [&right.group, &right.resource, &right.verb];
    if texts.iter().any(|text| text.contains('*')) {
        return Some("a wildcard");
    }
    if matches!(right.verb.as_str(), "escalate" | "impersonate") {
        return Some("a verb that gives everything");
    }
    if right.verb == "bind" && right.name.is_none() {
        return Some("bind without a name");
    }
    // The names of credentials in the operator's own namespace are chosen by the administrator.
    let at_home = right.namespace.as_deref() == Some(NS) && matches!(right.verb.as_str(), "list" | "watch");
    if written && right.resource == "secrets" && right.name.is_none() && !at_home {
        return Some("Secrets without a name");
    }
    if written && right.resource == "secrets" && right.namespace.is_none() {
        return Some("Secrets of every namespace");
    }
    let changes = !matches!(right.verb.as_str(), "get" | "list" | "watch");
    if written && changes && right.group == "rbac.authorization.k8s.io" {
        return Some("a write to what grants rights");
    }
    let starts_pods = matches!(
        right.resource.as_str(),
        "pods" | "replicationcontrollers" | "deployments" | "daemonsets" | "replicasets" | "statefulsets" | "jobs" | "cronjobs"
    );
    if written && changes && starts_pods && (right.namespace.is_none() || right.name.is_none()) {
        return Some("a write to workloads that are not the drivers'");
    }
    // Classes have the names that the VDOConfig gives them.
    if written
        && right.name.is_none()
        && !matches!(right.resource.as_str(), "storageclasses" | "volumesnapshotclasses")
        && matches!(right.verb.as_str(), "delete" | "deletecollection")
        && right.namespace.as_deref() != Some(NS)
    {
        return Some("delete without a name");
    }
    None
}

#[test]
fn rights_as_written_are_not_too_wide() -> Result<()> {
    let mut objections = Vec::new();
    for (file, written) in [(OPERATOR, true), ("drivers-rbac.yaml", false)] {
        for role in roles(file)? {
            ensure!(!role.to_string().contains("nonResourceURLs"), "addresses that are not resources");
            for right in rights(&role)? {
                if let Some(what) = objection(&right, written) {
                    objections.push(format!("{file}: {what}: {right}"));
                }
            }
        }
    }
    ensure!(objections.is_empty(), "{objections:#?}");
    Ok(())
}

#[test]
fn objection_to_a_right_that_is_too_wide_is_raised() {
    let right = |resource: &str, verb: &str, name: Option<&str>| Right {
        namespace: Some("n".into()),
        group: if resource.contains("role") {
            "rbac.authorization.k8s.io".into()
        } else {
            String::new()
        },
        resource: resource.into(),
        verb: verb.into(),
        name: name.map(str::to_owned),
    };
    let everywhere = |right: Right| Right { namespace: None, ..right };
    for (right, seen) in [
        (right("*", "list", None), true),
        (right("clusterroles", "escalate", Some("a")), true),
        (right("clusterroles", "bind", None), true),
        (right("clusterroles", "bind", Some("a")), true),
        (right("roles", "patch", Some("a")), true),
        (right("roles", "watch", Some("a")), false),
        (right("secrets", "watch", None), true),
        (right("secrets", "watch", Some("a")), false),
        (right("deployments", "delete", None), true),
        (right("deployments", "patch", Some("a")), false),
        (right("deployments", "patch", None), true),
        (everywhere(right("deployments", "patch", Some("a"))), true),
        (everywhere(right("secrets", "watch", Some("a"))), true),
    ] {
        assert_eq!(objection(&right, true).is_some(), seen, "{right}");
    }
}
