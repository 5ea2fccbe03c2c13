// SPDX-License-Identifier: Apache-2.0
//! Prints the steps of `vdoctl users` as a script (`--emit govc` or `powercli`), for administrators who make the changes themselves.

use super::{Principal, Step};
use std::collections::BTreeSet;
use vdo_api::types::shell_word;

/// The tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// govc, in a shell.
    Govc,
    /// `PowerCLI`, in `PowerShell`.
    PowerCli,
}

/// A script that carries out the steps. A password is asked for where one is needed, and is in no command.
#[must_use]
pub fn commands(language: Language, steps: &[Step]) -> String {
    let asks = steps
        .iter()
        .any(|step| matches!(step, Step::CreateUser { .. } | Step::SetPassword { .. }));
    let mut lines: Vec<String> = Vec::new();
    match language {
        Language::Govc => {
            lines.push("set -eu".into());
            if asks {
                lines.push("printf 'New password for the account: ' >&2; stty -echo; IFS= read -r PASSWORD; stty echo; echo >&2".into());
            }
            lines.extend(steps.iter().flat_map(govc));
        }
        Language::PowerCli => {
            lines.push("$ErrorActionPreference = 'Stop'".into());
            if asks {
                lines.push("$account = Get-Credential -Message 'New password for the account' -UserName 'account'".into());
            }
            lines.extend(steps.iter().flat_map(powercli));
        }
    }
    lines.join("\n") + "\n"
}

fn bare(user: &str) -> String {
    user.parse::<Principal>()
        .map_or_else(|_| user.to_owned(), |principal| principal.name)
}

fn govc(step: &Step) -> Vec<String> {
    let word = |text: &str| shell_word(text).into_owned();
    let listed = |privileges: &[String]| privileges.iter().map(|one| format!(" {}", word(one))).collect::<String>();
    let group = |group: &bool| if *group { " -group" } else { "" };
    vec![match step {
        Step::CreateRole(role) => {
            let privileges: Vec<String> = role.privileges.iter().cloned().collect();
            format!("govc role.create {}{}", word(&role.name), listed(&privileges))
        }
        Step::CorrectRole { role, add, remove } => {
            let change = |flag: &str, privileges: &[String]| {
                (!privileges.is_empty()).then(|| format!("govc role.update {flag} {}{}", word(&role.name), listed(privileges)))
            };
            return [change("-a", add), change("-r", remove)].into_iter().flatten().collect();
        }
        Step::CreateUser { user, description } => {
            format!(
                "govc sso.user.create -d {} -p \"$PASSWORD\" {}",
                word(description),
                word(&bare(user))
            )
        }
        Step::SetPassword { user } => format!("govc sso.user.update -p \"$PASSWORD\" {}", word(&bare(user))),
        Step::Grant {
            principal,
            group: is,
            path,
            role,
            propagate,
            ..
        } => format!(
            "govc permissions.set -principal {}{} -role {} -propagate={propagate} {}",
            word(principal),
            group(is),
            word(role),
            word(path)
        ),
        Step::Revoke {
            principal,
            group: is,
            path,
            ..
        } => {
            format!("govc permissions.remove -principal {}{} {}", word(principal), group(is), word(path))
        }
        Step::DeleteUser { user } => format!("govc sso.user.rm {}", word(&bare(user))),
        Step::DeleteRole { name } => format!("govc role.remove {}", word(name)),
    }]
}

