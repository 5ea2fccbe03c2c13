// SPDX-License-Identifier: Apache-2.0
//! Applies the patches of `spec.patches` to rendered objects, and records which patch wrote which field.
//!
//! ```text
//! chart --render--> objects --patches, one after the other--> objects, and which patch wrote which field
//! ```
//!
//! A patch applies as a whole, or is refused with a reason. It changes content: identity, ownership and the set of containers are not content.

mod json;
mod patched_fields;
mod strategic;
#[cfg(test)]
mod tests;

use crate::chart::object_id;
use crate::rbac::is_prerequisite;
use patched_fields::{Written, collision, forbidden};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use vdo_api::api::{Patch, PatchTarget, VDOConfigSpec};
use vdo_api::types::ObjectId;

/// The patches of a driver, each with its place in `spec.patches`.
pub type Numbered = Vec<(usize, Patch)>;

/// A patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{patch} does not apply to {subject}: {problem}")]
pub struct PatchRefused {
    /// The patch, or several, as `spec.patches[0]`.
    pub patch: String,
    /// The driver with its version, or the object.
    pub subject: String,
    /// What is wrong with it.
    pub problem: String,
}

/// The place of a patch in the specification.
#[must_use]
pub fn origin(patch: usize) -> String {
    format!("spec.patches[{patch}]")
}

/// Which patches wrote what.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origins(BTreeMap<ObjectId, Vec<(usize, Written)>>);

impl Origins {
    /// The patches that wrote something of an object, in their order.
    #[must_use]
    pub fn of(&self, object: &ObjectId) -> Vec<String> {
        let all: BTreeSet<usize> = self.0.get(object).into_iter().flatten().map(|(patch, _)| *patch).collect();
        all.into_iter().map(origin).collect()
    }

    /// The patches that wrote the field at this path, or something below it or around it; all of the object, where none did.
    #[must_use]
    pub fn of_field(&self, object: &ObjectId, path: &str) -> Vec<String> {
        let all = self.0.get(object).into_iter().flatten();
        let near = |written: &Written| {
            let own = written.path.to_string();
            own.starts_with(path) || path.starts_with(&own)
        };
        let found: BTreeSet<usize> = all.filter(|(_, written)| near(written)).map(|(patch, _)| *patch).collect();
        match found.is_empty() {
            true => self.of(object),
            false => found.into_iter().map(origin).collect(),
        }
    }

