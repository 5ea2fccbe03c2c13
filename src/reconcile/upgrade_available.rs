// SPDX-License-Identifier: Apache-2.0
//! UpgradeAvailable: why a newer compatible version of a driver is not installed (pure).

use super::choose::{Choice, Policy};
use super::driver_run::{DriverRun, DriverRuns};
use vdo_api::api::{Classify as _, Reason, chain};
use vdo_api::types::DriverVersion;
use vdo_core::drivers::{field, short};
use vdo_core::matrix::{Rejection, UpdatePolicy};
use vdo_core::status::NewVersion;

/// Every installed driver of which a newer version fits and is not installed: first those for which something has to be done. `None`
/// while that is not known of every driver.
pub(super) fn newer(choice: &Choice, runs: &DriverRuns) -> Option<Vec<NewVersion>> {
    let policy = choice.policy?;
    let of = |run: &DriverRun| {
        if let Some(held) = held(choice, run) {
            return Some(held);
        }
        let (version, stays, reason, why) = why(run, policy)?;
        let message = format!("{} {version} is available, but {stays} stays installed: {why}", short(&run.name));
        Some(NewVersion { reason, message })
    };
    let mut all: Vec<NewVersion> = runs.iter().filter_map(of).collect();
    let by_itself = [Reason::UpdatePolicy, Reason::OutsideMaintenanceWindow];
    all.sort_by_key(|newer| by_itself.contains(&newer.reason));
    Some(all)
}

/// A change that waits for a maintenance window. A revision of the history goes before the choice.
fn held(choice: &Choice, run: &DriverRun) -> Option<NewVersion> {
    let (closed, pick) = (choice.window.as_ref()?, run.pick.as_ref()?);
    let held = pick.waits.as_ref().filter(|_| run.back().is_none())?;
    let Rejection::Held { waits } = &held.reason else { return None };
    let (name, stays) = (short(&run.name), &pick.version);
    let message = match held.version == pick.version {
        true => format!("another chart of {name} {stays} is available, but the installed chart stays: the update waits {waits}"),
        false => format!(
            "{name} {} is available, but {stays} stays installed: the upgrade waits {waits}; vdoctl upgrade apply --to {}={} does not wait",
            held.version,
            name.to_lowercase(),
            held.version
        ),
    };
    Some(NewVersion {
        reason: closed.reason,
        message,
    })
}

/// The newer version, the one that stays, and why.
type Why<'a> = (&'a DriverVersion, &'a DriverVersion, Reason, String);

