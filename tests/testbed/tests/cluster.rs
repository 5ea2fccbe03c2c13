//! A cluster starts, plays nodes and pods, counts requests, and dies with its process.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use vdo_testbed::{Cluster, ClusterOptions, NodeOptions, Probe, TROUBLE, until};

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
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: default}
";

#[tokio::test(flavor = "multi_thread")]
async fn one_cluster() -> Result<()> {
    let mut cluster = Cluster::start(ClusterOptions::default()).await?;
    cluster.add_node(NodeOptions::control_plane("cp-1")).await?;
    cluster.add_node(NodeOptions::worker("w-1")).await?;
    cluster.add_node(NodeOptions::worker("w-2").uninitialized()).await?;
    pods_become_ready(&cluster).await?;
    troubles_show(&cluster).await?;
    requests_are_counted(&cluster).await?;
    the_api_server_comes_back(&mut cluster).await?;
    cluster.check()
}

async fn pods_become_ready(cluster: &Cluster) -> Result<()> {
    cluster.apply_yaml(DEPLOYMENT).await?;
    let api: Api<Deployment> = Api::namespaced(cluster.client(), "default");
    until("the deployment", Duration::from_secs(30), async || {
        let ready = api.get("web").await?.status.and_then(|status| status.ready_replicas).unwrap_or(0);
        Ok(Probe::when(ready == 2, format!("{ready} of 2 pods are ready")))
    })
    .await?;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    let nodes: Vec<_> = pods
        .list(&ListParams::default())
        .await?
        .into_iter()
        .filter_map(|pod| pod.spec?.node_name)
        .collect();
    assert_eq!(nodes, ["w-1", "w-1"], "tainted nodes take no pods");
    Ok(())
}

async fn troubles_show(cluster: &Cluster) -> Result<()> {
    cluster.apply_yaml("{apiVersion: v1, kind: Pod, metadata: {name: lost, namespace: default}, spec: {containers: [{name: c, image: mirror.invalid/c}]}}").await?;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    let one = pods
        .list(&ListParams::default().labels("app=web"))
        .await?
        .items
        .swap_remove(0)
        .name_any();
    let annotation = json!({ "metadata": { "annotations": { TROUBLE: "crash" } } });
    pods.patch(&one, &PatchParams::default(), &Patch::Merge(annotation)).await?;
    for (pod, wanted) in [("lost", "ImagePullBackOff"), (one.as_str(), "CrashLoopBackOff")] {
        until(wanted, Duration::from_secs(20), async || {
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
    Ok(())
}

async fn requests_are_counted(cluster: &Cluster) -> Result<()> {
    const ROBOT: &str = "system:serviceaccount:default:robot";
    let audit = cluster.audit();
    let robot = cluster.service_account_client("default", "robot").await?;
    let allowed = "
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: robot, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: robot, namespace: default}]
";
    cluster.apply_yaml(allowed).await?;
    let maps: Api<ConfigMap> = Api::namespaced(robot.clone(), "default");
    until("the robot's rights", Duration::from_secs(10), async || {
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
    let refused = requests.only(|entry| entry.code == 403);
    assert_eq!(refused.len(), 1, "{refused}");
    let nothing = audit.mark().await?;
    assert!(audit.since(nothing).await?.of(ROBOT).is_empty());
    Ok(())
}

async fn the_api_server_comes_back(cluster: &mut Cluster) -> Result<()> {
    let version = cluster.client().apiserver_version().await?;
    assert_eq!(version.git_version, vdo_testbed::KUBERNETES_VERSION);
    cluster.stop_apiserver();
    assert!(cluster.client().apiserver_version().await.is_err());
    cluster.report_version("v1.35.0").await?;
    assert_eq!(cluster.client().apiserver_version().await?.git_version, "v1.35.0");
    let api: Api<Deployment> = Api::namespaced(cluster.client(), "default");
    api.get("web").await.context("the store outlives the server")?;
    Ok(())
}
