// SPDX-License-Identifier: Apache-2.0
//! How answers of the API server are sorted. Most of it goes by code and causes; where those do not tell, it goes by words of the API
//! server, so real ones are kept here.
//!
//! `tests/fixtures/api-answers-1.34.json` was recorded from the kube-apiserver v1.34.4 that the test bed builds: its Status objects, and as
//! text what is none, as they came. The webhooks were an HTTPS server of the recording; the limit of requests is a
//! PriorityLevelConfiguration without shares.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use vdo::cluster::ClusterError;
use vdo_api::api::{Classify as _, Reason};
use vdo_api::types::ObjectId;

const RECORDED: &str = include_str!("../fixtures/api-answers-1.34.json");

fn answers() -> BTreeMap<String, ClusterError> {
    let all: Vec<Value> = serde_json::from_str(RECORDED).expect("recorded answers");
    let answer = |one: &Value| {
        let what = one["what"].as_str().expect("a name").to_owned();
        let status = if let Some(text) = one["text"].as_str() {
            // As kube's client has what is not a Status.
            let code = one["code"].as_u64().and_then(|code| u16::try_from(code).ok()).expect("a code");
            kube::core::Status::failure(text, "Failed to parse error data").with_code(code)
        } else {
            serde_json::from_value(one["status"].clone()).expect("a Status")
        };
        let id = ObjectId::new("apps", "DaemonSet", "kube-system", "cpi");
        let error = ClusterError::of("patch", "apps/v1", &id, kube::Error::Api(Box::new(status)));
        (what, error)
    };
    all.iter().map(answer).collect()
}

const EXPECTED: [(Reason, &[&str]); 7] = [
    (Reason::Conflict, &["field conflict", "several field conflicts"]),
    (
        Reason::ImmutableField,
        &[
            "immutable selector",
            "immutable ConfigMap",
            "type of a Secret",
            "parameters of a StorageClass",
            "volumeBindingMode of a StorageClass",
            "roleRef",
            "attachRequired of a CSIDriver",
            "clusterIP of a Service",
            "accessModes of a PersistentVolumeClaim",
            "source of a PersistentVolume",
            "serviceName of a StatefulSet",
            "scope of a CustomResourceDefinition",
            "rule of a definition",
        ],
    ),
    (
        Reason::AdmissionDenied,
        &[
            "pod security",
            "quota",
            "admission policy",
            "webhook that denies",
            "webhook that denies without a word",
            "webhook that is down",
            "webhook that does not answer",
            "webhook that answers nonsense",
            "webhook with another certificate",
            "webhook without a Service",
            "quota needs requests",
            "limit range",
        ],
    ),
    (
        Reason::Forbidden,
        &[
            "forbidden in a namespace",
            "forbidden in the cluster",
            "forbidden list",
            "forbidden subresource",
            "unauthorized",
        ],
    ),
    (Reason::ApiNotServed, &["group not served", "kind not served", "version not served"]),
    (Reason::ApiUnavailable, &["timeout of a request", "too many requests"]),
    (
        Reason::ApplyFailed,
        &[
            "stale resourceVersion",
            "delete with another uid",
            "already exists",
            "negative replicas",
            "annotations too long",
            "too large for etcd",
            "too large a request",
            "no JSON",
            "not found",
            "namespace not found",
            "rights that it does not have",
            "namespace terminating",
            "apply in a terminating namespace",
            "definition terminating",
            "wrong type",
            "unknown field",
        ],
    ),
];

#[test]
fn api_answer_recorded_maps_to_reason() {
    let answers = answers();
    let mut named = BTreeSet::new();
    for (reason, names) in EXPECTED {
        for name in names {
            let answer = answers.get(*name);
            assert_eq!(answer.map(|error| error.reason()), Some(reason), "{name}: {answer:?}");
            assert!(named.insert((*name).to_owned()), "{name} is expected twice");
        }
    }
    let recorded: BTreeSet<String> = answers.into_keys().collect();
    assert_eq!(recorded, named, "every recorded answer has a reason");
}

#[test]
fn api_answer_field_conflict_names_fields_and_managers() {
    let answers = answers();
    let fields = |name: &str| match answers.get(name) {
        Some(ClusterError::Conflict { fields, .. }) => fields.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    assert_eq!(fields("field conflict"), [".data.k (helm)"]);
    assert_eq!(
        fields("several field conflicts"),
        [
            ".spec.replicas (kubectl-edit)",
            ".spec.template.spec.containers[name=\"c\"].image (kubectl-edit)"
        ]
    );
}

#[test]
fn api_answer_forbidden_names_verb_and_resource_of_the_server() {
    let answers = answers();
    let rule = |name: &str| match answers.get(name) {
        Some(ClusterError::Forbidden { rule, .. }) => rule.as_str(),
        _ => "",
    };
    assert!(rule("forbidden in a namespace").contains("resources: [daemonsets], verbs: [get]"));
    assert!(rule("forbidden in the cluster").contains("resources: [storageclasses], verbs: [patch]"));
    assert!(rule("forbidden subresource").contains("resources: [pods/log], verbs: [get]"));
    assert!(rule("unauthorized").contains("resources: [daemonsets], verbs: [patch]"));
}

/// The words of the API server stay with the error, as its source.
#[test]
fn api_answer_sorted_by_words_keeps_the_words() {
    for (name, error) in answers() {
        if let ClusterError::Denied { source, .. } | ClusterError::Immutable { source, .. } | ClusterError::Refused { source, .. } = &error
        {
            assert!(!source.message.is_empty(), "{name}");
            assert!(vdo_api::api::causes(&error).ends_with(&source.message), "{name}");
        }
    }
}
