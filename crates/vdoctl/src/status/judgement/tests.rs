// SPDX-License-Identifier: Apache-2.0
//! Tests of `judgement.rs`: ready, in progress, or waits for a person, with the texts.
use super::super::super::operator_running::Silence;
use super::super::super::views::status::JudgementView;
use super::*;
use serde_json::json;
use vdo_api::api::VDOConfigStatus;

fn at(time: &str) -> Timestamp {
    format!("2026-01-01T{time}Z").parse().expect("a time")
}

/// A picture whose conditions are these: type, status, reason, message.
fn picture(conditions: &[(&str, &str, &str, &str)], change: impl FnOnce(&mut Picture)) -> Picture {
    let of = |(kind, status, reason, message): &(&str, &str, &str, &str)| json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status: VDOConfigStatus = serde_json::from_value(json!({
        "conditions": conditions.iter().map(of).collect::<Vec<_>>(),
        "plan": {"hash": "abc", "steps": 3, "approved": false},
        "health": "Progressing",
    }))
    .expect("a status");
    let mut picture = Picture {
        cluster: String::new(),
        server: String::new(),
        kubernetes: String::new(),
        nodes: None,
        operator: None,
        operator_visible: true,
        doubt: None,
        config: Some(Config {
            id: "n/vdo".into(),
            current: true,
            deleting: false,
            stuck: None,
            silence: None,
            kept: Vec::new(),
            pins: vec![("vsphere-csi".into(), "2.7.0".into())],
            upgrade_pins: Default::default(),
            paused: false,
            paused_drivers: Vec::new(),
            windows: Vec::new(),
            status,
        }),
        defined: true,
        connections: Vec::new(),
    };
    change(&mut picture);
    picture
}

fn config(change: impl FnOnce(&mut Config)) -> impl FnOnce(&mut Picture) {
    |picture| change(picture.config.as_mut().expect("a VDOConfig"))
}

fn silence(person: bool) -> impl FnOnce(&mut Picture) {
    config(move |config| {
        config.silence = Some(Silence {
            since: None,
            why: "Deployment n/vdo-operator is scaled to 0".into(),
            remedy: "Start it".into(),
            person,
        });
    })
}

const READY: (&str, &str, &str, &str) = ("Ready", "True", "Healthy", "CSI 3.7.3 installed and healthy");
const NOT_YET: (&str, &str, &str, &str) = ("Ready", "False", "WaitingForPods", "1 of 2 pods");

/// Each picture with the answer: `r` ready, `p` in progress, or the kind of what a person has to do, and a part of what is said.
fn pictures() -> Vec<(Picture, &'static str, &'static str)> {
    let pin = |reason: &'static str| ("StorageReady", "False", reason, "CSI 2.7.0 does not fit");
    let blocked = ("Ready", "False", "IncompatiblePin", "CSI 2.7.0 does not fit");
    let none = |_: &mut Picture| {};
    vec![
        (picture(&[READY], none), "r", "installed and healthy"),
        (picture(&[READY], config(|c| c.paused = true)), "r", "installed and healthy"),
        (
            picture(&[READY], config(|c| c.current = false)),
            "p",
            "has not checked VDOConfig n/vdo",
        ),
        (picture(&[READY], silence(false)), "p", "no operator runs"),
        (
            picture(&[READY], |p| p.doubt = Some("it is scaled to 0".into())),
            "p",
            "it is scaled to 0",
        ),
        (picture(&[READY], silence(true)), "Operator", "Start it"),
        (picture(&[READY], |p| p.config = None), "Fault", "vdoctl deploy"),
        (picture(&[READY], config(|c| c.deleting = true)), "Deletion", "wait --for deleted"),
        (
            picture(
                &[],
                config(|c| c.stuck = Some(("no one deletes it".into(), "Run vdoctl delete".into()))),
            ),
            "Operator",
            "Run vdoctl delete",
        ),
        (picture(&[NOT_YET], none), "p", "1 of 2 pods"),
        (picture(&[NOT_YET], config(|c| c.paused = true)), "Paused", "vdoctl resume"),
        (
            picture(&[("Ready", "False", "ApprovalRequired", "a plan waits")], none),
            "Approval",
            "vdoctl approve abc",
        ),
        (
            picture(&[blocked, pin("IncompatiblePin")], none),
            "Fault",
            "--set storageProvider.version=null",
        ),
        (
            picture(&[blocked, pin("UnknownVersion")], none),
            "Fault",
            "vdoctl matrix why-not csi 2.7.0",
        ),
        (picture(&[blocked], config(|c| c.current = false)), "p", "has not checked VDOConfig"),
        (
            picture(
                &[("Ready", "False", "RenderFailed", "x"), ("Stalled", "True", "RenderFailed", "x")],
                none,
            ),
            "Fault",
            "vdoctl explain RenderFailed",
        ),
        (
            picture(&[("Ready", "False", "VolumesInUse", "1 volume is there")], |p| {
                config(|c| c.deleting = true)(p);
                p.doubt = Some("it is scaled to 0".into());
            }),
            "Deletion",
            "wait --for deleted",
        ),
        (
            picture(&[NOT_YET, ("Stalled", "True", "DeadlineExceeded", "since long")], none),
            "p",
            "1 of 2 pods",
        ),
        (
            picture(
                &[("Ready", "False", "VolumesInUse", "1 volume is there")],
                config(|c| c.deleting = true),
            ),
            "Fault",
            "1 volume is there",
        ),
    ]
}

