// SPDX-License-Identifier: Apache-2.0
//! What vdoctl says when all is not well: no operator, a workload that is missing, a node without a machine, management that is paused.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NODES, NS, PATIENCE, condition, logged, now};
use crate::fixture::INSTALLED;
use anyhow::{Context as _, Result, ensure};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::process::Command;
use vdo_testbed::{Act, NodeOptions, Probe, Proxy, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const CSI: &str = "vmware-system-csi";
const CONTROLLER: &str = "vsphere-csi-controller";

/// What `vdoctl status` shows once it shows this.
async fn until_shown(bed: &Bed, code: i32, words: &[&str]) -> Result<String> {
    until(&format!("status to exit with {code} and to say {words:?}"), PATIENCE, async || {
        let (found, out, talk) = bed.vdoctl(&["status"])?;
        let all = format!("exit {found}\n{out}{talk}");
        Ok(if found == code && words.iter().all(|word| out.contains(word)) {
            println!("{all}");
            Probe::Ready(out)
        } else {
            Probe::not_yet(all)
        })
    })
    .await
}

fn ensure_says(text: &str, words: &[&str]) -> Result<()> {
    words.iter().try_for_each(|word| {
        ensure!(text.contains(word), "{word:?} is not in:\n{text}");
        Ok(())
    })
}

/// Pastes the command that this verb shows on a line of its own.
fn paste(bed: &Bed, verb: &str, begin: &str) -> Result<()> {
    let (_, shown, _) = bed.vdoctl(&[verb])?;
    let command = shown.lines().map(str::trim).find(|line| line.starts_with(begin));
    let words = command.and_then(shlex::split);
    let words = words.with_context(|| format!("{verb} shows no line {begin:?}:\n{shown}"))?;
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let (code, out, said) = bed.vdoctl(&words)?;
    ensure!(code == 0, "{words:?}: {code}\n{out}{said}");
    Ok(())
}

/// The Lease as an operator leaves it that ended three minutes ago.
async fn release_lease(bed: &Bed) -> Result<()> {
    let renewed = now() - SignedDuration::from_secs(185);
    let renewed = renewed.strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
    let spec = json!({"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": renewed});
    bed.merge(
        "coordination.k8s.io/v1",
        "Lease",
        "kube-system",
        "vdo-operator",
        json!({"spec": spec}),
    )
    .await
}

/// The status is then what a dead operator knew, whatever it says.
#[test]
fn status_and_doctor_without_operator_say_since_when_and_exit_with_1() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.kill_operator();
        release_lease(bed).await?;
        bed.delete("apps/v1", "Deployment", CSI, CONTROLLER).await?;
        let (code, out, _) = bed.vdoctl(&["status"])?;
        println!("{out}");
        ensure_says(
            &out,
            &[
                "no operator has run for 3m (Lease kube-system/vdo-operator was released",
                "the lines below show the last report of the operator",
                "LAST KNOWN",
                "vdoctl deploy",
            ],
        )?;
        ensure!(code == 1, "exit {code}");
        let (code, json, _) = bed.vdoctl(&["status", "-o", "json"])?;
        let json: Value = serde_json::from_str(&json)?;
        ensure!(code == 1 && json["config"]["silence"]["since"].is_string(), "{json}");

        let (code, out, talk) = bed.vdoctl(&["doctor"])?;
        println!("{out}{talk}");
        ensure_says(
            &out,
            &[
                "✗ OperatorActs",
                "vdoctl explain OperatorNotRunning",
                "✗ StorageReady",
                "Deployment vmware-system-csi/vsphere-csi-controller is missing",
            ],
        )?;
        ensure!(code == 1, "exit {code}");

        bed.start_operator().await?;
        until_shown(bed, 0, &["healthy"]).await?;
        Ok(())
    })
}

/// It counts as missing pods, and what was asked for is no fault.
#[test]
fn status_of_missing_controller_while_paused_names_it_and_exits_with_1() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.apply(&bed.config(json!({"managementState": "Paused"}))).await?;
        let shown = until_shown(bed, 0, &["VDO  paused", "Management is paused"]).await?;
        ensure!(!shown.contains('✗'), "{shown}");
        let (code, out, talk) = bed.vdoctl(&["doctor"])?;
        ensure_says(&out, &["! Managed", "management is paused"])?;
        ensure!(!out.contains("✗ Managed") && !out.contains("✗ Ready"), "exit {code}: {out}{talk}");

        bed.delete("apps/v1", "Deployment", CSI, CONTROLLER).await?;
        let shown = until_shown(
            bed,
            1,
            &[
                "✗ CSI 3.8.0: Deployment vmware-system-csi/vsphere-csi-controller is missing",
                "4/5",
                "degraded",
            ],
        )
        .await?;
        ensure_says(&shown, &["vdoctl explain WorkloadMissing", "Management is paused"])?;
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        let ready = condition(&config, "StorageReady");
        ensure!(
            ready["reason"] == "WorkloadMissing" && config["status"]["health"] == "Degraded",
            "{ready}"
        );

        paste(bed, "status", "vdoctl resume")?;
        until_shown(bed, 0, &["healthy"]).await?;
        Ok(())
    })
}

