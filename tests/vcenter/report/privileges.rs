// SPDX-License-Identifier: Apache-2.0
//! Privileges that an account lacks, or has without need.

use super::{Bed, reported};
use anyhow::{Context, Result, ensure};
use vdo_api::api::{ConditionType, Reason};
use vdo_vsphere::vsphere::{Feature, Requirements};

/// Each privilege of each feature, taken away alone, is named with object and user, and no other.
#[tokio::test(flavor = "multi_thread")]
async fn privileges_each_missing_one_names_object_and_user() -> Result<()> {
    let bed = Bed::start().await?;
    let report = bed.examine(&bed.question).await;
    let user = report.privileges.principal.clone();
    ensure!(!user.is_empty() && report.privileges.checked > 10, "{:?}", report.privileges);
    for (privilege, kinds) in [
        ("Cns.Searchable", &["Folder"][..]),
        ("StorageProfile.View", &["Folder"]),
        ("Datastore.FileManagement", &["Datastore"]),
        ("Host.Config.Storage", &["ClusterComputeResource"]),
        ("VirtualMachine.Config.AddExistingDisk", &["VirtualMachine"]),
        ("VirtualMachine.Config.AddRemoveDevice", &["VirtualMachine"]),
        (
            "System.Read",
            &[
                "ClusterComputeResource",
                "Datacenter",
                "Datastore",
                "Folder",
                "HostSystem",
                "VirtualMachine",
            ],
        ),
    ] {
        bed.vcenter.deny(&user, &[privilege]).await?;
        let report = bed.examine(&bed.question).await;
        let stage = report.check(ConditionType::Authorized).unwrap();
        ensure!(
            (stage.status, stage.reason) == (Some(false), Reason::PrivilegesMissing),
            "{privilege}: {stage:?}"
        );
        ensure!(stage.message.contains(&user) && stage.message.contains(privilege), "{stage:?}");
        let mut found: Vec<&str> = report
            .privileges
            .missing
            .iter()
            .map(|missing| missing.object.kind.as_str())
            .collect();
        found.sort_unstable();
        found.dedup();
        ensure!(found == kinds, "{privilege}: {found:?}");
        ensure!(
            report
                .privileges
                .missing
                .iter()
                .all(|missing| missing.privilege == privilege && missing.path.starts_with('/'))
        );
        bed.vcenter.deny(&user, &[]).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn privileges_of_unused_features_are_not_needed() -> Result<()> {
    let bed = Bed::start().await?;
    let user = bed.examine(&bed.question).await.privileges.principal;
    // What no one uses, no one needs.
    bed.vcenter
        .deny(&user, &["Host.Config.Storage", "Datastore.FileManagement"])
        .await?;
    let mut cpi_only = bed.question.clone();
    cpi_only.requirements = Requirements {
        features: [Feature::CloudProvider].into(),
        ..Requirements::default()
    };
    ensure!(reported(&bed.examine(&cpi_only).await).is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn privileges_denied_on_one_object_names_only_it() -> Result<()> {
    let bed = Bed::start().await?;
    let user = bed.examine(&bed.question).await.privileges.principal;
    // On one object alone.
    bed.vcenter.deny(&user, &[]).await?;
    let id = bed.vcenter.id("VirtualMachine", "w-1").await?;
    bed.vcenter.deny_on(&user, &id, &["VirtualMachine.Config.AddExistingDisk"]).await?;
    let report = bed.examine(&bed.question).await;
    ensure!(
        report.privileges.missing.len() == 1 && report.privileges.missing[0].path == "/DC0/vm/w-1",
        "{:?}",
        report.privileges.missing
    );
    bed.vcenter.deny(&user, &[]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn privileges_encrypted_policy_needs_more_and_surplus_is_listed() -> Result<()> {
    let bed = Bed::start().await?;
    let user = bed.examine(&bed.question).await.privileges.principal;
    // An encrypted policy asks for more; the administrator has much that no one needs.
    let mut encrypted = bed.question.clone();
    encrypted.requirements.policies[0].name = "VM Encryption Policy".into();
    encrypted.surplus = true;
    bed.vcenter.deny(&user, &["Cryptographer.AddDisk"]).await?;
    let report = bed.examine(&encrypted).await;
    ensure!(report.privileges.missing.iter().all(|m| m.privilege == "Cryptographer.AddDisk") && report.privileges.missing.len() == 3);
    let root = report
        .privileges
        .surplus
        .iter()
        .find(|surplus| surplus.path == "/")
        .context("the root folder")?;
    ensure!(
        root.privileges.contains(&"VirtualMachine.Inventory.Delete".to_owned()) && !root.privileges.contains(&"Cns.Searchable".to_owned())
    );
    Ok(())
}
