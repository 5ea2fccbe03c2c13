// SPDX-License-Identifier: Apache-2.0
//! Compares the privileges of an account with its needs: missing privileges, and surplus ones with the role or group they come from.

use super::grants::{OF_EVERY_ROLE, is_of_every_role};
use super::{Authorization, Grant, Principal, is_covered};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use vdo_vsphere::vsphere::{Inventory, ManagedObject, RequiredPrivilege};

/// The privileges that an account lacks, and the privileges that it has and does not need.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// The privileges that the account lacks.
    pub missing: Vec<Lack>,
    /// The privileges that the account has and that no feature in use needs.
    pub surplus: Vec<Surplus>,
}

/// A privilege that an account lacks on an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lack {
    /// The privilege.
    pub privilege: String,
    /// The object.
    pub object: ManagedObject,
    /// The inventory path of the object.
    pub path: String,
}

/// A privilege that an account has on an object and does not need.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Surplus {
    /// The privilege.
    pub privilege: String,
    /// The object.
    pub object: ManagedObject,
    /// The inventory path of the object.
    pub path: String,
    /// The source of the privilege.
    pub via: Via,
}

/// The source of a privilege.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(tag = "from", rename_all = "camelCase")]
pub enum Via {
    /// A permission of the account on the object itself.
    Own {
        /// The role.
        role: String,
    },
    /// A permission of the account on an object above, such as a folder.
    Inherited {
        /// The role.
        role: String,
        /// The path of the object that has the permission.
        path: String,
    },
    /// A permission of a group, or a global permission.
    Elsewhere {
        /// The groups that have the privilege on the object; the account may be in one of these groups.
        groups: Vec<String>,
    },
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own { role } => write!(f, "role {role} on this object"),
            Self::Inherited { role, path } => write!(f, "role {role} on {path}, inherited"),
            Self::Elsewhere { groups } if groups.is_empty() => f.write_str("a global permission"),
            Self::Elsewhere { groups } => write!(f, "one of the groups {}, or a global permission", groups.join(", ")),
        }
    }
}

/// An object and what it lies in, nearest first. Of a datastore only its path shows that.
fn way<'a>(inventory: &'a Inventory, object: &'a ManagedObject) -> Vec<&'a str> {
    let above = |from: &'a str| inventory.ancestry(from);
    match object.kind.as_str() {
        "VirtualMachine" => {
            let machine = inventory.machines.iter().find(|machine| machine.id == object.id);
            let folder = machine.map(|machine| above(&machine.folder)).unwrap_or_default();
            std::iter::once(object.id.as_str()).chain(folder).collect()
        }
        "Datastore" => {
            let path = inventory.path_of(object);
            let mut above: Vec<_> = inventory
                .places
                .values()
                .filter(|place| path.starts_with(&format!("{}/", place.path)))
                .collect();
            above.sort_by_key(|place| std::cmp::Reverse(place.path.len()));
            let above = above.into_iter().map(|place| place.object.id.as_str());
            std::iter::once(object.id.as_str())
                .chain(above)
                .chain([inventory.root.id.as_str()])
                .collect()
        }
        _ => above(&object.id),
    }
}

/// What the permissions of a group give on these objects; of groups a vCenter answers no question about privileges in effect. On each object
/// the nearest permission counts.
#[must_use]
pub fn held_by_group(
    group: &Principal,
    objects: &[ManagedObject],
    live: &Authorization,
    inventory: &Inventory,
) -> BTreeMap<ManagedObject, BTreeSet<String>> {
    let held = |object: &ManagedObject| {
        let way = way(inventory, object);
        let nearest = way.iter().enumerate().find_map(|(at, id)| {
            let mut here = live.of(group).filter(|(permission, _)| permission.object.id == *id);
            here.find(|(permission, _)| at == 0 || permission.propagate)
        });
        let role = nearest.and_then(|(_, role)| role);
        let always = OF_EVERY_ROLE.map(str::to_owned);
        role.map(|role| role.privileges.iter().cloned().chain(always).collect())
            .unwrap_or_default()
    };
    objects.iter().map(|object| (object.clone(), held(object))).collect()
}

