// SPDX-License-Identifier: Apache-2.0
//! Answers to writes of a connection's status that never arrive, while the watch is behind: no old status stays.

use crate::common::{GUEST, NS, PATIENCE};
use crate::lab::{Lab, Scenario};
use crate::shared::run;
use anyhow::Result;
use vdo_testbed::{Act, Call, Probe, until};

fn is_of_connections(call: &Call) -> bool {
    call.resource == "vspherecloudconfigs"
}

/// A node joins and leaves. The operator sees no answer to its writes, and its watch shows the status of before.
#[test]
fn lost_answers_to_writes_of_a_status_leave_no_old_status() -> Result<()> {
    run(true, true, async |lab, _| {
        lab.done(Scenario::Install).await?;
        lab.quiet().await?;
        let nodes = lab.bed.list("v1", "Node", "").await?.len();
        status_names(lab, nodes).await?;
        lab.proxy.hold(is_of_connections);
        lab.proxy.begin(|call| match is_of_connections(call) && call.writes() {
            true => Act::LoseAnswer,
            false => Act::Pass,
        });
        lab.act(Scenario::Join).await?;
        status_names(lab, nodes + 1).await?;
        lab.act(Scenario::Leave).await?;
        status_names(lab, nodes).await?;
        lab.proxy.judge(|_| Act::Pass);
        lab.proxy.release();
        lab.done(Scenario::Leave).await
    })
}

/// Waits until the stored status of the connection speaks of so many nodes.
async fn status_names(lab: &Lab, nodes: usize) -> Result<()> {
    let what = format!("the status of the connection to name {nodes} nodes, with or without {}", GUEST.0);
    until(&what, PATIENCE, async || {
        let connection = lab.bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
        let machines = &connection["status"]["machines"];
        Ok(Probe::when(machines["nodes"] == nodes, machines))
    })
    .await
}
