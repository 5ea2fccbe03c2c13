// SPDX-License-Identifier: Apache-2.0
//! `--server-dry-run=false`: an installation sends half as many requests, and a refusal shows when the object is written.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{NS, condition};
use crate::dry_run::connect;
use crate::fixture::{INSTALLED, OPERATOR, policy, without_policy};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

const FLAGS: &[(&str, &str)] = &[("server-dry-run", "false")];

/// The nodes are initialised already, so that the installation is undisturbed.
#[test]
fn dry_run_disabled_installation_sends_half_the_requests() -> Result<()> {
    INSTALLED.flags(FLAGS).run(async |bed| {
        bed.uninstall().await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.apply(&bed.config(json!({}))).await?;
        let config = bed.until_ready().await?;
        let objects = usize::try_from(config["status"]["inventory"]["objects"].as_i64().context("inventory")?)?;
        let requests = bed.operator_requests(mark).await?;
        let tried = requests.clone().only(vdo_testbed::Entry::tries);
        ensure!(tried.is_empty(), "dry runs were made:\n{tried}");
        println!("without dry runs: {} requests for {objects} objects", requests.len());
        // How often progress is reported depends on the time that it takes. What else there is: the finalizer and three of the inventory,
        // as the question about the cluster id costs a round of its own.
        let lasting = requests.only(|e| e.subresource != "status" && e.resource != "events");
        ensure!(
            lasting.len() <= objects + 5,
            "{} requests for {objects} objects:\n{lasting}",
            lasting.len()
        );
        Ok(())
    })
}

/// A policy is against configuration of the CSI driver: the cloud provider is installed anyway, and of the CSI driver nothing that
/// needs what was refused.
#[test]
#[ignore = "long"]
fn dry_run_disabled_refused_configuration_stops_its_workloads_only() -> Result<()> {
    OPERATOR.flags(FLAGS).run(async |bed| {
        connect(bed).await?;
        let metadata = json!({"name": "probe", "namespace": NS, "labels": {"vdo.vmware.com/driver": "vsphere-csi"}});
        let probe = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        policy(bed, &probe, "no storage here").await?;
        bed.apply(&bed.config(json!({}))).await?;
        let refused = bed.until_reason("Ready", "AdmissionDenied").await?;
        let message = refused["message"].as_str().unwrap_or_default();
        ensure!(
            message.contains("internal-feature-states.csi.vsphere.vmware.com") && message.contains("no storage here"),
            "{message}"
        );
        bed.until_reason("CloudProviderReady", "Healthy").await?;
        let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        assert_eq!(
            condition(&config, "StorageReady")["status"],
            "False",
            "{}",
            config["status"]["conditions"]
        );
        assert_eq!(condition(&config, "Ready")["reason"], "AdmissionDenied");
        let started: Vec<String> = bed
            .owned()
            .await?
            .iter()
            .filter(|o| o["metadata"]["labels"]["vdo.vmware.com/driver"] == "vsphere-csi")
            .map(crate::common::name)
            .collect();
        println!("with its configuration refused, of the CSI driver there is {started:?}");
        let depends = |name: &&String| ["Deployment", "DaemonSet"].iter().any(|kind| name.starts_with(kind));
        ensure!(
            started.iter().find(depends).is_none(),
            "started without its configuration: {started:?}"
        );
        let map = bed.state().await?;
        let objects: Vec<Value> = serde_json::from_str(map["data"]["objects"].as_str().context("objects")?)?;
        ensure!(
            objects.iter().any(|o| o["uid"].is_null()),
            "the inventory is narrowed before everything is there"
        );
        without_policy(bed).await?;
        bed.until_ready().await?;
        Ok(())
    })
}