/// Nothing goes on by itself as long as the controller fits nowhere.
#[test]
fn status_with_no_eligible_node_asks_for_something_and_exits_with_1() -> Result<()> {
    INSTALLED.run(async |bed| {
        for (node, _) in NODES {
            bed.merge("v1", "Node", "", node, json!({"spec": {"unschedulable": true}})).await?;
        }
        bed.delete("apps/v1", "Deployment", CSI, CONTROLLER).await?;
        let shown = until_shown(bed, 1, &["✗", "NoEligibleNode", "Fix the problems marked ✗"]).await?;
        ensure!(!shown.contains("Nothing to do"), "{shown}");
        // A sentence has no columns, below which a terminal would go on with it.
        let (_, _, err) = bed.vdoctl(&["wait", "--timeout", "2s"])?;
        let said = err.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        println!("{said}");
        ensure!(said.contains("CSI 3.8.0") && !said.contains("  "), "{err}");
        for (node, _) in NODES {
            bed.merge("v1", "Node", "", node, json!({"spec": {"unschedulable": null}})).await?;
        }
        until_shown(bed, 0, &["healthy"]).await?;
        Ok(())
    })
}

/// A node that is not a virtual machine of the vCenter: the cloud provider waits for it for ever, and the status says what is wrong.
#[test]
fn status_of_node_without_machine_names_it_and_exits_with_1() -> Result<()> {
    INSTALLED.run(async |bed| {
        let begun = now();
        bed.cluster.add_node(NodeOptions::worker("w-77").uninitialized()).await?;
        let shown = until_shown(
            bed,
            1,
            &[
                "✗ vSphere connection vc1: 4 of 5 nodes are virtual machines in this vCenter; node w-77: no virtual machine",
                "(NodeNotFound)",
            ],
        )
        .await?;
        ensure_says(
            &shown,
            &["w-77 waits for providerID", "vdoctl doctor nodes", "vdoctl explain NodeNotFound"],
        )?;
        ensure!(!shown.contains("Nothing to do"), "{shown}");
        let connection = bed.get(VDO, "VsphereCloudConfig", NS, "vc1").await?;
        let checked = connection["status"]["probes"]["last"].as_str().unwrap_or_default();
        let checked: Timestamp = checked.parse()?;
        ensure!(
            checked >= begun - SignedDuration::from_secs(1),
            "the vCenter was last asked at {checked}"
        );
        bed.delete("v1", "Node", "", "w-77").await?;
        until_shown(bed, 0, &["healthy", "ok, checked"]).await?;
        Ok(())
    })
}

/// Who has put something right in a vCenter need not wait for the next look.
#[test]
fn connection_with_changed_annotation_is_asked_at_once() -> Result<()> {
    INSTALLED.run(async |bed| {
        let asked = async || -> Result<Timestamp> {
            let connection = bed.get(VDO, "VsphereCloudConfig", NS, "vc1").await?;
            Ok(connection["status"]["probes"]["last"].as_str().unwrap_or_default().parse()?)
        };
        let before = asked().await?;
        // Times are in whole seconds, so the first question may be in that of the one before.
        until("the vCenter to be asked", PATIENCE, async || {
            let annotate = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": now().to_string()}}});
            bed.merge(VDO, "VsphereCloudConfig", NS, "vc1", annotate).await?;
            let last = asked().await?;
            Ok(Probe::when(last > before, format!("it was asked at {last}")))
        })
        .await
    })
}

