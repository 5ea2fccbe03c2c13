// SPDX-License-Identifier: Apache-2.0
//! What is wrong with a connection, its Secret or its vCenter.

use super::{RUNNING, VC1, VDO, guard, recovered, reported, untouched};
use crate::common::{Bed, NS, PATIENCE, condition};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use vdo_testbed::{Probe, until};

const SECRET: &str = "vc1-credentials";

#[test]
fn secret_missing_is_reported_and_drivers_stay() -> Result<()> {
    RUNNING.run(async |bed| {
        let guard = guard(bed).await?;
        bed.delete("v1", "Secret", NS, SECRET).await?;
        reported(
            bed,
            VDO,
            ("Ready", "SecretNotFound"),
            &[SECRET, NS, "kubernetes.io/basic-auth", "username and password"],
        )
        .await?;
        reported(bed, VC1, ("CredentialsFound", "SecretNotFound"), &[SECRET]).await?;
        untouched(bed, guard, "missing Secret").await?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        recovered(bed).await
    })
}

#[test]
fn secret_of_wrong_type_is_reported_and_drivers_stay() -> Result<()> {
    RUNNING.run(async |bed| {
        let guard = guard(bed).await?;
        // The type of a Secret cannot be changed.
        bed.delete("v1", "Secret", NS, SECRET).await?;
        let opaque = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": NS}, "type": "Opaque", "stringData": {"username": "u", "password": "p"}});
        bed.apply(&opaque).await?;
        reported(
            bed,
            VDO,
            ("Ready", "SecretWrongType"),
            &[SECRET, "Opaque", "kubernetes.io/basic-auth"],
        )
        .await?;
        untouched(bed, guard, "wrong type").await?;
        bed.delete("v1", "Secret", NS, SECRET).await?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        recovered(bed).await
    })
}

#[test]
fn secret_with_empty_password_or_line_break_is_reported_and_drivers_stay() -> Result<()> {
    RUNNING.run(async |bed| {
        let guard = guard(bed).await?;
        bed.delete("v1", "Secret", NS, SECRET).await?;
        bed.apply(&bed.secret("")).await?;
        reported(bed, VDO, ("Ready", "SecretIncomplete"), &[SECRET, "password", "missing or empty"]).await?;
        untouched(bed, guard, "empty password").await?;
        // As `echo` into a file leaves it; no login is spent on it.
        bed.apply(&bed.secret(&format!("{}\n", bed.vcenter.password()))).await?;
        let says = [SECRET, "password", "ends with a line break", "vdoctl secrets set vc1"];
        reported(bed, VDO, ("Ready", "SecretIncomplete"), &says).await?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        recovered(bed).await
    })
}

/// What the operator has logged behind this place.
fn logged_since(bed: &Bed, start: usize) -> Result<String> {
    Ok(std::fs::read_to_string(bed.operator_log())?.split_off(start))
}

/// A wrong password is tried once and reaches no driver; a right one takes its place without help.
#[test]
#[ignore = "long"]
fn secret_with_wrong_password_is_sent_once_and_reaches_no_driver() -> Result<()> {
    RUNNING.run(async |bed| {
        let bed: &Bed = bed;
        let failed = async || {
            anyhow::Ok(
                bed.vcenter
                    .logins()
                    .await?
                    .get(bed.vcenter.user())
                    .map_or(0, |logins| logins.failed),
            )
        };
        let start = logged_since(bed, 0)?.len();
        let (guard, before) = (guard(bed).await?, failed().await?);
        bed.apply(&bed.secret("hunter2-wrong")).await?;
        let words = [
            bed.vcenter.user(),
            SECRET,
            "Give the right user name and password",
            "not sent again before the Secret changes",
        ];
        reported(bed, VC1, ("Authenticated", "InvalidCredentials"), &words).await?;
        reported(bed, VC1, ("Ready", "InvalidCredentials"), &words).await?;
        reported(
            bed,
            VDO,
            ("Ready", "ConnectionNotReady"),
            &["vc1", "Give the right user name and password"],
        )
        .await?;
        let refused = logged_since(bed, 0)?.len();
        until("the operator to look at the vCenter three more times", PATIENCE, async || {
            let looks = logged_since(bed, refused)?.matches("\"message\":\"vCenter answered\"").count();
            Ok(Probe::when(looks >= 3, format!("there were {looks} looks")))
        })
        .await?;
        untouched(bed, guard, "wrong password").await?;
        ensure!(
            failed().await? == before + 1,
            "the wrong password was sent {} times",
            failed().await? - before
        );
        let secret = bed.get("v1", "Secret", "vmware-system-csi", "vsphere-config-secret").await?;
        ensure!(!secret.to_string().contains("hunter2"), "it reached the driver");
        ensure!(!logged_since(bed, start)?.contains("hunter2"), "it is in the log");

        repaired_as_status_shows(bed)?;
        bed.until_condition("VsphereCloudConfig", "vc1", "Authenticated", "Healthy").await?;
        ensure!(failed().await? == before + 1, "a right password failed");
        recovered(bed).await
    })
}

