// SPDX-License-Identifier: Apache-2.0
//! The result of all checks of one connection, as data: checks, nodes, topology, privileges, datastores; `report.rs` fills it.

use super::{Check, CrossChecks, NodeReport, NodeTopology, Privileges, SharedDatastores};
use serde::Serialize;
use vdo_api::api::{AboutStatus, CertificateStatus, ConditionType, RegisteredVolumesStatus};

/// Everything that one look at a vSphere connection has shown, as data: for a status, a screen or a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionReport {
    /// The stages in the order in which they are reached. Those after the first that does not hold are Unknown.
    pub checks: Vec<Check>,
    /// What the vCenter reports about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<AboutStatus>,
    /// The certificate that it presented.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateStatus>,
    /// The nodes and their machines; those with findings first.
    pub nodes: Vec<NodeReport>,
    /// The zones and regions of the nodes, a line for each node and category.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub topology: Vec<NodeTopology>,
    /// What the account may do, against what it has to.
    pub privileges: Privileges,
    /// The datastores that all hosts of the nodes reach, by topology segment.
    pub shared: Vec<SharedDatastores>,
    /// The volumes registered under the cluster id that is about to be used; `None` where that was not asked, or not answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes: Option<RegisteredVolumesStatus>,
}

impl ConnectionReport {
    /// The first stage that keeps the connection from being ready. Stages that only inform are passed over.
    #[must_use]
    pub fn first_failure(&self) -> Option<&Check> {
        self.checks
            .iter()
            .find(|check| check.status != Some(true) && !check.is_informational())
    }

    /// Tells what only shows among other connections, too.
    pub fn add_cross_checks(&mut self, among: CrossChecks) {
        let checks = std::mem::take(&mut self.checks);
        self.checks = checks.into_iter().map(|check| among.replace(check)).collect();
        self.checks.push(among.distinct);
    }

    /// A stage by its condition.
    #[must_use]
    pub fn check(&self, kind: ConditionType) -> Option<&Check> {
        self.checks.iter().find(|check| check.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vsphere::Finding;
    use vdo_api::api::Reason;

    #[test]
    fn connection_report_first_failure_skips_informing_stages() {
        let finding = |reason| Finding::new(reason, format!("{reason} here."), "Fix it.");
        let two = vec![finding(Reason::NodeNotFound), finding(Reason::NodeAmbiguous)];
        let nodes = Check::of(ConditionType::NodesFound, "all", two.clone());
        assert_eq!(nodes.text(), "NodeNotFound here. (and 1 more finding). Fix it.");
        let storage = Check::of(ConditionType::StorageFound, "all", two[..1].to_vec());
        assert_eq!(storage.text(), "NodeNotFound here. Fix it.");
        let mut report = ConnectionReport {
            checks: vec![Check::passed(ConditionType::Resolved, "ok"), nodes, storage],
            ..ConnectionReport::default()
        };
        assert_eq!(report.first_failure().map(|s| s.kind), Some(ConditionType::StorageFound));
        report.checks.pop();
        assert_eq!(report.first_failure(), None);
        report
            .checks
            .push(Check::unknown(ConditionType::Authorized, "an earlier check failed"));
        assert_eq!(report.first_failure().map(|s| s.status), Some(None), "Unknown is not True");
    }
}
