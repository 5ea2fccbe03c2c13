// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor privileges --required`: prints the roles that accounts need on each vCenter object, as a table or for govc or PowerCLI.

use super::super::args::Commands;
use super::super::style::{head, table};
use super::super::views::doctor::{OfConnection, RequiredAccountView, RequiredRoleView, RequiredRolesView};
use std::collections::{BTreeMap, BTreeSet};
use vdo_admin::accounts::{Language, OwnRole, Step, commands};
use vdo_vsphere::vsphere::{ManagedObject, Privileges};

/// Every role has them by itself.
const IN_EVERY_ROLE: &str = "System.";

/// The role that vCenter has for those who only read.
const READ_ONLY: &str = "ReadOnly";

/// A role and where it is needed. An account has one role on an object, so what several documents name for one object is one role here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Role {
    /// Its name.
    pub name: String,
    /// Its privileges, without those that every role has.
    pub privileges: BTreeSet<String>,
    /// The objects by path.
    pub objects: BTreeMap<String, ManagedObject>,
}

/// The roles that an account needs.
pub(super) fn roles(privileges: &Privileges) -> Vec<Role> {
    /// What is needed on an object: the roles of documents, and the privileges.
    type Need = (BTreeSet<String>, BTreeSet<String>);
    let missing = privileges
        .missing
        .iter()
        .map(|one| (&one.path, one.object.clone(), &one.role, &one.privilege));
    let held = privileges.held.iter().map(|one| {
        let (kind, id) = (one.kind.clone(), one.id.clone());
        (&one.path, ManagedObject { kind, id }, &one.role, &one.privilege)
    });
    let mut needs: BTreeMap<(String, ManagedObject), Need> = BTreeMap::new();
    for (path, object, role, privilege) in missing.chain(held) {
        let (names, wanted) = needs.entry((path.clone(), object)).or_default();
        if !privilege.starts_with(IN_EVERY_ROLE) {
            names.insert(role.clone());
            wanted.insert(privilege.clone());
        }
    }
    let mut roles: BTreeMap<String, Role> = BTreeMap::new();
    for ((path, object), (names, wanted)) in needs {
        let name = match names.len() {
            0 => READ_ONLY.to_owned(),
            _ => names.into_iter().collect::<Vec<_>>().join("-AND-"),
        };
        let role = roles.entry(name.clone()).or_default();
        role.name = name;
        role.privileges.extend(wanted);
        role.objects.insert(path, object);
    }
    roles.into_values().collect()
}

/// What is shown to programs.
pub(super) fn view(accounts: &[OfConnection<Privileges>]) -> RequiredRolesView {
    let role = |role: Role| RequiredRoleView {
        role: role.name,
        privileges: role.privileges,
        objects: role.objects.into_keys().collect(),
        propagate: false,
    };
    let account = |account: &OfConnection<Privileges>| RequiredAccountView {
        connection: account.connection.clone(),
        principal: account.of.principal.clone(),
        roles: roles(&account.of).into_iter().map(role).collect(),
    };
    RequiredRolesView {
        accounts: accounts.iter().map(account).collect(),
    }
}

/// For people, or for the tool that they use.
pub(super) fn text(accounts: &[OfConnection<Privileges>], tool: Option<Commands>) -> String {
    let of = |OfConnection {
                  connection,
                  of: privileges,
              }: &OfConnection<Privileges>| match tool {
        None => {
            let title = format!("{}  {}\n", head(&format!("CONNECTION {connection}")), privileges.principal);
            let rows = roles(privileges).into_iter().flat_map(rows).collect::<Vec<_>>();
            title + &table(&["ROLE", "PRIVILEGE", "ON"], &rows)
        }
        Some(tool) => script(tool.into(), connection, privileges),
    };
    accounts.iter().map(of).collect::<Vec<_>>().join("\n")
}

/// The privileges beside the objects, in as many lines as the longer list needs.
fn rows(role: Role) -> Vec<Vec<String>> {
    let mut privileges: Vec<String> = role.privileges.into_iter().collect();
    if privileges.is_empty() {
        privileges.push("(read-only)".into());
    }
    let objects: Vec<String> = role.objects.into_keys().collect();
    let at = |list: &[String], line: usize| list.get(line).cloned().unwrap_or_default();
    (0..privileges.len().max(objects.len()))
        .map(|line| {
            vec![
                if line == 0 { role.name.clone() } else { String::new() },
                at(&privileges, line),
                at(&objects, line),
            ]
        })
        .collect()
}

