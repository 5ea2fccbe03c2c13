// SPDX-License-Identifier: Apache-2.0
//! The vCenter privileges that an index lists for features and versions of drivers, without privileges that no driver needs (pure).
//!
//! The module `vsphere` has the meaning of the names; they are text in this file, so that an older program reads an index with a newer name.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vdo_api::types::{DriverName, DriverVersion};

/// What drivers may do in a vCenter, and what the vSphere Client calls it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivilegeRules {
    /// The rules, each for itself.
    pub rules: Vec<PrivilegeRule>,
    /// The names of privileges as the vSphere Client shows them.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
}

/// For a feature, these privileges on these objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivilegeRule {
    /// The feature that needs them, such as `block`.
    pub feature: String,
    /// The driver whose versions the rule is limited to; absent: it holds whatever is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverName>,
    /// The oldest version of that driver that needs them; absent: every older one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<DriverVersion>,
    /// The newest version of that driver that needs them; absent: every newer one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<DriverVersion>,
    /// The role of the driver's documents that has them.
    pub role: String,
    /// The objects, such as `datastore`.
    pub on: Vec<String>,
    /// `any` where the driver leaves out objects without them, so that one is enough; absent: every.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub which: Option<String>,
    /// The privileges, as the API spells them.
    pub privileges: Vec<String>,
    /// No document of a driver names them: what is missing is reported, and nothing waits for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inferred: bool,
    /// Where it is written.
    pub evidence: String,
}

/// The beginnings of the privileges that a storage driver or a cloud provider may need. Whatever administers a vCenter (permissions,
/// sessions, settings, certificates) and whatever reaches into machines is not among them, so that no index can ask for it.
const MAY_BE_NEEDED: [&str; 9] = [
    "Cns.",
    "Cryptographer.",
    "Datastore.",
    "Host.Config.Storage",
    "InventoryService.Tagging.",
    "StorageProfile.",
    "System.",
    "VirtualMachine.Config.",
    "VirtualMachine.State.",
];

impl PrivilegeRules {
    /// Takes out the rules that name a privilege which no driver needs, and says which.
    pub(super) fn sanitize(&mut self) -> Vec<String> {
        let stranger = |privilege: &&String| !MAY_BE_NEEDED.iter().any(|start| privilege.starts_with(start));
        let mut left_out = Vec::new();
        self.rules.retain(|rule| match rule.privileges.iter().find(stranger) {
            None => true,
            Some(privilege) => {
                left_out.push(format!("privileges of {}: {privilege}, which no driver needs", rule.feature));
                false
            }
        });
        left_out
    }
}

impl PrivilegeRule {
    /// Whether the rule holds where these versions of drivers are installed or about to be. Of a driver whose version is not known
    /// yet, the newest is taken.
    #[must_use]
    pub fn holds(&self, versions: &BTreeMap<DriverName, Vec<DriverVersion>>) -> bool {
        let Some(driver) = &self.driver else { return true };
        let inside = |version: &DriverVersion| {
            self.min.as_ref().is_none_or(|min| version >= min) && self.max.as_ref().is_none_or(|max| version <= max)
        };
        match versions.get(driver).map(Vec::as_slice) {
            None | Some([]) => self.max.is_none(),
            Some(known) => known.iter().any(inside),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rule(fields: serde_json::Value) -> PrivilegeRule {
        let mut rule = json!({"feature": "block", "role": "R", "on": ["root"], "privileges": ["Cns.Searchable"], "evidence": "e"});
        let fields = fields.as_object().cloned().unwrap_or_default();
        rule.as_object_mut().expect("a map").extend(fields);
        serde_json::from_value(rule).expect("a rule")
    }

    #[test]
    fn privilege_rule_holds_for_the_versions_of_its_driver() {
        let csi = |versions: &[&str]| {
            let versions = versions.iter().map(|text| text.parse().expect("a version")).collect();
            BTreeMap::from([("vsphere-csi".to_owned(), versions)])
        };
        let newer = rule(json!({"driver": "vsphere-csi", "min": "3.9.0"}));
        let older = rule(json!({"driver": "vsphere-csi", "max": "3.0.0"}));
        for (versions, of_newer, of_older) in [
            (csi(&[]), true, false),
            (BTreeMap::new(), true, false),
            (csi(&["3.8.0"]), false, false),
            (csi(&["3.8.0", "3.9.0"]), true, false),
            (csi(&["3.0.0"]), false, true),
        ] {
            assert_eq!(
                (newer.holds(&versions), older.holds(&versions)),
                (of_newer, of_older),
                "{versions:?}"
            );
            assert!(rule(json!({})).holds(&versions));
        }
    }

    /// An index comes from outside: whatever it says, no account of a driver gets a right over the vCenter itself.
    #[test]
    fn privilege_rules_that_administer_the_vcenter_are_left_out() {
        for privilege in [
            "Authorization.ModifyPermissions",
            "Global.Settings",
            "Sessions.ImpersonateUser",
            "Host.Config.Network",
            "VirtualMachine.GuestOperations.Execute",
            "Cnsx.A",
        ] {
            let mut rules = PrivilegeRules {
                rules: vec![rule(json!({})), rule(json!({"privileges": ["Cns.Searchable", privilege]}))],
                names: BTreeMap::new(),
            };
            let left_out = rules.sanitize();
            assert_eq!((rules.rules.len(), left_out.len()), (1, 1), "{privilege}");
            assert!(left_out[0].contains(privilege), "{left_out:?}");
        }
    }
}
