// SPDX-License-Identifier: Apache-2.0
//! Reads the events that name why the pods of a workload are not created or do not start.

use super::ClusterError;
use super::request_timeout::timed;
use k8s_openapi::api::core::v1::Event;
use kube::Client;
use kube::api::{Api, ListParams};
use vdo_api::types::ObjectId;

/// The newest refusal of pods of this workload, in the words of the API server; of a pod, what went wrong last, unless it has gone on since.
///
/// # Errors
/// When the events cannot be listed.
pub async fn refused_pods(client: &Client, object: &ObjectId, uid: &str) -> Result<Option<String>, ClusterError> {
    let api: Api<Event> = Api::namespaced(client.clone(), &object.namespace);
    let is_pod = object.kind() == "Pod";
    let only = if is_pod { "" } else { ",reason=FailedCreate" };
    let ours = ListParams::default().fields(&format!("involvedObject.uid={uid}{only}"));
    let all = ObjectId::new("", "Event", &object.namespace, "");
    let found = timed("list", "v1", &all, api.list(&ours)).await?.items;
    Ok(if is_pod {
        newest_warning(found)
    } else {
        newest(found).and_then(|event| event.message)
    })
}

fn newest(events: Vec<Event>) -> Option<Event> {
    let at = |event: &Event| {
        let last = event.last_timestamp.as_ref().map(|time| time.0);
        last.or(event.event_time.as_ref().map(|time| time.0))
    };
    events.into_iter().max_by_key(at)
}

/// What went wrong last, if nothing has happened since.
fn newest_warning(events: Vec<Event>) -> Option<String> {
    let newest = newest(events).filter(|event| event.type_.as_deref() == Some("Warning"))?;
    Some(format!(
        "{}: {}",
        newest.reason.unwrap_or_default(),
        newest.message.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

    #[test]
    fn pod_that_has_gone_on_since_a_warning_is_not_failing() {
        let event = |at: i64, kind: &str, reason: &str| Event {
            type_: Some(kind.into()),
            reason: Some(reason.into()),
            message: Some("m".into()),
            last_timestamp: Timestamp::from_second(at).ok().map(Time),
            ..Event::default()
        };
        let warned = || event(1, "Warning", "FailedMount");
        assert_eq!(
            newest_warning(vec![event(0, "Normal", "Scheduled"), warned()]).as_deref(),
            Some("FailedMount: m")
        );
        assert_eq!(newest_warning(vec![warned(), event(2, "Normal", "Pulling")]), None);
        assert_eq!(newest_warning(Vec::new()), None);
    }
}
