// SPDX-License-Identifier: Apache-2.0
//! Every reason is produced by a test: a scan over the tests proves it, and the tables here produce what no other test does.

use crate::sources::{product, product_texts, texts_of};
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use vdo::reconcile::ReconcileError;
use vdo_api::api::{Classify, ConditionType, Conditions, Reason, VDOConfigStatus};
use vdo_api::facts::Node;
use vdo_api::types::{ObjectId, Thumbprint};
use vdo_core::certificate::CertificateFacts;
use vdo_core::drivers::{CPI, CSI};
use vdo_core::health::driver_health;
use vdo_core::manifest::Object;
use vdo_core::plan::{Inventory, Step, check};
use vdo_core::status::{Report, fold};
use vdo_source::fetch::RepositoryError;
use vdo_vsphere::vsphere::{ProbeError, ProbeStage, SessionError};

/// The texts in which a test can expect a reason: integration tests, the tests inside of the repository, and snapshots. What
/// tests of the status and of the explanations put in themselves proves nothing, and is left out.
fn expectations() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    let of = |folder: String| {
        let texts = texts_of(&folder, &["rs", "snap"]).into_iter();
        texts.map(move |(path, text)| (format!("{folder}/{}", path.display()), text))
    };
    for (name, text) in product().into_iter().chain(["tests".to_owned()]).flat_map(of) {
        let explains = name.contains("explain") || name.starts_with("tests/testbed") || name.contains("__status__");
        if explains {
            continue;
        }
        let expects = if !name.starts_with("tests") && name.ends_with(".rs") {
            text.split_once("\n#[cfg(test)]\nmod ")
                .map(|(_, tests)| tests.to_owned())
                .unwrap_or_default()
        } else if name.starts_with("tests/pure/status") || name == "tests/pure/reasons.rs" {
            // Reasons that go in are variants there; what comes out is a text.
            text.replace("Reason::", "Reason_")
        } else {
            text
        };
        texts.push((name, expects));
    }
    texts
}

fn has_word(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(inside) && !text[at + word.len()..].starts_with(inside))
}

/// Reasons that are published and explained, and that no code gives yet.
const NOT_GIVEN: [&str; 2] = [concat!("Not", "Ours"), concat!("Version", "NotInMatrix")];

/// Whether code of the repository, without its tests, gives this reason.
fn is_given(reason: &str) -> bool {
    product_texts()
        .into_iter()
        .filter(|(path, _)| !path.starts_with("crates/vdo-api/src/api"))
        .any(|(_, text)| {
            has_word(
                text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default(),
                &format!("Reason::{reason}"),
            )
        })
}

#[test]
fn reasons_every_reason_is_expected_by_a_test() {
    let texts = expectations();
    assert!(texts.len() > 30, "the tests were not found");
    let missing: Vec<&str> = Reason::ALL
        .iter()
        .map(|reason| reason.as_str())
        .filter(|reason| !texts.iter().any(|(_, text)| has_word(text, reason)))
        .filter(|reason| !NOT_GIVEN.contains(reason) || is_given(reason))
        .collect();
    assert!(missing.is_empty(), "no test expects these reasons: {missing:?}");
    assert!(is_given("Healthy") && !is_given("Unheard"));
    assert!(has_word("is(Ready)", "Ready") && !has_word("NotReady", "Ready") && !has_word("Reason_Ready", "Ready"));
}

