//! The real chain: a configuration in the cluster, the real cloud provider, initialised nodes.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::storage::v1::CSINode;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::{Value, json};
use vdo_testbed::{Cluster, ClusterOptions, NodeAgent, NodeOptions, Probe, UNINITIALIZED, Vcenter, VcenterOptions, until};

/// A variable with the path of another manifest to try, such as upstream's.
const OTHER: &str = "VDO_TESTBED_CPI_MANIFEST";
const OWN: &str = include_str!("data/cpi.yaml");

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_initialised_by_the_real_cloud_provider() -> Result<()> {
    let vms = VcenterOptions::with_vms([("cp-1", "192.168.10.11"), ("w-1", "192.168.10.12")]);
    let (mut vcenter, cluster) = tokio::try_join!(Vcenter::start(vms), Cluster::start(ClusterOptions::default()))?;
    for node in [NodeOptions::control_plane("cp-1"), NodeOptions::worker("w-1")] {
        cluster.add_node(node.uninitialized()).await?;
    }
    let agent = NodeAgent::start(&cluster).await?;
    manifest(&cluster).await?;
    a_missing_configuration_shows(&cluster, &agent).await?;

    configure(&cluster, &vcenter, "wrong", Trust::Thumbprint).await?;
    until("a refused log-in", Duration::from_secs(60), async || {
        let logins = vcenter.logins().await?.get(vcenter.user()).copied().unwrap_or_default();
        assert_eq!(logins.succeeded, 0);
        Ok(Probe::when(logins.failed > 0, agent.logs()))
    })
    .await?;
    assert!(initialised(&cluster, "w-1").await.is_err(), "nobody could have asked the vCenter");

    configure(&cluster, &vcenter, vcenter.password(), Trust::Authority).await?;
    restart(&cluster).await?;
    for node in ["cp-1", "w-1"] {
        until(&format!("node {node}"), Duration::from_secs(60), async || {
            Ok(match initialised(&cluster, node).await {
                Ok(()) => Probe::Ready(()),
                Err(missing) => Probe::not_yet(format!("{missing:#}\n{}", agent.logs())),
            })
        })
        .await?;
    }
    vcenter.check()?;
    only_the_pods_account_was_used(&cluster).await?;
    drivers_are_registered(&cluster).await
}

async fn manifest(cluster: &Cluster) -> Result<()> {
    let text = match std::env::var_os(OTHER) {
        Some(path) => std::fs::read_to_string(path)?,
        None => OWN.to_owned(),
    };
    let documents: Vec<&str> = text
        .split("\n---")
        .filter(|d| !d.contains("kind: Secret\n") && !d.contains("kind: ConfigMap\n"))
        .collect();
    cluster.apply_yaml(&documents.join("\n---")).await?;
    Ok(())
}

/// How the cloud provider shall know its vCenter.
enum Trust {
    Thumbprint,
    Authority,
}

async fn configure(cluster: &Cluster, vcenter: &Vcenter, password: &str, trust: Trust) -> Result<()> {
    let server = vcenter.host();
    let trust = match trust {
        Trust::Thumbprint => format!("thumbprint: {}", vcenter.thumbprint_sha1()),
        Trust::Authority => "caFile: /etc/cloud/ca.crt".to_owned(),
    };
    let config = format!(
        "global:\n  secretName: vsphere-cloud-secret\n  secretNamespace: kube-system\n\
         vcenter:\n  main:\n    server: {server}\n    port: {}\n    {trust}\n    datacenters: [{}]\n",
        vcenter.port(),
        vcenter.options().datacenter,
    );
    let objects = [
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "vsphere-cloud-secret", "namespace": "kube-system" },
            "stringData": { format!("{server}.username"): vcenter.user(), format!("{server}.password"): password },
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "vsphere-cloud-config", "namespace": "kube-system" },
            "data": { "vsphere.conf": config, "ca.crt": vcenter.ca_pem() },
        }),
    ];
    let text: Vec<String> = objects.iter().map(Value::to_string).collect();
    cluster.apply_yaml(&text.join("\n---\n")).await?;
    Ok(())
}

