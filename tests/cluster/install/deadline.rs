// SPDX-License-Identifier: Apache-2.0
//! A first installation that makes no progress.

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::OPERATOR;
use crate::rollback::NOWHERE;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

async fn until_stalled(bed: &Bed, is: &str) -> Result<Value> {
    until(&format!("Stalled to be {is}"), PATIENCE, async || {
        let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        let stalled = condition(&config, "Stalled");
        let current = config["status"]["observedGeneration"] == config["metadata"]["generation"];
        Ok(if current && stalled["status"] == is {
            Probe::Ready(config)
        } else {
            Probe::not_yet(stalled)
        })
    })
    .await
}

/// There is no revision to go back to: the reason is named after `spec.progressDeadline`, and the right value leads on.
#[test]
#[ignore = "long"]
fn install_without_progress_is_stalled_after_its_deadline_and_goes_on_when_corrected() -> Result<()> {
    OPERATOR.run(async |bed| {
        let spec = |storage: Value| json!({"progressDeadline": "5s", "cloudProvider": {}, "storageProvider": storage});
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        bed.apply(&bed.config(spec(json!({"values": {"images": {"registry": NOWHERE}}}))))
            .await?;
        let found = until_stalled(bed, "True").await?;
        let stalled = condition(&found, "Stalled");
        ensure!(stalled["reason"] == "DeadlineExceeded", "{stalled}");
        ensure!(condition(&found, "RolledBack").is_null(), "{}", found["status"]["conditions"]);
        ensure!(
            condition(&found, "CloudProviderReady")["status"] == "True",
            "{}",
            found["status"]["conditions"]
        );
        let (code, out, err) = bed.vdoctl(&["status"])?;
        ensure!(code == 1 && !out.contains("Nothing to do"), "{code}\n{out}{err}");

        bed.apply(&bed.config(spec(json!({})))).await?;
        bed.until_ready().await?;
        until_stalled(bed, "False").await.map(|_| ())
    })
}
