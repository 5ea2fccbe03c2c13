// SPDX-License-Identifier: Apache-2.0
//! Reads the logs of containers, their end or as a stream, and the metrics of an operator pod, through the API server.

use super::{ClusterError, request_timeout};
use futures::AsyncRead;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, LogParams};
use std::pin::Pin;
use std::time::Duration;
use vdo_api::types::ObjectId;

/// As much of a log as is read, in bytes and lines.
const BYTES: i64 = 16 * 1024;
const LINES: i64 = 40;

/// A log is behind a kubelet, which may be away; nothing waits long for it.
const DEADLINE: Duration = Duration::from_secs(3);

/// The bytes of a log.
pub type Log = Pin<Box<dyn AsyncRead + Send>>;

/// The end of the log of a container: of the one that is there, or, unless `current`, of the one before it.
///
/// # Errors
/// When it cannot be read, or not within three seconds.
pub async fn pod_log(client: &Client, namespace: &str, pod: &str, container: &str, current: bool) -> Result<String, ClusterError> {
    pod_log_tail(client, namespace, pod, container, current, LINES, BYTES).await
}

/// The same with as many lines and bytes of its end.
///
/// # Errors
/// When it cannot be read, or not within three seconds.
pub async fn pod_log_tail(
    client: &Client,
    namespace: &str,
    pod: &str,
    container: &str,
    current: bool,
    lines: i64,
    bytes: i64,
) -> Result<String, ClusterError> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let params = LogParams {
        container: Some(container.to_owned()),
        previous: !current,
        tail_lines: Some(lines),
        limit_bytes: Some(bytes),
        ..LogParams::default()
    };
    let id = ObjectId::new("", "Pod", namespace, pod);
    // The rule for logs names no pod: they get new names each time.
    let any = ObjectId::new("", "Pod", namespace, "");
    let request = request_timeout::timed("get", "v1", &any, api.logs(pod, &params));
    let deadline = request_timeout::deadline(DEADLINE);
    tokio::time::timeout(deadline, request).await.unwrap_or(Err(ClusterError::TimedOut {
        verb: "get".into(),
        what: format!("the log of {id}"),
        after: deadline,
    }))
}

/// The log of a container as it grows, from this many of its last lines on, or from its beginning. It ends with the container.
///
/// # Errors
/// When it cannot be opened, or not within three seconds.
pub async fn pod_log_stream(client: &Client, namespace: &str, pod: &str, container: &str, lines: Option<i64>) -> Result<Log, ClusterError> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let params = LogParams {
        container: Some(container.to_owned()),
        follow: true,
        tail_lines: lines,
        ..LogParams::default()
    };
    // The rule for logs names no pod: they get new names each time.
    let any = ObjectId::new("", "Pod", namespace, "");
    let deadline = request_timeout::deadline(DEADLINE);
    let opened = tokio::time::timeout(deadline, api.log_stream(pod, &params)).await;
    match opened {
        Ok(Ok(log)) => Ok(Box::pin(log)),
        Ok(Err(error)) => Err(ClusterError::of("get", "v1", &any, error)),
        Err(_) => Err(ClusterError::TimedOut {
            verb: "get".into(),
            what: format!("the log of {}", ObjectId::new("", "Pod", namespace, pod)),
            after: deadline,
        }),
    }
}

/// What a pod of the operator counts, through the API server.
///
/// # Errors
/// When it cannot be read, or not within three seconds.
pub async fn metrics_of(client: &Client, namespace: &str, pod: &str) -> Result<String, ClusterError> {
    let id = ObjectId::new("", "Pod", namespace, pod);
    let request = async {
        let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let address = format!("{}/{pod}:http/proxy/metrics", api.resource_url());
        let request = hyper::Request::get(address).body(Vec::new());
        client
            .request_text(request.map_err(|error| kube::Error::Service(error.into()))?)
            .await
    };
    let deadline = request_timeout::deadline(DEADLINE);
    tokio::time::timeout(deadline, request_timeout::timed("get", "v1", &id, request))
        .await
        .unwrap_or(Err(ClusterError::TimedOut {
            verb: "get".into(),
            what: format!("the metrics of {id}"),
            after: deadline,
        }))
}
