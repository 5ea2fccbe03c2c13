// SPDX-License-Identifier: Apache-2.0
//! Tests of `steps.rs`: which steps a selftest makes, skips, passes or fails.

use super::*;
use strum::IntoEnumIterator as _;

fn known() -> Known {
    Known {
        class: "fast".into(),
        expands: true,
        shared: false,
        snapshots: Ok("snap".into()),
        nodes: 2,
    }
}

/// All steps with what would be skipped, when each of the others passes but this one.
fn walk(known: &Known, failing: Option<Step>) -> Vec<(Step, Outcome, String)> {
    let mut done = Vec::new();
    let mut all = Vec::new();
    for step in Step::iter() {
        let (outcome, why) = match skipped(step, known, &done) {
            Some(why) => (Outcome::Skipped, why),
            None if failing == Some(step) => (Outcome::Failed, String::new()),
            None => (Outcome::Passed, String::new()),
        };
        done.push((step, outcome));
        all.push((step, outcome, why));
    }
    all
}

fn skips(known: &Known, failing: Option<Step>) -> Vec<(&'static str, String)> {
    let all = walk(known, failing).into_iter();
    all.filter(|(_, outcome, _)| *outcome == Outcome::Skipped)
        .map(|(step, _, why)| (step.name(), why))
        .collect()
}

#[test]
fn selftest_makes_every_step_where_the_cluster_can_do_it_all() {
    assert_eq!(skips(&known(), None), []);
}

#[test]
fn selftest_skips_what_the_cluster_cannot_do_with_the_reason() {
    let other = "no other node can run the pod with this volume";
    let cases = [
        (Known { nodes: 1, ..known() }, vec![("move", other)]),
        (
            Known { expands: false, ..known() },
            vec![("expand", "StorageClass fast does not set allowVolumeExpansion")],
        ),
        (
            Known {
                snapshots: Err("no class".into()),
                ..known()
            },
            vec![("snapshot", "no class"), ("restore", "step snapshot was skipped")],
        ),
        (
            Known { shared: true, ..known() },
            vec![
                ("expand", BLOCK_ONLY),
                ("snapshot", BLOCK_ONLY),
                ("restore", "step snapshot was skipped"),
            ],
        ),
    ];
    for (known, expected) in cases {
        let expected: Vec<(&str, String)> = expected.into_iter().map(|(step, why)| (step, why.to_owned())).collect();
        assert_eq!(skips(&known, None), expected);
    }
}

#[test]
fn selftest_skips_what_needs_a_step_that_failed_and_nothing_else() {
    let cases: [(Step, &[&str]); 6] = [
        (Step::Claim, &["attach", "write", "expand", "snapshot", "restore", "move"]),
        (Step::Attach, &["write", "expand", "snapshot", "restore", "move"]),
        (Step::Write, &["expand", "snapshot", "restore", "move"]),
        (Step::Expand, &[]),
        (Step::Snapshot, &["restore"]),
        (Step::Move, &[]),
    ];
    for (failing, expected) in cases {
        let found: Vec<&str> = skips(&known(), Some(failing)).into_iter().map(|(step, _)| step).collect();
        assert_eq!(found, expected, "{failing:?}");
    }
}

fn at(phase: &str, node: &str, message: &str) -> PodSeen {
    PodSeen {
        phase: phase.into(),
        node: node.into(),
        message: message.into(),
    }
}

fn seen() -> Seen {
    Seen {
        claim: ClaimSeen {
            phase: "Bound".into(),
            volume: "pvc-1".into(),
            size: "2Gi".into(),
        },
        volume_size: "2Gi".into(),
        attachment: Some(Ok(true)),
        pod: at("Succeeded", "w-2", ""),
        snapshot: Some(Ok(true)),
    }
}

fn before() -> Before {
    Before {
        size: "1Gi".into(),
        node: "w-1".into(),
        grown: true,
    }
}

