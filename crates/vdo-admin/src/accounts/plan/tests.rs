// SPDX-License-Identifier: Apache-2.0
use super::super::grants::tests::{required, site};
use super::super::{grants, role_name};
use super::*;
use vdo_vsphere::vsphere::Feature;

fn k8s() -> Principal {
    Principal::user("k8s", "vsphere.local")
}

fn mark() -> Mark {
    Mark {
        cluster: "0c9c2a4e".into(),
        vcenter: "8b1f2c9e".into(),
        drivers: ["csi".to_owned()].into(),
    }
}

fn ours() -> Person {
    Person {
        name: "k8s".into(),
        description: mark().to_string(),
        ..Person::default()
    }
}

fn wanted(features: &[Feature]) -> Vec<Grant> {
    let site = site(&["vm", "vm"], 1);
    grants(&required(features, &site), &site.0, &site.1, &BTreeSet::new()).expect("grants")
}

/// What a vCenter does with a step.
fn carry_out(live: &mut Authorization, steps: &[Step]) {
    for step in steps {
        match step {
            Step::CreateRole(role) | Step::CorrectRole { role, .. } => {
                let id = live
                    .named(&role.name)
                    .map_or_else(|| i32::try_from(live.roles.len()).expect("few") + 100, |found| found.id);
                live.roles.retain(|other| other.id != id);
                live.roles.push(Role {
                    id,
                    name: role.name.clone(),
                    system: false,
                    privileges: role.privileges.clone(),
                });
            }
            Step::Grant {
                principal,
                group,
                object,
                role,
                propagate,
                ..
            } => {
                let role = live.named(role).expect("a role").id;
                live.permissions
                    .retain(|other| other.object != *object || other.principal != *principal);
                live.permissions.push(Permission {
                    object: object.clone(),
                    principal: principal.clone(),
                    group: *group,
                    role,
                    propagate: *propagate,
                });
            }
            Step::Revoke { principal, object, .. } => {
                live.permissions
                    .retain(|other| other.object != *object || other.principal != *principal);
            }
            Step::DeleteRole { name } => {
                let id = live.named(name).expect("a role").id;
                assert!(
                    live.permissions.iter().all(|permission| permission.role != id),
                    "a role in use was deleted"
                );
                live.roles.retain(|role| role.name != *name);
            }
            Step::CreateUser { .. } | Step::SetPassword { .. } | Step::DeleteUser { .. } => {}
        }
    }
}

fn foreign(name: &str, privileges: &[&str]) -> Role {
    Role {
        id: 7,
        name: name.into(),
        system: false,
        privileges: privileges.iter().map(|one| (*one).to_owned()).collect(),
    }
}

fn permission(object: &str, kind: &str, principal: &str, role: i32, propagate: bool) -> Permission {
    Permission {
        object: ManagedObject {
            kind: kind.into(),
            id: object.into(),
        },
        principal: principal.into(),
        group: false,
        role,
        propagate,
    }
}

fn create(person: Option<&Person>, known: bool, grants: &[Grant], live: &Authorization) -> Result<Vec<Step>, Conflict> {
    plan_create(&k8s(), Some(&mark()), person, known, grants, live)
}

fn path_of(object: &ManagedObject) -> String {
    object.id.clone()
}

/// Killed after any step, the next run does what is left, and a run after the end has nothing to do.
#[test]
fn plan_create_goes_on_from_any_step() {
    let wanted = wanted(&[Feature::Block, Feature::Topology]);
    let whole = create(None, false, &wanted, &Authorization::default()).expect("a plan");
    assert!(
        matches!(whole[0], Step::CreateUser { .. }),
        "the domain is tried before anything else is changed"
    );
    for done in 0..=whole.len() {
        let mut live = Authorization::default();
        carry_out(&mut live, &whole[..done]);
        let person = whole[..done].iter().any(|step| matches!(step, Step::CreateUser { .. })).then(ours);
        let rest = create(person.as_ref(), false, &wanted, &live).expect("a plan");
        let forgotten = usize::from(person.is_some());
        assert_eq!(
            rest.len(),
            whole.len() - done + forgotten,
            "after {done}: the password alone is new"
        );
        carry_out(&mut live, &rest);
        assert_eq!(create(Some(&ours()), true, &wanted, &live), Ok(vec![]));
    }
}