/// Holds what an account may do in effect against what it needs. `effective` is what the vCenter reports for the account on each object,
/// inherited privileges and those of groups included.
#[must_use]
pub fn review(
    principal: &Principal,
    required: &[RequiredPrivilege],
    grants: &[Grant],
    effective: &BTreeMap<ManagedObject, BTreeSet<String>>,
    live: &Authorization,
    inventory: &Inventory,
) -> Review {
    let ways: BTreeMap<&ManagedObject, Vec<&str>> = effective.keys().map(|object| (object, way(inventory, object))).collect();
    let covered = |object: &ManagedObject, privilege: &str| ways.get(object).is_some_and(|way| is_covered(grants, way, privilege));
    let has = |object: &ManagedObject, privilege: &str| effective.get(object).is_some_and(|held| held.contains(privilege));
    let missing: BTreeSet<Lack> = required
        .iter()
        .filter(|one| covered(&one.object, &one.privilege) && !has(&one.object, &one.privilege))
        .map(|one| Lack {
            privilege: one.privilege.clone(),
            object: one.object.clone(),
            path: one.path.clone(),
        })
        .collect();
    let mut surplus = Vec::new();
    for (object, held) in effective {
        let beyond = held
            .iter()
            .filter(|privilege| !is_of_every_role(privilege) && !covered(object, privilege));
        surplus.extend(beyond.map(|privilege| Surplus {
            privilege: privilege.clone(),
            object: object.clone(),
            path: inventory.path_of(object).to_owned(),
            via: via(
                principal,
                privilege,
                ways.get(object).map(Vec::as_slice).unwrap_or_default(),
                live,
                inventory,
            ),
        }));
    }
    surplus.sort();
    Review {
        missing: missing.into_iter().collect(),
        surplus,
    }
}

