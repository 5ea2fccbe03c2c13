use super::{Look, Probe, about};
use crate::api::{CertificateStatus, Class, ConditionType, Reason, chain};
use crate::health::{ConnectionReport, Stage};
use crate::matrix::Index;
use crate::vsphere::{CertificateFacts, ProbeError, ProbeStage, VcenterFacts};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

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
pub(super) fn stages(report: &mut ConnectionReport, look: &Look, known: bool, now: Timestamp) {
    let (failed_at, failed) = match &look.probe {
        Probe::Asked(answer) => match &**answer {
            Ok(facts) => {
                report
                    .stages
                    .extend(STAGES.map(|(_, kind)| passed(kind, facts, look.question.index.as_deref(), now)));
                report.about = Some(about(facts));
                report.certificate = Some(certificate(&facts.certificate));
                return;
            }
            Err(error) => {
                report.certificate = error.presented().map(certificate);
                // Nobody is told that something is wrong when it only cannot be seen; a vCenter that was never seen is.
                let hidden = known && class(error) == Class::Retry;
                let status = (!hidden).then_some(false);
                (error.stage(), (status, reason(error), chain(error), error.remedy()))
            }
        },
        Probe::NotAsked(message, reason) => (ProbeStage::Trusted, (Some(false), *reason, message.clone(), "")),
    };
    let asked = matches!(look.probe, Probe::Asked(_));
    for (stage, kind) in STAGES {
        let (status, reason, message, remedy) = failed.clone();
        report.stages.push(match stage.cmp(&failed_at) {
            std::cmp::Ordering::Less if !asked => Stage::unknown(kind, "not asked yet"),
            std::cmp::Ordering::Less => Stage::passed(kind, "as it should be"),
            std::cmp::Ordering::Equal => Stage::failed(kind, status, reason, message, remedy),
            std::cmp::Ordering::Greater => Stage::unknown(kind, "an earlier check failed"),
        });
    }
}

fn certificate(facts: &CertificateFacts) -> CertificateStatus {
    CertificateStatus {
        sha256: facts.sha256.to_string(),
        sha1: Some(facts.sha1.to_string()),
        not_before: facts.not_before.map(Time),
        not_after: facts.not_after.map(Time),
    }
}

fn passed(kind: ConditionType, facts: &VcenterFacts, index: Option<&Index>, now: Timestamp) -> Stage {
    match kind {
        ConditionType::Trusted => trusted(&facts.certificate, now),
        ConditionType::IsVCenter => is_vcenter(facts, index),
        ConditionType::Resolved => Stage::passed(kind, "the name resolves"),
        _ => Stage::passed(kind, "connections are accepted"),
    }
}

/// A version that no driver knows is one that can be looked at; what to install is the resolver's to say.
fn is_vcenter(facts: &VcenterFacts, index: Option<&Index>) -> Stage {
    let kind = ConditionType::IsVCenter;
    let Some(index) = index else {
        return Stage::passed(kind, facts.full_name.clone());
    };
    let version = index.vcenter(&facts.version, Some(&facts.build));
    let mut entries = index.drivers.values().flat_map(|driver| driver.versions.iter());
    if entries.any(|entry| entry.vsphere.range.contains(version.numbers())) {
        return Stage::passed(kind, facts.full_name.clone());
    }
    Stage::failed(
        kind,
        Some(true),
        Reason::VersionNotInMatrix,
        format!("{}: no driver in the compatibility matrix knows vCenter {version}", facts.full_name),
        "Use a newer matrix, or a vCenter that vdoctl matrix show lists; what runs goes on.",
    )
}

/// A certificate that is accepted may still end soon. The message names the day and not the days that are left, which change.
fn trusted(certificate: &CertificateFacts, now: Timestamp) -> Stage {
    let kind = ConditionType::Trusted;
    let print = format!("certificate sha256 {}", certificate.sha256);
    let Some(end) = certificate.not_after.filter(|end| end.duration_since(now) < SOON) else {
        return Stage::passed(kind, print);
    };
    let verb = if end < now { "ended" } else { "ends" };
    Stage::failed(
        kind,
        Some(true),
        Reason::CertificateExpiresSoon,
        format!("{print}, which {verb} at {end}"),
        "Renew it in vCenter under Administration, Certificates; where the connection has a thumbprint, write down the new one.",
    )
}