/// Of what belongs to others nothing is changed.
#[test]
fn plan_create_conflicts_are_refused() {
    let wanted = wanted(&[Feature::Block]);
    let none = Authorization::default();
    let stranger = Person {
        description: "storage team".into(),
        ..ours()
    };
    let other_cluster = Person {
        description: mark().to_string().replace("0c9c2a4e", "11111111"),
        ..ours()
    };
    let other_vcenter = Person {
        description: mark().to_string().replace("8b1f2c9e", "11111111"),
        ..ours()
    };
    for person in [&stranger, &other_cluster, &other_vcenter] {
        assert!(matches!(
            create(Some(person), false, &wanted, &none),
            Err(Conflict::ForeignUser { .. })
        ));
    }
    for (locked, disabled) in [(true, false), (false, true)] {
        let person = Person {
            locked,
            disabled,
            ..ours()
        };
        assert!(matches!(
            create(Some(&person), true, &wanted, &none),
            Err(Conflict::Unusable { .. })
        ));
    }
    let root = role_name(&["Cns.Searchable".to_owned(), "StorageProfile.View".into()].into());
    let changed = Authorization {
        roles: vec![foreign(&root, &["Cns.Searchable", "StorageProfile.View", "VApp.Import"])],
        permissions: vec![],
    };
    let error = create(None, false, &wanted, &changed).expect_err("an error");
    assert!(
        matches!(&error, Conflict::ChangedRole { surplus, .. } if *surplus == ["VApp.Import"]),
        "{error}"
    );
    let taken = Authorization {
        roles: vec![foreign("Storage", &["Cns.Searchable"])],
        permissions: vec![permission("root", "Folder", "k8s@vsphere.local", 7, false)],
    };
    let error = create(None, false, &wanted, &taken).expect_err("an error");
    assert_eq!(
        error.to_string(),
        "k8s@vsphere.local already has role Storage on Folder /, and an account can have only one role on an object"
    );
    assert!(
        error
            .remedy()
            .is_some_and(|remedy| remedy.contains("Add StorageProfile.View to role Storage"))
    );
}

/// A role of another owner that gives what is needed stays; a role of ours that lost something gets it back.
#[test]
fn plan_create_uses_what_is_there() {
    let wanted = wanted(&[Feature::Block]);
    let enough = Authorization {
        roles: vec![foreign("Storage", &["Cns.Searchable", "StorageProfile.View", "More.Than.That"])],
        permissions: vec![permission("root", "Folder", "VSPHERE.LOCAL\\k8s", 7, false)],
    };
    let steps = create(None, false, &wanted, &enough).expect("a plan");
    assert!(
        steps.iter().all(|step| !matches!(step, Step::Grant { path, .. } if path == "/")),
        "{steps:?}"
    );
    let mut live = Authorization::default();
    let steps = create(None, false, &wanted, &live).expect("a plan");
    carry_out(&mut live, &steps);
    let role = live.roles.iter_mut().find(|role| role.privileges.len() == 2).expect("a role");
    let lost = role.privileges.pop_first().expect("a privilege");
    let steps = create(Some(&ours()), true, &wanted, &live).expect("a plan");
    assert!(
        matches!(&steps[..], [Step::CorrectRole { add, remove, .. }] if *add == [lost] && remove.is_empty()),
        "{steps:?}"
    );
}

