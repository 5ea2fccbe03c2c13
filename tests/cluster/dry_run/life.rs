// SPDX-License-Identifier: Apache-2.0
//! An installation and an upgrade in the audit log: what is written was tried before, and nothing is written before the approval.

use super::connect;
use crate::common::{Bed, NS};
use crate::fixture::{OPERATOR, written};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::collections::BTreeSet;
use vdo_testbed::Mark;

/// Asks for a version of CSI with its webhook, whose certificate is one more object to write, and approves the plan.
async fn approved(bed: &Bed, csi: &str) -> Result<Mark> {
    let mark = bed.cluster.audit().mark().await?;
    let spec = json!({"approval": "Manual", "cloudProvider": {}, "storageProvider": {"version": csi, "webhook": true}});
    bed.apply(&bed.config(spec)).await?;
    bed.until_reason("Ready", "ApprovalRequired").await?;
    let status = bed.status().await?;
    let hash = status["plan"]["hash"].as_str().context("a hash")?;
    let early = written(bed, mark).await?;
    ensure!(early.is_empty(), "before the approval of CSI {csi} the operator wrote:\n{early}");
    let (code, _, err) = bed.vdoctl(&["approve", hash])?;
    assert_eq!(code, 0, "{err}");
    bed.until_ready().await?;
    Ok(mark)
}

/// What was written since then without a dry run before it.
async fn untried(bed: &Bed, since: Mark) -> Result<BTreeSet<String>> {
    let (mut tried, mut untried) = (BTreeSet::new(), BTreeSet::new());
    for request in bed.operator_requests(since).await?.0 {
        let object = request.object();
        if request.tries() {
            tried.insert(object);
        } else if request.writes() && request.subresource != "status" && request.resource != "events" && !tried.contains(&object) {
            untried.insert(object);
        }
    }
    Ok(untried)
}

#[test]
#[ignore = "long"]
fn dry_run_and_approval_come_before_every_write_of_installation_and_upgrade() -> Result<()> {
    OPERATOR.run(async |bed| {
        connect(bed).await?;
        let inventory = format!("secrets {NS}/vdo-state");
        let finalizer = format!("vdoconfigs.vdo.vmware.com {NS}/vdo");
        for csi in ["3.6.3", "3.8.0"] {
            let mark = approved(bed, csi).await?;
            let mut found = untried(bed, mark).await?;
            // These two are the operator's own, and are written after everything was tried.
            ensure!(found.remove(&inventory), "CSI {csi}: the inventory was not written: {found:?}");
            found.remove(&finalizer);
            ensure!(found.is_empty(), "CSI {csi}: written without a dry run: {found:?}");
        }
        Ok(())
    })
}
