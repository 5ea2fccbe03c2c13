// SPDX-License-Identifier: Apache-2.0
//! A cluster plays nodes and pods, counts requests, and outlives its API server.

use std::collections::BTreeMap;

use crate::fixture::{EMPTY, alone};
use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use vdo_testbed::{Cluster, ClusterOptions, NodeOptions, PATIENCE, Probe, TROUBLE, until};

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.org/web}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: example.org/v1
kind: Thing
metadata: {name: one, namespace: default}
";
/// A node that takes pods, while those of the shared cluster wait for a cloud provider.
const NODE: &str = "plain-1";

/// An account that may edit what is in its namespace.
const EDITOR: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: robot, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: robot, namespace: default}]
";

#[test]
fn deployment_runs_on_nodes_without_taints_only() -> Result<()> {
    EMPTY.run(async |bed| {
        bed.cluster.add_node(NodeOptions::control_plane("plain-cp")).await?;
        bed.cluster.add_node(NodeOptions::worker(NODE)).await?;
        let pods: Api<Pod> = Api::namespaced(bed.cluster.client(), "default");
        no_pods(&pods).await?;
        bed.cluster.apply_yaml(DEPLOYMENT).await?;
        let api: Api<Deployment> = Api::namespaced(bed.cluster.client(), "default");
        until("the deployment", PATIENCE, async || {
            let ready = api.get("web").await?.status.and_then(|status| status.ready_replicas).unwrap_or(0);
            Ok(Probe::when(ready == 2, format!("{ready} of 2 pods are ready")))
        })
        .await?;
        let nodes: Vec<_> = pods
            .list(&ListParams::default())
            .await?
            .into_iter()
            .filter_map(|pod| pod.spec?.node_name)
            .collect();
        assert_eq!(nodes, [NODE, NODE], "tainted nodes take no pods");
        api.delete("web", &DeleteParams::background()).await?;
        no_pods(&pods).await?;
        bed.cluster.check()
    })
}

/// A node goes after its pods: it is not there to end them afterwards.
async fn no_pods(pods: &Api<Pod>) -> Result<()> {
    until("the pods to be gone", PATIENCE, async || {
        let left: Vec<String> = pods.list(&ListParams::default()).await?.iter().map(ResourceExt::name_any).collect();
        Ok(Probe::when(left.is_empty(), left.join(", ")))
    })
    .await
}

#[test]
fn pod_in_trouble_shows_its_reason() -> Result<()> {
    EMPTY.run(async |bed| {
        bed.cluster.add_node(NodeOptions::worker(NODE)).await?;
        let pods: Api<Pod> = Api::namespaced(bed.cluster.client(), "default");
        for (name, image) in [("lost", "mirror.invalid/c"), ("crashing", "example.org/c")] {
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
                "spec": {"containers": [{"name": "c", "image": image}]}});
            bed.apply(&pod).await?;
        }
        until("a pod that runs", PATIENCE, async || {
            let phase = pods.get("crashing").await?.status.and_then(|status| status.phase);
            Ok(Probe::when(phase.as_deref() == Some("Running"), format!("{phase:?}")))
        })
        .await?;
        let annotation = json!({ "metadata": { "annotations": { TROUBLE: "crash" } } });
        pods.patch("crashing", &PatchParams::default(), &Patch::Merge(annotation)).await?;
        for (pod, wanted) in [("lost", "ImagePullBackOff"), ("crashing", "CrashLoopBackOff")] {
            until(wanted, PATIENCE, async || {
                let statuses = pods
                    .get(pod)
                    .await?
                    .status
                    .and_then(|status| status.container_statuses)
                    .unwrap_or_default();
                let reason = statuses
                    .first()
                    .and_then(|status| status.state.as_ref()?.waiting.as_ref()?.reason.clone());
                Ok(Probe::when(reason.as_deref() == Some(wanted), format!("{statuses:?}")))
            })
            .await?;
        }
        pods.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        no_pods(&pods).await?;
        bed.cluster.check()
    })
}

#[test]
fn requests_of_an_account_are_all_counted() -> Result<()> {
    EMPTY.run(async |bed| {
        const ROBOT: &str = "system:serviceaccount:default:robot";
        let audit = bed.cluster.audit();
        bed.cluster.apply_yaml(EDITOR).await?;
        let robot = bed.cluster.service_account_client("default", "robot").await?;
        let maps: Api<ConfigMap> = Api::namespaced(robot.clone(), "default");
        until("the robot's rights", PATIENCE, async || {
            Ok(Probe::when(maps.get_opt("none").await.is_ok(), "refused"))
        })
        .await?;

        let mark = audit.mark().await?;
        let map: ConfigMap = serde_json::from_value(json!({ "metadata": { "name": "counted" } }))?;
        maps.create(&PostParams::default(), &map).await?;
        for n in 0..3 {
            let patch = json!({ "data": { "n": n.to_string() } });
            maps.patch("counted", &PatchParams::default(), &Patch::Merge(patch)).await?;
        }
        maps.list(&ListParams::default()).await?;
        let refused = Api::<Node>::all(robot).list(&ListParams::default()).await;
        assert!(refused.is_err(), "a robot may not list nodes");
        let stream = maps.watch(&kube::api::WatchParams::default().timeout(1), "0").await?;
        futures::pin_mut!(stream);
        while futures::StreamExt::next(&mut stream).await.is_some() {}
        maps.delete("counted", &DeleteParams::default()).await?;

        let requests = audit.since(mark).await?.of(ROBOT);
        let expected: BTreeMap<_, _> = [
            ("create", "configmaps default/counted", 1),
            ("patch", "configmaps default/counted", 3),
            ("list", "configmaps default", 1),
            ("list", "nodes", 1),
            ("watch", "configmaps default", 1),
            ("delete", "configmaps default/counted", 1),
        ]
        .map(|(verb, object, count)| ((ROBOT.to_owned(), verb.to_owned(), object.to_owned()), count))
        .into();
        assert_eq!(requests.counts(), expected, "{requests}");
        assert_eq!(requests.clone().writes().len(), 5);
        let refused = requests.only(|entry| entry.lacked_right);
        assert_eq!(refused.0.iter().map(|entry| entry.code).collect::<Vec<_>>(), [403], "{refused}");
        let nothing = audit.mark().await?;
        assert!(audit.since(nothing).await?.of(ROBOT).is_empty());
        bed.cluster.check()
    })
}

#[test]
#[ignore = "long"]
fn api_server_restarted_with_another_version_keeps_the_store() -> Result<()> {
    alone(async || {
        let mut cluster = Cluster::start(ClusterOptions::default()).await?;
        cluster.apply_yaml(DEPLOYMENT).await?;
        let version = cluster.client().apiserver_version().await?;
        assert_eq!(version.git_version, vdo_testbed::KUBERNETES_VERSION);
        cluster.stop_apiserver();
        assert!(cluster.client().apiserver_version().await.is_err());
        cluster.report_version("v1.35.0").await?;
        assert_eq!(cluster.client().apiserver_version().await?.git_version, "v1.35.0");
        let api: Api<Deployment> = Api::namespaced(cluster.client(), "default");
        api.get("web").await.context("the store outlives the server")?;
        cluster.check()
    })
}
