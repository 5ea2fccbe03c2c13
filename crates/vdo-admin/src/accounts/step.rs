// SPDX-License-Identifier: Apache-2.0
//! One change of a role, user or permission in a vCenter, and its text for people; `fixes/step.rs` has the changes of machines and tags.

use super::OwnRole;
use serde::Serialize;
use std::fmt;
use vdo_api::types::count;
use vdo_vsphere::vsphere::ManagedObject;

/// One change in a vCenter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "step", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Step {
    /// A role is created.
    CreateRole(OwnRole),
    /// A role of vdoctl that another user has changed gets its original privileges again.
    CorrectRole {
        /// The role with its original privileges.
        role: OwnRole,
        /// The privileges that are added.
        add: Vec<String>,
        /// The privileges that are removed.
        remove: Vec<String>,
    },
    /// A user is created, with a new password.
    CreateUser {
        /// The user name with the domain.
        user: String,
        /// The description, by which vdoctl recognises the user.
        description: String,
    },
    /// A user of vdoctl gets a new password, because no one knows its current password.
    SetPassword {
        /// The user name with the domain.
        user: String,
    },
    /// An account gets a role on an object.
    Grant {
        /// The account as the vCenter spells it.
        principal: String,
        /// Whether the account is a group.
        group: bool,
        /// The object.
        object: ManagedObject,
        /// The inventory path of the object.
        path: String,
        /// The name of the role.
        role: String,
        /// Whether the permission propagates to all objects below.
        propagate: bool,
        /// The role of the account on the object that is replaced.
        #[serde(skip_serializing_if = "Option::is_none")]
        replaces: Option<String>,
    },
    /// An account loses its role on an object.
    Revoke {
        /// The account as the vCenter spells it.
        principal: String,
        /// Whether the account is a group.
        group: bool,
        /// The object.
        object: ManagedObject,
        /// Its path, or its identifier if the path is not known.
        path: String,
        /// The name of the role.
        role: String,
    },
    /// A user is deleted.
    DeleteUser {
        /// The user name with the domain.
        user: String,
    },
    /// A role that no permission uses any more is deleted.
    DeleteRole {
        /// The name of the role.
        name: String,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |privileges: &[String]| privileges.join(", ");
        match self {
            Self::CreateRole(role) if role.privileges.is_empty() => write!(f, "create role {} (read-only)", role.name),
            Self::CreateRole(role) => {
                let privileges: Vec<String> = role.privileges.iter().cloned().collect();
                write!(f, "create role {} ({})", role.name, listed(&privileges))
            }
            Self::CorrectRole { role, add, remove } => {
                write!(f, "change role {}", role.name)?;
                if !add.is_empty() {
                    write!(f, ", add {}", listed(add))?;
                }
                if !remove.is_empty() {
                    write!(f, ", remove {}", listed(remove))?;
                }
                Ok(())
            }
            Self::CreateUser { user, .. } => write!(f, "create user {user} with a new password"),
            Self::SetPassword { user } => write!(f, "set a new password for user {user}"),
            Self::Grant {
                object,
                path,
                role,
                propagate,
                replaces,
                ..
            } => {
                let below = if *propagate { " and everything below it" } else { "" };
                let instead = replaces.iter().map(|old| format!(" instead of {old}")).collect::<String>();
                write!(f, "grant role {role} on {} {path}{below}{instead}", object.kind)
            }
            Self::Revoke { object, path, role, .. } => write!(f, "revoke role {role} on {} {path}", object.kind),
            Self::DeleteUser { user } => write!(f, "delete user {user}"),
            Self::DeleteRole { name } => write!(f, "delete role {name}"),
        }
    }
}

impl Step {
    /// The steps as a list for people: of many permissions of one role on one kind of object, the first ones are named.
    #[must_use]
    pub fn lines(steps: &[Self]) -> Vec<String> {
        const NAMED: usize = 5;
        let mut lines: Vec<String> = Vec::new();
        let mut rest = steps;
        while let Some(first) = rest.first() {
            let same = rest.iter().take_while(|step| step.is_like(first)).count();
            let named = if same > NAMED + 1 { NAMED } else { same };
            lines.extend(rest[..named].iter().map(ToString::to_string));
            if named < same {
                lines.push(format!("the same on {}", count(same - named, "more object")));
            }
            rest = &rest[same..];
        }
        lines
    }

    /// Whether it is the same change on another object.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Grant {
                    object,
                    role,
                    propagate,
                    replaces,
                    ..
                },
                Self::Grant {
                    object: o,
                    role: r,
                    propagate: p,
                    replaces: s,
                    ..
                },
            ) => (&object.kind, role, propagate, replaces) == (&o.kind, r, p, s),
            (Self::Revoke { object, role, .. }, Self::Revoke { object: o, role: r, .. }) => (&object.kind, role) == (&o.kind, r),
            _ => self == other,
        }
    }
}
