// SPDX-License-Identifier: Apache-2.0
//! What is refused, each before anything is written.

use super::{ADMIN, Deploy, command, err, out};
use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::BARE;
use crate::foreign_driver::{csi_workload, workload};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::process::Output;
use vdo_testbed::{Probe, until};

/// A way to call it, and what it is answered with.
struct Case {
    what: &'static str,
    output: Output,
    code: i32,
    says: Vec<String>,
}

fn ensure_refused(cases: Vec<Case>) -> Result<()> {
    for Case { what, output, code, says } in cases {
        let text = format!("{}{}", out(&output), err(&output));
        ensure!(output.status.code() == Some(code), "{what}: {:?} {text}", output.status);
        for part in says {
            ensure!(text.contains(&part), "{what}: {part:?} is not in {text}");
        }
    }
    Ok(())
}

/// A user who may read everything and create the namespaces.
async fn reader(bed: &Bed) -> Result<()> {
    let rbac = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": "reader"}, "rules": [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create", "patch"]}]});
    let binding = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "reader"}]});
    bed.apply(&role).await?;
    bed.apply(&binding).await
}

#[test]
#[ignore = "long"]
fn deploy_into_empty_cluster_that_cannot_succeed_writes_nothing() -> Result<()> {
    BARE.run(async |bed| in_an_empty_cluster(bed, &Deploy::to(bed)?).await)
}

#[test]
fn deploy_beside_a_driver_or_operator_of_others_is_refused() -> Result<()> {
    BARE.run(async |bed| beside_others(bed, &Deploy::to(bed)?).await)
}