/// The reason under which a failed probe is published.
#[must_use]
pub fn reason(error: &ProbeError) -> Reason {
    match error {
        ProbeError::NotAnAddress { .. } => Reason::InvalidSpec,
        ProbeError::Unresolvable { .. } => Reason::NameNotResolved,
        ProbeError::Refused { .. } | ProbeError::Unreachable { .. } | ProbeError::Proxy { .. } => Reason::Unreachable,
        ProbeError::TimedOut { .. } | ProbeError::Unfinished { .. } => Reason::TimedOut,
        ProbeError::UnknownIssuer { .. } | ProbeError::BadCertificate { .. } => Reason::CertificateUntrusted,
        ProbeError::Expired { .. } | ProbeError::NotYetValid { .. } => Reason::CertificateExpired,
        ProbeError::WrongName { .. } => Reason::CertificateNameMismatch,
        ProbeError::ThumbprintMismatch { .. } => Reason::ThumbprintMismatch,
        ProbeError::BadTrust { .. } => Reason::CaBundleInvalid,
        ProbeError::Handshake { .. } => Reason::TlsFailed,
        ProbeError::NotTls { .. } | ProbeError::NotVcenter { .. } | ProbeError::EsxHost { .. } => Reason::NotAVcenter,
        // A vCenter that is starting or overloaded says 5xx; what does not know the address or wants a login first is none.
        ProbeError::Status { status: 400..=499, .. } => Reason::NotAVcenter,
        _ => Reason::BadAnswer,
    }
}

/// Whether a failed probe may come right by itself.
#[must_use]
pub fn class(error: &ProbeError) -> Class {
    match reason(error) {
        Reason::NameNotResolved | Reason::Unreachable | Reason::TimedOut | Reason::TlsFailed | Reason::BadAnswer => Class::Retry,
        _ => Class::Terminal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Thumbprint;
    use crate::vsphere::Excess;

    #[test]
    fn certificate_expiring_soon_is_trusted_with_warning() {
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().expect("a time");
        for (end, expected) in [
            ("2026-07-02T00:00:00Z", "Healthy"),
            ("2026-06-30T23:59:59Z", "CertificateExpiresSoon ends at 2026-06-30T23:59:59Z"),
            // A thumbprint is accepted whatever the dates.
            ("2026-05-31T00:00:00Z", "CertificateExpiresSoon ended at 2026-05-31T00:00:00Z"),
        ] {
            let facts = CertificateFacts {
                not_after: end.parse().ok(),
                ..CertificateFacts::of(b"none")
            };
            assert_eq!(facts.sha256, Thumbprint::sha256(b"none"));
            let stage = trusted(&facts, now);
            let rest = stage
                .message
                .split(", which ")
                .nth(1)
                .map(|rest| format!(" {rest}"))
                .unwrap_or_default();
            assert_eq!((stage.status, format!("{}{rest}", stage.reason)), (Some(true), expected.to_owned()));
        }
    }

    /// What was too much or took too long may have been an accident: it is tried again.
    #[test]
    fn probe_over_budget_is_retried_under_its_reason() {
        let address = || "vc:443".to_owned();
        let excess = Excess::Bytes(256 << 20);
        let after = std::time::Duration::from_secs(60);
        for (error, expected) in [
            (
                ProbeError::TooMuch {
                    address: address(),
                    excess,
                },
                (Reason::BadAnswer, Class::Retry),
            ),
            (
                ProbeError::Unfinished { address: address(), after },
                (Reason::TimedOut, Class::Retry),
            ),
        ] {
            assert_eq!((reason(&error), class(&error)), expected, "{error}");
        }
    }

    #[test]
    fn vcenter_version_not_in_matrix_passes_with_reason() {
        let index = Index::parse(crate::fetch::embedded::index()).expect("the embedded index");
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
            let stage = is_vcenter(&facts, Some(&index));
            assert_eq!((stage.status, stage.reason), (Some(true), reason), "{version}: {stage:?}");
            assert_eq!(is_vcenter(&facts, None).reason, Reason::Healthy);
        }
    }
}
