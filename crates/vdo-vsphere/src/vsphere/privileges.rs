// SPDX-License-Identifier: Apache-2.0
//! Compares required and granted privileges: missing and surplus ones, the check Authorized and the status.
//!
//! `required_privileges.rs` computes the required ones.

use super::check::shell;
use super::{Advice, Check, Finding, RequiredPrivilege};
use super::{Feature, Granted, Inventory, ManagedObject, Requirements};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::{ConditionType, PrivilegesStatus, Reason};
use vdo_api::types::DriverName;
use vdo_api::types::name_list;
use vdo_core::drivers::{CLOUD_PROVIDER, STORAGE};

/// The privileges that an account has in a vCenter, compared with the privileges that the drivers need.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Privileges {
    /// The account as the vCenter knows it.
    pub principal: String,
    /// How many pairs of object and privilege were checked.
    pub checked: usize,
    /// The privileges that the account lacks.
    pub missing: Vec<MissingPrivilege>,
    /// The required privileges that the account has.
    pub held: Vec<HeldPrivilege>,
    /// The privileges that the account has and does not need, if they were requested.
    pub surplus: Vec<SurplusPrivileges>,
}

/// A privilege that an account lacks on an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MissingPrivilege {
    /// The object.
    pub object: ManagedObject,
    /// The inventory path of the object, or its identifier if the account cannot see the object.
    pub path: String,
    /// The privilege as the API spells it.
    pub privilege: String,
    /// The privilege as the vSphere Client spells it.
    pub shown_as: String,
    /// The features that need the privilege.
    pub features: BTreeSet<Feature>,
    /// The role in the driver's documentation that contains the privilege.
    pub role: String,
    /// The source that shows that the privilege is needed: a document, or the code of a driver. For an inferred privilege, the source of the
    /// inference.
    pub evidence: String,
    /// Whether the need is only inferred: no document of a driver names the privilege. It is reported, and nothing waits for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inferred: bool,
}

/// A privilege that an account needs on an object, and has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HeldPrivilege {
    /// The kind of the object.
    pub kind: String,
    /// The identifier of the object.
    pub id: String,
    /// The inventory path of the object.
    pub path: String,
    /// The privilege as the API spells it.
    pub privilege: String,
    /// The privilege as the vSphere Client spells it.
    pub shown_as: String,
    /// The features that need the privilege.
    pub features: BTreeSet<Feature>,
    /// The role in the driver's documentation that contains the privilege.
    pub role: String,
}

/// Privileges that an account has on an object and that no feature in use needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SurplusPrivileges {
    /// The object.
    pub object: ManagedObject,
    /// The inventory path of the object.
    pub path: String,
    /// The privileges, in order.
    pub privileges: Vec<String>,
}

/// Holds what is granted against what is needed.
#[must_use]
pub fn compare_privileges(required_privileges: &[RequiredPrivilege], granted: &Granted, inventory: &Inventory) -> Privileges {
    let lacks = |demand: &RequiredPrivilege| demand.unseen || !granted.has(&demand.object.id, &demand.privilege);
    // A choice is lost when each of its objects lacks something.
    let mut lost: BTreeMap<usize, BTreeMap<&ManagedObject, bool>> = BTreeMap::new();
    for demand in required_privileges {
        if let Some(choice) = demand.choice {
            *lost.entry(choice).or_default().entry(&demand.object).or_default() |= lacks(demand);
        }
    }
    let lost: BTreeSet<usize> = lost
        .into_iter()
        .filter(|(_, objects)| objects.values().all(|lacks| *lacks))
        .map(|(choice, _)| choice)
        .collect();
    let counts = |demand: &&RequiredPrivilege| lacks(demand) && demand.choice.is_none_or(|choice| lost.contains(&choice));
    let mut missing: BTreeMap<(&ManagedObject, &str), MissingPrivilege> = BTreeMap::new();
    for demand in required_privileges.iter().filter(counts) {
        let entry = missing
            .entry((&demand.object, &demand.privilege))
            .or_insert_with(|| MissingPrivilege {
                object: demand.object.clone(),
                path: demand.path.clone(),
                privilege: demand.privilege.clone(),
                shown_as: demand.shown_as.clone(),
                features: BTreeSet::new(),
                role: demand.role.clone(),
                evidence: demand.evidence.clone(),
                inferred: demand.inferred,
            });
        entry.features.extend(&demand.features);
    }
    Privileges {
        principal: granted.principal.clone(),
        checked: required_privileges.len(),
        missing: missing.into_values().collect(),
        held: held(required_privileges.iter().filter(|demand| !lacks(demand))),
        surplus: surplus(required_privileges, granted, inventory),
    }
}

