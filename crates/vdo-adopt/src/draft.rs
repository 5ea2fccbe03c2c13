// SPDX-License-Identifier: Apache-2.0
//! An object that an adoption builds, with the origin of each field.

use crate::origin::Origin;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// An object with the origins of its fields.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The object.
    pub object: Value,
    /// Where its fields were found, by their paths.
    pub origins: BTreeMap<Vec<String>, Origin>,
}

impl Draft {
    pub(crate) fn new(object: Value) -> Self {
        Self {
            object,
            origins: BTreeMap::new(),
        }
    }

    /// Sets a field and notes where it was found.
    pub(crate) fn set(&mut self, path: &[&str], value: impl Into<Value>, origin: &Origin) {
        let mut at = &mut self.object;
        for step in path {
            if !at.is_object() {
                *at = json!({});
            }
            at = &mut at[*step];
        }
        *at = value.into();
        self.note(path, origin);
    }

    /// Notes where a field was found.
    pub(crate) fn note(&mut self, path: &[&str], origin: &Origin) {
        let path = path.iter().map(|step| (*step).to_owned()).collect();
        self.origins.insert(path, origin.clone());
    }
}
