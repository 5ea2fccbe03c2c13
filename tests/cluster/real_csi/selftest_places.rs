// SPDX-License-Identifier: Apache-2.0
//! `vdoctl selftest` in each zone, with the real driver, as a build server runs it.

use super::selftest::{IMAGE, STEPS, attach_by_controller, nothing_is_left, with_snapshot_class};
use super::{CLAIM, CLASS, Trust, claim, install_as, with_driver_in};
use crate::common::{Bed, NODES};
use crate::volumes::found;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo_testbed::{ClusterOptions, CsiVersion, PATIENCE, Probe, VcenterOptions, start_snapshots, until};

const VERSION: &str = "3.7.0";
const DEFINITION: &str = "csinodetopologies.cns.vmware.com";
/// The nodes that run pods.
const WORKERS: [&str; 3] = ["w-1", "w-2", "w-3"];
/// The hosts, each with its zone. The simulator chooses the host of a machine, so that each run has one or two zones with nodes.
const ZONES: [(&str, &str); 2] = [("DC0_C0_H0", "zone-a"), ("DC0_C0_H1", "zone-b")];

#[test]
#[ignore = "long"]
fn real_csi_selftest_makes_every_step_in_each_zone() -> Result<()> {
    let vcenter = VcenterOptions {
        hosts: 2,
        ..VcenterOptions::with_vms(NODES)
    };
    with_driver_in(
        ClusterOptions::default(),
        vcenter,
        &[CsiVersion::Newer],
        Trust::Thumbprint,
        async |bed| {
            let _controller = start_snapshots(&bed.cluster).await?;
            let zones = in_zones(bed).await?;
            attach_by_controller(bed).await?;
            with_snapshot_class(bed).await?;
            let more = ["--image", IMAGE, "--access-mode", "ReadWriteOnce", "--storage-class", CLASS];
            let args = [&["selftest", "-o", "junit", "--timeout", "10m", "--zones"][..], &more].concat();
            let (code, out, err) = bed.vdoctl(&args)?;
            let shown = format!("{code}\n{out}{err}\n{}", bed.agent.logs());
            ensure!(code == 0, "{shown}");
            suites_are_of_the_zones(&out, &zones).with_context(|| shown)?;
            nothing_is_left(bed).await?;
            zone_of_no_node_is_explained(bed).await
        },
    )
}

/// A suite for each zone with a case for each step, and one for the end of all. In a zone with one node no pod can be moved.
fn suites_are_of_the_zones(report: &str, zones: &BTreeMap<String, usize>) -> Result<()> {
    let (last, of_zones) = STEPS.split_last().context("no steps")?;
    let of_zone = |(zone, nodes): (&String, &usize)| (format!("vdoctl.selftest.region-1/{zone}"), of_zones, usize::from(*nodes == 1));
    let mut expected: Vec<(String, &[&str], usize)> = zones.iter().map(of_zone).collect();
    expected.push(("vdoctl.selftest".into(), std::slice::from_ref(last), 0));
    let suites: Vec<&str> = report.split("<testsuite ").skip(1).collect();
    ensure!(suites.len() == expected.len(), "{} suites", suites.len());
    for (suite, (name, steps, skipped)) in suites.iter().zip(expected) {
        let (head, _) = suite.split_once('>').context("a suite")?;
        for (attribute, value) in [
            ("name", name),
            ("tests", steps.len().to_string()),
            ("failures", "0".to_owned()),
            ("skipped", skipped.to_string()),
        ] {
            ensure!(
                head.contains(&format!("{attribute}=\"{value}\"")),
                "{attribute} is not {value} in {head}"
            );
        }
        for step in steps {
            ensure!(suite.contains(&format!(" name=\"{step}\" time=")), "{step} is not in {suite}");
        }
    }
    Ok(())
}

