// SPDX-License-Identifier: Apache-2.0
//! What the agent knows of the cluster: all pods and all `CSINode` objects.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::CSINode;
use kube::api::Api;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Client, ResourceExt};

/// A change of the cluster.
pub(super) enum Change {
    Pod(Box<Event<Pod>>),
    CsiNode(Box<Event<CSINode>>),
}

/// Objects of one kind, kept up to date.
struct Store<K> {
    objects: BTreeMap<String, K>,
    complete: bool,
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            complete: false,
        }
    }
}

impl<K: ResourceExt> Store<K> {
    fn take(&mut self, event: Event<K>, key: impl Fn(&K) -> String) {
        match event {
            Event::Apply(object) | Event::InitApply(object) => {
                self.objects.insert(key(&object), object);
            }
            Event::Delete(object) => {
                self.objects.remove(&key(&object));
            }
            Event::Init => {
                self.objects.clear();
                self.complete = false;
            }
            Event::InitDone => self.complete = true,
        }
    }
}

#[derive(Default)]
pub(super) struct View {
    pods: Store<Pod>,
    csi_nodes: Store<CSINode>,
}

impl View {
    pub(super) fn take(&mut self, change: Change) {
        match change {
            Change::Pod(event) => self.pods.take(*event, |pod| pod.uid().unwrap_or_default()),
            Change::CsiNode(event) => self.csi_nodes.take(*event, ResourceExt::name_any),
        }
    }

    pub(super) fn complete(&self) -> bool {
        self.pods.complete && self.csi_nodes.complete
    }

    /// All pods.
    pub(super) fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.objects.values()
    }

    /// The pod with this UID.
    pub(super) fn pod(&self, uid: &str) -> Option<&Pod> {
        self.pods.objects.get(uid)
    }

    /// Pods that run and are not about to go.
    pub(super) fn running_pods(&self) -> impl Iterator<Item = &Pod> {
        let running = |pod: &&Pod| pod.status.as_ref().and_then(|s| s.phase.as_deref()) == Some("Running");
        self.pods
            .objects
            .values()
            .filter(running)
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
    }

    pub(super) fn csi_nodes(&self) -> &BTreeMap<String, CSINode> {
        &self.csi_nodes.objects
    }
}

/// All changes from now on, beginning with what there is. Errors are waited out: the API server may be away.
pub(super) fn watch(client: &Client) -> impl Stream<Item = Change> + Unpin + use<> {
    let pods = watcher(Api::<Pod>::all(client.clone()), Config::default()).map(|event| event.map(|event| Change::Pod(Box::new(event))));
    let nodes =
        watcher(Api::<CSINode>::all(client.clone()), Config::default()).map(|event| event.map(|event| Change::CsiNode(Box::new(event))));
    let both = stream::select(pods, nodes).filter_map(async |event| match event {
        Ok(change) => Some(change),
        Err(error) => {
            tracing::debug!("node agent: {error}");
            tokio::time::sleep(Duration::from_millis(200)).await;
            None
        }
    });
    Box::pin(both)
}
