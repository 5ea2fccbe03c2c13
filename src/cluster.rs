// SPDX-License-Identifier: Apache-2.0
//! The client of the Kubernetes API: a cache filled by watches, one-shot reads, and all writes to the cluster.

mod access_review;
mod bounded_custom_resources;
mod bounded_deserialize;
mod cache;
mod classes_and_crds_in_use;
mod client;
mod error;
mod fence;
mod large_lists;
mod leader_election;
mod logs;
mod message;
mod namespace_contents;
mod pod_events;
mod read;
mod reader;
mod request_timeout;
mod served;
mod watch;
mod write;

pub use access_review::{Permissions, may, rights};
pub use bounded_custom_resources::Bounded;
pub use cache::{Cache, InSync, version_number};
pub use classes_and_crds_in_use::holder;
pub use client::{ClientError, Connection, CredentialsError, KubeOptions, KubeconfigNames, ProxyError, ProxyOrigin};
pub use error::{ApiMessage, ClusterError, FieldConflict};
pub use fence::Fence;
pub use large_lists::list_as;
pub use leader_election::{Election, LEASE_NAME, LEASE_NAMESPACE, Standing};
pub use logs::{Log, metrics_of, pod_log, pod_log_stream, pod_log_tail};
pub use message::{NO_API_SERVER, said};
pub use namespace_contents::contents;
pub use pod_events::refused_pods;
pub use read::{get, list, list_kept, server_version, with_managers};
pub use reader::{Reader, View};
pub use request_timeout::set_request_timeout;
pub use served::unserved;
pub use watch::{Select, Watch};
pub use write::{DryRunResult, Verb, Writer};

use bounded_deserialize::Arrived;
use kube::Client;
use kube::api::{Api, ApiResource, GroupVersionKind};

/// The API for objects of this version and kind, of which these fields are read. Kinds of the charts have regular plurals, so no discovery is needed.
fn api<const FIELDS: usize>(client: &Client, api_version: &str, kind: &str, namespace: &str) -> Api<Arrived<FIELDS>> {
    let resource = resource(api_version, kind);
    if namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    }
}

fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}