/// Commands that make the roles and give them to the account.
fn script(language: Language, connection: &str, privileges: &Privileges) -> String {
    let mut steps = Vec::new();
    for Role {
        name,
        privileges: own,
        objects,
    } in roles(privileges)
    {
        if name != READ_ONLY {
            let name = name.clone();
            steps.push(Step::CreateRole(OwnRole { name, privileges: own }));
        }
        steps.extend(objects.into_iter().map(|(path, object)| Step::Grant {
            principal: privileges.principal.clone(),
            group: false,
            object,
            path,
            role: name.clone(),
            propagate: false,
            replaces: None,
        }));
    }
    format!(
        "# connection {connection}, account {}\n{}",
        privileges.principal,
        commands(language, &steps)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_vsphere::vsphere::{HeldPrivilege, MissingPrivilege};

    fn account() -> OfConnection<Privileges> {
        let missing = |privilege: &str, role: &str| MissingPrivilege {
            object: ManagedObject {
                kind: "VirtualMachine".into(),
                id: "vm-1".into(),
            },
            path: "/DC0/vm/w 1".into(),
            privilege: privilege.into(),
            role: role.into(),
            ..MissingPrivilege::default()
        };
        let held = |kind: &str, id: &str, path: &str, privilege: &str, role: &str| HeldPrivilege {
            kind: kind.into(),
            id: id.into(),
            path: path.into(),
            privilege: privilege.into(),
            role: role.into(),
            ..HeldPrivilege::default()
        };
        let privileges = Privileges {
            principal: "VSPHERE.LOCAL\\k8s".into(),
            missing: vec![
                missing("VirtualMachine.Config.AddExistingDisk", "CNS-VM"),
                missing("System.Read", "ReadOnly"),
            ],
            held: vec![
                held("Folder", "group-d1", "/", "Cns.Searchable", "CNS-SEARCH-AND-SPBM"),
                held("Datacenter", "datacenter-2", "/DC0", "System.Read", "ReadOnly"),
            ],
            ..Privileges::default()
        };
        OfConnection {
            of: privileges,
            connection: "vc1".into(),
        }
    }

    #[test]
    fn required_roles_are_one_for_each_object() {
        let roles: Vec<String> = roles(&account().of)
            .into_iter()
            .map(|role| {
                let (privileges, objects): (Vec<String>, Vec<String>) =
                    (role.privileges.into_iter().collect(), role.objects.into_keys().collect());
                format!("{}: {} on {}", role.name, privileges.join(","), objects.join(","))
            })
            .collect();
        assert_eq!(
            roles,
            [
                "CNS-SEARCH-AND-SPBM: Cns.Searchable on /",
                "CNS-VM: VirtualMachine.Config.AddExistingDisk on /DC0/vm/w 1",
                "ReadOnly:  on /DC0",
            ]
        );
    }

    #[test]
    fn required_roles_as_commands_quote_paths_and_accounts() {
        let all = [account()];
        assert_eq!(
            text(&all, Some(Commands::Govc)),
            "# connection vc1, account VSPHERE.LOCAL\\k8s\nset -eu\n\
             govc role.create CNS-SEARCH-AND-SPBM Cns.Searchable\n\
             govc permissions.set -principal \"VSPHERE.LOCAL\\\\k8s\" -role CNS-SEARCH-AND-SPBM -propagate=false /\n\
             govc role.create CNS-VM VirtualMachine.Config.AddExistingDisk\n\
             govc permissions.set -principal \"VSPHERE.LOCAL\\\\k8s\" -role CNS-VM -propagate=false '/DC0/vm/w 1'\n\
             govc permissions.set -principal \"VSPHERE.LOCAL\\\\k8s\" -role ReadOnly -propagate=false /DC0\n"
        );
        let powercli = text(&all, Some(Commands::Powercli));
        assert!(
            powercli.contains("New-VIRole -Name 'CNS-VM' -Privilege (Get-VIPrivilege -Id 'VirtualMachine.Config.AddExistingDisk')"),
            "{powercli}"
        );
        assert!(
            powercli.contains("(Get-VIObjectByVIView -MORef 'VirtualMachine-vm-1') -Principal 'VSPHERE.LOCAL\\k8s'"),
            "{powercli}"
        );
    }
}