    /// Adds those of another driver.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// The patches of a specification for one driver.
#[must_use]
pub fn of_driver(spec: &VDOConfigSpec, driver: &str) -> Numbered {
    let numbered = spec.patches.iter().enumerate();
    numbered
        .filter(|(_, patch)| patch.target.driver == driver)
        .map(|(at, patch)| (at, patch.clone()))
        .collect()
}

/// Patches for drivers that are not among these, each with the driver that it names.
#[must_use]
pub fn of_no_driver(spec: &VDOConfigSpec, drivers: &BTreeSet<String>) -> Vec<(String, PatchRefused)> {
    let numbered = spec.patches.iter().enumerate();
    let lost = numbered.filter(|(_, patch)| !drivers.contains(&patch.target.driver));
    lost.map(|(at, patch)| {
        let driver = &patch.target.driver;
        let refused = PatchRefused {
            patch: origin(at),
            subject: driver.clone(),
            problem: format!("the VDOConfig requests no driver of this name; it requests {}", listed(drivers)),
        };
        (driver.clone(), refused)
    })
    .collect()
}

/// Applies the patches of a driver to the objects of its chart. `driver` is its name with its version.
///
/// # Errors
/// With the first patch that matches no object, does not apply, changes what no patch may change, or writes a field that an earlier one
/// writes with another value.
pub fn apply(objects: &mut [Value], driver: &str, patches: &[(usize, Patch)]) -> Result<Origins, PatchRefused> {
    let mut origins = Origins::default();
    for (at, patch) in patches {
        let refused = |subject: &dyn fmt::Display, problem: String| PatchRefused {
            patch: origin(*at),
            subject: subject.to_string(),
            problem,
        };
        let mut matched = false;
        for object in objects.iter_mut() {
            let Ok(id) = object_id(object) else { continue };
            if !matches(&patch.target, &id) {
                continue;
            }
            matched = true;
            let written = of_object(object, &id, patch).map_err(|problem| refused(&id, problem))?;
            let earlier = origins.0.entry(id.clone()).or_default();
            if let Some((other, path)) = collision(earlier, &written) {
                return Err(refused(
                    &id,
                    format!(
                        "{} writes another value to {path}; let only one of the two patches write this field",
                        origin(other)
                    ),
                ));
            }
            earlier.extend(written.into_iter().map(|written| (*at, written)));
        }
        if !matched {
            return Err(refused(&driver, unmatched(objects, &patch.target)));
        }
    }
    Ok(origins)
}

/// Applies a patch to one object, which stays as it is when the patch does not apply.
fn of_object(object: &mut Value, id: &ObjectId, patch: &Patch) -> Result<Vec<Written>, String> {
    if is_prerequisite(id) {
        return Err("an administrator creates objects of this kind, and the operator does not write them".into());
    }
    if id.kind() == "Secret" {
        return Err("Secrets are not patched; their content comes from the specification and from the vSphere connections".into());
    }
    let mut changed = object.clone();
    let mut written = Vec::new();
    match (&patch.json_patch, &patch.strategic_merge) {
        (Some(operations), None) if !operations.is_empty() => json::apply(&mut changed, id.kind(), operations, &mut written)?,
        (None, Some(part)) if !part.is_empty() => {
            strategic::apply(&mut changed, id.kind(), part, &mut written)?;
            if written.is_empty() {
                // The API server drops null from most requests, so that nothing is left of a merge that only removes.
                return Err("strategicMerge writes no field; to remove a field, use the operation remove of jsonPatch".into());
            }
        }
        _ => return Err("it needs either jsonPatch or strategicMerge, and the field must not be empty".into()),
    }
    if let Some(problem) = written.iter().find_map(|written| forbidden(&written.path)) {
        return Err(problem);
    }
    same_containers(object, &changed)?;
    *object = changed;
    Ok(written)
}

fn matches(target: &PatchTarget, id: &ObjectId) -> bool {
    target.kind == id.kind() && target.name.as_deref().is_none_or(|name| fits(name, &id.name))
}

/// Whether a text is as the pattern says, in which `*` is any text.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// What there is instead of an object that a patch names.
fn unmatched(objects: &[Value], target: &PatchTarget) -> String {
    let named = target.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let ids = || objects.iter().filter_map(|object| object_id(object).ok());
    let same: BTreeSet<String> = ids().filter(|id| id.kind() == target.kind).map(|id| id.name.to_string()).collect();
    let found = match same.is_empty() {
        true => listed(&ids().map(|id| id.kind().to_owned()).collect()),
        false => listed(&same),
    };
    format!("the chart has no {}{named}; it has {found}", target.kind)
}

fn listed(words: &BTreeSet<String>) -> String {
    match words.is_empty() {
        true => "none".into(),
        false => Vec::from_iter(words.iter().map(String::as_str)).join(", "),
    }
}

/// The containers are the chart's: a patch brings none and takes none away.
fn same_containers(before: &Value, after: &Value) -> Result<(), String> {
    let (old, new) = (containers(before), containers(after));
    if let Some(name) = old.difference(&new).next() {
        return Err(format!("container {name} of the chart would be removed"));
    }
    match new.difference(&old).next() {
        Some(name) => Err(format!("the chart has no container {name}; it has {}", listed(&old))),
        None => Ok(()),
    }
}

/// The names of all containers, wherever the template of the pods is.
fn containers(value: &Value) -> BTreeSet<String> {
    const LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];
    let pods = ["/spec", "/spec/template/spec", "/spec/jobTemplate/spec/template/spec"];
    let pods = pods.into_iter().filter_map(|at| value.pointer(at));
    let lists = pods.flat_map(|pod| LISTS.into_iter().filter_map(|list| pod.get(list)?.as_array()));
    let name = |container: &Value| container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    lists.flatten().map(name).collect()
}
