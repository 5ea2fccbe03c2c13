// SPDX-License-Identifier: Apache-2.0
//! A whole configuration from a file.

use super::{ADMIN, Deploy, command, err, out};
use crate::common::NS;
use crate::fixture::BARE;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Vcenter, VcenterOptions};

/// Several vCenters come in a file; each is looked at before anything is written, and one that cannot be used stops everything.
#[test]
#[ignore = "long"]
fn deploy_with_a_file_of_two_vcenters_checks_both_and_applies_both() -> Result<()> {
    BARE.run(async |bed| {
        let deploy = Deploy::to(bed)?;
        let second = Vcenter::start(VcenterOptions::with_vms([])).await?;
        let file = |password: &str| -> Result<String> {
            let mut secret = bed.secret(second.password());
            secret["metadata"]["name"] = "vc2-credentials".into();
            secret["stringData"] = json!({"username": second.user(), "password": password});
            let mut connection = bed.connection("vc2");
            connection["spec"] = json!({"vcIp": second.host(), "port": second.port(), "credentials": "vc2-credentials",
                "thumbprint": second.thumbprint_sha256(), "datacenters": ["DC0"]});
            let config =
                bed.config(json!({"cloudProvider": {"vsphereCloudConfigs": ["vc1"]}, "storageProvider": {"vsphereCloudConfigs": ["vc1"]}}));
            let all = [
                bed.secret(bed.vcenter.password()),
                bed.connection("vc1"),
                secret,
                connection,
                config,
            ];
            let text = all.map(|object| object.to_string()).join("\n---\n");
            Ok(deploy.file("configuration.yaml", &text, 0o600)?.display().to_string())
        };
        let mark = bed.cluster.audit().mark().await?;
        let wrong = command(bed, &[], &["--values", &file("wrong")?, "--no-wait"]).output()?;
        ensure!(wrong.status.code() == Some(6), "{:?} {}{}", wrong.status, out(&wrong), err(&wrong));
        let writes = bed.cluster.audit().since(mark).await?.of(ADMIN).writes();
        ensure!(writes.is_empty(), "something was written: {writes}");
        let right = command(bed, &[], &["--values", &file(second.password())?, "--no-wait"]).output()?;
        ensure!(right.status.success(), "{}{}", out(&right), err(&right));
        for connection in ["vc1", "vc2"] {
            let there = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, connection).await?;
            ensure!(there != Value::Null, "{connection} is not there");
        }
        let looked = out(&right).lines().filter(|line| line.contains("is vCenter ")).count();
        ensure!(looked == 2, "{}", out(&right));
        Ok(())
    })
}
