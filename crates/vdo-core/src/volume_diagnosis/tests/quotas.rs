// SPDX-License-Identifier: Apache-2.0
//! Tests the findings about ResourceQuotas: the amount that is left, and the claims that need more.

use super::*;

const GOLD_SIZES: &str = "gold.storageclass.storage.k8s.io/requests.storage";

fn quota(hard: Value, used: Value) -> Value {
    json!({"metadata": {"name": "q", "namespace": "ns"}, "status": {"hard": hard, "used": used}})
}

/// A quota of one resource, beside a claim that waits for 2Gi.
fn of(resource: &str, hard: &str, used: &str) -> Value {
    let asks = claim(json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}, "metadata": {"creationTimestamp": JUST_NOW}}));
    json!({"quotas": [quota(json!({resource: hard}), json!({resource: used}))], "claims": [asks]})
}

fn messages(changes: Value) -> Vec<String> {
    let all = findings(&observed(changes));
    let of_quota = all.into_iter().filter(|finding| finding.cause == Cause::QuotaReached);
    of_quota
        .map(|finding| format!("{}: {}", finding.object(), finding.message))
        .collect()
}

#[test]
fn volumes_quota_is_judged_by_amounts_and_by_claims_that_wait() {
    let what = "ResourceQuota ns/q: a ResourceQuota of the namespace has no room for further claims: ";
    let refused = "a further claim of 2Gi, the size of claim data, is refused";
    for (resource, hard, used, expected) in [
        (
            "persistentvolumeclaims",
            "5",
            "5",
            Some("persistentvolumeclaims is at 5 of 5".to_owned()),
        ),
        (
            "persistentvolumeclaims",
            "5",
            "6",
            Some("persistentvolumeclaims is at 6 of 5".to_owned()),
        ),
        ("persistentvolumeclaims", "5", "4", None),
        ("pods", "5", "5", None),
        (
            "requests.storage",
            "10Gi",
            "10240Mi",
            Some("requests.storage is at 10240Mi of 10Gi".to_owned()),
        ),
        (
            "requests.storage",
            "10Gi",
            "9Gi",
            Some(format!("requests.storage is at 9Gi of 10Gi; {refused}")),
        ),
        ("requests.storage", "10Gi", "8Gi", None),
        ("requests.storage", "unreadable", "9Gi", None),
        (
            "fast.storageclass.storage.k8s.io/requests.storage",
            "10Gi",
            "9Gi",
            Some(format!(
                "fast.storageclass.storage.k8s.io/requests.storage is at 9Gi of 10Gi; {refused}"
            )),
        ),
        (
            "fast.storageclass.storage.k8s.io/persistentvolumeclaims",
            "1",
            "1",
            Some("fast.storageclass.storage.k8s.io/persistentvolumeclaims is at 1 of 1".to_owned()),
        ),
        // The claim is of another class.
        (GOLD_SIZES, "10Gi", "9Gi", None),
        (GOLD_SIZES, "10Gi", "10Gi", Some(format!("{GOLD_SIZES} is at 10Gi of 10Gi"))),
        ("gold.storageclass.storage.k8s.io/other", "1", "1", None),
    ] {
        let expected: Vec<String> = expected.iter().map(|detail| format!("{what}{detail}")).collect();
        assert_eq!(messages(of(resource, hard, used)), expected, "{resource} {used} of {hard}");
    }
}

/// A claim that has its volume, or is of another namespace, asks for nothing more.
#[test]
fn volumes_quota_with_room_for_those_that_wait_is_not_shown() {
    let near = |more: Value| merged(of("requests.storage", "10Gi", "9Gi"), more);
    let other = |more: Value| claim(merged(json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}), more));
    for claims in [
        json!([]),
        json!([other(json!({"status": {"phase": "Bound"}}))]),
        json!([other(json!({"metadata": {"namespace": "nt"}}))]),
        json!([other(json!({"metadata": {"namespace": "n"}}))]),
        json!([other(json!({"spec": {"resources": {"requests": {"storage": "1Gi"}}}}))]),
        Value::Null,
    ] {
        assert_eq!(messages(near(json!({"claims": claims}))), Vec::<String>::new(), "{claims}");
    }
}

/// As pkg/controller/statefulset/stateful_pod_control.go and the admission of quotas write it.
#[test]
fn volumes_stateful_set_whose_claim_a_quota_refuses_is_shown_with_both_figures() {
    let figures = "exceeded quota: q, requested: requests.storage=2Gi, used: requests.storage=9Gi, limited: requests.storage=10Gi";
    let failed = |claim: &str, why: &str| {
        let message = format!(
            "create Claim {claim} for Pod web-1 in StatefulSet web failed error: persistentvolumeclaims \"{claim}\" is forbidden: {why}"
        );
        event("StatefulSet", "web", "FailedCreate", &message)
    };
    let pods = "exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3";
    let pod = event(
        "StatefulSet",
        "web",
        "FailedCreate",
        &format!("create Pod web-1 in StatefulSet web failed error: pods \"web-1\" is forbidden: {pods}"),
    );
    let with = |event: Value| json!({"events": [event], "claims": [bound(json!({}))], "volumes": [volume(json!({}))]});
    assert_rows(&[
        (with(failed("data-web-1", figures)), &["QuotaReached StatefulSet ns/web"]),
        // The claim was created since.
        (with(failed("data", figures)), &[]),
        (with(failed("data-web-1", "x")), &[]),
        (with(pod), &[]),
    ]);
    let all = findings(&observed(with(failed("data-web-1", figures))));
    assert!(all[0].message.contains(figures), "{all:?}");
    assert_eq!(all[0].command, "kubectl describe resourcequota --namespace ns");
}