fn why(run: &DriverRun, policy: Policy) -> Option<Why<'_>> {
    let (driver, pick) = (&*run.name, run.pick.as_ref()?);
    let installed = pick.from.as_ref()?;
    let newest = pick.newest.as_ref().filter(|newest| **newest > pick.version);
    let field = field(driver);
    if let Some(back) = run.back() {
        let (reason, advice) = match back.rollback.from {
            Some(_) => (Reason::RolledBack, "vdoctl upgrade retry retries the upgrade".to_owned()),
            None => (
                Reason::VersionPinned,
                format!("vdoctl rollback {driver} --lift allows upgrades again"),
            ),
        };
        return Some((newest?, &pick.version, reason, format!("{}; {advice}", back.because(driver))));
    }
    if pick.version > *installed {
        let (reason, why) = if run.is_paused() {
            (Reason::Paused, format!("{field}.managementState or spec.managementState is Paused"))
        } else if let Some(error) = run.errors().next() {
            (error.reason(), chain(error.as_ref()))
        } else {
            let wait = run.wait.as_ref()?;
            (wait.reason, wait.message.clone())
        };
        return Some((&pick.version, installed, reason, why));
    }
    let pin = run.asked.as_ref().and_then(|asked| asked.question.pin.as_ref());
    let (reason, why) = match (newest, pin, policy.policy) {
        (Some(_), Some(pin), _) => (
            Reason::VersionPinned,
            format!("{field}.version pins version {pin}; change or remove this field"),
        ),
        (Some(_), None, UpdatePolicy::Frozen) => (Reason::MatrixExpired, "the matrix has expired; use a newer matrix".to_owned()),
        (Some(newest), None, UpdatePolicy::Compatible | UpdatePolicy::Disabled) => {
            let by = match policy.by {
                Some(map) => format!("auto-upgrade is disabled in ConfigMap {map}; remove this key from the ConfigMap"),
                None => {
                    let name = if policy.policy == UpdatePolicy::Compatible {
                        "Compatible"
                    } else {
                        "Disabled"
                    };
                    format!("spec.updatePolicy is {name}; set it to Latest")
                }
            };
            (Reason::UpdatePolicy, format!("{by}, or set {field}.version to {newest}"))
        }
        (_, _, UpdatePolicy::Latest) => {
            let waits = pick.waits.as_ref()?;
            return Some((&waits.version, &pick.version, Reason::UpgradeWaits, waits.reason.to_string()));
        }
        (None, _, _) => return None,
    };
    Some((newest?, &pick.version, reason, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::ReconcileError;
    use crate::reconcile::driver_run::Source;
    use crate::reconcile::rollback::Back;
    use vdo_api::api::ManagementState;
    use vdo_api::types::{ChartRef, Digest};
    use vdo_core::drivers::CSI;
    use vdo_core::matrix::{Pick, Rejected, Rejection};
    use vdo_core::plan::{Failed, PackedObjects, Revision, RevisionFailure, Rollback, Wait};

    /// What a case begins with: 3.7.3 is installed and stays, 3.7.4 fits, and the policy is Compatible.
    struct Case {
        run: DriverRun,
        policy: Policy,
    }

    fn version(text: &str) -> DriverVersion {
        text.parse().expect("a version")
    }

    impl Case {
        fn new(policy: UpdatePolicy) -> Self {
            let chart = ChartRef {
                urls: Vec::new(),
                digest: Digest::of(b""),
            };
            let mut run = DriverRun::using(CSI, &[]);
            run.pick = Some(Pick {
                version: version("3.7.3"),
                target: version("3.7.3"),
                from: Some(version("3.7.3")),
                leaves: None,
                path: Vec::new(),
                waits: None,
                chart,
                because: String::new(),
                because_target: String::new(),
                because_newest: String::new(),
                newest: Some(version("3.7.4")),
                overridden: None,
                deprecated: None,
            });
            Self {
                run,
                policy: Policy { policy, by: None },
            }
        }

        /// The same under Latest, on the way to 3.7.4.
        fn upgrading() -> Self {
            Self::new(UpdatePolicy::Latest).pick(|pick| pick.version = version("3.7.4"))
        }

        fn kept(failed: Option<&str>) -> Self {
            let from = failed.map(|version| Failed {
                revision: 2,
                version: version.into(),
                failure: RevisionFailure {
                    reason: "DeadlineExceeded".into(),
                    message: "not healthy".into(),
                    basis: "b".into(),
                },
            });
            let back = Back {
                revision: Revision::of(1, PackedObjects::of([].iter())),
                rollback: Rollback { to: 1, from },
            };
            Self::new(UpdatePolicy::Latest).with(|case| case.run.source = Some(Source::Revision(Box::new(back))))
        }

        fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
            change(&mut self);
            self
        }

        fn pick(self, change: impl FnOnce(&mut Pick)) -> Self {
            self.with(|case| case.run.pick.as_mut().map(change).unwrap_or_default())
        }

        fn sentence(self) -> Option<String> {
            let choice = Choice {
                policy: Some(self.policy),
                ..Choice::default()
            };
            let mut runs = DriverRuns::default();
            *runs.of(CSI) = self.run;
            let mut all = newer(&choice, &runs).expect("it is known");
            let newer = all.pop()?;
            assert!(all.is_empty());
            Some(format!("{}: {}", newer.reason, newer.message))
        }
    }

    #[test]
    fn newer_version_that_stays_away_is_named_with_reason_and_remedy() {
        use UpdatePolicy::{Compatible, Disabled, Frozen, Latest};
        let lacks = || ReconcileError::RightsMissing {
            driver: CSI.into(),
            version: "3.7.4".into(),
            lacking: "delete configmaps".into(),
            matrix: Some("https://a.test/index.yaml".into()),
        };
        let role = || Wait {
            driver: CSI.into(),
            reason: Reason::RightsMissing,
            message: "Role n/r is missing".into(),
        };
        let unmet = || Rejected {
            version: version("3.7.4"),
            reason: Rejection::Unmet {
                name: "VolumeLimit".into(),
                what: "it is 60".into(),
            },
        };
        let or = "or set spec.storageProvider.version to 3.7.4";
        for (case, expected) in [
            (
                Case::new(Compatible),
                Some(format!("UpdatePolicy: spec.updatePolicy is Compatible; set it to Latest, {or}")),
            ),
            (
                Case::new(Disabled),
                Some(format!("UpdatePolicy: spec.updatePolicy is Disabled; set it to Latest, {or}")),
            ),
            (
                Case::new(Disabled).with(|case| case.policy.by = Some("comp-matrix-config")),
                Some(format!(
                    "UpdatePolicy: auto-upgrade is disabled in ConfigMap comp-matrix-config; remove this key from the ConfigMap, {or}"
                )),
            ),
            (
                Case::new(Frozen),
                Some("MatrixExpired: the matrix has expired; use a newer matrix".into()),
            ),
            (
                Case::new(Latest).with(|case| case.run.asked.as_mut().into_iter().for_each(|asked| asked.question.pin = Some(version("3.7.3")))),
                Some("VersionPinned: spec.storageProvider.version pins version 3.7.3; change or remove this field".into()),
            ),
            (
                Case::new(Latest).pick(|pick| pick.waits = Some(unmet())),
                Some("UpgradeWaits: cannot be installed yet because of precondition VolumeLimit: it is 60".into()),
            ),
            (
                Case::upgrading().with(|case| case.run.wait = Some(role())),
                Some("RightsMissing: Role n/r is missing".into()),
            ),
            (
                Case::upgrading().with(|case| case.run.management = ManagementState::Paused),
                Some("Paused: spec.storageProvider.managementState or spec.managementState is Paused".into()),
            ),
            (
                Case::kept(Some("3.7.4")),
                Some("RolledBack: rolled back to revision 1, because CSI 3.7.4 failed; vdoctl upgrade retry retries the upgrade".into()),
            ),
            (
                Case::kept(None),
                Some("VersionPinned: kept at revision 1 by the annotation revision.vdo.vmware.com/vsphere-csi; vdoctl rollback vsphere-csi --lift allows upgrades again".into()),
            ),
            // Nothing newer fits, it is under way, it is installed for the first time, or only going together with another driver is in its way.
            (Case::new(Compatible).pick(|pick| pick.newest = Some(version("3.7.3"))), None),
            (Case::new(Compatible).pick(|pick| pick.newest = None), None),
            (Case::upgrading(), None),
            (Case::new(Compatible).pick(|pick| pick.from = None), None),
            (Case::new(Latest), None),
        ] {
            let expected = expected.map(|expected| expected.replacen(": ", ": CSI 3.7.4 is available, but 3.7.3 stays installed: ", 1));
            assert_eq!(case.sentence(), expected);
        }
        let sentence = Case::upgrading()
            .with(|case| case.run.fail(lacks()))
            .sentence()
            .expect("a sentence");
        assert!(
            sentence.starts_with("RightsMissing: CSI 3.7.4 is available, but 3.7.3 stays installed: ")
                && sentence.contains("vdoctl rights --missing --matrix"),
            "{sentence}"
        );
    }
}
