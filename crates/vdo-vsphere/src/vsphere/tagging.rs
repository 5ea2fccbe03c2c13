// SPDX-License-Identifier: Apache-2.0
//! The tags and storage policies of a vCenter as data.

use std::collections::{BTreeMap, BTreeSet};

/// The tags of a vCenter, as far as they were asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tagging {
    /// The names of the categories that were looked for and exist.
    pub categories: BTreeSet<String>,
    /// The tags on each object as category and name, by identifier of the object.
    pub attached: BTreeMap<String, BTreeSet<(String, String)>>,
}

/// A storage policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Whether volumes that it places are encrypted.
    pub encrypts: bool,
}