/// A pod whose ConfigMap is absent does not run, and says so.
async fn a_missing_configuration_shows(cluster: &Cluster, agent: &NodeAgent) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "kube-system");
    until("a pod that waits for its ConfigMap", Duration::from_secs(30), async || {
        let pods = pods.list(&ListParams::default()).await?.items;
        let statuses = pods
            .iter()
            .filter_map(|pod| pod.status.as_ref()?.container_statuses.as_ref())
            .flatten();
        let mut waiting = statuses.filter_map(|status| status.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
        Ok(Probe::when(
            waiting.any(|reason| reason == "ContainerCreating"),
            format!("{:?}", agent.runs()),
        ))
    })
    .await?;
    let problem = agent.runs().pop().and_then(|run| run.problem).unwrap_or_default();
    assert_eq!(problem, "ConfigMap vsphere-cloud-config not found");
    Ok(())
}

async fn restart(cluster: &Cluster) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "kube-system");
    pods.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    Ok(())
}

async fn initialised(cluster: &Cluster, name: &str) -> Result<()> {
    let node = Api::<Node>::all(cluster.client()).get(name).await?;
    let spec = node.spec.context("no spec")?;
    anyhow::ensure!(
        spec.provider_id.as_deref().is_some_and(|id| id.starts_with("vsphere://")),
        "provider id {:?}",
        spec.provider_id
    );
    let tainted = spec.taints.iter().flatten().any(|taint| taint.key == UNINITIALIZED);
    anyhow::ensure!(!tainted, "still tainted");
    let addresses = node.status.and_then(|status| status.addresses).unwrap_or_default();
    anyhow::ensure!(
        addresses.iter().any(|a| a.address.starts_with("192.168.10.")),
        "addresses {addresses:?}"
    );
    Ok(())
}

async fn only_the_pods_account_was_used(cluster: &Cluster) -> Result<()> {
    let account = "system:serviceaccount:kube-system:cloud-controller-manager";
    let requests = cluster
        .audit()
        .requests(|entry| entry.user_agent.starts_with("vsphere-cloud-controller-manager"))
        .await?;
    let others = requests
        .clone()
        .only(|entry| !entry.user.starts_with("system:serviceaccount:kube-system:"));
    assert!(others.is_empty(), "{others}");
    assert!(!requests.of(account).writes().is_empty());
    Ok(())
}

async fn drivers_are_registered(cluster: &Cluster) -> Result<()> {
    cluster.apply_yaml(include_str!("data/csi-node.yaml")).await?;
    let api: Api<CSINode> = Api::all(cluster.client());
    let drivers = async || -> Result<Vec<(String, String)>> {
        let nodes = api.list(&ListParams::default()).await?.items;
        let of = |node: CSINode| {
            (
                node.name_any(),
                node.spec.drivers.into_iter().map(|d| d.node_id).collect::<Vec<_>>().join(","),
            )
        };
        Ok(nodes.into_iter().map(of).filter(|(_, ids)| !ids.is_empty()).collect())
    };
    until("the CSI driver on the nodes", Duration::from_secs(30), async || {
        let found = drivers().await?;
        Ok(Probe::when(found.len() == 2, format!("{found:?}")))
    })
    .await?;
    let node = Api::<Node>::all(cluster.client()).get("w-1").await?;
    let uuid = node
        .spec
        .and_then(|spec| spec.provider_id)
        .unwrap_or_default()
        .replace("vsphere://", "");
    assert!(drivers().await?.contains(&("w-1".into(), uuid)));

    let sets: Api<k8s_openapi::api::apps::v1::DaemonSet> = Api::namespaced(cluster.client(), "default");
    sets.delete("vsphere-csi-node", &DeleteParams::default()).await?;
    until("the CSI driver's end", Duration::from_secs(30), async || {
        let found = drivers().await?;
        Ok(Probe::when(found.is_empty(), format!("{found:?}")))
    })
    .await
}
