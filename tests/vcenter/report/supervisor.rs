// SPDX-License-Identifier: Apache-2.0
//! A vSphere with Workload Management: a cluster on machines of its own finds these, and only these.

use super::{Bed, NODES, reported};
use anyhow::{Context as _, Result, ensure};
use vdo_testbed::{PATIENCE, Probe, until};
use vdo_vsphere::vcenter::{Budget, Session};

/// The machines of the Supervisor's own control plane, and one of a cluster that it made.
const OTHERS: [(&str, &str); 4] = [
    ("SupervisorControlPlaneVM (1)", "10.0.20.1"),
    ("SupervisorControlPlaneVM (2)", "10.0.20.2"),
    ("SupervisorControlPlaneVM (3)", "10.0.20.3"),
    ("team-a-cluster-w-1", "10.0.30.1"),
];

#[tokio::test(flavor = "multi_thread")]
async fn connection_report_cluster_beside_a_supervisor_is_healthy() -> Result<()> {
    let bed = Bed::start_beside(&OTHERS).await?;
    let vcenter = &bed.vcenter;
    vcenter.add_supervisor(&OTHERS.map(|(name, _)| name)).await?;
    for (name, address) in OTHERS {
        // One address is shared, and neither is made for volumes of these drivers.
        let addresses = format!("{address},10.0.20.9");
        let values = [
            ("address", addresses.as_str()),
            ("disk-uuid", ""),
            ("hardware", "vmx-13"),
            ("scsi", "lsilogic"),
        ];
        vcenter.set("VirtualMachine", name, &values).await?;
    }
    // Clusters in namespaces name their nodes as they like.
    vcenter.set("VirtualMachine", "team-a-cluster-w-1", &[("host-name", "w-1")]).await?;

    let budget = Budget::default();
    let session = Session::open(bed.endpoint(), bed.credentials(), &budget).await?;
    let expected = OTHERS.map(|(name, _)| format!("/DC0/vm/Namespaces/team-a/{name}"));
    until("the machines to be in the folder of the namespace", PATIENCE, async || {
        let paths: Vec<String> = session.inventory(&budget).await?.machines.into_iter().map(|one| one.path).collect();
        Ok(Probe::when(expected.iter().all(|path| paths.contains(path)), paths.join(", ")))
    })
    .await?;
    session.close().await;

    let report = bed.examine(&bed.question).await;
    ensure!(reported(&report).is_empty(), "{:?}", reported(&report));
    for (name, _) in NODES {
        let node = report.nodes.iter().find(|node| node.node == name).context("the node")?;
        ensure!(node.machine == format!("/DC0/vm/{name}"), "{node:?}");
    }
    Ok(())
}