async fn in_an_empty_cluster(bed: &Bed, deploy: &Deploy) -> Result<()> {
    reader(bed).await?;
    let mark = bed.cluster.audit().mark().await?;
    let run = |args: Vec<String>, more: &[&str]| command(bed, &args, more).output();
    let open = deploy.file("open", bed.vcenter.password(), 0o644)?.display().to_string();
    let wrong = deploy.file("wrong", "wrong", 0o600)?.display().to_string();
    let secret = deploy
        .file("secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", 0o644)?
        .display()
        .to_string();
    let field = deploy.file(
        "field.yaml",
        "apiVersion: vdo.vmware.com/v1alpha1\nkind: VDOConfig\nmetadata: {name: vdo}\nspec: {storageProvidr: {}}\n",
        0o600,
    )?;
    let field = field.display().to_string();
    let elsewhere = deploy.file(
        "elsewhere.yaml",
        "apiVersion: vdo.vmware.com/v1alpha1\nkind: VDOConfig\nmetadata: {name: vdo, namespace: default}\n",
        0o600,
    )?;
    let elsewhere = elsewhere.display().to_string();
    let volume = bed.vcenter.register_volume("copied", "pvc-foreign").await?;
    let copied = |annotations: Value| -> Result<String> {
        let mut config = bed.config(json!({"storageProvider": {"clusterId": "copied"}}));
        config["metadata"]["annotations"] = annotations;
        let objects = [bed.secret(bed.vcenter.password()), bed.connection("vc1"), config];
        let text = objects.map(|object| object.to_string()).join("\n---\n");
        Ok(deploy.file("copied.yaml", &text, 0o600)?.display().to_string())
    };
    let taken_over = copied(json!({"vdo.vmware.com/take-over-cluster-id": "copied"}))?;
    let taken_over = run(vec![], &["--values", &taken_over, "--dry-run=client"])?;
    ensure!(taken_over.status.success(), "{}", err(&taken_over));
    let copied = copied(json!({}))?;
    let case = |what, output: std::io::Result<Output>, code, says: &[&str]| -> Result<Case> {
        Ok(Case {
            what,
            output: output?,
            code,
            says: says.iter().map(|part| (*part).to_owned()).collect(),
        })
    };
    let thumbprint = format!("--thumbprint {}", bed.vcenter.thumbprint_sha256());
    ensure_refused(vec![
        case(
            "cluster id of another cluster",
            run(vec![], &["--values", &copied]),
            1,
            &[
                "ClusterIdAvailable",
                "1 volume is registered",
                "pvc-foreign",
                "spec.storageProvider.clusterId",
                "nothing was written",
            ],
        )?,
        case(
            "nothing given",
            run(vec![], &[]),
            2,
            &["--vcenter HOST", "--user NAME", "--password-file FILE", "--values FILE"],
        )?,
        case(
            "no password",
            run(deploy.without(&["--password-file"]), &[]),
            2,
            &["no terminal to ask for it", "--password-file"],
        )?,
        case(
            "unknown certificate",
            run(deploy.without(&["--thumbprint"]), &[]),
            6,
            &[&thumbprint, "--ca-file"],
        )?,
        case(
            "other certificate",
            run(deploy.without(&["--thumbprint"]), &["--thumbprint", &("AB:".repeat(31) + "AB")]),
            6,
            &[&thumbprint, "nothing was written"],
        )?,
        case(
            "readable password",
            run(deploy.without(&["--password-file"]), &["--password-file", &open]),
            4,
            &["other users of this machine can read", "chmod 600"],
        )?,
        case(
            "wrong password",
            run(deploy.without(&["--password-file"]), &["--password-file", &wrong]),
            6,
            &[
                "does not accept the user name or the password",
                "Run the command again with the right user name and password",
                "nothing was written",
            ],
        )?,
        case(
            "wrong datacenter",
            deploy.run(bed, &["--datacenter", "DC9"]).map_err(std::io::Error::other),
            1,
            &["DC9", "nothing was written"],
        )?,
        case("readable values", run(vec![], &["--values", &secret]), 4, &["chmod 600"])?,
        case(
            "unknown field",
            run(vec![], &["--values", &field]),
            2,
            &["there is no field spec.storageProvidr"],
        )?,
        case(
            "other namespace",
            run(vec![], &["--values", &elsewhere]),
            2,
            &["is not in the namespace of the operator"],
        )?,
        case(
            "missing rights",
            run(deploy.args.clone(), &["--as", "someone"]),
            4,
            &["you lack the right to"],
        )?,
        case(
            "missing rights to write",
            run(deploy.args.clone(), &["--as", "reader"]),
            4,
            &[
                "the API server would refuse",
                "nothing was written",
                "customresourcedefinitions",
                "clusterrolebindings",
                "deployments",
                "vdoconfigs",
            ],
        )?,
    ])?;
    let writes = bed.cluster.audit().since(mark).await?.of(ADMIN).writes();
    ensure!(writes.is_empty(), "something was written: {writes:?}");
    bed.vcenter.delete_volume(&volume).await
}