/// Exactly the surplus goes, and after it nothing is missing.
#[test]
fn plan_shrink_after_a_feature_was_switched_off() {
    let (large, small) = (
        wanted(&[Feature::Block, Feature::Topology, Feature::CloudProvider]),
        wanted(&[Feature::CloudProvider]),
    );
    let mut live = Authorization::default();
    let steps = create(None, false, &large, &live).expect("a plan");
    carry_out(&mut live, &steps);
    let other = permission(
        "elsewhere",
        "Folder",
        "VSPHERE.LOCAL\\other",
        live.named("vdo-read-e3b0c442").expect("a role").id,
        true,
    );
    live.permissions.push(other.clone());
    let steps = plan_shrink(&k8s(), &small, &live, Unused::Deleted, path_of);
    carry_out(&mut live, &steps);
    assert_eq!(create(Some(&ours()), true, &small, &live), Ok(vec![]), "{steps:?}");
    assert_eq!(plan_shrink(&k8s(), &small, &live, Unused::Deleted, path_of), []);
    assert_eq!(live.permissions.len(), small.len() + 1);
    assert!(live.permissions.contains(&other));
    assert_eq!(live.roles.len(), 1, "roles without use are deleted: {:?}", live.roles);
}

#[test]
fn plan_shrink_takes_what_was_added_to_a_role() {
    let wanted = wanted(&[Feature::Block]);
    let mut live = Authorization::default();
    let steps = create(None, false, &wanted, &live).expect("a plan");
    carry_out(&mut live, &steps);
    live.roles[0].privileges.insert("VApp.Import".into());
    let steps = plan_shrink(&k8s(), &wanted, &live, Unused::Deleted, path_of);
    assert!(
        matches!(&steps[..], [Step::CorrectRole { remove, .. }] if *remove == ["VApp.Import"]),
        "{steps:?}"
    );
}

/// Nothing of ours stays, and nothing of others goes, from any step on.
#[test]
fn plan_delete_leaves_what_belongs_to_others() {
    let wanted = wanted(&[Feature::Block]);
    let mut full = Authorization::default();
    let steps = create(None, false, &wanted, &full).expect("a plan");
    carry_out(&mut full, &steps);
    full.roles.push(foreign("Storage", &[]));
    full.permissions.push(permission("x", "Folder", "VSPHERE.LOCAL\\k8s", 7, false));
    full.permissions.push(permission("y", "Folder", "VSPHERE.LOCAL\\other", 7, false));
    let whole = plan_delete(&k8s(), true, &full, Unused::Deleted, path_of);
    assert!(
        matches!(whole.last(), Some(Step::DeleteUser { .. })),
        "without the user nothing is found any more: {whole:?}"
    );
    for done in 0..whole.len() {
        let mut live = full.clone();
        carry_out(&mut live, &whole[..done]);
        let rest = plan_delete(&k8s(), true, &live, Unused::Deleted, path_of);
        carry_out(&mut live, &rest);
        assert_eq!((live.roles.len(), live.permissions.len()), (1, 1), "after {done}");
    }
    let mut live = full.clone();
    carry_out(&mut live, &plan_delete(&k8s(), false, &full, Unused::Deleted, path_of));
    assert_eq!(
        (live.roles.len(), live.permissions.len()),
        (1, 2),
        "a user of another owner keeps its own role"
    );
}

/// In linked mode another vCenter may use a role that no permission of this one uses.
#[test]
fn plan_delete_keeps_the_roles_of_linked_vcenters() {
    let wanted = wanted(&[Feature::Block]);
    let mut live = Authorization::default();
    let steps = create(None, false, &wanted, &live).expect("a plan");
    carry_out(&mut live, &steps);
    for steps in [
        plan_delete(&k8s(), true, &live, Unused::Kept, path_of),
        plan_shrink(&k8s(), &[], &live, Unused::Kept, path_of),
    ] {
        assert!(steps.iter().any(|step| matches!(step, Step::Revoke { .. })), "{steps:?}");
        assert!(!steps.iter().any(|step| matches!(step, Step::DeleteRole { .. })), "{steps:?}");
    }
}
