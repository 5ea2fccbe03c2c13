// SPDX-License-Identifier: Apache-2.0
//! Computes the hash of a plan that a person approves, and the digest of the state that the plan leads to.

use super::{Change, Desired, Plan, Step};
use crate::manifest::Object;
use std::collections::BTreeMap;
use vdo_api::types::{Digest, ObjectId};

/// Objects with parts that are drawn by chance and not decided, such as the keys of a certificate: the digest of each without those
/// parts. A person approves what is decided; that a key is generated again is neither another plan nor another state.
pub type RandomContent = BTreeMap<ObjectId, String>;

/// The hash of what a whole plan would do, for a person to approve: 16 hexadecimal digits. `None` when it would change nothing
/// but bring back what was there.
///
/// It speaks of what is done to which object and to which content. When the plan was made, what other people changed in the
/// meantime and in which order it was read make no difference.
#[must_use]
pub fn hash(plan: &Plan, drawn: &RandomContent) -> Option<String> {
    let mut lines: Vec<String> = plan.writes().filter_map(|step| line(step, drawn)).collect();
    lines.sort();
    (!lines.is_empty()).then(|| Digest::of(lines.join("\n").as_bytes()).hex()[..16].to_owned())
}

fn line(step: &Step, drawn: &RandomContent) -> Option<String> {
    match step {
        Step::Apply { object, change, .. } => {
            let verb = match change {
                Change::Create => "create",
                Change::Update(_) => "apply",
                Change::Adopt(_) => "adopt",
                Change::Restore | Change::Repair(_) => return None,
            };
            Some(format!("{verb} {object} {}", content(object, drawn)))
        }
        Step::Replace { id, uid, digest, .. } => {
            let digest = drawn.get(id).unwrap_or(digest);
            Some(format!("recreate {id} {uid} {digest}"))
        }
        Step::Delete { id, uid, .. } => Some(format!("prune {id} {uid}")),
        Step::Release { id, uid, .. } => Some(format!("release {id} {uid}")),
        // It is drawn by chance.
        Step::Store { .. } | Step::SetFinalizer | Step::Record(_) | Step::Commit(_) | Step::Finish => None,
    }
}

/// The state that a plan leads to, as a digest. Once a person has approved a way to it, every step towards it is approved:
/// the plan itself shrinks with each step, and what is drifted or lost later is brought back to the same state.
#[must_use]
pub fn target(desired: &[Desired], drawn: &RandomContent) -> String {
    let mut lines: Vec<String> = desired
        .iter()
        .map(|d| format!("{} {}", d.object, content(&d.object, drawn)))
        .collect();
    lines.sort();
    Digest::of(lines.join("\n").as_bytes()).to_string()
}

fn content<'a>(object: &'a Object, drawn: &'a RandomContent) -> &'a str {
    match drawn.get(&object.id()) {
        Some(digest) => digest,
        None => object.applied().unwrap_or_default(),
    }
}
