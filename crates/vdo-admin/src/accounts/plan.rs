// SPDX-License-Identifier: Apache-2.0
//! Plans the steps of `vdoctl users create`, `shrink` and `delete` for an account, its roles and permissions, and finds conflicts.

use super::principal::Person;
use super::{Authorization, Grant, Mark, OwnRole, Permission, Principal, Role, Step};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::Remedy;
use vdo_vsphere::vsphere::ManagedObject;

/// Why an account cannot be made as it has to be. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// There is such a user, and it is none of ours.
    #[error("user {user} already exists, but was not created by vdoctl users for this cluster, this vCenter and these drivers")]
    ForeignUser {
        /// The user.
        user: String,
    },
    /// It cannot log in.
    #[error("user {user} is {state} in vCenter")]
    Unusable {
        /// The user.
        user: String,
        /// `locked` or `disabled`.
        state: &'static str,
    },
    /// A role of this name can do more than its name stands for.
    #[error("role {role} has privileges that a role of this name must not have: {}", surplus.join(", "))]
    ChangedRole {
        /// The role.
        role: String,
        /// The privileges.
        surplus: Vec<String>,
    },
    /// The account has a role on the object that is none of ours; another one would replace it.
    #[error("{principal} already has role {role} on {kind} {path}, and an account can have only one role on an object")]
    ForeignPermission {
        /// The account.
        principal: String,
        /// The role.
        role: String,
        /// The kind of the object.
        kind: String,
        /// Its path.
        path: String,
        /// What the role lacks for the drivers.
        lacks: Vec<String>,
    },
}

impl Remedy for Conflict {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::ForeignUser { user } => {
                format!("Choose another name with --name, or use this user as it is with --existing {user}.").into()
            }
            Self::Unusable { user, .. } => {
                format!("Unlock or enable {user} in vCenter under Administration, Single Sign On, Users, or delete the user there.").into()
            }
            Self::ChangedRole { .. } => {
                "vdoctl users verify shows who uses the role, and vdoctl users shrink removes the surplus privileges. If \
                 this is your own role, give the role another name."
                    .into()
            }
            Self::ForeignPermission { role, lacks, .. } if lacks.is_empty() => {
                format!("Propagate the permission with role {role} to the children of the object, or use a separate user.").into()
            }
            Self::ForeignPermission { role, lacks, .. } => {
                format!("Add {} to role {role}, or use a separate user.", lacks.join(", ")).into()
            }
        })
    }
}

/// What becomes of the roles of ours that no permission in this vCenter uses any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unused {
    /// They are deleted.
    Deleted,
    /// They stay: vCenters in linked mode share their roles, and the permissions of the others are not seen from here.
    Kept,
}

/// The steps that give an account what is needed. `person` is the user as the identity source has it, `mark` what marks it as ours;
/// without a mark the account belongs to another one, and only gets roles. `password_known` says whether the Secret has its password.
///
/// # Errors
/// When something of another owner is in the way.
pub fn plan_create(
    principal: &Principal,
    mark: Option<&Mark>,
    person: Option<&Person>,
    password_known: bool,
    grants: &[Grant],
    live: &Authorization,
) -> Result<Vec<Step>, Conflict> {
    // The user comes first: where its domain can only be read, nothing else has been changed then.
    let mut steps = Vec::new();
    if let Some(mark) = mark {
        steps.extend(user_step(principal, mark, person, password_known)?);
    }
    let needed: BTreeSet<OwnRole> = grants.iter().map(|grant| OwnRole::of(&grant.privileges)).collect();
    for role in needed {
        match live.named(&role.name) {
            None => steps.push(Step::CreateRole(role)),
            Some(found) => {
                let surplus: Vec<String> = found.privileges.difference(&role.privileges).cloned().collect();
                if !surplus.is_empty() {
                    return Err(Conflict::ChangedRole { role: role.name, surplus });
                }
                steps.extend(corrected(found, role));
            }
        }
    }
    for grant in grants {
        let own = live.of(principal).find(|(permission, _)| permission.object == grant.object);
        steps.extend(grant_step(principal, grant, own)?);
    }
    Ok(steps)
}

fn user_step(principal: &Principal, mark: &Mark, person: Option<&Person>, password_known: bool) -> Result<Option<Step>, Conflict> {
    let user = principal.to_string();
    let Some(person) = person else {
        let description = mark.to_string();
        return Ok(Some(Step::CreateUser { user, description }));
    };
    if person.description.parse().as_ref() != Ok(mark) {
        return Err(Conflict::ForeignUser { user });
    }
    match (person.locked, person.disabled) {
        (true, _) => Err(Conflict::Unusable { user, state: "locked" }),
        (_, true) => Err(Conflict::Unusable { user, state: "disabled" }),
        _ => Ok((!password_known).then_some(Step::SetPassword { user })),
    }
}

/// Gives back what a role of ours lacks, and takes what it has beyond its name.
fn corrected(found: &Role, role: OwnRole) -> Option<Step> {
    let difference = |a: &BTreeSet<String>, b: &BTreeSet<String>| a.difference(b).cloned().collect::<Vec<_>>();
    let add = difference(&role.privileges, &found.privileges);
    let remove = difference(&found.privileges, &role.privileges);
    (!add.is_empty() || !remove.is_empty()).then_some(Step::CorrectRole { role, add, remove })
}

