// SPDX-License-Identifier: Apache-2.0
//! Clusters in which several things are odd at once, drawn by the seed: a change of a driver is carried out, and what is odd is named.

use super::{VDO, config, driver, join, ready, says_ready};
use crate::common::{Bed, GUEST, NS, PATIENCE, condition, sample};
use crate::fixture::INSTALLED;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, UNINITIALIZED, until};

/// What can be odd. None of it keeps the drivers from running on the other nodes.
#[derive(Debug, Clone, Copy)]
enum Odd {
    NotReady,
    Unreachable,
    Cordoned,
    Drained,
    OfOtherProvider,
    OfOtherProviderAndNotReady,
    TaintOfItsOwn,
    QuotaElsewhere,
    LimitsOfTheNamespace,
}

const ALL: [Odd; 9] = [
    Odd::NotReady,
    Odd::Unreachable,
    Odd::Cordoned,
    Odd::Drained,
    Odd::OfOtherProvider,
    Odd::OfOtherProviderAndNotReady,
    Odd::TaintOfItsOwn,
    Odd::QuotaElsewhere,
    Odd::LimitsOfTheNamespace,
];
/// Clusters of one run.
const DRAWS: usize = 2;
const CSI_NS: &str = "vmware-system-csi";

impl Odd {
    /// The node that must be named, and why.
    fn named(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::NotReady => Some((GUEST.0, "is not ready")),
            Self::Unreachable => Some((GUEST.0, "is unreachable")),
            Self::Cordoned => Some(("w-1", "is cordoned")),
            Self::Drained => Some(("w-2", "is cordoned")),
            Self::OfOtherProvider => Some(("m-1", "belongs to another provider (metal3://)")),
            Self::OfOtherProviderAndNotReady => Some(("m-2", "belongs to another provider (k3s://)")),
            Self::TaintOfItsOwn | Self::QuotaElsewhere | Self::LimitsOfTheNamespace => None,
        }
    }

    async fn put_up(self, bed: &Bed) -> Result<()> {
        let taint = |key: &str, effect: &str| json!({"key": key, "value": "true", "effect": effect});
        match self {
            Self::NotReady => {
                join(bed, GUEST.0, json!({"taints": [taint(UNINITIALIZED, "NoSchedule")]})).await?;
                says_ready(bed, GUEST.0, "False").await
            }
            Self::Unreachable => {
                let gone = taint("node.kubernetes.io/unreachable", "NoExecute");
                join(bed, GUEST.0, json!({"taints": [taint(UNINITIALIZED, "NoSchedule"), gone]})).await?;
                says_ready(bed, GUEST.0, "Unknown").await
            }
            Self::Cordoned => bed.merge("v1", "Node", "", "w-1", json!({"spec": {"unschedulable": true}})).await,
            Self::Drained => {
                bed.merge("v1", "Node", "", "w-2", json!({"spec": {"unschedulable": true}})).await?;
                for pod in bed
                    .list("v1", "Pod", "")
                    .await?
                    .iter()
                    .filter(|pod| pod["spec"]["nodeName"] == "w-2")
                {
                    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
                    bed.delete("v1", "Pod", text("namespace"), text("name")).await?;
                }
                Ok(())
            }
            Self::OfOtherProvider => {
                join(bed, "m-1", json!({"providerID": "metal3://ns/host/m-1"})).await?;
                says_ready(bed, "m-1", "True").await
            }
            Self::OfOtherProviderAndNotReady => {
                join(bed, "m-2", json!({"providerID": "k3s://m-2"})).await?;
                says_ready(bed, "m-2", "False").await
            }
            Self::TaintOfItsOwn => {
                let spec = json!({"spec": {"taints": [taint("example.com/database", "NoSchedule")]}});
                bed.merge("v1", "Node", "", "w-3", spec).await
            }
            Self::QuotaElsewhere => {
                let spec = json!({"hard": {"pods": "0"}});
                let metadata = json!({"name": "none", "namespace": "default"});
                bed.apply(&json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}))
                    .await
            }
            Self::LimitsOfTheNamespace => {
                let limits = json!([{"type": "Container", "defaultRequest": {"cpu": "10m"}, "default": {"memory": "1Gi"}}]);
                let metadata = json!({"name": "usual", "namespace": CSI_NS});
                bed.apply(&json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": limits}}))
                    .await
            }
        }
    }

    async fn take_down(self, bed: &Bed) -> Result<()> {
        match self {
            Self::NotReady | Self::Unreachable => bed.delete("v1", "Node", "", GUEST.0).await,
            Self::Cordoned => bed.merge("v1", "Node", "", "w-1", json!({"spec": {"unschedulable": null}})).await,
            Self::Drained => bed.merge("v1", "Node", "", "w-2", json!({"spec": {"unschedulable": null}})).await,
            Self::OfOtherProvider => bed.delete("v1", "Node", "", "m-1").await,
            Self::OfOtherProviderAndNotReady => bed.delete("v1", "Node", "", "m-2").await,
            Self::TaintOfItsOwn => bed.merge("v1", "Node", "", "w-3", json!({"spec": {"taints": null}})).await,
            Self::QuotaElsewhere => bed.delete("v1", "ResourceQuota", "default", "none").await,
            Self::LimitsOfTheNamespace => bed.delete("v1", "LimitRange", CSI_NS, "usual").await,
        }
    }
}

