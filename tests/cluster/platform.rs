// SPDX-License-Identifier: Apache-2.0
//! The platform changes under a running operator: the API server comes back in another version, the vCenter does, or both; and what the
//! specification and the matrix say of it changes in between.
//!
//! Each table is one life of one cluster, a transition in each line. Before a change of the platform `vdoctl matrix resolve` and the
//! condition `Upgradeable` are asked what will happen, and afterwards they are held to it.

mod life;
mod matrix;

use crate::fixture::alone;
use anyhow::Result;
use life::Change::{Kubernetes, Spec, Unseen, Vcenter, Withdrawn};
use life::{Life, Servers, Step};
use serde_json::json;

/// `step(changes, "CPI CSI reason of Ready")`.
fn step<const N: usize>(changes: [life::Change; N], expected: &'static str) -> Step {
    Step {
        changes: changes.into(),
        expected,
    }
}

fn policy(policy: &str) -> life::Change {
    Spec(json!({"updatePolicy": policy}))
}

/// The CPI follows each minor; the CSI driver changes when it must, or when a newer version is asked for and the vCenter allows it.
#[test]
#[ignore = "long"]
fn platform_minor_after_minor_is_followed_as_predicted() -> Result<()> {
    let pin = |version: Option<&str>| Spec(json!({"cloudProvider": {"version": version}}));
    alone(async || {
        let mut life = Life::begin(Servers::Restarted, "v1.34.4", "7.0.3", "1.34.0 3.6.3 Healthy").await?;
        life.live(&[
            step([Vcenter("8.0.0")], "1.34.0 3.6.3 Healthy"),
            step([policy("Latest")], "1.34.0 3.7.2 Healthy"),
            step([Vcenter("8.0.3")], "1.34.0 3.7.3 Healthy"),
            step([Withdrawn(&["3.7.3"])], "1.34.0 3.7.2 Healthy"),
            step([Withdrawn(&[])], "1.34.0 3.7.3 Healthy"),
            step([policy("Disabled")], "1.34.0 3.7.3 Healthy"),
            step([Kubernetes("v1.35.0")], "1.34.0 3.7.3 Healthy"),
            step([Withdrawn(&["3.7.3"])], "1.34.0 3.7.3 Healthy"),
            step([policy("Compatible")], "1.35.1 3.7.2 Healthy"),
            step([Withdrawn(&[]), Vcenter("9.0.0")], "1.35.1 3.7.2 Healthy"),
            step([pin(Some("1.35.0"))], "1.35.0 3.7.2 Healthy"),
            step([Kubernetes("v1.36.0")], "1.35.0 3.7.2 IncompatiblePin"),
            step([pin(None)], "1.36.0 3.7.2 NoCompatibleVersion"),
            step([Kubernetes("v1.34.4")], "1.34.0 3.7.2 Healthy"),
        ])
        .await
    })
}

/// Minors are skipped, the platform goes back, and a driver takes its steps through versions that fit on the way.
#[test]
#[ignore = "long"]
fn platform_that_skips_minors_or_goes_back_is_followed_as_predicted() -> Result<()> {
    let csi = |version: Option<&str>, force: bool| Spec(json!({"storageProvider": {"version": version, "allowIncompatible": force}}));
    alone(async || {
        let mut life = Life::begin(Servers::Balanced, "v1.30.0", "8.0.3", "1.30.2 3.3.1 Healthy").await?;
        life.live(&[
            step([Kubernetes("v1.31.0")], "1.31.1 3.5.1 Healthy"),
            step([Kubernetes("v1.32.0")], "1.32.3 3.5.1 Healthy"),
            step([Kubernetes("v1.33.0")], "1.33.1 3.5.1 Healthy"),
            step([policy("Latest")], "1.33.1 3.6.3,3.7.3 Healthy"),
            step([csi(Some("3.5.1"), false)], "1.33.1 3.5.1 Healthy"),
            step([Kubernetes("v1.34.4")], "1.34.0 3.5.1 IncompatiblePin"),
            step([csi(Some("3.5.1"), true)], "1.34.0 3.5.1 Healthy"),
            step([csi(None, false)], "1.34.0 3.6.3,3.7.3 Healthy"),
            step([policy("Disabled")], "1.34.0 3.7.3 Healthy"),
            step([Kubernetes("v1.36.0"), Vcenter("7.0.3")], "1.34.0 3.7.3 Healthy"),
            step([policy("Compatible")], "1.36.0 3.7.3 NoCompatibleVersion"),
            step([Vcenter("9.0.0")], "1.36.0 3.7.3 NoCompatibleVersion"),
            step([Kubernetes("v1.33.0"), Vcenter("7.0.3")], "1.33.1 3.6.3 Healthy"),
            step([Vcenter("8.0.0")], "1.33.1 3.6.3 Healthy"),
            step([policy("Latest")], "1.33.1 3.7.2 Healthy"),
            step([Vcenter("8.0.3")], "1.33.1 3.7.3 Healthy"),
            step([Unseen("v1.35.0")], "1.35.1 3.7.3 Healthy"),
        ])
        .await
    })
}
