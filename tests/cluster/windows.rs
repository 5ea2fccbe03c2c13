// SPDX-License-Identifier: Apache-2.0
//! Maintenance windows with the operator itself, whose clock is set.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition, logged, now};
use crate::fixture::INSTALLED;
use crate::install::until_at_rest;
use crate::matrix_web::until_driver;
use crate::page::open;
use anyhow::{Result, ensure};
use k8s_openapi::jiff::SignedDuration;
use k8s_openapi::jiff::tz::TimeZone;
use serde_json::{Value, json};
use vdo_testbed::{Clock, Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const CSI_NS: &str = "vmware-system-csi";
/// How far the window is away: longer than this test.
const AWAY: SignedDuration = SignedDuration::from_hours(6);
/// How long before the window the clock is set.
const BEFORE: SignedDuration = SignedDuration::from_secs(10);

/// Begins with CSI 3.6.3 and the policy Latest, which wants another version.
async fn held(bed: &Bed, windows: Value) -> Result<()> {
    bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"version": "3.6.3"}})))
        .await?;
    until_driver(bed, "3.6.3").await?;
    bed.until_ready().await?;
    let spec = json!({"cloudProvider": {}, "storageProvider": {}, "updatePolicy": "Latest", "maintenanceWindows": windows});
    bed.apply(&bed.config(spec)).await
}

/// Waits until a version waits for this reason, and with these words everywhere, while Ready is True.
async fn until_held(bed: &Bed, reason: &str, words: &str) -> Result<()> {
    let found = bed.until_reason("UpgradeAvailable", reason).await?;
    let message = found["message"].as_str().unwrap_or_default();
    ensure!(
        message.starts_with("CSI 3.8.0 is available, but 3.6.3 stays installed: the upgrade waits ") && message.contains(words),
        "{found}"
    );
    bed.until_ready().await?;
    bed.until_reason("MaintenanceWindow", reason).await?;
    for verb in ["status", "plan"] {
        let (code, text, err) = bed.vdoctl(&[verb])?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        ensure!(code == 0 && text.contains(words), "{verb} ended with {code}:\n{text}\n{err}");
    }
    Ok(())
}

/// Waits until what another manager deletes is back.
async fn repaired(bed: &Bed) -> Result<()> {
    let uid = async || -> Result<Value> {
        let service = bed.get("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
        Ok(service["metadata"]["uid"].clone())
    };
    let before = uid().await?;
    bed.delete("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
    until("the Service to be back", PATIENCE, async || {
        let found = uid().await?;
        Ok(Probe::when(found.is_string() && found != before, found))
    })
    .await
}

/// Waits until the controller has this level, or does not have it.
async fn until_level(bed: &Bed, is_there: bool) -> Result<()> {
    until("the level of the controller to change", PATIENCE, async || {
        let controller = bed.get("apps/v1", "Deployment", CSI_NS, "vsphere-csi-controller").await?;
        Ok(Probe::when(
            controller.to_string().contains("DEVELOPMENT") == is_there,
            controller["spec"].clone(),
        ))
    })
    .await
}

#[test]
#[ignore = "long"]
fn windows_hold_an_upgrade_until_one_opens_and_repairs_meanwhile() -> Result<()> {
    INSTALLED.run(async |bed| {
        let clock = Clock::in_folder(bed.cluster.dir())?;
        bed.kill_operator();
        bed.environment = clock.environment().into();
        bed.start_operator().await?;
        logged(&bed.operator_log(), "ready").await?;
        let hour = now().checked_add(AWAY)?.to_zoned(TimeZone::UTC);
        let opens = hour.with().minute(0).second(0).subsec_nanosecond(0).build()?.timestamp();
        let window = json!({"schedule": format!("0 {} * * *", hour.hour()), "duration": "1h"});

        held(bed, json!([window])).await?;
        until_held(
            bed,
            "OutsideMaintenanceWindow",
            &format!("until {opens}, when the maintenance window"),
        )
        .await?;
        until_at_rest(bed).await?;
        repaired(bed).await?;
        // What a user changes is made with the version that stays.
        let distribution = json!({"spec": {"storageProvider": {"clusterDistribution": "Rancher"}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", distribution).await?;
        bed.until_ready().await?;
        until_driver(bed, "3.6.3").await?;
        // So are a rollback and its end.
        let level = json!({"spec": {"storageProvider": {"values": {"logLevel": "DEVELOPMENT"}}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", level).await?;
        until_level(bed, true).await?;
        bed.until_ready().await?;
        for (more, is_there) in [(&[][..], false), (&["--lift"], true)] {
            let (code, out, err) = bed.vdoctl(&[&["rollback", "csi", "--wait", "--timeout", "3m"], more].concat())?;
            ensure!(code == 0, "{more:?} ended with {code}:\n{out}{err}");
            until_level(bed, is_there).await?;
            until_driver(bed, "3.6.3").await?;
        }

        let broken = json!([{"schedule": "* * * * *", "duration": "1h"}, {"schedule": "0 2 30 2 *", "duration": "1h"}]);
        bed.merge(VDO, "VDOConfig", NS, "vdo", json!({"spec": {"maintenanceWindows": broken}}))
            .await?;
        until_held(bed, "MaintenanceWindowInvalid", "no time within the next four years").await?;
        let found = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "MaintenanceWindow");
        ensure!(found["status"] == "Unknown", "{found}");

        // Shortly before the window. From here on nothing wakes the operator but the window.
        clock.set(opens.duration_since(now()).checked_sub(BEFORE).expect("seconds").as_secs())?;
        bed.merge(VDO, "VDOConfig", NS, "vdo", json!({"spec": {"maintenanceWindows": [window]}}))
            .await?;
        bed.until_reason("UpgradeAvailable", "OutsideMaintenanceWindow").await?;
        bed.until_reason("MaintenanceWindow", "WindowOpen").await?;
        until_driver(bed, "3.8.0").await?;
        let found = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "UpgradeAvailable");
        ensure!(found.is_null(), "{found}");
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn page_maintenance_windows_works_as_written() -> Result<()> {
    INSTALLED.run(async |bed| {
        open(bed, "maintenance-windows.md")?.run_all()?;
        until("the condition to go with the windows", PATIENCE, async || {
            let found = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "MaintenanceWindow");
            Ok(Probe::when(found.is_null(), found))
        })
        .await
    })
}
