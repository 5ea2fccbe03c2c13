// SPDX-License-Identifier: Apache-2.0
//! The real chain: a configuration in the cluster, the real cloud provider, initialised nodes.
#![allow(clippy::disallowed_methods, reason = "a test has no arguments of its own")]

use crate::common::{Bed, NODES};
use crate::fixture::EMPTY;
use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::storage::v1::CSINode;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::{Value, json};
use vdo_testbed::{Cluster, Mark, PATIENCE, Probe, UNINITIALIZED, Vcenter, until};

/// A variable with the path of another manifest to try, such as upstream's.
const OTHER: &str = "VDO_TESTBED_CPI_MANIFEST";
const OWN: &str = include_str!("data/cpi.yaml");

/// A pod whose ConfigMap is absent does not run, and its status shows why.
#[test]
fn cloud_provider_without_its_config_map_waits_and_names_it() -> Result<()> {
    EMPTY.run(async |bed| {
        no_cloud_provider(bed).await?;
        manifest(&bed.cluster).await?;
        let pods: Api<Pod> = Api::namespaced(bed.cluster.client(), "kube-system");
        until("a pod that waits for its ConfigMap", PATIENCE, async || {
            let pods = pods.list(&ListParams::default()).await?.items;
            let statuses = pods
                .iter()
                .filter_map(|pod| pod.status.as_ref()?.container_statuses.as_ref())
                .flatten();
            let mut waiting = statuses.filter_map(|status| status.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
            Ok(Probe::when(
                waiting.any(|reason| reason == "ContainerCreating"),
                format!("{:?}", bed.agent.runs()),
            ))
        })
        .await?;
        let problem = bed.agent.runs().pop().and_then(|run| run.problem).unwrap_or_default();
        assert_eq!(problem, "ConfigMap vsphere-cloud-config not found");
        remove(bed).await
    })
}

/// The corrected password initialises the nodes, and on initialised nodes the CSI driver is registered.
#[test]
#[ignore = "long"]
fn cloud_provider_with_a_wrong_password_initialises_nodes_once_it_is_corrected() -> Result<()> {
    EMPTY.run(async |bed| {
        no_cloud_provider(bed).await?;
        let mark = bed.cluster.audit().mark().await?;
        let before = bed.vcenter.logins().await?.get(bed.vcenter.user()).copied().unwrap_or_default();
        configure(&bed.cluster, &bed.vcenter, "wrong", Trust::Thumbprint).await?;
        manifest(&bed.cluster).await?;
        until("a refused log-in", PATIENCE, async || {
            let logins = bed.vcenter.logins().await?.get(bed.vcenter.user()).copied().unwrap_or_default();
            assert_eq!(logins.succeeded, before.succeeded);
            Ok(Probe::when(logins.failed > before.failed, bed.agent.logs()))
        })
        .await?;
        assert!(
            initialised(&bed.cluster, "w-1").await.is_err(),
            "initialised without an answer of the vCenter"
        );

        configure(&bed.cluster, &bed.vcenter, bed.vcenter.password(), Trust::Authority).await?;
        restart(&bed.cluster).await?;
        for (node, _) in NODES {
            until(&format!("node {node}"), PATIENCE, async || {
                Ok(match initialised(&bed.cluster, node).await {
                    Ok(()) => Probe::Ready(()),
                    Err(missing) => Probe::not_yet(format!("{missing:#}\n{}", bed.agent.logs())),
                })
            })
            .await?;
        }
        bed.vcenter.check()?;
        only_the_pods_account_was_used(&bed.cluster, mark).await?;
        drivers_are_registered(&bed.cluster).await?;
        remove(bed).await
    })
}

/// Waits until no cloud provider of before runs.
async fn no_cloud_provider(bed: &Bed) -> Result<()> {
    until("the cloud provider to end", PATIENCE, async || {
        let runs = bed.agent.runs();
        Ok(Probe::when(runs.is_empty(), format!("{runs:?}")))
    })
    .await
}

/// Removes the cloud provider and its account.
async fn remove(bed: &Bed) -> Result<()> {
    bed.delete("apps/v1", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager")
        .await?;
    no_cloud_provider(bed).await?;
    bed.delete("v1", "ServiceAccount", "kube-system", "cloud-controller-manager").await
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
        addresses.iter().any(|a| a.address.starts_with("10.0.10.")),
        "addresses {addresses:?}"
    );
    Ok(())
}

async fn only_the_pods_account_was_used(cluster: &Cluster, mark: Mark) -> Result<()> {
    let account = "system:serviceaccount:kube-system:cloud-controller-manager";
    let requests = cluster
        .audit()
        .since(mark)
        .await?
        .only(|entry| entry.user_agent.starts_with("vsphere-cloud-controller-manager"));
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
    until("the CSI driver on the nodes", PATIENCE, async || {
        let found = drivers().await?;
        Ok(Probe::when(found.len() == NODES.len(), format!("{found:?}")))
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
    until("the CSI driver's end", PATIENCE, async || {
        let found = drivers().await?;
        Ok(Probe::when(found.is_empty(), format!("{found:?}")))
    })
    .await
}