pub(super) async fn in_an_installed_cluster(bed: &mut Bed, deploy: &Deploy) -> Result<()> {
    let operator = async |bed: &Bed, change: Value| bed.merge("apps/v1", "Deployment", NS, "vdo-operator", change).await;
    let case = |what, output: Result<Output>, code, says: &[&str]| -> Result<Case> {
        Ok(Case {
            what,
            output: output?,
            code,
            says: says.iter().map(|part| (*part).to_owned()).collect(),
        })
    };
    let mark = bed.cluster.audit().mark().await?;

    let mut elsewhere = deploy.without(&["--vcenter"]);
    elsewhere.extend(["--vcenter".into(), "vc2.example.com".into()]);
    let output = command(bed, &elsewhere, &[]).output()?;
    ensure_refused(vec![case(
        "another vCenter",
        Ok(output),
        4,
        &["uses vCenter 127.0.0.1, not vc2.example.com", "--values"],
    )?])?;

    // Of a field that another verb has written an apply does not take away.
    let print = bed.vcenter.thumbprint_sha256().to_lowercase();
    let trust = json!({"spec": {"thumbprint": print}});
    bed.merge("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1", trust).await?;
    let authority = deploy.file("authority.pem", bed.vcenter.ca_pem(), 0o600)?.display().to_string();
    let other_trust = command(bed, &deploy.without(&["--thumbprint"]), &["--ca-file", &authority]).output()?;
    ensure_refused(vec![case(
        "another way of trust",
        Ok(other_trust),
        4,
        &[
            "vSphere connection vc1 has a thumbprint and cannot also have a CA bundle",
            "vdoctl configure connection vc1 --ca-file FILE",
            "nothing was written",
        ],
    )?])?;

    operator(bed, json!({"metadata": {"labels": {"app.kubernetes.io/version": "99.0.0"}}})).await?;
    ensure_refused(vec![
        case(
            "newer operator",
            deploy.run(bed, &[]),
            4,
            &[
                "the operator in the cluster has version 99.0.0, which is newer than this vdoctl",
                "--allow-downgrade",
            ],
        )?,
        case(
            "allowed",
            deploy.run(bed, &["--allow-downgrade", "--dry-run", "server"]),
            0,
            &["replaced by the older"],
        )?,
    ])?;
    operator(
        bed,
        json!({"metadata": {"labels": {"app.kubernetes.io/version": null, "app.kubernetes.io/managed-by": "Helm"}}}),
    )
    .await?;
    ensure_refused(vec![case(
        "Helm",
        deploy.run(bed, &[]),
        4,
        &["was installed by Helm", "helm upgrade"],
    )?])?;
    operator(bed, json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}})).await?;

    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "vdoctl", "namespace": "kube-system"},
        "spec": {"holderIdentity": "another", "leaseDurationSeconds": 3600},
    });
    bed.apply(&lease).await?;
    ensure_refused(vec![case(
        "another vdoctl",
        deploy.run(bed, &["--update-policy", "Latest"]),
        4,
        &["another vdoctl has been writing", "Nothing was written"],
    )?])?;
    bed.delete("coordination.k8s.io/v1", "Lease", "kube-system", "vdoctl").await?;

    let writes = bed.cluster.audit().since(mark).await?.of(ADMIN).writes();
    // One change of the connection, three of the Deployment and two of the Lease are the test's own.
    ensure!(writes.len() == 6, "something was written: {writes:?}");
    Ok(())
}

/// A driver and an operator of others, and a namespace on its way out.
async fn beside_others(bed: &Bed, deploy: &Deploy) -> Result<()> {
    let case = |what, output: Result<Output>, says: &[&str]| -> Result<Case> {
        Ok(Case {
            what,
            output: output?,
            code: 4,
            says: says.iter().map(|part| (*part).to_owned()).collect(),
        })
    };
    bed.apply(&csi_workload("Deployment", "kube-system", "vsphere-csi-controller"))
        .await?;
    let output = deploy.run(bed, &[]);
    bed.delete("apps/v1", "Deployment", "kube-system", "vsphere-csi-controller").await?;
    let mut foreign = case(
        "a driver of another",
        output,
        &["kube-system/vsphere-csi-controller", "nothing was written"],
    )?;
    foreign.code = 1;
    ensure_refused(vec![foreign])?;

    bed.apply(&workload("Deployment", "default", "vdo-operator")).await?;
    let output = deploy.run(bed, &[]);
    bed.delete("apps/v1", "Deployment", "default", "vdo-operator").await?;
    ensure_refused(vec![case(
        "another operator",
        output,
        &["default/vdo-operator is another operator", "vdoctl delete -n default"],
    )?])?;

    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}});
    let held =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "namespace": NS, "finalizers": ["example.com/held"]}});
    bed.apply(&namespace).await?;
    bed.apply(&held).await?;
    bed.delete("v1", "Namespace", "", NS).await?;
    let output = deploy.run(bed, &[]);
    bed.merge("v1", "ConfigMap", NS, "held", json!({"metadata": {"finalizers": null}}))
        .await?;
    ensure_refused(vec![case(
        "namespace that is being deleted",
        output,
        &["is being deleted", "vdoctl status"],
    )?])?;
    until("the namespace to be gone", PATIENCE, async || {
        let left = bed.get("v1", "Namespace", "", NS).await?;
        Ok(Probe::when(left == Value::Null, "it is there"))
    })
    .await
}
