// SPDX-License-Identifier: Apache-2.0
//! The steps of a move with the write of each (patch, apply or delete), the waits between the steps, and their texts for people.

use serde_json::{Value, json};
use std::fmt;
use vdo_api::types::count;
use vdo_core::drivers::Driver;
use vdo_core::installed::{MOVED, Moving, Phase};
use vdo_core::manifest::{CONTENT, Object, merge_patch};

/// What comes next.
#[derive(Clone)]
pub enum Next {
    /// A step.
    Do(Step),
    /// Nothing before the cluster has done something.
    Wait(Wait),
    /// Nothing before a person has done something.
    Blocked {
        /// Which object, and what happened to it.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// Nothing.
    Done,
}

/// A step.
#[derive(Clone)]
pub enum Step {
    /// Copies the configuration of an old workload that the operator has an object of the same name for.
    Save(Object),
    /// Takes the pods from an old workload.
    Stop(Object),
    /// Keeps the pods of an old node plugin where they are until their node is moved.
    Hold(Object),
    /// Writes down that an old workload has no pods any more.
    Confirm(Object),
    /// Moves a node to the new node plugin.
    Take(Object),
    /// Takes the label from a node.
    Unlabel(Object),
    /// Has the operator write nothing any more.
    Pause(Object),
    /// Deletes a workload of the operator.
    Remove(Object),
    /// Writes configuration as it was before, over what is there now.
    PutBack(Object, Option<Object>),
    /// Makes an old workload what it was before.
    Restore(Object),
    /// Deletes the copy of configuration.
    Discard(Object),
}

/// What the cluster has to do.
#[derive(Clone)]
pub enum Wait {
    /// An old workload has so many pods that end.
    Gone(Object, usize),
    /// A driver of the operator is not healthy yet, and why.
    Installed(&'static Driver, String),
    /// A node waits for something.
    Node(String, &'static str),
    /// The operator has not seen the VDOConfig as it is.
    Observed,
    /// A pod of the operator's driver ends.
    Left(String),
}

/// One write.
pub enum Write {
    /// A merge patch.
    Merge(Object, Value),
    /// An object that is applied.
    Apply(Value),
    /// A deletion.
    Delete(Object),
}

impl Step {
    /// What is written.
    #[must_use]
    pub fn write(&self) -> Write {
        let merge = |object: &Object, to: &Value| Write::Merge(object.clone(), merge_patch(object.value(), to));
        let label = |node: &Object, value: Value| Write::Merge(node.clone(), json!({"metadata": {"labels": {MOVED: value}}}));
        match self {
            Self::Save(object) => Write::Apply(copy(object)),
            Self::Stop(object) => merge(object, &Moving::changed(object, Phase::Stopping)),
            Self::Hold(object) => merge(object, &Moving::changed(object, Phase::Leaving)),
            Self::Confirm(object) => merge(object, &Moving::changed(object, Phase::Stopped)),
            Self::Take(node) => label(node, "true".into()),
            Self::Unlabel(node) => label(node, Value::Null),
            Self::Pause(config) => Write::Merge(config.clone(), json!({"spec": {"managementState": "Paused"}})),
            Self::Remove(object) | Self::Discard(object) => Write::Delete(object.clone()),
            Self::PutBack(saved, live) => put_back(saved, live.as_ref()),
            Self::Restore(object) => match Moving::of(object) {
                Some(mark) => merge(object, &mark.restored(object)),
                None => Write::Merge(object.clone(), json!({})),
            },
        }
    }

    /// The object that it is about.
    #[must_use]
    pub const fn object(&self) -> &Object {
        match self {
            Self::Save(object)
            | Self::Stop(object)
            | Self::Hold(object)
            | Self::Confirm(object)
            | Self::Take(object)
            | Self::Unlabel(object)
            | Self::Pause(object)
            | Self::Remove(object)
            | Self::PutBack(object, _)
            | Self::Restore(object)
            | Self::Discard(object) => object,
        }
    }

    /// A word for programs.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Save(_) => "save",
            Self::Stop(_) => "stop",
            Self::Hold(_) => "hold",
            Self::Confirm(_) => "confirm",
            Self::Take(_) => "move",
            Self::Unlabel(_) => "unlabel",
            Self::Pause(_) => "pause",
            Self::Remove(_) => "remove",
            Self::PutBack(..) => "putBack",
            Self::Restore(_) => "restore",
            Self::Discard(_) => "discard",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = self.object();
        match self {
            Self::Save(_) => write!(f, "{object}: copied to {}", copied_name(object)),
            Self::Stop(_) if object.kind() == "DaemonSet" => write!(f, "{object}: its pods no longer run on any node"),
            Self::Stop(_) => {
                let replicas = object.number("/spec/replicas").unwrap_or(1);
                write!(f, "{object}: scaled from {replicas} to 0 replicas")
            }
            Self::Hold(_) => write!(f, "{object}: its pods stay until their nodes are moved"),
            Self::Confirm(_) => write!(f, "{object}: stopped"),
            Self::Take(_) => write!(f, "{object}: moved to the new node plugin"),
            Self::Unlabel(_) => write!(f, "{object}: label {MOVED} removed"),
            Self::Pause(_) => write!(f, "{object}: paused, the operator writes nothing"),
            Self::Remove(_) => write!(f, "{object}: deleted"),
            Self::PutBack(..) => write!(f, "{object}: its content from before the move is restored"),
            Self::Restore(_) => write!(f, "{object}: restored to the state before the move"),
            Self::Discard(_) => write!(f, "{object}: the copy is deleted"),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(object, pods) => write!(f, "{} of {object} to terminate", count(*pods, "pod")),
            Self::Installed(driver, why) if why.is_empty() => write!(f, "the operator to install {}", driver.name),
            Self::Installed(driver, why) => write!(f, "the operator to install {}: {why}", driver.name),
            Self::Node(node, what) => write!(f, "{what} on Node {node}"),
            Self::Observed => f.write_str("the operator to read the current VDOConfig"),
            Self::Left(pod) => write!(f, "pod {pod} to terminate"),
        }
    }
}

/// What the copy of an object is called.
fn copied_name(object: &Object) -> String {
    format!("{}{COPIED}", object.name())
}

/// The end of the names of copies.
pub const COPIED: &str = ".moved";

/// The copy of a ConfigMap or Secret.
fn copy(object: &Object) -> Value {
    let metadata = json!({"name": copied_name(object), "namespace": object.namespace(), "labels": {MOVED: "true"}});
    let mut copy = json!({"apiVersion": "v1", "kind": object.kind(), "metadata": metadata});
    content(&mut copy, object);
    if let Some(kind) = object.value().get("type") {
        copy["type"] = kind.clone();
    }
    copy
}

fn content(copy: &mut Value, of: &Object) {
    for key in CONTENT {
        if let Some(content) = of.value().get(key) {
            copy[key] = content.clone();
        }
    }
}

fn put_back(saved: &Object, live: Option<&Object>) -> Write {
    let Some(live) = live else {
        let name = saved.name().strip_suffix(COPIED).unwrap_or(saved.name());
        let mut whole = json!({"apiVersion": "v1", "kind": saved.kind(), "metadata": {"name": name, "namespace": saved.namespace()}});
        content(&mut whole, saved);
        if let Some(kind) = saved.value().get("type") {
            whole["type"] = kind.clone();
        }
        return Write::Apply(whole);
    };
    let mut wanted = live.value().clone();
    if let Some(wanted) = wanted.as_object_mut() {
        CONTENT.iter().for_each(|key| drop(wanted.shift_remove(*key)));
    }
    content(&mut wanted, saved);
    Write::Merge(live.clone(), merge_patch(live.value(), &wanted))
}