/// The errors that tests/vcenter.rs and tests/vcenter_session.rs bring about with real sockets, under the reason that is published.
#[test]
fn reasons_vcenter_error_maps_to_published_reason() {
    let address = || "vc:443".to_owned();
    let presented = || Box::new(CertificateFacts::of(b""));
    let broken = || io::Error::other("broken");
    let user = || "u".to_owned();
    let probe = |error: ProbeError| error.reason();
    let session = |error: SessionError| error.reason();
    for (found, expected) in [
        (
            probe(ProbeError::Handshake {
                address: address(),
                source: broken(),
            }),
            "TlsFailed",
        ),
        (
            probe(ProbeError::UnknownIssuer {
                address: address(),
                presented: presented(),
            }),
            "CertificateUntrusted",
        ),
        (
            probe(ProbeError::Expired {
                address: address(),
                presented: presented(),
            }),
            "CertificateExpired",
        ),
        (
            probe(ProbeError::WrongName {
                address: address(),
                presented: presented(),
            }),
            "CertificateNameMismatch",
        ),
        (
            probe(ProbeError::ThumbprintMismatch {
                address: address(),
                expected: Thumbprint::sha256(b""),
                presented: presented(),
            }),
            "ThumbprintMismatch",
        ),
        (
            probe(ProbeError::Unresolvable {
                server: "vc".into(),
                source: None,
            }),
            "NameNotResolved",
        ),
        (probe(ProbeError::Refused { address: address() }), "Unreachable"),
        (
            probe(ProbeError::TimedOut {
                address: address(),
                stage: ProbeStage::Connected,
                after: Duration::from_secs(1),
            }),
            "TimedOut",
        ),
        (
            probe(ProbeError::BadTrust {
                address: address(),
                because: "empty".into(),
            }),
            "CaBundleInvalid",
        ),
        (probe(ProbeError::NotTls { address: address() }), "NotAVcenter"),
        (
            probe(ProbeError::Status {
                address: address(),
                status: 404,
                fault: None,
            }),
            "NotAVcenter",
        ),
        (
            probe(ProbeError::Status {
                address: address(),
                status: 503,
                fault: None,
            }),
            "BadAnswer",
        ),
        (
            probe(ProbeError::Malformed {
                address: address(),
                because: "no XML".into(),
            }),
            "BadAnswer",
        ),
        (
            session(SessionError::InvalidLogin {
                address: address(),
                user: user(),
            }),
            "InvalidCredentials",
        ),
        (
            session(SessionError::Locked {
                address: address(),
                user: user(),
            }),
            "AccountLocked",
        ),
        (
            session(SessionError::Expired {
                address: address(),
                user: user(),
            }),
            "PasswordExpired",
        ),
        (
            session(SessionError::Refused {
                address: address(),
                user: user(),
            }),
            "LoginRefused",
        ),
        (
            session(SessionError::Lost {
                address: address(),
                user: user(),
            }),
            "SessionLost",
        ),
        (
            session(SessionError::Forbidden {
                address: address(),
                user: user(),
                method: "RetrieveProperties",
            }),
            "InventoryForbidden",
        ),
    ] {
        assert_eq!(found.as_str(), expected);
    }
}

/// Bytes and settings that are wrong, through the code that reads them.
#[test]
fn reasons_unreadable_input_maps_to_published_reason() {
    let reason = |error: ReconcileError| error.reason().as_str();
    let matrix = vdo_core::matrix::Index::parse(b"drivers: 7").expect_err("no matrix");
    assert_eq!(reason(RepositoryError::from(matrix).into()), "MatrixInvalid");
    let unsigned = vdo_source::signature::SignatureError::Unsigned;
    let problem = vdo_source::fetch::Problem::from(&RepositoryError::from(unsigned));
    assert_eq!(problem.reason.as_str(), "MatrixNotTrusted");
    let old = vdo_source::fetch::RolledBack { found: 1, seen: 2 };
    assert_eq!(reason(RepositoryError::from(old).into()), "MatrixRolledBack");
    assert_eq!(reason(RepositoryError::NotYet("a source".into()).into()), "MatrixUnreachable");
    let chart = vdo_core::chart::open(b"no archive").expect_err("no chart");
    assert_eq!(reason(RepositoryError::from(chart).into()), "ChartUnavailable");
    let object = Object::new(json!({"kind": "Nameless"})).expect_err("no object");
    assert_eq!(reason(object.into()), "RenderFailed");
    let options = vdo_core::driverconfig::csi::CsiOptions::new("id");
    let none = vdo_core::driverconfig::csi::render(&"3.7.3".parse().expect("a version"), &options, &[]).expect_err("no connection");
    assert_eq!(reason(vdo_core::drivers::SetupError::from(none).into()), "ConfigurationInvalid");
}

#[test]
fn reasons_plan_deleting_foreign_object_is_rejected() {
    let reason = |error: ReconcileError| error.reason().as_str();
    let id = ObjectId::new("", "ConfigMap", "n", "someone's");
    let steps = [Step::Delete {
        id,
        api_version: "v1".into(),
        uid: "u".into(),
        wave: 2,
        driver: String::new(),
    }];
    let refused = check(&steps, &[], &Inventory::default()).expect_err("nothing that is not ours is deleted");
    assert_eq!(reason(refused.into()), "PlanRejected");
}

