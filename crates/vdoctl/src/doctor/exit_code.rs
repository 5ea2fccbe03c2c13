// SPDX-License-Identifier: Apache-2.0
//! Computes the exit code of `vdoctl doctor` and of other verbs with checks: the code of each failed check, and the worst of several.

use super::super::Exit;
use super::check::{Check, Mark, Subject, Topic};
use vdo_api::api::ConditionType;

/// The last stage at which a vCenter as such is judged; what comes after is about its content.
pub(super) const OF_THE_VCENTER: [ConditionType; 5] = [
    ConditionType::Resolved,
    ConditionType::Connected,
    ConditionType::Trusted,
    ConditionType::IsVCenter,
    ConditionType::Authenticated,
];

impl Check {
    fn exit(&self, subject: &Subject) -> Exit {
        let kinds = OF_THE_VCENTER.map(ConditionType::as_str);
        match self.status {
            Mark::True => Exit::Ok,
            _ if self.follows() || self.is_not_requested() => Exit::Ok,
            _ if subject.subject == Topic::Connection && kinds.contains(&self.check.as_str()) => Exit::Vcenter,
            Mark::False => Exit::Differences,
            Mark::Unknown => Exit::Ok,
        }
    }
}

/// The worst result: a cluster that cannot be reached, a vCenter that cannot or refuses, nothing deployed, a check that failed, a check
/// that the user lacks a right for.
pub(crate) fn worst<'a>(subjects: impl IntoIterator<Item = &'a Subject>, other: &[Exit]) -> Exit {
    const WORST_FIRST: [Exit; 5] = [Exit::Cluster, Exit::Vcenter, Exit::NotFound, Exit::Differences, Exit::Refused];
    let all = subjects
        .into_iter()
        .flat_map(|subject| subject.checks.iter().map(move |check| check.exit(subject)));
    let all: Vec<Exit> = all.chain(other.iter().copied()).collect();
    WORST_FIRST.into_iter().find(|exit| all.contains(exit)).unwrap_or(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::api::Reason;

    fn subject(subject: Topic, checks: &[(&str, Option<bool>, Reason)]) -> Subject {
        Subject {
            subject,
            name: "x".into(),
            about: vec![],
            checks: checks
                .iter()
                .map(|(name, status, reason)| Check::new(*name, *status, *reason, "m", ""))
                .collect(),
        }
    }

    #[test]
    fn doctor_exit_code_several_checks_is_the_worst() {
        let well = ("Resolved", Some(true), Reason::Healthy);
        let connection = |check| subject(Topic::Connection, &[well, check, ("NodesFound", None, Reason::NotChecked)]);
        let wrong = |kind: &'static str, reason| (kind, Some(false), reason);
        for (check, exit) in [
            (well, Exit::Ok),
            (("StorageFound", None, Reason::NotChecked), Exit::Ok),
            (wrong("Connected", Reason::Unreachable), Exit::Vcenter),
            (wrong("Authenticated", Reason::InvalidCredentials), Exit::Vcenter),
            (("Authenticated", None, Reason::TimedOut), Exit::Vcenter),
            (wrong("NodesFound", Reason::NodeNotFound), Exit::Differences),
            (wrong("CredentialsFound", Reason::SecretNotFound), Exit::Differences),
        ] {
            assert_eq!(worst(&[connection(check)], &[]), exit, "{check:?}");
        }
        let drivers = subject(
            Topic::Drivers,
            &[
                ("StorageReady", None, Reason::NotRequested),
                wrong("CloudProviderReady", Reason::PodsFailing),
            ],
        );
        let refused = connection(wrong("Authenticated", Reason::AccountLocked));
        assert_eq!(worst(std::slice::from_ref(&drivers), &[]), Exit::Differences);
        assert_eq!(worst(&[drivers.clone(), refused.clone()], &[Exit::NotFound]), Exit::Vcenter);
        assert_eq!(worst(&[drivers, refused], &[Exit::Cluster]), Exit::Cluster);
    }
}