/// Waits until CSI runs in this version, is ready, and each of these nodes is counted apart for its reason, and no other node.
async fn until_changed(bed: &Bed, version: &str, expected: &[(&str, &str)]) -> Result<Value> {
    until(
        &format!("CSI {version} to be ready, and {expected:?} to be named"),
        PATIENCE,
        async || {
            let config = config(bed).await?;
            let apart = config["status"]["nodes"]["apart"].as_array().into_iter().flatten();
            let mut apart: Vec<(&str, &str)> = apart
                .map(|one| {
                    (
                        one["name"].as_str().unwrap_or_default(),
                        one["because"].as_str().unwrap_or_default(),
                    )
                })
                .collect();
            apart.sort_unstable();
            let is_new = driver(&config, "vsphere-csi")["running"] == version;
            if is_new && ready(&config) && apart == expected {
                return Ok(Probe::Ready(config));
            }
            Ok(Probe::not_yet(json!([
                apart,
                config["status"]["drivers"],
                condition(&config, "Ready"),
                condition(&config, "StorageReady")
            ])))
        },
    )
    .await
}

#[test]
#[ignore = "long"]
fn odd_clusters_that_are_drawn_hold_no_change_and_are_named() -> Result<()> {
    let draws = if sample::all_wanted() { 12 } else { DRAWS };
    INSTALLED.run(async |bed| {
        let newest = driver(&config(bed).await?, "vsphere-csi")["version"]
            .as_str()
            .context("a version")?
            .to_owned();
        // Nodes of other providers are there: without it the cloud provider deletes those that are not ready.
        let spec = |version: &str| {
            json!({"progressDeadline": "1m", "cloudProvider": {"keepNodes": true}, "storageProvider": {"version": version}})
        };
        bed.apply(&bed.config(spec(&newest))).await?;
        until_changed(bed, &newest, &[]).await?;
        for draw in 0..draws {
            let mut odd = sample::some(&format!("odd cluster {draw}"), &ALL, 4);
            // There is one machine for a node that joins.
            if odd.iter().any(|one| matches!(one, Odd::NotReady)) {
                odd.retain(|one| !matches!(one, Odd::Unreachable));
            }
            println!("odd cluster {draw}: {odd:?}");
            for one in &odd {
                one.put_up(bed).await?;
            }
            let mut expected: Vec<(&str, &str)> = odd.iter().filter_map(|one| one.named()).collect();
            expected.sort_unstable();
            until_changed(bed, &newest, &expected).await?;
            bed.apply(&bed.config(spec("3.7.3"))).await?;
            let found = until_changed(bed, "3.7.3", &expected).await?;
            ensure!(condition(&found, "RolledBack").is_null(), "{odd:?}: {}", found["status"]["conditions"]);
            let revisions = crate::rollback::history(bed)?;
            let (_, version, outcome) = revisions.last().context("a revision")?;
            ensure!((version.as_str(), outcome.as_str()) == ("3.7.3", "Deployed"), "{odd:?}: {revisions:?}");
            let (code, shown, err) = bed.vdoctl(&["status"])?;
            let silent = expected.iter().find(|(node, _)| !shown.contains(node));
            ensure!(code == 0 && silent.is_none(), "{odd:?}: {silent:?} is not named\n{shown}{err}");
            bed.apply(&bed.config(spec(&newest))).await?;
            until_changed(bed, &newest, &expected).await?;
            for one in &odd {
                one.take_down(bed).await?;
            }
            until_changed(bed, &newest, &[]).await?;
        }
        bed.apply(&bed.config(json!({}))).await?;
        let present = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        ensure!(condition(&present, "RolledBack").is_null(), "{}", present["status"]["conditions"]);
        Ok(())
    })
}
