// SPDX-License-Identifier: Apache-2.0
//! What `deploy` would refuse, `doctor --pre` fails with the same words.

use super::{Deploy, command, err, out};
use crate::common::{Bed, NODES, PATIENCE};
use crate::fixture::BARE;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::process::Command;
use vdo_testbed::{Probe, until};

/// Something in the cluster that is in the way of an installation.
struct Situation {
    /// What is applied.
    objects: Vec<Value>,
    /// The check that fails, and words of its message and its remedy.
    check: &'static str,
    says: &'static [&'static str],
}

/// A cloud provider as a tool installed it under the usual name, with labels of its own.
fn other_selector() -> Value {
    let labels = json!({"app": "own-labels"});
    let container = json!({"name": "c", "image": "registry.example.com/cloud-pv-vsphere/cloud-provider-vsphere:v1.34.0", "args": ["--cloud-provider=vsphere"]});
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "vsphere-cloud-controller-manager", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}})
}

/// A binding that cannot be changed to ours.
fn other_role() -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "vsphere-csi-controller-binding"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"}})
}

/// A policy that no object of the storage driver's class meets.
fn refused_class() -> Vec<Value> {
    let api = "admissionregistration.k8s.io/v1";
    let rule =
        json!({"apiGroups": ["storage.k8s.io"], "apiVersions": ["*"], "resources": ["csidrivers"], "operations": ["CREATE", "UPDATE"]});
    vec![
        json!({"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no-csi"},
            "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false", "message": "ask the storage team first"}]}}),
        json!({"apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "no-csi"},
            "spec": {"policyName": "no-csi", "validationActions": ["Deny"]}}),
    ]
}

fn situations() -> Vec<Situation> {
    vec![
        Situation {
            objects: vec![other_selector()],
            check: "ObjectsAccepted",
            says: &[
                ".spec.selector",
                "kubectl delete daemonset -n kube-system vsphere-cloud-controller-manager",
            ],
        },
        Situation {
            objects: refused_class(),
            check: "ObjectsAccepted",
            says: &["CSIDriver csi.vsphere.vmware.com", "ask the storage team first"],
        },
        Situation {
            objects: vec![other_role()],
            check: "DeploymentAccepted",
            says: &["kubectl delete clusterrolebinding vsphere-csi-controller-binding"],
        },
    ]
}

/// The checks of `doctor --pre` with the flags of `deploy`, and its exit code.
fn before(bed: &Bed, deploy: &Deploy) -> Result<(Option<i32>, Vec<Value>)> {
    let mut command = Command::new(vdo_testbed::vdoctl());
    command.args(["doctor", "--pre", "-o", "json"]).args(&deploy.args);
    let output = command.env("VDO_KUBECONFIG", bed.cluster.kubeconfig()).output()?;
    let view: Value = serde_json::from_str(&out(&output)).with_context(|| err(&output))?;
    let subjects = view["subjects"].as_array().context("subjects")?;
    let checks = subjects
        .iter()
        .flat_map(|subject| subject["checks"].as_array().into_iter().flatten());
    Ok((output.status.code(), checks.cloned().collect()))
}

/// Both verbs refuse, and say this.
fn both_refuse(bed: &Bed, deploy: &Deploy, check: &str, says: &[&str]) -> Result<()> {
    let (code, checks) = before(bed, deploy)?;
    let found = checks.iter().find(|found| found["check"] == check && found["status"] == "False");
    let found = found.with_context(|| format!("{check} did not fail: {checks:#?}"))?;
    ensure!(code == Some(1), "{code:?} {checks:#?}");
    let refused = deploy.run(bed, &["--dry-run=server"])?;
    ensure!(matches!(refused.status.code(), Some(1 | 4)), "{} {}", out(&refused), err(&refused));
    let refused = format!("{}{}", out(&refused), err(&refused));
    let reported = format!("{} {}", found["message"], found["remedy"]);
    for part in says {
        ensure!(reported.contains(part), "doctor --pre: {part:?} is not in {reported}");
        ensure!(refused.contains(part), "deploy: {part:?} is not in {refused}");
    }
    Ok(())
}

#[test]
#[ignore = "long"]
fn deploy_and_the_checks_before_it_refuse_the_same() -> Result<()> {
    BARE.run(async |bed| {
        let deploy = Deploy::to(bed)?;
        for situation in situations() {
            for object in &situation.objects {
                bed.apply(object).await?;
            }
            // A policy acts a moment after it was made.
            until("doctor --pre to see it", PATIENCE, async || {
                let (_, checks) = before(bed, &deploy)?;
                let fails = |found: &&Value| found["check"] == situation.check && found["status"] == "False";
                Ok(Probe::when(checks.iter().any(|found| fails(&found)), format!("{checks:#?}")))
            })
            .await?;
            both_refuse(bed, &deploy, situation.check, situation.says)?;
            for object in &situation.objects {
                let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
                let (kind, name) = (text("/kind"), text("/metadata/name"));
                bed.delete(text("/apiVersion"), kind, text("/metadata/namespace"), name).await?;
            }
        }
        until("doctor --pre to pass without them", PATIENCE, async || {
            let (code, checks) = before(bed, &deploy)?;
            Ok(Probe::when(code == Some(0), format!("{checks:#?}")))
        })
        .await
    })
}

/// A taint that keeps the operator's own pod away is named, and a flag lets the pod tolerate it.
#[test]
#[ignore = "long"]
fn deploy_to_control_planes_with_a_taint_of_their_own_names_it_and_tolerates_it() -> Result<()> {
    BARE.run(async |bed| {
        let deploy = Deploy::to(bed)?;
        let control_planes = NODES.iter().map(|(name, _)| *name).filter(|name| name.starts_with("cp"));
        for name in control_planes.clone() {
            let taints = json!([
                {"key": "node-role.kubernetes.io/etcd", "effect": "NoExecute"},
                {"key": "dedicated", "value": "infra", "effect": "NoSchedule"},
            ]);
            bed.merge("v1", "Node", "", name, json!({"spec": {"taints": taints}})).await?;
        }
        let says = ["dedicated=infra:NoSchedule is not tolerated", "--toleration"];
        both_refuse(bed, &deploy, "OperatorPlaced", &says)?;
        let tolerant = [
            &deploy.args[..],
            &["--toleration".to_owned(), "dedicated=infra:NoSchedule".to_owned()],
        ]
        .concat();
        let output = command(bed, &tolerant, &["--dry-run=server"]).output()?;
        let text = format!("{}{}", out(&output), err(&output));
        ensure!(!text.contains("vdo-operator can be scheduled on none"), "{text}");
        for name in control_planes {
            bed.merge("v1", "Node", "", name, json!({"spec": {"taints": null}})).await?;
        }
        Ok(())
    })
}

/// The CSI driver refuses such a user when it starts.
#[test]
#[ignore = "long"]
fn deploy_with_a_user_without_domain_is_refused_before_anything_is_written() -> Result<()> {
    BARE.run(async |bed| {
        let mut deploy = Deploy::to(bed)?;
        let bare = bed.vcenter.user().split('@').next().context("a name")?.to_owned();
        deploy.args = deploy.without(&["--user"]);
        deploy.args.extend(["--user".to_owned(), bare]);
        both_refuse(bed, &deploy, "DriversFit", &["user@domain"])
    })
}