fn via(principal: &Principal, privilege: &str, way: &[&str], live: &Authorization, inventory: &Inventory) -> Via {
    let gives = |role: i32| live.role(role).filter(|role| role.privileges.contains(privilege));
    for (at, id) in way.iter().enumerate() {
        let here = live.of(principal).filter(|(permission, _)| permission.object.id == *id);
        for (permission, _) in here.filter(|(permission, _)| at == 0 || permission.propagate) {
            let Some(role) = gives(permission.role).map(|role| role.name.clone()) else {
                continue;
            };
            return match at {
                0 => Via::Own { role },
                _ => Via::Inherited {
                    role,
                    path: inventory.path_of(&permission.object).to_owned(),
                },
            };
        }
    }
    let reaches = |object: &str, propagate: bool| way.first() == Some(&object) || (propagate && way.contains(&object));
    let groups = live
        .permissions
        .iter()
        .filter(|one| one.group && reaches(&one.object.id, one.propagate) && gives(one.role).is_some());
    let groups: BTreeSet<String> = groups.map(|one| one.principal.clone()).collect();
    Via::Elsewhere {
        groups: groups.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::grants::tests::{required, site};
    use super::super::{Permission, Role, grants};
    use super::*;
    use vdo_vsphere::vsphere::Feature;

    const DISK: &str = "VirtualMachine.Config.AddExistingDisk";

    fn object(kind: &str, id: &str) -> ManagedObject {
        ManagedObject {
            kind: kind.into(),
            id: id.into(),
        }
    }

    /// An account with exactly what it needs, changed a little: what is reported then.
    fn reviewed(change: impl FnOnce(&mut BTreeMap<ManagedObject, BTreeSet<String>>, &mut Authorization)) -> Review {
        let site = site(&["k8s", "workers", "vm"], 2);
        let block = required(&[Feature::Block], &site);
        let granted = grants(&block, &site.0, &site.1, &BTreeSet::new()).expect("grants");
        let mut effective: BTreeMap<ManagedObject, BTreeSet<String>> = BTreeMap::new();
        for one in &block {
            effective.entry(one.object.clone()).or_default().insert(one.privilege.clone());
        }
        let role = |id: i32, name: &str, privileges: &[&str]| Role {
            id,
            name: name.into(),
            system: false,
            privileges: privileges.iter().map(|one| (*one).to_owned()).collect(),
        };
        let mut live = Authorization {
            roles: vec![role(1, "Import", &["VApp.Import"]), role(2, "Disks", &[DISK])],
            permissions: vec![],
        };
        change(&mut effective, &mut live);
        review(
            &Principal::user("k8s", "vsphere.local"),
            &block,
            &granted,
            &effective,
            &live,
            &site.0,
        )
    }

    /// Remove any single privilege: exactly that one is named.
    #[test]
    fn review_names_each_single_missing_privilege() {
        assert_eq!(reviewed(|_, _| ()), Review::default());
        let site = site(&["k8s", "workers", "vm"], 2);
        for one in required(&[Feature::Block], &site) {
            let found = reviewed(|effective, _| _ = effective.get_mut(&one.object).map(|held| held.remove(&one.privilege)));
            let named: Vec<_> = found.missing.iter().map(|lack| (&lack.object, &lack.privilege)).collect();
            assert_eq!(named, [(&one.object, &one.privilege)]);
            assert_eq!(found.surplus, []);
        }
    }

    /// Add one: it is named, with the permission that it comes from.
    #[test]
    fn review_names_surplus_and_where_it_comes_from() {
        let machine = object("VirtualMachine", "vm-0");
        let has = |privilege: &'static str, role: i32, at: ManagedObject, who: &'static str, group, propagate| {
            let found = reviewed(|effective, live| {
                effective.entry(machine.clone()).or_default().insert(privilege.into());
                live.permissions.push(Permission {
                    object: at,
                    principal: who.into(),
                    group,
                    role,
                    propagate,
                });
            });
            assert_eq!((found.missing.len(), found.surplus.len()), (0, 1), "{found:?}");
            found.surplus[0].via.to_string()
        };
        let user = "VSPHERE.LOCAL\\k8s";
        assert_eq!(
            has("VApp.Import", 1, machine.clone(), user, false, false),
            "role Import on this object"
        );
        assert_eq!(
            has("VApp.Import", 1, object("Datacenter", "dc"), user, false, true),
            "role Import on /DC0, inherited"
        );
        assert_eq!(
            has("VApp.Import", 1, object("Datacenter", "dc"), "X\\storage", true, true),
            "one of the groups X\\storage, or a global permission"
        );
        assert_eq!(
            has("VApp.Import", 1, object("Datacenter", "dc"), "X\\storage", true, false),
            "a global permission"
        );
    }

    /// The nearest permission of the group counts, that of a user of the same name does not, nor does one that is not passed on.
    #[test]
    fn review_of_a_group_follows_its_permissions() {
        let site = site(&["k8s", "workers", "vm"], 2);
        let group = Principal {
            group: true,
            ..Principal::user("keepers", "vsphere.local")
        };
        let machine = object("VirtualMachine", "vm-0");
        let role = |id: i32, privilege: &str| Role {
            id,
            privileges: [privilege.to_owned()].into(),
            ..Role::default()
        };
        let permission = |kind: &str, id: &str, group: bool, role: i32, propagate: bool| Permission {
            object: object(kind, id),
            principal: "VSPHERE.LOCAL\\keepers".into(),
            group,
            role,
            propagate,
        };
        let above = permission("Datacenter", "dc", true, 1, true);
        for (permissions, expected) in [
            (vec![], None),
            (vec![above.clone()], Some("One")),
            (vec![permission("Datacenter", "dc", true, 1, false)], None),
            (vec![permission("VirtualMachine", "vm-0", false, 1, false)], None),
            (
                vec![above.clone(), permission("VirtualMachine", "vm-0", true, 2, false)],
                Some("Two"),
            ),
            (vec![above, permission("Folder", "k8s", true, 2, true)], Some("Two")),
        ] {
            let live = Authorization {
                roles: vec![role(1, "One"), role(2, "Two")],
                permissions,
            };
            let held = held_by_group(&group, std::slice::from_ref(&machine), &live, &site.0);
            let all = expected.map(|one| [&OF_EVERY_ROLE[..], &[one]].concat()).unwrap_or_default();
            let all: BTreeSet<String> = all.into_iter().map(str::to_owned).collect();
            assert_eq!(held[&machine], all, "{live:?}");
        }
    }

    /// What a permission passes on by itself is not a surplus; the same on a machine of another owner is.
    #[test]
    fn review_of_a_folder_knows_what_it_passes_on() {
        let add = |kind: &'static str, id: &'static str| {
            reviewed(|effective, _| _ = effective.entry(object(kind, id)).or_default().insert(DISK.into())).surplus
        };
        assert_eq!(add("Folder", "workers"), []);
        assert_eq!(add("VirtualMachine", "vm-2").len(), 1);
        assert_eq!(add("Datastore", "ds")[0].path, "/DC0/datastore/ds");
    }
}
