// SPDX-License-Identifier: Apache-2.0
//! The operator among the largest objects of every kind that it watches.

use crate::common::large::{WATCHED, create, delete, limit, start_among};
use crate::common::{Bed, NODES};
use crate::report::{Report, mebibytes, seconds};
use anyhow::Result;
use serde_json::json;
use vdo_testbed::{ClusterOptions, VcenterOptions};

/// How many of each kind there are.
const COUNT: usize = 200;

/// How many kinds one cluster holds: etcd takes two gigabytes.
const IN_A_CLUSTER: usize = 5;

pub async fn measure() -> Result<Report> {
    let mut report = Report::default();
    report.section(&format!(
        "Memory of an operator that starts among the {COUNT} largest objects of a kind"
    ));
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let limit = mebibytes(limit()? as f64 / 1024.0);
    for (number, kinds) in WATCHED.chunks(IN_A_CLUSTER).enumerate() {
        // Controllers would write to such nodes for as long as it is measured: they patch each several times, at half a second a patch.
        let mut bed = Bed::start_on(ClusterOptions::api_only(), VcenterOptions::with_vms(NODES)).await?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"snapshots": {}}})))
            .await?;
        let none = (number == 0).then_some(None);
        for watched in none.into_iter().chain(kinds.iter().map(Some)) {
            let name = watched.map_or("none", |watched| watched.kind);
            eprintln!("the largest objects: {name}");
            if let Some(watched) = watched {
                create(&bed, watched, COUNT).await?;
            }
            let needed = start_among(&mut bed).await?;
            bed.kill_operator();
            if let Some(watched) = watched {
                delete(&bed, watched).await?;
            }
            #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
            let peak = needed.peak as f64 / 1024.0;
            let probe = format!("slowest probe {}", seconds(needed.probe.as_secs_f64()));
            println!("{name}: {}, {probe}", mebibytes(peak));
            report.row(name, mebibytes(peak), format!("limit {limit}"), probe);
        }
    }
    Ok(report)
}
