//! However often the operator starts and however many connections share it, a wrong password is sent once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod bed;

use anyhow::{Result, ensure};
use bed::{Bed, NS, PATIENCE, condition};
use std::time::Duration;
use vdo_testbed::{Probe, until};

const CONNECTIONS: [&str; 3] = ["vc1", "vc2", "vc3"];

async fn all_are(bed: &Bed, reason: &str) -> Result<()> {
    for name in CONNECTIONS {
        bed.until_condition("VsphereCloudConfig", name, "Authenticated", reason).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_sent_once() -> Result<()> {
    bed::prepare();
    let mut bed = Bed::start().await?;
    bed.flags.push(("connection-interval", "1s"));
    bed.apply(&bed.secret("wrong")).await?;
    for name in CONNECTIONS {
        bed.apply(&bed.connection(name)).await?;
    }
    bed.start_operator().await?;
    all_are(&bed, "InvalidCredentials").await?;
    for round in 0..10 {
        bed.kill_operator();
        bed.start_operator().await?;
        tokio::time::sleep(Duration::from_millis(30 * round)).await;
    }
    all_are(&bed, "InvalidCredentials").await?;
    bed.kill_operator();
    let logins = bed.vcenter.logins().await?;
    let user = logins.get(bed.vcenter.user()).copied().unwrap_or_default();
    ensure!((user.failed, user.succeeded) == (1, 0), "{logins:?}");

    // Killed in the middle of the attempt: between writing it down and making it there may be none, but never two.
    bed.apply(&bed.secret("wrong as well")).await?;
    for round in 0..10 {
        bed.start_operator().await?;
        tokio::time::sleep(Duration::from_millis(10 * round)).await;
        bed.kill_operator();
    }
    let logins = bed.vcenter.logins().await?;
    let failed = logins.get(bed.vcenter.user()).copied().unwrap_or_default().failed;
    ensure!(failed <= 2, "{logins:?}");

    // A right one is tried at once, and everybody who shares it shares the session.
    bed.start_operator().await?;
    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    all_are(&bed, "Healthy").await?;
    until("every connection to be ready", PATIENCE, async || {
        for name in CONNECTIONS {
            let object = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, name).await?;
            let ready = condition(&object, "Ready");
            if ready["status"] != "True" || object["status"]["credential"]["attempts"].is_number() {
                return Ok(Probe::not_yet(object["status"].clone()));
            }
        }
        Ok(Probe::Ready(()))
    })
    .await?;
    let user = bed.vcenter.logins().await?.get(bed.vcenter.user()).copied().unwrap_or_default();
    // The second wrong one may have had its one attempt only now, before the right one was seen.
    ensure!(user.failed <= 2 && user.succeeded == 1, "{user:?}");
    Ok(())
}
