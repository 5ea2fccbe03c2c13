// SPDX-License-Identifier: Apache-2.0
//! Objects as large as the API server takes them, of users who may create no more than pods, ConfigMaps or workloads of their own: the
//! operator starts, stays below the memory of its pod and answers its probes.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::Bed;
use crate::common::large::{CONFIG_MAPS, NAMED, PODS, create, start_among};
use crate::fixture::alone;
use anyhow::{Result, ensure};
use serde_json::json;

#[test]
#[ignore = "long"]
fn operator_starts_among_the_largest_objects_of_tenants_within_its_memory() -> Result<()> {
    // Not in a shared cluster: its API server would stay slow. The benchmark takes more of them.
    alone(async || {
        let mut bed = Bed::start().await?;
        let bed = &mut bed;
        create(bed, &PODS, 80).await?;
        create(bed, &NAMED, 20).await?;
        create(bed, &CONFIG_MAPS, 30).await?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        // Asks for the pods of a snapshot controller, wherever they are.
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"snapshots": {}}})))
            .await?;
        let needed = start_among(bed).await?;
        println!("peak {} MiB, slowest probe {:?}", needed.peak >> 20, needed.probe);
        needed.check()?;
        let snapshots = bed
            .until_condition("VDOConfig", "vdo", "SnapshotsSupported", "SnapshotDefinitionsMissing")
            .await?;
        ensure!(snapshots["status"] == "False", "{snapshots}");
        bed.kill_operator();
        Ok(())
    })
}
