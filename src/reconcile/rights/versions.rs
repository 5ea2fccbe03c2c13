// SPDX-License-Identifier: Apache-2.0
//! `Versions`: for which drivers and versions `vdoctl rights` prints rights (pure).

use vdo_api::types::DriverVersion;
use vdo_core::drivers;

/// The versions that rights are for.
#[derive(Clone, Copy)]
pub enum Versions<'a> {
    /// Every version of every driver.
    All,
    /// The same for the operator. Of drivers that come only where they are named, the roles of these alone, and so the operator's rights where
    /// these come on request, too.
    Usual(&'a [&'a str]),
    /// These drivers, each in one version or in all of them.
    Of(&'a [(&'a str, Option<&'a DriverVersion>)]),
}

impl Versions<'_> {
    pub(super) fn take(self, driver: &str, version: &DriverVersion) -> bool {
        match self {
            Self::All | Self::Usual(_) => true,
            Self::Of(named) => named
                .iter()
                .any(|(name, pin)| *name == driver && pin.is_none_or(|pin| pin == version)),
        }
    }

    /// Whether the operator gets rights for a driver.
    pub(super) fn grants(self, driver: &str) -> bool {
        !drivers::has_rights_on_request(driver) || self.brings(driver)
    }

    /// Whether the roles that the operator always has are printed: not for drivers alone whose rights are in roles of their own.
    pub(super) fn has_usual_roles(self) -> bool {
        match self {
            Self::Of(named) => named.iter().any(|(name, _)| !drivers::has_rights_on_request(name)),
            Self::All | Self::Usual(_) => true,
        }
    }

    /// Whether the roles of a driver are brought.
    pub(super) fn brings(self, driver: &str) -> bool {
        match self {
            Self::Usual(named) => !drivers::is_on_request(driver) || named.contains(&driver),
            Self::All | Self::Of(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_usual_brings_no_roles_of_drivers_that_are_not_named() {
        let version: DriverVersion = "8.6.0".parse().expect("a version");
        let name = drivers::SNAPSHOT_CONTROLLER;
        let (usual, named) = (Versions::Usual(&[]), [name]);
        assert!(usual.take(name, &version), "the operator may install it");
        for driver in drivers::KNOWN {
            assert!(usual.brings(driver.name));
        }
        assert!(usual.brings("lamp"), "a matrix of one's own has what one wants");
        assert!(!usual.brings(name));
        assert!(Versions::Usual(&named).brings(name) && Versions::All.brings(name));
        assert!(Versions::Of(&[(name, None)]).brings(name));
    }

    #[test]
    fn versions_usual_grants_the_operator_nothing_for_a_driver_with_rights_on_request() {
        let (network, snapshots) = (drivers::ANTREA, drivers::SNAPSHOT_CONTROLLER);
        let (usual, named, alone) = (Versions::Usual(&[]), [network], [(network, None)]);
        assert!(usual.grants(snapshots) && usual.grants(drivers::CSI) && !usual.grants(network));
        assert!(Versions::Usual(&named).grants(network) && Versions::All.grants(network));
        let both = [(network, None), (drivers::CSI, None)];
        let (alone, both) = (Versions::Of(&alone), Versions::Of(&both));
        assert!(alone.grants(network) && !alone.has_usual_roles() && both.has_usual_roles());
        assert!(usual.has_usual_roles() && Versions::All.has_usual_roles());
    }
}