/// What is needed and held: each privilege once for each object.
fn held<'a>(demands: impl Iterator<Item = &'a RequiredPrivilege>) -> Vec<HeldPrivilege> {
    let mut held: BTreeMap<(&str, &ManagedObject), HeldPrivilege> = BTreeMap::new();
    for demand in demands {
        let entry = held.entry((&demand.privilege, &demand.object)).or_insert_with(|| HeldPrivilege {
            kind: demand.object.kind.clone(),
            id: demand.object.id.clone(),
            path: demand.path.clone(),
            privilege: demand.privilege.clone(),
            shown_as: demand.shown_as.clone(),
            features: BTreeSet::new(),
            role: demand.role.clone(),
        });
        entry.features.extend(&demand.features);
    }
    let mut held: Vec<HeldPrivilege> = held.into_values().collect();
    held.sort_by(|a, b| (&a.privilege, &a.kind, &a.path).cmp(&(&b.privilege, &b.kind, &b.path)));
    held
}

/// What is held beyond what is needed, where all that is held is known.
fn surplus(required_privileges: &[RequiredPrivilege], granted: &Granted, inventory: &Inventory) -> Vec<SurplusPrivileges> {
    let needed: BTreeSet<(&str, &str)> = required_privileges
        .iter()
        .map(|d| (d.object.id.as_str(), d.privilege.as_str()))
        .collect();
    let paths: BTreeMap<&str, &RequiredPrivilege> = required_privileges
        .iter()
        .map(|demand| (demand.object.id.as_str(), demand))
        .collect();
    let all = granted.all.iter().map(|(object, held)| SurplusPrivileges {
        object: object.clone(),
        path: paths
            .get(object.id.as_str())
            .map_or_else(|| inventory.path_of(object).to_owned(), |demand| demand.path.clone()),
        privileges: held
            .iter()
            .filter(|privilege| !privilege.starts_with("System.") && !needed.contains(&(object.id.as_str(), privilege.as_str())))
            .cloned()
            .collect(),
    });
    all.filter(|surplus| !surplus.privileges.is_empty()).collect()
}

/// The drivers that cannot do their work with what is missing.
#[must_use]
pub fn drivers_lacking_privileges(missing: &[MissingPrivilege], requirements: &Requirements) -> BTreeSet<DriverName> {
    let of = |feature: &Feature| match feature {
        Feature::CloudProvider => vec![CLOUD_PROVIDER.name],
        Feature::Block | Feature::File | Feature::Encryption => vec![STORAGE.name],
        Feature::Topology => {
            let cpi = requirements.zone_and_region.is_some().then_some(CLOUD_PROVIDER.name);
            let csi = (!requirements.categories.is_empty()).then_some(STORAGE.name);
            cpi.into_iter().chain(csi).collect()
        }
    };
    let certain = missing.iter().filter(|missing| !missing.inferred);
    certain.flat_map(|m| &m.features).flat_map(of).map(str::to_owned).collect()
}

/// The privileges as a status shows them: all are counted, the first are listed.
#[must_use]
pub fn privileges_status(privileges: &Privileges, requirements: &Requirements) -> PrivilegesStatus {
    const SHOWN: usize = 50;
    let number = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let line = |m: &MissingPrivilege| format!("{} on {} {}", m.privilege, m.object.kind, m.path);
    PrivilegesStatus {
        principal: privileges.principal.clone(),
        checked: number(privileges.checked),
        missing: number(privileges.missing.len()),
        list: privileges.missing.iter().take(SHOWN).map(line).collect(),
        drivers: drivers_lacking_privileges(&privileges.missing, requirements).into_iter().collect(),
    }
}