/// The user of the command lacks rights, and not the operator: nothing that was not seen passes or fails.
#[test]
fn doctor_of_user_with_few_rights_asks_for_them_and_judges_nothing() -> Result<()> {
    INSTALLED.run(async |bed| {
        let rules = json!([{"apiGroups": ["vdo.vmware.com"], "resources": ["vdoconfigs", "vspherecloudconfigs"], "verbs": ["get", "list"]}]);
        let subject = json!([{"kind": "ServiceAccount", "name": "reader", "namespace": NS}]);
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"});
        let of = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "reader", "namespace": NS}});
        const RBAC: &str = "rbac.authorization.k8s.io/v1";
        let (mut granted, mut bound) = (of(RBAC, "Role"), of(RBAC, "RoleBinding"));
        granted["rules"] = rules;
        (bound["subjects"], bound["roleRef"]) = (subject, role);
        for object in [of("v1", "ServiceAccount"), granted, bound] {
            bed.apply(&object).await?;
        }
        let kubeconfig = bed.cluster.service_account_kubeconfig(NS, "reader").await?;
        let output = Command::new(vdo_testbed::vdoctl())
            .env_clear()
            .env("VDO_KUBECONFIG", kubeconfig)
            .arg("doctor")
            .output()?;
        let out = String::from_utf8(output.stdout)?;
        println!("{out}{}", String::from_utf8_lossy(&output.stderr));
        ensure_says(
            &out,
            &[
                "nodes not visible",
                "? KubeletsExternal",
                "? Drivers",
                "? CredentialsFound",
                "? OperatorActs",
                "you lack the right to list Node",
                "you lack the right to list Secret",
            ],
        )?;
        ensure!(!out.contains("the operator may not") && !out.contains('✗'), "{out}");
        ensure!(output.status.code() == Some(4), "{:?}: {out}", output.status);
        Ok(())
    })
}

/// What follows from another fault is not reported as one of its own.
#[test]
fn status_of_unknown_pin_has_one_cross() -> Result<()> {
    INSTALLED.run(async |bed| {
        let pinned = json!({"cloudProvider": {}, "storageProvider": {"version": "3.9.9"}});
        bed.apply(&bed.config(pinned)).await?;
        let shown = until_shown(bed, 1, &["(UnknownVersion)"]).await?;
        // What an earlier test has done to the nodes is known to the connection for up to half a minute.
        let crosses = |text: &str| {
            text.lines()
                .filter(|line| line.starts_with("  ✗") && !line.contains("w-77"))
                .count()
        };
        ensure!(crosses(&shown) == 1, "{shown}");
        let (code, out, _) = bed.vdoctl(&["doctor"])?;
        println!("{out}");
        // The second one is about the next Kubernetes, which is another question.
        ensure!(
            code == 1 && crosses(&out) == 2 && out.contains("✗ Upgradeable"),
            "exit {code}: {out}"
        );
        paste(bed, "status", "vdoctl configure drivers --set storageProvider.version=null")?;
        until_shown(bed, 0, &["healthy"]).await?;

        // One that the matrix lists and that does not fit: the consequence is below the cause.
        let pinned = json!({"cloudProvider": {}, "storageProvider": {"version": "3.0.0"}});
        bed.apply(&bed.config(pinned)).await?;
        let shown = until_shown(
            bed,
            1,
            &[
                "(IncompatiblePin)",
                "follows from the problem above: CSI 3.0.0",
                "vdoctl explain IncompatiblePin",
            ],
        )
        .await?;
        ensure!(crosses(&shown) == 1, "{shown}");
        paste(bed, "status", "vdoctl configure drivers --set storageProvider.version=null")?;
        until_shown(bed, 0, &["healthy"]).await?;
        bed.apply(&bed.config(json!({}))).await?;
        until_shown(bed, 0, &["healthy"]).await?;
        Ok(())
    })
}

#[test]
fn doctor_with_plan_that_waits_for_approval_reports_it() -> Result<()> {
    INSTALLED.run(async |bed| {
        let change = json!({"approval": "Manual", "cloudProvider": {}, "storageProvider": {"clusterDistribution": "Upstream"}});
        bed.apply(&bed.config(change)).await?;
        bed.until_reason("Ready", "ApprovalRequired").await?;
        let (code, out, _) = bed.vdoctl(&["doctor"])?;
        ensure_says(&out, &["✗ Approved", "waits for approval", "vdoctl approve"])?;
        ensure!(code == 1, "exit {code}: {out}");
        paste(bed, "status", "vdoctl approve ")?;
        bed.until_ready().await?;
        bed.apply(&bed.config(json!({}))).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// A restart would bring neither back.
#[test]
#[ignore = "long"]
fn liveness_of_operator_without_api_server_and_vcenter_holds() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.kill_operator();
        let proxy = Proxy::start(&bed.cluster).await?;
        bed.lead_through(&proxy)?;
        bed.start_operator().await?;
        bed.until_ready().await?;
        bed.vcenter.stop();
        proxy.hold(|_| true);
        proxy.judge(|_| Act::StopBefore);
        logged(&bed.operator_log(), "this operator has lost the Lease").await?;
        let answer = bed.fetch("/healthz").await?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        proxy.resume();
        proxy.release();
        bed.vcenter.resume().await?;
        bed.kill_operator();
        bed.lead_directly();
        bed.start_operator().await?;
        bed.until_condition("VsphereCloudConfig", "vc1", "Ready", "Healthy").await?;
        bed.until_reason("ConnectionsReady", "Healthy").await?;
        Ok(())
    })
}