#[test]
fn judgement_is_ready_only_with_an_operator_and_names_what_a_person_has_to_do() {
    for (picture, kind, part) in pictures() {
        let judged = picture.judge(false, at("01:00:00"));
        let found = match &judged {
            Judgement::Ready(_) => "r".to_owned(),
            Judgement::Progress { .. } => "p".to_owned(),
            Judgement::Person(need) => format!("{:?}", need.kind),
        };
        assert_eq!(found, kind, "{judged:?}");
        let shown = JudgementView::from(&judged);
        let text = format!("{} {}", shown.message, shown.remedy.unwrap_or_default());
        assert!(text.contains(part), "{part:?} is not in {judged:?}");
        let goes_on = text.contains("continues by itself");
        assert!(!goes_on || matches!(judged, Judgement::Progress { unsure: None, .. }), "{judged:?}");
    }
}

#[test]
fn judgement_names_driver_and_version_once() {
    let said = |counted: &str, message: &str| counted_as("CPI 1.34.0", counted, message);
    assert_eq!(said("", "CPI 1.34.0 is not installed yet"), "CPI 1.34.0 is not installed yet");
    assert_eq!(
        said("  1/2 pods", "CPI 1.34.0 has 1 of 2 pods"),
        "CPI 1.34.0  1/2 pods: has 1 of 2 pods"
    );
    let missing = "CPI 1.34.0: Deployment n/c is missing";
    assert_eq!(said("", missing), missing);
    assert_eq!(said("  1/2 pods", missing), "CPI 1.34.0  1/2 pods: Deployment n/c is missing");
    assert_eq!(said("", "CPI 1.34.01 is another"), "CPI 1.34.0: CPI 1.34.01 is another");
}

/// What is waited for names the condition's own cause, the connection, as the screen of `status` does.
#[test]
fn judgement_names_the_connection_that_is_the_cause() {
    let message = "vSphere connection vc1: the vCenter refuses the password";
    let refused = ("Ready", "False", "ConnectionNotReady", message);
    let connection = json!({"metadata": {"name": "vc1"}, "spec": {"vcIp": "vc.example.com", "credentials": "vc1-credentials"}, "status": {"conditions": [
        {"type": "Ready", "status": "False", "reason": "InvalidCredentials", "message": "the vCenter refuses the password",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let picture = picture(&[refused], |picture| {
        picture.connections = vec![serde_json::from_value(connection).expect("a connection")];
        let config = picture.config.as_mut().expect("a VDOConfig");
        config.status.health = Some(Health::Blocked);
    });
    let Judgement::Progress { waits, remedy, .. } = picture.judge(false, at("01:00:00")) else {
        panic!("not in progress");
    };
    assert_eq!(waits, [format!("{message} (vdoctl explain InvalidCredentials)")]);
    assert!(remedy.contains("vdoctl secrets set vc1"), "{remedy}");
    assert!(remedy.contains("vdoctl explain InvalidCredentials"), "{remedy}");
}
