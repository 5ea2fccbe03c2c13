// SPDX-License-Identifier: Apache-2.0
//! The privileges that a vCenter grants an account, as data; `vcenter/privileges.rs` reads them, `privileges.rs` compares them.

use super::ManagedObject;
use std::collections::{BTreeMap, BTreeSet};

/// What an account may do, as the vCenter answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    /// The account as the vCenter knows it.
    pub principal: String,
    /// The privileges that were asked about and are granted, by identifier of the object.
    pub granted: BTreeMap<String, BTreeSet<String>>,
    /// Everything that is granted, where that was asked for.
    pub all: BTreeMap<ManagedObject, BTreeSet<String>>,
}

impl Granted {
    /// Whether a privilege is granted on an object.
    #[must_use]
    pub fn has(&self, object: &str, privilege: &str) -> bool {
        self.granted.get(object).is_some_and(|held| held.contains(privilege))
    }
}