#[test]
fn selftest_step_passes_when_its_objects_are_as_they_should_be() {
    let expected = [
        "bound to pvc-1",
        "attached to node w-2",
        "wrote and read data on node w-2",
        "expanded from 1Gi to 2Gi",
        "",
        "read the data of the snapshot on node w-2",
        "moved from node w-1 to w-2",
        "",
    ];
    for (step, text) in Step::iter().zip(expected) {
        assert_eq!(judge(step, &seen(), &before()), Verdict::Passed(text.into()), "{step:?}");
    }
}

fn waits(text: &str) -> Verdict {
    Verdict::Waits(text.into())
}

fn fails(text: &str) -> Verdict {
    Verdict::Failed(text.into())
}

fn with_pod(pod: PodSeen) -> Seen {
    Seen { pod, ..seen() }
}

fn assert_judged(cases: impl IntoIterator<Item = (Step, Seen, Verdict)>) {
    for (step, seen, expected) in cases {
        assert_eq!(judge(step, &seen, &before()), expected);
    }
}

#[test]
fn selftest_step_of_storage_waits_or_fails_with_what_was_seen() {
    let pending = ClaimSeen {
        phase: "Pending".into(),
        ..ClaimSeen::default()
    };
    let lost = ClaimSeen {
        phase: "Lost".into(),
        ..pending.clone()
    };
    assert_judged([
        (
            Step::Claim,
            Seen {
                claim: pending.clone(),
                pod: at("Pending", "", ""),
                ..seen()
            },
            waits("the claim is Pending"),
        ),
        (
            Step::Claim,
            Seen {
                claim: pending,
                pod: at("Pending", "", "0/3 nodes"),
                ..seen()
            },
            waits("the claim is Pending; the pod of the claim: 0/3 nodes"),
        ),
        (Step::Claim, Seen { claim: lost, ..seen() }, fails("the claim has lost its volume")),
        (
            Step::Attach,
            Seen {
                attachment: Some(Err("no VM".into())),
                pod: at("Pending", "w-1", ""),
                ..seen()
            },
            waits("not attached to node w-1: no VM"),
        ),
        (
            Step::Attach,
            Seen {
                attachment: None,
                pod: at("Pending", "w-1", ""),
                ..seen()
            },
            waits("not attached to node w-1"),
        ),
        (
            Step::Attach,
            Seen {
                attachment: None,
                pod: at("Pending", "", "0/3 nodes"),
                ..seen()
            },
            waits("the pod has no node: 0/3 nodes"),
        ),
        (
            Step::Expand,
            Seen {
                volume_size: "1Gi".into(),
                ..seen()
            },
            waits("the volume still has 1Gi"),
        ),
        (
            Step::Expand,
            Seen {
                volume_size: String::new(),
                ..seen()
            },
            waits("the PersistentVolume cannot be read"),
        ),
        (
            Step::Snapshot,
            Seen {
                snapshot: Some(Err("full".into())),
                ..seen()
            },
            waits("the snapshot is not ready: full"),
        ),
        (
            Step::Snapshot,
            Seen { snapshot: None, ..seen() },
            waits("the snapshot is not ready"),
        ),
    ]);
}

#[test]
fn selftest_step_of_a_pod_waits_or_fails_with_what_was_seen() {
    let small = ClaimSeen {
        size: "1Gi".into(),
        ..seen().claim
    };
    assert_judged([
        (
            Step::Write,
            with_pod(at("Failed", "w-1", "other data")),
            fails("the pod is Failed: other data"),
        ),
        (
            Step::Write,
            with_pod(at("Pending", "w-1", "ErrImagePull")),
            waits("the pod is Pending: ErrImagePull"),
        ),
        (Step::Write, with_pod(at("", "", "")), waits("the pod is missing")),
        (
            Step::Restore,
            with_pod(at("Failed", "w-1", "other data")),
            fails("the pod is Failed: other data"),
        ),
        (
            Step::Move,
            with_pod(at("Succeeded", "w-1", "")),
            fails("the pod ran on node w-1 again"),
        ),
        (
            Step::Move,
            Seen { claim: small, ..seen() },
            waits("the disk has grown, but its file system still has 1Gi"),
        ),
    ]);
}