/// The stage of the privileges. Each privilege is reported once for each kind of object.
#[must_use]
pub fn privileges_check(privileges: &Privileges) -> Check {
    let mut groups: BTreeMap<(bool, &str, &str), Vec<&MissingPrivilege>> = BTreeMap::new();
    for missing in &privileges.missing {
        let group = (missing.inferred, missing.object.kind.as_str(), missing.privilege.as_str());
        groups.entry(group).or_default().push(missing);
    }
    let findings = groups.values().map(|group| finding(&privileges.principal, group)).collect();
    let passed = match privileges.checked {
        0 => "no driver uses this connection, so it needs no privileges".to_owned(),
        n => format!(
            "{} has all privileges that the features in use need ({n} privileges on objects)",
            privileges.principal
        ),
    };
    let check = Check::of(ConditionType::Authorized, passed, findings);
    match privileges.missing.iter().all(|missing| missing.inferred) {
        true => Check {
            status: Some(true),
            ..check
        },
        false => check,
    }
}

fn finding(principal: &str, group: &[&MissingPrivilege]) -> Finding {
    let first = group[0];
    let paths: Vec<&str> = group.iter().map(|missing| missing.path.as_str()).collect();
    let features: BTreeSet<&str> = group.iter().flat_map(|m| &m.features).map(|feature| feature.as_str()).collect();
    let features = features.into_iter().collect::<Vec<_>>().join(", ");
    Finding::new(
        Reason::PrivilegesMissing,
        format!(
            "{principal} lacks {} ({}) on {} {}; the privilege is {} for {features}",
            first.privilege,
            first.shown_as,
            first.object.kind,
            name_list(&paths),
            if first.inferred { "probably needed" } else { "needed" }
        ),
        Advice::run(
            "Give the account a role with this privilege on this object; if the account already has a role on this object, use one role \
             with the privileges of both roles:",
            format!(
                "govc permissions.set -principal {} -role {} -propagate=false {}",
                shell(principal),
                first.role,
                shell(&first.path)
            ),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vsphere::WantedDatastore;
    use crate::vsphere::required_privileges::tests::{inventory, nodes, requirements};
    use crate::vsphere::{privilege_queries, required_privileges};
    use vdo_core::drivers::{CPI, CSI};

    fn judged(requirements: &Requirements, denied: &[(&str, &str)]) -> Privileges {
        let inventory = inventory();
        let required_privileges = required_privileges(requirements, false, (&inventory, &nodes()), None);
        let mut granted = Granted {
            principal: "X\\k8s".into(),
            ..Granted::default()
        };
        for (objects, privileges) in privilege_queries(&required_privileges) {
            for object in objects {
                let held = privileges.iter().filter(|privilege| !denied.contains(&(&object.id, privilege)));
                granted.granted.entry(object.id.clone()).or_default().extend(held.cloned());
            }
        }
        compare_privileges(&required_privileges, &granted, &inventory)
    }

    #[test]
    fn privileges_missing_names_object_and_user() {
        let block = requirements(&[Feature::Block]);
        assert_eq!(privileges_check(&judged(&block, &[])).status, Some(true));
        let check = privileges_check(&judged(&block, &[("root", "Cns.Searchable")]));
        assert_eq!((check.status, check.reason), (Some(false), Reason::PrivilegesMissing));
        assert_eq!(
            check.message,
            "X\\k8s lacks Cns.Searchable (CNS > Searchable) on Folder /; the privilege is needed for block volumes"
        );
        assert!(
            check
                .remedy
                .to_string()
                .contains("govc permissions.set -principal 'X\\k8s' -role CNS-SEARCH-AND-SPBM"),
            "{check:?}"
        );
    }

    #[test]
    fn privileges_missing_for_two_features_is_counted_once() {
        let block = requirements(&[Feature::Block]);
        let twice = judged(
            &requirements(&[Feature::Block, Feature::CloudProvider]),
            &[("host-1", "System.Read")],
        );
        assert_eq!(twice.missing.len(), 1, "{twice:?}");
        assert_eq!(twice.missing[0].features.len(), 2);
        let status = privileges_status(&twice, &block);
        assert_eq!(
            (status.missing, status.list[0].as_str()),
            (1, "System.Read on HostSystem /DC0/host/C0/h1")
        );
        assert_eq!(status.drivers, [CPI, CSI]);
    }

    /// What no document names is reported, and nothing waits for it.
    #[test]
    fn privileges_missing_but_only_inferred_does_not_block() {
        let inventory = inventory();
        let block = requirements(&[Feature::Block]);
        let required_privileges = required_privileges(&block, true, (&inventory, &nodes()), None);
        let mut granted = Granted::default();
        for (objects, privileges) in privilege_queries(&required_privileges) {
            let held: BTreeSet<String> = privileges.into_iter().filter(|one| !one.starts_with("Cryptographer")).collect();
            granted.granted.extend(objects.into_iter().map(|object| (object.id, held.clone())));
        }
        let found = compare_privileges(&required_privileges, &granted, &inventory);
        let check = privileges_check(&found);
        assert_eq!((check.status, check.reason), (Some(true), Reason::PrivilegesMissing), "{check:?}");
        assert!(check.message.contains("probably needed for encryption"), "{check:?}");
        assert!(drivers_lacking_privileges(&found.missing, &block).is_empty());
    }

    /// The driver leaves out datastores that it must not use: one is enough, unless it is named.
    #[test]
    fn privileges_one_datastore_suffices_unless_named() {
        let mut block = requirements(&[Feature::Block]);
        let denied = |ids: &[&'static str]| ids.iter().map(|id| (*id, "Datastore.FileManagement")).collect::<Vec<_>>();
        assert_eq!(judged(&block, &denied(&["local"])).missing, []);
        let paths: Vec<String> = judged(&block, &denied(&["local", "shared"]))
            .missing
            .into_iter()
            .map(|m| m.path)
            .collect();
        assert_eq!(paths, ["/DC0/datastore/local", "/DC0/datastore/shared"]);
        block.datastores.push(WantedDatastore {
            url: "ds:///local/".into(),
            ..WantedDatastore::default()
        });
        let paths: Vec<String> = judged(&block, &denied(&["local"])).missing.into_iter().map(|m| m.path).collect();
        assert_eq!(paths, ["/DC0/datastore/local"]);
    }

    /// What cannot be seen cannot be asked about: that is the answer.
    #[test]
    fn privileges_invisible_ancestor_is_reported_missing() {
        let mut inventory = inventory();
        inventory.places.remove("cluster");
        let required_privileges = required_privileges(&requirements(&[Feature::Topology]), false, (&inventory, &nodes()), None);
        assert!(
            privilege_queries(&required_privileges)
                .iter()
                .all(|(objects, _)| objects.iter().all(|o| o.id != "cluster"))
        );
        let mut granted = Granted::default();
        for (objects, privileges) in privilege_queries(&required_privileges) {
            granted
                .granted
                .extend(objects.into_iter().map(|o| (o.id, privileges.iter().cloned().collect())));
        }
        let missing = compare_privileges(&required_privileges, &granted, &inventory).missing;
        assert_eq!(
            missing.iter().map(|m| (m.path.as_str(), m.privilege.as_str())).collect::<Vec<_>>(),
            [("cluster", "System.Read")]
        );
    }

    #[test]
    fn privileges_surplus_is_listed() {
        let inventory = inventory();
        let required_privileges = required_privileges(&requirements(&[Feature::Block]), false, (&inventory, &nodes()), None);
        let held = ["Cns.Searchable", "System.View", "VApp.Import", "Alarm.Create"].map(String::from);
        let granted = Granted {
            all: [(inventory.root.clone(), held.into())].into(),
            ..Granted::default()
        };
        let surplus = compare_privileges(&required_privileges, &granted, &inventory).surplus;
        assert_eq!(
            (surplus[0].path.as_str(), surplus[0].privileges.as_slice()),
            ("/", &["Alarm.Create".to_owned(), "VApp.Import".into()][..])
        );
    }
}
