// SPDX-License-Identifier: Apache-2.0
//! Tests of `remedy.rs`: every reason has a command or an exception, and `docs/errors.md` names the command.
use super::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use vdo_api::api::VDOConfig;

const PAGE: &str = include_str!("../../../../docs/errors.md");

/// Reasons of conditions that hold, of events, of what is under way, and of what is Unknown: no screen marks them with a cross.
const NO_CROSS: &[Reason] = &[
    Reason::Healthy,
    Reason::Idle,
    Reason::Progressing,
    Reason::Deleting,
    Reason::Removed,
    Reason::NotRequested,
    Reason::NotChecked,
    Reason::ConnectionNotReady,
    Reason::CertificateExpiresSoon,
    Reason::VersionNotInMatrix,
    Reason::TagLoginRefused,
    Reason::NoSharedDatastore,
    Reason::NoFileService,
    Reason::ClusterIdNotChecked,
    Reason::DriftRepaired,
    Reason::SnapshotConversionWebhook,
    Reason::WaitingForPods,
    Reason::WaitingForCsiNodes,
    Reason::WaitingForDriver,
    Reason::ChangeRefused,
    Reason::VersionChosen,
    Reason::VersionChanged,
    Reason::MatrixSourceChanged,
    Reason::UpdatePolicy,
    Reason::VersionPinned,
    Reason::UpgradeWaits,
    Reason::WindowOpen,
    Reason::OutsideMaintenanceWindow,
    Reason::MaintenanceWindowInvalid,
    Reason::DeadlineExceeded,
];

/// Reasons that a screen marks with a cross and that have no command of their own here, each list with why.
const WITHOUT: &[(&str, &[Reason])] = &[
    (
        "only the message can name the command: it has an object, a node, an id or a revision in it",
        &[
            Reason::OperatorNotRunning,
            Reason::ClusterIdInUse,
            Reason::ClusterIdChanged,
            Reason::ClusterIdUnknown,
            Reason::ClusterIdAmbiguous,
            Reason::Forbidden,
            Reason::AdmissionDenied,
            Reason::ImmutableField,
            Reason::ApplyFailed,
            Reason::DeletionBlocked,
            Reason::SnapshotDefinitionsMissing,
            Reason::SnapshotControllerMissing,
            Reason::KubeletNotExternal,
            Reason::NoEligibleNode,
            Reason::NetworkNotReady,
            Reason::PodsFailing,
            Reason::WebhookNotServed,
            Reason::RollbackAvailable,
        ],
    ),
    (
        "a person acts in the vCenter or on the network, and it is tried again by itself",
        &[
            Reason::TimedOut,
            Reason::CertificateExpired,
            Reason::TlsFailed,
            Reason::BadAnswer,
            Reason::AccountLocked,
            Reason::LoginRefused,
            Reason::SessionLost,
            Reason::InventoryForbidden,
            Reason::DatastoreNotFound,
            Reason::DatastoreUnusable,
            Reason::DatastoreNotVsan,
            Reason::StoragePolicyNotFound,
            Reason::MachineInSeveralVcenters,
            Reason::ApiUnavailable,
        ],
    ),
    (
        "a person decides which of two stays",
        &[
            Reason::NotActive,
            Reason::NewerOperator,
            Reason::SecretElsewhere,
            Reason::DuplicateVcenter,
            Reason::TrustDiffers,
            Reason::DriftFight,
        ],
    ),
];

fn config(spec: Value, change: impl FnOnce(&mut Config)) -> Config {
    let spec = serde_json::from_value(spec).expect("a specification");
    let mut object = VDOConfig::new("vdo", spec);
    object.metadata.namespace = Some("work".into());
    let mut config = Config::of(&object);
    change(&mut config);
    config
}

/// Everything at once: paused, pinned, kept, and with a plan that waits.
fn whole() -> Config {
    let spec = json!({"managementState": "Paused", "storageProvider": {"version": "3.0.0"}});
    config(spec, |config| {
        config.status.plan = serde_json::from_value(json!({"hash": "0a1b", "steps": 1, "approved": false})).ok();
        config.kept = vec![("vsphere-csi".into(), "7".into())];
    })
}

