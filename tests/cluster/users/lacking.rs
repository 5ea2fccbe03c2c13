// SPDX-License-Identifier: Apache-2.0
//! A privilege less on one object: exactly that one is named by `users verify`, by `doctor` and by the operator. One more is named, too.

use super::users;
use crate::common::sample::{self, setting};
use crate::common::{Bed, NS};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

pub const DISK: &str = "VirtualMachine.Config.AddExistingDisk";

/// What an account for both drivers has beside the privilege to read.
const HELD: [(&str, &str, &str); 11] = [
    (DISK, "VirtualMachine", "/DC0/vm/cp-1"),
    (DISK, "VirtualMachine", "/DC0/vm/w-1"),
    (DISK, "VirtualMachine", "/DC0/vm/w-2"),
    (DISK, "VirtualMachine", "/DC0/vm/w-3"),
    ("VirtualMachine.Config.AddRemoveDevice", "VirtualMachine", "/DC0/vm/cp-1"),
    ("VirtualMachine.Config.AddRemoveDevice", "VirtualMachine", "/DC0/vm/w-1"),
    ("VirtualMachine.Config.AddRemoveDevice", "VirtualMachine", "/DC0/vm/w-2"),
    ("VirtualMachine.Config.AddRemoveDevice", "VirtualMachine", "/DC0/vm/w-3"),
    ("Datastore.FileManagement", "Datastore", "/DC0/datastore/LocalDS_0"),
    ("Cns.Searchable", "Folder", "/"),
    ("StorageProfile.View", "Folder", "/"),
];

pub async fn each_is_named(bed: &Bed, account: &str) -> Result<()> {
    let chosen = match setting("VDO_RIGHTS").as_deref() {
        Some("all") => HELD.to_vec(),
        _ => sample::some("privileges that an account lacks", &HELD, 1),
    };
    for (privilege, kind, path) in chosen {
        let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("Datacenters");
        let object = bed.vcenter.id(kind, name).await?;
        bed.vcenter.deny_on(account, &object, &[privilege]).await?;
        let named = is_named(bed, privilege, kind, path).await;
        bed.vcenter.deny(account, &[]).await?;
        named.with_context(|| format!("{privilege} on {kind} {path}"))?;
        bed.until_condition("VsphereCloudConfig", "vc1", "Authorized", "Healthy").await?;
    }
    Ok(())
}

async fn is_named(bed: &Bed, privilege: &str, kind: &str, path: &str) -> Result<()> {
    let (code, text) = users(bed, "verify", &["-o", "json"])?;
    let found: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
    let account = &found["accounts"][0];
    let missing = account["missing"].as_array().context("a list")?;
    ensure!(
        code == 1 && missing.len() == 1 && account["surplus"] == json!([]),
        "exit {code}: {text}"
    );
    ensure!(missing[0]["privilege"] == privilege && missing[0]["path"] == path, "{text}");

    bed.until_condition("VsphereCloudConfig", "vc1", "Authorized", "PrivilegesMissing")
        .await?;
    let connection = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
    let reported = &connection["status"]["privileges"]["list"];
    let line = reported[0]
        .as_str()
        .and_then(|line| line.strip_prefix(&format!("{privilege} on {kind} ")));
    ensure!(reported.as_array().map(Vec::len) == Some(1) && line == Some(path), "{reported}");

    let (code, text, error) = bed.vdoctl(&["doctor", "privileges", "-o", "json"])?;
    let found: Value = serde_json::from_str(&text).with_context(|| format!("{text}{error}"))?;
    let lacks: Vec<&Value> = found["privileges"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|connection| connection["missing"].as_array().into_iter().flatten())
        .collect();
    ensure!(
        code != 0 && lacks.len() == 1 && lacks[0]["privilege"] == privilege,
        "exit {code}: {text}"
    );
    ensure!(lacks[0]["path"] == path, "{text}");
    Ok(())
}
