// SPDX-License-Identifier: Apache-2.0
//! TrustConsistent: whether all vSphere connections of the CSI driver verify certificates in the same way (pure).

use vdo_api::api::{ConditionType, Reason};
use vdo_api::facts::Connection;
use vdo_core::driverconfig::csi;
use vdo_core::drivers::{self, STORAGE};
use vdo_core::status::Precondition;

/// Whether all connections of the CSI driver are trusted in the same way. Its syncer knows only one.
pub(in crate::reconcile) fn trust(connections: &[Connection]) -> Precondition {
    let kind = ConditionType::TrustConsistent;
    let used: Vec<_> = connections
        .iter()
        .filter(|c| c.drivers.iter().any(|driver| driver == STORAGE.name))
        .map(drivers::connection)
        .collect();
    if used.is_empty() {
        return Precondition::unknown(kind, Reason::NotRequested, "CSI is not requested");
    }
    match csi::differing_trust(&used).join(", ") {
        names if names.is_empty() => Precondition::holds(kind, "the vSphere connections of CSI verify certificates in the same way"),
        names => Precondition::fails(
            kind,
            Reason::TrustDiffers,
            format!(
                "the certificates of the vSphere connections {names} are verified in different ways, but the syncer of CSI may use only \
                 one of these ways; give these connections the same CA bundle, which may contain several authorities"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::facts::Credentials;
    use vdo_api::types::{Secret, Trust};
    use vdo_core::drivers::{CPI, CSI};

    #[test]
    fn trust_differs_between_csi_connections_fails() {
        let named = |name: &str, trust: Trust, driver: &str| Connection {
            name: name.into(),
            server: format!("{name}.example.com"),
            port: 443,
            datacenters: Vec::new(),
            trust,
            sha1: None,
            version: None,
            build: None,
            ready: None,
            message: String::new(),
            credentials: Credentials {
                user: "u".into(),
                password: Secret::new("p"),
            },
            blocked: None,
            drivers: vec![driver.into()],
            lacking_privileges: Vec::new(),
            machines_twice: None,
            tag_categories: Some(std::collections::BTreeMap::new()),
        };
        let bundle = || Trust::CaBundle("PEM".into());
        for (connections, holds, reason) in [
            (vec![named("a", bundle(), CSI)], Some(true), "Healthy"),
            (vec![named("a", bundle(), CSI), named("b", bundle(), CSI)], Some(true), "Healthy"),
            (
                vec![named("a", bundle(), CSI), named("b", Trust::SystemRoots, CSI)],
                Some(false),
                "TrustDiffers",
            ),
            (
                vec![named("a", bundle(), CSI), named("b", Trust::SystemRoots, CPI)],
                Some(true),
                "Healthy",
            ),
            (vec![named("b", bundle(), CPI)], None, "NotRequested"),
        ] {
            let found = trust(&connections);
            assert_eq!((found.holds, found.reason.as_str()), (holds, reason), "{}", found.message);
            let names = holds != Some(false) || found.message.contains("a, b");
            assert!(names, "{}", found.message);
        }
    }
}
