// SPDX-License-Identifier: Apache-2.0
//! The roles and permissions of a vCenter as data, and the name of a role from the digest of its privileges.

use super::Principal;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use vdo_vsphere::vsphere::ManagedObject;

/// What the name of every role of ours begins with.
const PREFIX: &str = "vdo-";

/// A role as a vCenter has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Role {
    /// Its number.
    pub id: i32,
    /// Its name.
    pub name: String,
    /// Whether it came with the vCenter.
    pub system: bool,
    /// Its privileges without System.Anonymous, System.Read and System.View, which every role has.
    pub privileges: BTreeSet<String>,
}

impl Role {
    /// Whether it is one of ours: by its name alone, because a vCenter keeps nothing else of a role that could mark it.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        let digest = self
            .name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.rsplit_once('-'))
            .map(|(_, digest)| digest);
        let digits = |text: &str| text.len() == 8 && text.chars().all(|c| c.is_ascii_hexdigit());
        !self.system && digest.is_some_and(digits)
    }
}

/// A role that vdoctl manages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema)]
pub struct OwnRole {
    /// The name of the role.
    pub name: String,
    /// Its privileges, without the privileges that every role has.
    pub privileges: BTreeSet<String>,
}

impl OwnRole {
    /// The role with these privileges.
    #[must_use]
    pub fn of(privileges: &BTreeSet<String>) -> Self {
        Self {
            name: role_name(privileges),
            privileges: privileges.clone(),
        }
    }
}

/// The name of the role with these privileges. It holds a digest of them, so a role never has to change: two clusters, two administrators
/// and two versions of vdoctl that need the same privileges use the same role, and those that need others do not meet.
#[must_use]
pub fn role_name(privileges: &BTreeSet<String>) -> String {
    let groups: BTreeSet<String> = privileges
        .iter()
        .filter_map(|privilege| privilege.split('.').next())
        .map(str::to_lowercase)
        .collect();
    let about = match groups.is_empty() {
        true => "read".to_owned(),
        false => groups.into_iter().collect::<Vec<_>>().join("-"),
    };
    let listed: Vec<&str> = privileges.iter().map(String::as_str).collect();
    let digest = hex::encode(Sha256::digest(listed.join("\n")));
    format!("{PREFIX}{about}-{}", &digest[..8])
}

/// What an account may do on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// The object.
    pub object: ManagedObject,
    /// The user or group as the vCenter spells it.
    pub principal: String,
    /// Whether that is a group.
    pub group: bool,
    /// The number of the role.
    pub role: i32,
    /// Whether it holds for everything below the object.
    pub propagate: bool,
}

/// All roles and permissions of a vCenter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Authorization {
    /// The roles.
    pub roles: Vec<Role>,
    /// The permissions.
    pub permissions: Vec<Permission>,
}

impl Authorization {
    /// The role of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Role> {
        self.roles.iter().find(|role| role.name == name)
    }

    /// The role of this number.
    #[must_use]
    pub fn role(&self, id: i32) -> Option<&Role> {
        self.roles.iter().find(|role| role.id == id)
    }

    /// The permissions of a user or group itself, with their roles.
    pub fn of<'a>(&'a self, principal: &'a Principal) -> impl Iterator<Item = (&'a Permission, Option<&'a Role>)> {
        let own = move |permission: &&Permission| permission.group == principal.group && principal.is(&permission.principal);
        self.permissions
            .iter()
            .filter(own)
            .map(|permission| (permission, self.role(permission.role)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(privileges: &[&str]) -> BTreeSet<String> {
        privileges.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn role_names_follow_the_privileges() {
        assert_eq!(role_name(&set(&[])), "vdo-read-e3b0c442");
        let search = role_name(&set(&["StorageProfile.View", "Cns.Searchable"]));
        assert!(search.starts_with("vdo-cns-storageprofile-"), "{search}");
        assert_ne!(search, role_name(&set(&["StorageProfile.View", "Cns.Searchable", "Cns.More"])));
    }

    #[test]
    fn role_is_ours_by_its_name() {
        for (name, system, ours) in [
            (role_name(&set(&["Datastore.FileManagement"])), false, true),
            ("vdo-read-e3b0c442".into(), true, false),
            ("vdo-admins".into(), false, false),
            ("CNS-VM".into(), false, false),
            ("vdo-e3b0c44g".into(), false, false),
        ] {
            let role = Role {
                name,
                system,
                ..Role::default()
            };
            assert_eq!(role.is_ours(), ours, "{role:?}");
        }
    }
}