/// The driver itself refuses a volume for a zone that no node is in, and the zone is named.
async fn zone_of_no_node_is_explained(bed: &Bed) -> Result<()> {
    let term = json!({"key": "topology.csi.vmware.com/k8s-zone", "values": ["gone"]});
    bed.apply(
        &json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "nowhere"},
        "provisioner": "csi.vsphere.vmware.com", "allowedTopologies": [{"matchLabelExpressions": [term]}]}),
    )
    .await?;
    let mut claim = claim("nowhere");
    claim["spec"]["storageClassName"] = "nowhere".into();
    bed.apply(&claim).await?;
    until("the zone that no node is in to be named", PATIENCE, async || {
        let (code, out, err) = bed.vdoctl(&["doctor", "volumes", "-o", "json"])?;
        let seen: Value = serde_json::from_str(&out).with_context(|| format!("{code}\n{out}{err}"))?;
        let named = found(&seen).contains("TopologyUnsatisfied PersistentVolumeClaim default/nowhere");
        Ok(Probe::when(named && out.contains("gone"), out))
    })
    .await?;
    bed.delete("v1", CLAIM, "default", "nowhere").await
}

/// Two hosts with a tag each; gives the zones that the driver has found nodes in, with how many.
async fn in_zones(bed: &Bed) -> Result<BTreeMap<String, usize>> {
    bed.vcenter.tag("k8s-region", "region-1", "Datacenter", "DC0").await?;
    for (host, zone) in ZONES {
        bed.vcenter.tag("k8s-zone", zone, "HostSystem", host).await?;
    }
    let late = json!([{"name": CLASS, "bindingMode": "WaitForFirstConsumer"}]);
    let storage = json!({"version": VERSION, "storageClasses": late, "topologyCategories": ["k8s-region", "k8s-zone"]});
    install_as(bed, storage).await?;
    until("the definition of the nodes' topology", PATIENCE, async || {
        let found = bed
            .get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", DEFINITION)
            .await?;
        Ok(Probe::when(found["status"]["acceptedNames"]["kind"].is_string(), found))
    })
    .await?;
    // The driver asks for the topology of every node, also of one that runs no pod of the test.
    in_its_zone(bed, "cp-1").await?;
    let mut zones = BTreeMap::new();
    for node in WORKERS {
        *zones.entry(in_its_zone(bed, node).await?).or_default() += 1;
    }
    Ok(zones)
}

/// Asks for the topology of a node as its plugin does, and labels the node as its kubelet does; gives the zone.
async fn in_its_zone(bed: &Bed, node: &str) -> Result<String> {
    let object = bed.get("v1", "Node", "", node).await?;
    let uuid = object["spec"]["providerID"].as_str().and_then(|id| id.strip_prefix("vsphere://"));
    bed.apply(
        &json!({"apiVersion": "cns.vmware.com/v1alpha1", "kind": "CSINodeTopology", "metadata": {"name": node},
        "spec": {"nodeID": node, "nodeuuid": uuid.context("a provider ID")?}}),
    )
    .await?;
    let found = until(&format!("the syncer to know the zone of node {node}"), PATIENCE, async || {
        let found = bed.get("cns.vmware.com/v1alpha1", "CSINodeTopology", "", node).await?;
        Ok(match found["status"]["status"] == "Success" {
            true => Probe::Ready(found["status"]["topologyLabels"].clone()),
            false => Probe::not_yet(format!("{found}\n{}", bed.agent.logs())),
        })
    })
    .await?;
    let all = found.as_array().into_iter().flatten();
    let labels: BTreeMap<&str, &str> = all
        .filter_map(|label| Some((label["key"].as_str()?, label["value"].as_str()?)))
        .collect();
    bed.merge("v1", "Node", "", node, json!({"metadata": {"labels": labels}})).await?;
    let zone = labels.get("topology.csi.vmware.com/k8s-zone").copied();
    let zone = zone.filter(|zone| ZONES.iter().any(|(_, known)| known == zone));
    Ok(zone.with_context(|| format!("no zone of node {node} in {found}"))?.to_owned())
}