/// The command below the cross is what repairs it.
fn repaired_as_status_shows(bed: &Bed) -> Result<()> {
    let begun = std::time::Instant::now();
    let (code, _, said) = bed.vdoctl(&["wait", "--fail-fast", "--timeout", "10m"])?;
    ensure!(
        code == 7 && said.contains("vdoctl secrets set vc1") && begun.elapsed() < PATIENCE,
        "{code}\n{said}"
    );
    for verb in ["status", "doctor"] {
        let (_, shown, _) = bed.vdoctl(&[verb])?;
        let mut lines = shown.lines().map(str::trim);
        ensure!(lines.any(|line| line == "vdoctl secrets set vc1"), "{verb}:\n{shown}");
    }
    let (_, shown, _) = bed.vdoctl(&["status"])?;
    ensure!(
        shown.contains("(InvalidCredentials)") && shown.contains("vdoctl explain InvalidCredentials"),
        "{shown}"
    );
    let file = bed.cluster.dir().join("right-password");
    std::fs::write(&file, bed.vcenter.password())?;
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    let file = file.display().to_string();
    let (code, out, said) = bed.vdoctl(&["secrets", "set", "vc1", "--password-file", &file, "--wait", "--timeout", "4m"])?;
    ensure!(code == 0 && out.contains("healthy"), "{code}\n{out}{said}");
    let (code, shown, _) = bed.vdoctl(&["status"])?;
    ensure!(code == 0 && !shown.contains('✗'), "{shown}");
    Ok(())
}

#[test]
fn connection_with_wrong_datacenter_suggests_the_right_one() -> Result<()> {
    RUNNING.run(async |bed| {
        let guard = guard(bed).await?;
        let mut wrong = bed.connection("vc1");
        wrong["spec"]["datacenters"] = json!(["dc0"]);
        bed.apply(&wrong).await?;
        reported(
            bed,
            VC1,
            ("DatacentersFound", "DatacenterNotFound"),
            &["\"dc0\"", "did you mean /DC0?"],
        )
        .await?;
        reported(bed, VDO, ("Ready", "ConnectionNotReady"), &["vc1", "did you mean /DC0?"]).await?;
        untouched(bed, guard, "wrong datacenter").await?;
        let mut right = bed.connection("vc1");
        right["spec"]["datacenters"] = json!([]);
        bed.apply(&right).await?;
        recovered(bed).await
    })
}

#[test]
fn connection_with_wrong_thumbprint_shows_the_presented_one() -> Result<()> {
    RUNNING.run(async |bed| {
        let guard = guard(bed).await?;
        let mut wrong = bed.connection("vc1");
        wrong["spec"]["thumbprint"] = "AA".repeat(32).into();
        bed.apply(&wrong).await?;
        reported(
            bed,
            VC1,
            ("Trusted", "ThumbprintMismatch"),
            &[&bed.vcenter.thumbprint_sha256(), &bed.vcenter.address()],
        )
        .await?;
        reported(
            bed,
            VDO,
            ("Ready", "ConnectionNotReady"),
            &["vc1", &bed.vcenter.thumbprint_sha256()],
        )
        .await?;
        untouched(bed, guard, "wrong thumbprint").await?;
        bed.apply(&bed.connection("vc1")).await?;
        recovered(bed).await
    })
}

/// The API server listens where a vCenter should.
#[test]
fn connection_to_another_server_is_reported_and_drivers_stay() -> Result<()> {
    RUNNING.run(async |bed| {
        let guard = guard(bed).await?;
        let bundle = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other-ca", "namespace": NS}, "data": {"ca.crt": bed.cluster.ca_pem()}});
        bed.apply(&bundle).await?;
        let port: u16 = bed
            .cluster
            .server_url()
            .rsplit(':')
            .next()
            .context("a port")?
            .trim_end_matches('/')
            .parse()?;
        let mut other = bed.connection("vc1");
        other["spec"]["thumbprint"] = "".into();
        other["spec"]["port"] = port.into();
        other["spec"]["caBundle"] = json!({"configMap": "other-ca"});
        bed.apply(&other).await?;
        reported(bed, VC1, ("IsVCenter", "NotAVcenter"), &["127.0.0.1"]).await?;
        untouched(bed, guard, "not a vCenter").await?;
        bed.delete("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
        bed.apply(&bed.connection("vc1")).await?;
        recovered(bed).await
    })
}

/// An outage is not a statement about what runs: Unknown, and the last answer is kept.
#[test]
fn connection_after_vcenter_outage_is_unknown_and_drivers_stay_ready() -> Result<()> {
    RUNNING.run(async |bed| {
        let guard = guard(bed).await?;
        bed.vcenter.stop();
        let found = reported(bed, VC1, ("Ready", "Unreachable"), &[&bed.vcenter.address()]).await?;
        assert_eq!(found["status"], "Unknown", "{found}");
        until("the VDOConfig to say so", PATIENCE, async || {
            let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
            let found = condition(&config, "ConnectionsReady");
            Ok(Probe::when(
                found["status"] == "Unknown" && condition(&config, "Ready")["status"] == "True",
                found,
            ))
        })
        .await?;
        untouched(bed, guard, "outage").await?;
        bed.vcenter.resume().await?;
        recovered(bed).await
    })
}

/// The name was wrong from the beginning: no answer was ever seen there.
#[test]
fn connection_with_unknown_host_name_is_reported_and_drivers_stay() -> Result<()> {
    RUNNING.run(async |bed| {
        let mut nowhere = bed.connection("vc2");
        nowhere["spec"]["vcIp"] = "vcenter.invalid".into();
        let guard = guard(bed).await?;
        bed.apply(&nowhere).await?;
        reported(
            bed,
            ("VsphereCloudConfig", "vc2"),
            ("Resolved", "NameNotResolved"),
            &["vcenter.invalid"],
        )
        .await?;
        reported(bed, VDO, ("Ready", "ConnectionNotReady"), &["vc2", "vcenter.invalid"]).await?;
        untouched(bed, guard, "unknown name").await?;
        bed.delete("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc2").await?;
        recovered(bed).await
    })
}
