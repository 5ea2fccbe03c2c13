// SPDX-License-Identifier: Apache-2.0
//! Events about a pod, as its kubelet writes them.

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};

/// Writes an event. One that cannot be written is lost, as with a kubelet.
pub(super) async fn write(client: &Client, pod: &Pod, container: &str, kind: &str, reason: &str, message: String) {
    let namespace = pod.namespace().unwrap_or_default();
    let now = Some(Time(Timestamp::now()));
    let event = Event {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}.", pod.name_any())),
            namespace: Some(namespace.clone()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Pod".into()),
            name: pod.metadata.name.clone(),
            namespace: Some(namespace.clone()),
            uid: pod.uid(),
            field_path: Some(format!("spec.containers{{{container}}}")),
            ..ObjectReference::default()
        },
        type_: Some(kind.into()),
        reason: Some(reason.into()),
        message: Some(message),
        source: Some(EventSource {
            component: Some("kubelet".into()),
            host: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        }),
        reporting_component: Some("kubelet".into()),
        first_timestamp: now.clone(),
        last_timestamp: now,
        count: Some(1),
        ..Event::default()
    };
    let api: Api<Event> = Api::namespaced(client.clone(), &namespace);
    if let Err(error) = api.create(&PostParams::default(), &event).await {
        tracing::debug!("event {reason} of pod {namespace}/{}: {error}", pod.name_any());
    }
}
