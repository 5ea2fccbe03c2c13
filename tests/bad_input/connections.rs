//! What is wrong with a connection, its Secret or its vCenter.

use crate::bed::{Bed, NS, PATIENCE, condition};
use crate::{VC1, VDO, guard, told, untouched};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use vdo_testbed::{Probe, until};

pub async fn secrets(bed: &Bed) -> Result<()> {
    let restore = bed.secret(bed.vcenter.password());
    let (guard_missing, name) = (guard(bed).await?, "vc1-credentials");
    bed.delete("v1", "Secret", NS, name).await?;
    told(
        bed,
        VDO,
        ("Ready", "SecretNotFound"),
        &[name, NS, "kubernetes.io/basic-auth", "username and password"],
    )
    .await?;
    told(bed, VC1, ("CredentialsFound", "SecretNotFound"), &[name]).await?;
    untouched(bed, guard_missing, "missing Secret").await?;

    let opaque = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NS}, "type": "Opaque", "stringData": {"username": "u", "password": "p"}});
    let guard_type = guard(bed).await?;
    bed.apply(&opaque).await?;
    told(
        bed,
        VDO,
        ("Ready", "SecretWrongType"),
        &[name, "Opaque", "kubernetes.io/basic-auth"],
    )
    .await?;
    untouched(bed, guard_type, "wrong type").await?;

    bed.delete("v1", "Secret", NS, name).await?;
    let guard_empty = guard(bed).await?;
    bed.apply(&bed.secret("")).await?;
    told(bed, VDO, ("Ready", "SecretIncomplete"), &[name, "password", "missing or empty"]).await?;
    untouched(bed, guard_empty, "empty password").await?;

    bed.apply(&restore).await?;
    bed.until_ready().await?;
    Ok(())
}

/// A wrong password is tried once and reaches no driver; a right one takes its place without help.
pub async fn passwords(bed: &Bed) -> Result<()> {
    let failed = async || {
        anyhow::Ok(
            bed.vcenter
                .logins()
                .await?
                .get(bed.vcenter.user())
                .map_or(0, |logins| logins.failed),
        )
    };
    let (guard, before) = (guard(bed).await?, failed().await?);
    bed.apply(&bed.secret("hunter2-wrong")).await?;
    let words = [
        bed.vcenter.user(),
        "vc1-credentials",
        "Correct username and password",
        "next attempt is at",
    ];
    told(bed, VC1, ("Authenticated", "InvalidCredentials"), &words).await?;
    told(bed, VC1, ("Ready", "InvalidCredentials"), &words).await?;
    told(bed, VDO, ("Ready", "ConnectionNotReady"), &["vc1", "Correct username and password"]).await?;
    // The connection is looked at every two seconds.
    tokio::time::sleep(std::time::Duration::from_secs(7)).await;
    untouched(bed, guard, "wrong password").await?;
    ensure!(
        failed().await? == before + 1,
        "the wrong password was sent {} times",
        failed().await? - before
    );
    let secret = bed.get("v1", "Secret", "vmware-system-csi", "vsphere-config-secret").await?;
    ensure!(!secret.to_string().contains("hunter2"), "it reached the driver");
    let log = std::fs::read_to_string(bed.operator_log())?;
    ensure!(!log.contains("hunter2"), "it is in the log");

    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    bed.until_ready().await?;
    bed.until_condition("VsphereCloudConfig", "vc1", "Authenticated", "Healthy").await?;
    ensure!(failed().await? == before + 1, "a right password failed");
    Ok(())
}

pub async fn datacenters(bed: &Bed) -> Result<()> {
    let guard = guard(bed).await?;
    let mut wrong = bed.connection("vc1");
    wrong["spec"]["datacenters"] = json!(["dc0"]);
    bed.apply(&wrong).await?;
    told(
        bed,
        VC1,
        ("DatacentersFound", "DatacenterNotFound"),
        &["\"dc0\"", "did you mean /DC0?"],
    )
    .await?;
    told(bed, VDO, ("Ready", "ConnectionNotReady"), &["vc1", "did you mean /DC0?"]).await?;
    untouched(bed, guard, "wrong datacenter").await?;
    let mut right = bed.connection("vc1");
    right["spec"]["datacenters"] = json!([]);
    bed.apply(&right).await?;
    bed.until_ready().await?;
    Ok(())
}

pub async fn vcenters(bed: &mut Bed) -> Result<()> {
    // Another thumbprint: the presented one is shown.
    let guard_print = guard(bed).await?;
    let mut wrong = bed.connection("vc1");
    wrong["spec"]["thumbprint"] = "AA".repeat(32).into();
    bed.apply(&wrong).await?;
    told(
        bed,
        VC1,
        ("Trusted", "ThumbprintMismatch"),
        &[&bed.vcenter.thumbprint_sha256(), &bed.vcenter.address()],
    )
    .await?;
    told(
        bed,
        VDO,
        ("Ready", "ConnectionNotReady"),
        &["vc1", &bed.vcenter.thumbprint_sha256()],
    )
    .await?;
    untouched(bed, guard_print, "wrong thumbprint").await?;

    // Something else listens there.
    let guard_other = guard(bed).await?;
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
    told(bed, VC1, ("IsVCenter", "NotAVcenter"), &["127.0.0.1"]).await?;
    untouched(bed, guard_other, "not a vCenter").await?;

    bed.delete("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
    bed.apply(&bed.connection("vc1")).await?;
    bed.until_ready().await?;

    // An outage is no statement about what runs: Unknown, and the last answer is kept.
    let guard_outage = guard(bed).await?;
    bed.vcenter.stop();
    let found = told(bed, VC1, ("Ready", "Unreachable"), &[&bed.vcenter.address()]).await?;
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
    untouched(bed, guard_outage, "outage").await?;
    bed.vcenter.resume().await?;
    bed.until_condition("VsphereCloudConfig", "vc1", "Ready", "Healthy").await?;

    // A name that leads nowhere, known before anything was seen there.
    let mut nowhere = bed.connection("vc2");
    nowhere["spec"]["vcIp"] = "vcenter.invalid".into();
    let guard_name = guard(bed).await?;
    bed.apply(&nowhere).await?;
    told(
        bed,
        ("VsphereCloudConfig", "vc2"),
        ("Resolved", "NameNotResolved"),
        &["vcenter.invalid"],
    )
    .await?;
    told(bed, VDO, ("Ready", "ConnectionNotReady"), &["vc2", "vcenter.invalid"]).await?;
    untouched(bed, guard_name, "unknown name").await?;
    bed.delete("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc2").await?;
    bed.until_ready().await?;
    Ok(())
}