fn grant_step(principal: &Principal, grant: &Grant, own: Option<(&Permission, Option<&Role>)>) -> Result<Option<Step>, Conflict> {
    let role = super::role_name(&grant.privileges);
    let step = |replaces| Step::Grant {
        principal: principal.down_level(),
        group: principal.group,
        object: grant.object.clone(),
        path: grant.path.clone(),
        role: role.clone(),
        propagate: grant.propagate,
        replaces,
    };
    let Some((permission, has)) = own else {
        return Ok(Some(step(None)));
    };
    let Some(has) = has else {
        return Ok(Some(step(Some(format!("role {}", permission.role)))));
    };
    let wide = permission.propagate == grant.propagate;
    if has.is_ours() {
        return Ok((has.name != role || !wide).then(|| step(Some(has.name.clone()))));
    }
    let lacks: Vec<String> = grant.privileges.difference(&has.privileges).cloned().collect();
    if lacks.is_empty() && (permission.propagate || !grant.propagate) {
        return Ok(None);
    }
    Err(Conflict::ForeignPermission {
        principal: principal.to_string(),
        role: has.name.clone(),
        kind: grant.object.kind.clone(),
        path: grant.path.clone(),
        lacks,
    })
}

/// The steps that take from an account exactly what it has of ours and does not need: permissions on objects that no feature in use needs,
/// roles with more privileges than needed there, and what another user has added to a role of ours.
#[must_use]
pub fn plan_shrink(
    principal: &Principal,
    grants: &[Grant],
    live: &Authorization,
    roles: Unused,
    path_of: impl Fn(&ManagedObject) -> String,
) -> Vec<Step> {
    let mut after = live.clone();
    let (mut steps, mut new) = (Vec::new(), BTreeSet::new());
    for (permission, role) in live.of(principal) {
        let Some(role) = role.filter(|role| role.is_ours()) else { continue };
        let needed = grants.iter().find(|grant| grant.object == permission.object);
        let Some(grant) = needed else {
            steps.push(revoke(principal, permission, &role.name, &path_of));
            after.permissions.retain(|other| other != permission);
            continue;
        };
        let wanted = OwnRole::of(&grant.privileges);
        if role.name == wanted.name && permission.propagate == grant.propagate {
            continue;
        }
        // What is missing is for `create`: here only a role that is there already takes the place of a larger one.
        let beyond = !role.privileges.is_subset(&grant.privileges) || (permission.propagate && !grant.propagate);
        if beyond {
            if live.named(&wanted.name).is_none() {
                new.insert(wanted);
            }
            steps.extend(grant_step(principal, grant, Some((permission, Some(role)))).ok().flatten());
            after.permissions.retain(|other| other != permission);
        }
    }
    let granted: BTreeMap<String, OwnRole> = grants
        .iter()
        .map(|grant| OwnRole::of(&grant.privileges))
        .map(|role| (role.name.clone(), role))
        .collect();
    for (name, role) in &granted {
        let found = live.named(name).filter(|found| !found.privileges.is_subset(&role.privileges));
        if let Some(found) = found {
            steps.extend(corrected(found, role.clone()));
        }
    }
    let mut steps: Vec<Step> = new.into_iter().map(Step::CreateRole).chain(steps).collect();
    let keep: BTreeSet<&str> = granted.keys().map(String::as_str).collect();
    steps.extend(unused(live, &after, &keep, roles));
    steps
}

/// The steps after which nothing of an account of ours is left: its permissions, the roles that no one uses then, and itself if `ours`. It
/// goes last: as long as it is there, the next run finds what is left.
#[must_use]
pub fn plan_delete(
    principal: &Principal,
    ours: bool,
    live: &Authorization,
    roles: Unused,
    path_of: impl Fn(&ManagedObject) -> String,
) -> Vec<Step> {
    let mut after = live.clone();
    let mut steps = Vec::new();
    for (permission, role) in live.of(principal) {
        // All that a user of ours has ends with it; of another one only what we gave it.
        if ours || role.is_some_and(Role::is_ours) {
            let name = role.map_or_else(|| permission.role.to_string(), |role| role.name.clone());
            steps.push(revoke(principal, permission, &name, &path_of));
            after.permissions.retain(|other| other != permission);
        }
    }
    steps.extend(unused(live, &after, &BTreeSet::new(), roles));
    if ours {
        steps.push(Step::DeleteUser {
            user: principal.to_string(),
        });
    }
    steps
}

fn revoke(principal: &Principal, permission: &Permission, role: &str, path_of: impl Fn(&ManagedObject) -> String) -> Step {
    Step::Revoke {
        principal: permission.principal.clone(),
        group: principal.group,
        object: permission.object.clone(),
        path: path_of(&permission.object),
        role: role.to_owned(),
    }
}

/// The roles of ours that no permission uses afterwards.
fn unused<'a>(
    live: &'a Authorization,
    after: &Authorization,
    keep: &BTreeSet<&str>,
    roles: Unused,
) -> impl Iterator<Item = Step> + use<'a> {
    let used: BTreeSet<i32> = after.permissions.iter().map(|permission| permission.role).collect();
    let keep: BTreeSet<String> = keep.iter().map(|name| (*name).to_owned()).collect();
    let free = move |role: &&Role| roles == Unused::Deleted && role.is_ours() && !used.contains(&role.id) && !keep.contains(&role.name);
    live.roles
        .iter()
        .filter(free)
        .map(|role| Step::DeleteRole { name: role.name.clone() })
}

#[cfg(test)]
mod tests;
