//! Why pods of a workload are not made, as its controller was answered. Only an event has that.

use super::{ClusterError, read};
use k8s_openapi::api::core::v1::Event;
use kube::Client;
use kube::api::{Api, ListParams};
use vdo_api::types::ObjectId;

/// The newest refusal of pods of this workload, in the words of the API server.
///
/// # Errors
/// When the events cannot be listed.
pub async fn refused_pods(client: &Client, workload: &ObjectId, uid: &str) -> Result<Option<String>, ClusterError> {
    let api: Api<Event> = Api::namespaced(client.clone(), &workload.namespace);
    let ours = ListParams::default().fields(&format!("involvedObject.uid={uid},reason=FailedCreate"));
    let all = ObjectId::new("", "Event", &workload.namespace, "");
    let found = read::timed("list", "v1", &all, api.list(&ours)).await?.items;
    let at = |event: &Event| {
        let last = event.last_timestamp.as_ref().map(|time| time.0);
        last.or(event.event_time.as_ref().map(|time| time.0))
    };
    Ok(found.into_iter().max_by_key(at).and_then(|event| event.message))
}
