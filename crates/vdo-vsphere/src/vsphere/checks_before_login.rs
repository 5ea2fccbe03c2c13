// SPDX-License-Identifier: Apache-2.0
//! The checks before the login, for the conditions Resolved, Connected, Trusted (also an expiring certificate) and IsVCenter.

use super::{Check, ConnectionReport, Finding, Inspection, ProbeOutcome, ProbeStage, VcenterFacts};
use jiff::{SignedDuration, Timestamp};
use vdo_api::api::{Class, Classify as _, ConditionType, Reason};
use vdo_core::certificate::CertificateFacts;
use vdo_core::matrix::Index;

/// The stages without a login, in the order in which they are reached, with the condition of each.
const STAGES: [(ProbeStage, ConditionType); 4] = [
    (ProbeStage::Resolved, ConditionType::Resolved),
    (ProbeStage::Connected, ConditionType::Connected),
    (ProbeStage::Trusted, ConditionType::Trusted),
    (ProbeStage::IsVcenter, ConditionType::IsVCenter),
];

/// How long before its end a certificate is spoken of.
const SOON: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The stages without a login.
pub(super) fn add_checks_before_login(report: &mut ConnectionReport, inspection: &Inspection, known: bool, now: Timestamp) {
    let (failed_at, failed) = match &inspection.probe {
        ProbeOutcome::Asked(answer) => match &**answer {
            Ok(facts) => {
                report
                    .checks
                    .extend(STAGES.map(|(_, kind)| passed(kind, facts, inspection.request.index.as_deref(), now)));
                report.about = Some(facts.about());
                report.certificate = Some(facts.certificate.status());
                return;
            }
            Err(error) => {
                report.certificate = error.presented().map(CertificateFacts::status);
                // A vCenter that was verified before is not reported as wrong while it only cannot be reached; one that never was, is.
                let hidden = known && error.class() == Class::Retry;
                let status = (!hidden).then_some(false);
                (error.stage(), (status, Finding::of(error)))
            }
        },
        ProbeOutcome::NotAsked(why) => (ProbeStage::Trusted, (Some(false), why.clone())),
    };
    let asked = matches!(inspection.probe, ProbeOutcome::Asked(_));
    for (check, kind) in STAGES {
        let (status, why) = failed.clone();
        report.checks.push(match check.cmp(&failed_at) {
            std::cmp::Ordering::Less if !asked => Check::unknown(kind, "not checked yet"),
            std::cmp::Ordering::Less => Check::passed(kind, reached(kind)),
            std::cmp::Ordering::Equal => Check::failed(kind, status, why.reason, why.message, why.remedy),
            std::cmp::Ordering::Greater => Check::unknown(kind, "an earlier check failed"),
        });
    }
}

fn passed(kind: ConditionType, facts: &VcenterFacts, index: Option<&Index>, now: Timestamp) -> Check {
    match kind {
        ConditionType::Trusted => trusted(&facts.certificate, now),
        ConditionType::IsVCenter => is_vcenter(facts, index),
        _ => Check::passed(kind, reached(kind)),
    }
}

/// What has been found at a stage that was passed, where nothing more is known of it.
fn reached(kind: ConditionType) -> &'static str {
    match kind {
        ConditionType::Resolved => "the name resolves",
        ConditionType::Connected => "the vCenter accepts network connections",
        ConditionType::Trusted => "the certificate is trusted",
        _ => "a vCenter answers",
    }
}

/// A version that no driver knows is one that can be looked at; what to install is the resolver's to say.
fn is_vcenter(facts: &VcenterFacts, index: Option<&Index>) -> Check {
    let kind = ConditionType::IsVCenter;
    let Some(index) = index else {
        return Check::passed(kind, facts.full_name.clone());
    };
    let version = index.vcenter(&facts.version, Some(&facts.build));
    // A driver that talks to no vCenter supports all of them, and says nothing of this one.
    let mut entries = index.usual().flat_map(|name| &index.drivers[name].versions);
    if entries.any(|entry| entry.vsphere.range.contains(version.numbers())) {
        return Check::passed(kind, facts.full_name.clone());
    }
    Check::failed(
        kind,
        Some(true),
        Reason::VersionNotInMatrix,
        format!(
            "{}: no driver in the compatibility matrix supports vCenter {version}",
            facts.full_name
        ),
        "Use a newer matrix, or a vCenter version that vdoctl matrix show lists; installed drivers keep running.",
    )
}

/// A certificate that is accepted may still end soon. The message names the day and not the days that are left, which change.
fn trusted(certificate: &CertificateFacts, now: Timestamp) -> Check {
    let kind = ConditionType::Trusted;
    let print = format!("the certificate with the SHA-256 thumbprint {}", certificate.sha256);
    let Some(end) = certificate.not_after.filter(|end| end.duration_since(now) < SOON) else {
        return Check::passed(kind, format!("{print} is trusted"));
    };
    let verb = if end < now { "expired" } else { "expires" };
    Check::failed(
        kind,
        Some(true),
        Reason::CertificateExpiresSoon,
        format!("{print} {verb} at {end}"),
        "Renew the certificate in vCenter under Administration, Certificates; if the vSphere connection has a thumbprint, set the new \
         thumbprint in the connection.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::types::Thumbprint;

    #[test]
    fn certificate_expiring_soon_is_trusted_with_warning() {
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().expect("a time");
        for (end, expected) in [
            ("2026-07-01T00:00:00Z", "Healthy"),
            ("2026-06-30T23:59:59Z", "CertificateExpiresSoon expires at 2026-06-30T23:59:59Z"),
            ("2026-06-01T00:00:00Z", "CertificateExpiresSoon expires at 2026-06-01T00:00:00Z"),
            // A thumbprint is accepted whatever the dates.
            ("2026-05-31T00:00:00Z", "CertificateExpiresSoon expired at 2026-05-31T00:00:00Z"),
        ] {
            let facts = CertificateFacts {
                not_after: end.parse().ok(),
                ..CertificateFacts::of(b"none")
            };
            assert_eq!(facts.sha256, Thumbprint::sha256(b"none"));
            let check = trusted(&facts, now);
            let rest = check
                .message
                .find(" expire")
                .map(|at| check.message[at..].to_owned())
                .unwrap_or_default();
            assert_eq!((check.status, format!("{}{rest}", check.reason)), (Some(true), expected.to_owned()));
        }
    }

    #[test]
    fn vcenter_version_not_in_matrix_passes_with_reason() {
        let index = Index::parse(include_bytes!("../../../../matrix-index/index.yaml")).expect("the embedded index");
        for (version, reason) in [("8.0.3", Reason::Healthy), ("5.5.0", Reason::VersionNotInMatrix)] {
            let facts = VcenterFacts {
                version: version.parse().expect("a version"),
                build: "1".into(),
                api_type: "VirtualCenter".into(),
                api_version: version.into(),
                instance_uuid: "u".into(),
                full_name: "VMware vCenter".into(),
                certificate: CertificateFacts::of(b"none"),
            };
            let check = is_vcenter(&facts, Some(&index));
            assert_eq!((check.status, check.reason), (Some(true), reason), "{version}: {check:?}");
            assert_eq!(is_vcenter(&facts, None).reason, Reason::Healthy);
        }
    }
}