#[test]
fn remedy_command_names_the_verb_and_the_object() {
    let vc1 = About::Connection("vc1");
    let all = whole();
    let all = About::Config(&all);
    let managed = config(json!({"storageProvider": {"managementState": "Paused"}}), |_| {});
    let managed = About::Config(&managed);
    for (reason, message, about, expected) in [
        (Reason::Paused, "", all, Some("vdoctl resume")),
        (
            Reason::WorkloadMissing,
            "CSI 3.7.3: Deployment n/c is missing",
            all,
            Some("vdoctl resume"),
        ),
        (
            Reason::WorkloadMissing,
            "CSI 3.7.3: Deployment n/c is missing",
            managed,
            Some("vdoctl resume csi"),
        ),
        (Reason::WorkloadMissing, "CPI 1.34.0: DaemonSet n/c is missing", managed, None),
        (Reason::ApprovalRequired, "", all, Some("vdoctl approve 0a1b")),
        (Reason::ApprovalRequired, "", managed, Some("vdoctl plan")),
        (
            Reason::IncompatiblePin,
            "vsphere-csi is pinned to 3.0.0, which does not fit",
            all,
            Some("vdoctl configure drivers --set storageProvider.version=null"),
        ),
        (
            Reason::KubernetesNotSupported,
            "CPI 1.34.0 supports",
            all,
            Some("vdoctl matrix resolve"),
        ),
        (Reason::NoCompatibleVersion, "nothing fits", all, Some("vdoctl matrix resolve")),
        (
            Reason::NoCompatibleVersion,
            "Use `x`, or go back: `vdoctl configure drivers --set storageProvider.version=3.6.0`.",
            all,
            Some("vdoctl configure drivers --set storageProvider.version=3.6.0"),
        ),
        (Reason::RevisionUnusable, "", all, Some("vdoctl rollback csi --lift")),
        (Reason::RevisionUnusable, "", managed, Some("vdoctl history")),
        (
            Reason::RightsMissing,
            "",
            all,
            Some("vdoctl rights --missing | kubectl apply --server-side --force-conflicts -f -"),
        ),
        (Reason::InvalidValues, "", all, Some("kubectl edit vdoconfigs --namespace work vdo")),
        (Reason::InvalidCredentials, "", vc1, Some("vdoctl secrets set vc1")),
        (
            Reason::ThumbprintMismatch,
            "",
            vc1,
            Some("vdoctl configure connection vc1 --fetch-certificate"),
        ),
        (
            Reason::DatacenterNotFound,
            "",
            vc1,
            Some("vdoctl configure connection vc1 --interactive"),
        ),
        (Reason::AccountLocked, "", vc1, None),
        (Reason::InvalidCredentials, "", all, None),
    ] {
        assert_eq!(command(reason.as_str(), message, about).as_deref(), expected, "{reason} {message}");
    }
    assert_eq!(command("Unheard", "", vc1), None);
}

#[test]
fn remedy_driver_is_named_as_a_word() {
    for (message, driver, expected) in [
        ("CSI 3.0.0 does not fit", "vsphere-csi", true),
        ("vsphere-csi is pinned", "vsphere-csi", true),
        ("the CSIDriver is another's", "vsphere-csi", false),
        ("Deployment n/vsphere-csi-controller is missing", "vsphere-csi", false),
        ("CPI 1.34.0", "vsphere-csi", false),
    ] {
        assert_eq!(names(message, driver), expected, "{message}");
    }
}

/// The remedy of a reason in docs/errors.md.
fn remedy(reason: Reason) -> &'static str {
    let section = PAGE.split("\n### ").find(|section| section.lines().next() == Some(reason.as_str()));
    let text = section.and_then(|section| section.split_once("**Remedy.**")).map(|(_, text)| text);
    text.unwrap_or_else(|| panic!("docs/errors.md has no remedy of {reason}"))
}

/// A reason has a command, or it is listed why it has none; and the page names the command that the screens show.
#[test]
fn remedy_every_reason_of_a_cross_has_a_command_that_the_page_names() {
    let all = whole();
    let listed = |reason: &Reason| WITHOUT.iter().any(|(_, reasons)| reasons.contains(reason));
    let mut wrong = BTreeSet::new();
    for reason in Reason::ALL {
        let of = |about| command(reason.as_str(), "CSI", about);
        let found = of(About::Config(&all)).or_else(|| of(About::Connection("vc1")));
        match found {
            None if !NO_CROSS.contains(reason) && !listed(reason) => drop(wrong.insert(format!("{reason} has no command"))),
            Some(command) if listed(reason) || NO_CROSS.contains(reason) => {
                wrong.insert(format!("{reason} is listed as one without a command, and has {command}"));
            }
            Some(command) => {
                let verb: Vec<&str> = command
                    .split_whitespace()
                    .take_while(|word| !["vc1", "0a1b", "csi", "|"].contains(word) && !word.starts_with("--"))
                    .collect();
                let verb = format!("`{}", verb.join(" "));
                if !remedy(*reason).contains(&verb) {
                    wrong.insert(format!("the remedy of {reason} in docs/errors.md lacks {verb}"));
                }
            }
            None => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