/// Hosts that reach no datastore together.
#[test]
fn reasons_hosts_without_shared_datastore_are_reported() {
    let none = vdo_vsphere::vsphere::SharedDatastores {
        segment: String::new(),
        hosts: vec!["esx-1".into(), "esx-2".into()],
        datastores: Vec::new(),
        emptied_by: "esx-2".into(),
    };
    let found = vdo_vsphere::vsphere::no_shared_datastore(&[none]).expect("a finding");
    assert_eq!(found.reason.as_str(), "NoSharedDatastore");
}

/// File volumes without the service that makes them.
#[test]
fn reasons_missing_file_service_is_reported() {
    let found = vdo_vsphere::vsphere::no_file_service(&Default::default(), Some(&Ok(Some(false)))).expect("a finding");
    assert_eq!(found.reason.as_str(), "NoFileService");
}

fn object(value: serde_json::Value) -> Object {
    Object::new(value).expect("an object")
}

fn workload() -> Object {
    object(json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "n", "generation": 1}}))
}

fn failing_pod() -> Object {
    object(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "status": {"containerStatuses": [
        {"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1, "message": "no route for hunter2"}}}]}}),
    )
}

/// Drivers that are not well, from their objects.
#[test]
fn reasons_driver_health_maps_to_published_reason() {
    let node = Arc::new(Node {
        name: "w".into(),
        linux: true,
        uninitialized: true,
        ..Node::default()
    });
    let webhook = object(
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "w"},
        "webhooks": [{"clientConfig": {"service": {"namespace": "n", "name": "s"}}}]}),
    );
    let (workload, pod) = (workload(), failing_pod());
    let nodes = [node];
    for (found, expected) in [
        (driver_health(CPI, &[], &[], &[], &nodes), "WaitingForNodes"),
        (driver_health(CSI, &[], &[], &[], &nodes), "WaitingForCsiNodes"),
        (driver_health(CSI, &[&webhook], &[], &[], &[]), "WebhookNotServed"),
        (driver_health(CSI, &[&workload], &[], &[], &[]), "WaitingForPods"),
        (driver_health(CSI, &[&workload], &[&pod], &[], &[]), "PodsFailing"),
        (driver_health(CSI, &[], &[], &[], &[]), "Healthy"),
    ] {
        assert_eq!(
            (found.reason.as_str(), found.ready),
            (expected, expected == "Healthy"),
            "{}",
            found.message
        );
    }
}

#[test]
fn reasons_failing_pod_shows_last_words_without_secret() {
    let failing = driver_health(CSI, &[&workload()], &[&failing_pod()], &[], &[]);
    let reported = failing.clone().with_log_excerpt(None, &["hunter2"]).message;
    assert!(
        reported.ends_with("; its last output: no route for ******; for the complete log, run: kubectl logs --previous -n n p -c c"),
        "{reported}"
    );
    let reported = failing.with_log_excerpt(Some("from the log"), &[]).message;
    assert!(
        reported.contains("its last output: from the log") && !reported.contains("no route"),
        "{reported}"
    );
}

/// What the fold itself says.
#[test]
fn reasons_status_during_uninstall_is_deleting() {
    let report = Report {
        generation: Some(1),
        deleting: true,
        ..Report::default()
    };
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH);
    let status = fold(&VDOConfigStatus::default(), &report, &now);
    let found: BTreeMap<&str, &str> = status.conditions.iter().map(|c| (c.type_.as_str(), c.reason.as_str())).collect();
    assert_eq!(found["Ready"], "Deleting");
    assert_eq!(found["MatrixFresh"], "NotChecked");
    assert_eq!(
        Conditions::find(&status.conditions, ConditionType::Stalled).map(|c| c.reason.as_str()),
        Some("Idle")
    );
}

/// docs/matrix.md lists every way in which MatrixFresh can be False.
#[test]
fn matrix_page_names_every_reason_of_matrix_fresh() {
    let page = include_str!("../../docs/matrix.md");
    let of_matrix = Reason::ALL.iter().filter(|reason| reason.as_str().starts_with("Matrix"));
    for reason in of_matrix {
        let name = reason.as_str();
        let row = format!("| [{name}](errors.md#{}) |", name.to_lowercase());
        assert!(page.contains(&row), "{row} is not in docs/matrix.md");
    }
}
