// SPDX-License-Identifier: Apache-2.0
//! The commands of docs/install.md and docs/uninstall.md, as they stand there.

use super::{ensure_nothing_is_left, install, is_there};
use crate::common::{Bed, NS, PATIENCE};
use crate::deploy::operate;
use crate::fixture::BARE;
use crate::page::{commands, manifest, run};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// What a person writes into the manifest of the page.
fn filled_in(bed: &Bed, mut object: Value) -> Value {
    match object["kind"].as_str() {
        Some("Secret") => {
            object["metadata"]["annotations"]["vdo.vmware.com/servers"] = bed.vcenter.host().into();
            object["stringData"] = json!({"username": bed.vcenter.user(), "password": bed.vcenter.password()});
        }
        Some("VsphereCloudConfig") => {
            object["spec"]["vcIp"] = bed.vcenter.host().into();
            object["spec"]["port"] = bed.vcenter.port().into();
            object["spec"]["thumbprint"] = bed.vcenter.thumbprint_sha256().into();
        }
        _ => {}
    }
    object
}

/// From an empty cluster to the drivers, and back to nothing.
#[test]
#[ignore = "long"]
fn install_page_and_uninstall_page_commands_of_kubectl_install_and_leave_nothing() -> Result<()> {
    BARE.run(async |bed| {
        let mut steps = commands("install.md", "With kubectl")?;
        let wait = steps.pop().unwrap_or_default();
        ensure!(wait.starts_with("kubectl wait"), "the last command is {wait}");
        for command in steps {
            run(bed, &command)?;
        }
        operate(bed).await?;
        for object in manifest("install.md", "With kubectl")? {
            bed.apply(&filled_in(bed, object)).await?;
        }
        run(bed, &wait)?;
        ensure!(!bed.owned().await?.is_empty(), "nothing is installed");
        for command in commands("uninstall.md", "With kubectl")? {
            run(bed, &command)?;
        }
        ensure_nothing_is_left(bed).await
    })
}

/// A release from its installation to nothing, with the drivers in between.
#[test]
#[ignore = "long"]
fn install_page_and_uninstall_page_commands_of_helm_install_and_leave_nothing() -> Result<()> {
    BARE.run(async |bed| {
        for command in commands("install.md", "With Helm")? {
            run(bed, &command)?;
        }
        operate(bed).await?;
        for object in manifest("install.md", "With kubectl")? {
            bed.apply(&filled_in(bed, object)).await?;
        }
        bed.until_ready().await?;
        for command in commands("uninstall.md", "With Helm")? {
            // On a terminal a person answers.
            let answered = if command.starts_with("vdoctl delete") {
                format!("{command} --yes")
            } else {
                command
            };
            run(bed, &answered)?;
            // The kubelet ends it when Helm has deleted its pod; it gives its Lease back.
            if let Some(operator) = bed.operator.as_mut().filter(|_| answered.starts_with("helm uninstall")) {
                operator.stop(PATIENCE);
            }
        }
        ensure_nothing_is_left(bed).await
    })
}

#[test]
#[ignore = "long"]
fn uninstall_page_commands_after_the_wrong_way_leave_nothing() -> Result<()> {
    BARE.run(async |bed| {
        install(bed).await?;
        bed.kill_operator();
        run(bed, "kubectl delete --ignore-not-found --wait=false -k deploy")?;
        for command in commands("uninstall.md", "If the operator was deleted first")? {
            run(bed, &command)?;
        }
        ensure!(
            !is_there(bed, "vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?,
            "the VDOConfig is left"
        );
        ensure_nothing_is_left(bed).await
    })
}