fn powercli(step: &Step) -> Vec<String> {
    let word = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let listed = |privileges: &BTreeSet<String>| privileges.iter().map(|one| word(one)).collect::<Vec<_>>().join(",");
    let set = |privileges: &[String]| listed(&privileges.iter().cloned().collect());
    let entity = |kind: &str, id: &str| format!("(Get-VIObjectByVIView -MORef {})", word(&format!("{kind}-{id}")));
    let sso_user = |user: &str| {
        let domain = user.parse::<Principal>().map(|principal| principal.domain).unwrap_or_default();
        format!("(Get-SsoPersonUser -Name {} -Domain {})", word(&bare(user)), word(&domain))
    };
    vec![match step {
        Step::CreateRole(role) if role.privileges.is_empty() => {
            format!(
                "New-VIRole -Name {} -Privilege (Get-VIPrivilege -Id 'System.Read') | Out-Null",
                word(&role.name)
            )
        }
        Step::CreateRole(role) => {
            format!(
                "New-VIRole -Name {} -Privilege (Get-VIPrivilege -Id {}) | Out-Null",
                word(&role.name),
                listed(&role.privileges)
            )
        }
        Step::CorrectRole { role, add, remove } => {
            let change = |flag: &str, privileges: &[String]| {
                let role = word(&role.name);
                let all = set(privileges);
                (!privileges.is_empty())
                    .then(|| format!("Set-VIRole -Role {role} {flag} (Get-VIPrivilege -Id {all}) -Confirm:$false | Out-Null"))
            };
            return [change("-AddPrivilege", add), change("-RemovePrivilege", remove)]
                .into_iter()
                .flatten()
                .collect();
        }
        Step::CreateUser { user, description } => format!(
            "New-SsoPersonUser -UserName {} -Password $account.GetNetworkCredential().Password -Description {} | Out-Null",
            word(&bare(user)),
            word(description)
        ),
        Step::SetPassword { user } => {
            format!(
                "{} | Set-SsoPersonUser -NewPassword $account.GetNetworkCredential().Password | Out-Null",
                sso_user(user)
            )
        }
        Step::Grant {
            principal,
            object,
            role,
            propagate,
            replaces,
            ..
        } => {
            let object = entity(&object.kind, &object.id);
            let grant = format!(
                "New-VIPermission -Entity {object} -Principal {} -Role {} -Propagate:${propagate} | Out-Null",
                word(principal),
                word(role)
            );
            let old = format!(
                "Get-VIPermission -Entity {object} -Principal {} | Remove-VIPermission -Confirm:$false",
                word(principal)
            );
            return replaces.iter().map(|_| old.clone()).chain([grant]).collect();
        }
        Step::Revoke { principal, object, .. } => format!(
            "Get-VIPermission -Entity {} -Principal {} | Where-Object {{ -not $_.IsInherited }} | Remove-VIPermission -Confirm:$false",
            entity(&object.kind, &object.id),
            word(principal)
        ),
        Step::DeleteUser { user } => format!("{} | Remove-SsoPersonUser", sso_user(user)),
        Step::DeleteRole { name } => format!("Remove-VIRole -Role {} -Confirm:$false", word(name)),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::OwnRole;
    use super::*;
    use vdo_vsphere::vsphere::ManagedObject;

    fn steps() -> Vec<Step> {
        let object = ManagedObject {
            kind: "VirtualMachine".into(),
            id: "vm-7".into(),
        };
        let principal = "VSPHERE.LOCAL\\k8s".to_owned();
        vec![
            Step::CreateRole(OwnRole::of(&["Datastore.FileManagement".to_owned()].into())),
            Step::CreateUser {
                user: "k8s@vsphere.local".into(),
                description: "it's ours".into(),
            },
            Step::Grant {
                principal: principal.clone(),
                group: false,
                object: object.clone(),
                path: "/DC0/vm/a b".into(),
                role: "r".into(),
                propagate: false,
                replaces: None,
            },
            Step::Revoke {
                principal,
                group: true,
                object,
                path: "/DC0/vm/a b".into(),
                role: "r".into(),
            },
            Step::DeleteUser {
                user: "k8s@vsphere.local".into(),
            },
        ]
    }

    #[test]
    fn commands_of_govc_are_words_of_a_shell() {
        let script = commands(Language::Govc, &steps());
        for line in [
            "govc role.create vdo-datastore-",
            r#"govc sso.user.create -d "it's ours" -p "$PASSWORD" k8s"#,
            r#"govc permissions.set -principal "VSPHERE.LOCAL\\k8s" -role r -propagate=false '/DC0/vm/a b'"#,
            r#"govc permissions.remove -principal "VSPHERE.LOCAL\\k8s" -group '/DC0/vm/a b'"#,
            "govc sso.user.rm k8s",
        ] {
            assert!(script.contains(line), "{line} is not in\n{script}");
        }
        assert!(!commands(Language::Govc, &steps()[2..]).contains("PASSWORD"));
    }

    #[test]
    fn commands_of_powercli_quote_as_powershell_does() {
        let script = commands(Language::PowerCli, &steps());
        for line in [
            "New-VIRole -Name 'vdo-datastore-",
            "-Description 'it''s ours'",
            "New-VIPermission -Entity (Get-VIObjectByVIView -MORef 'VirtualMachine-vm-7') -Principal 'VSPHERE.LOCAL\\k8s' -Role 'r' -Propagate:$false",
            "(Get-SsoPersonUser -Name 'k8s' -Domain 'vsphere.local') | Remove-SsoPersonUser",
        ] {
            assert!(script.contains(line), "{line} is not in\n{script}");
        }
    }
}
