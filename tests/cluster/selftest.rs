// SPDX-License-Identifier: Apache-2.0
//! `vdoctl selftest` where it cannot begin, and the objects that it would make. Whole runs are in `real_csi`.

use crate::common::Bed;
use crate::fixture::INSTALLED;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const USER: &str = "selftester";
const CLASS: &str = "tested";

async fn class(bed: &Bed, mode: &str) -> Result<()> {
    bed.apply(
        &json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": CLASS},
        "provisioner": "csi.vsphere.vmware.com", "volumeBindingMode": mode, "allowVolumeExpansion": true}),
    )
    .await
}

async fn without_class(bed: &Bed) -> Result<()> {
    bed.delete("storage.k8s.io/v1", "StorageClass", "", CLASS).await
}

async fn may(bed: &Bed, rules: Value) -> Result<()> {
    let meta = json!({"name": USER});
    bed.apply(&json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": meta, "rules": rules}))
        .await?;
    bed.apply(&json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": USER},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}]}))
        .await
}

#[test]
fn selftest_refuses_a_namespace_that_others_made() -> Result<()> {
    INSTALLED.run(async |bed| {
        class(bed, "Immediate").await?;
        let (code, out, err) = bed.vdoctl(&["selftest", "--storage-class", CLASS, "--test-namespace", "default"])?;
        ensure!(
            code == 4 && err.contains("namespace default exists and does not belong to a selftest"),
            "{code}\n{out}{err}"
        );
        ensure!(err.contains("--test-namespace NAME"), "{err}");
        without_class(bed).await
    })
}

#[test]
#[ignore = "long"]
fn selftest_names_a_class_that_does_not_exist() -> Result<()> {
    INSTALLED.run(async |bed| {
        let (code, out, err) = bed.vdoctl(&["selftest", "--storage-class", "gone"])?;
        ensure!(code == 3 && err.contains("StorageClass gone does not exist"), "{code}\n{out}{err}");
        let (code, out, err) = bed.vdoctl(&["selftest"])?;
        ensure!(code == 3 && err.contains("--storage-class NAME"), "{code}\n{out}{err}");
        Ok(())
    })
}

/// The right that is missing is named, and nothing is made before all are there.
#[test]
#[ignore = "long"]
fn selftest_names_the_right_that_its_user_lacks() -> Result<()> {
    INSTALLED.run(async |bed| {
        class(bed, "Immediate").await?;
        let reads = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]});
        let namespaces =
            json!({"apiGroups": [""], "resources": ["namespaces", "persistentvolumes"], "verbs": ["create", "patch", "delete"]});
        let claims = json!({"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["create", "patch"]});
        let cases = [
            (json!([]), "storageclasses"),
            (json!([reads]), "namespaces"),
            (json!([reads, namespaces]), "persistentvolumeclaims"),
            (json!([reads, namespaces, claims]), "pods"),
        ];
        for (rules, lacking) in cases {
            may(bed, rules).await?;
            let (code, out, err) = bed.vdoctl(&["selftest", "--storage-class", CLASS, "--as", USER])?;
            ensure!(
                code == 4 && err.contains("Ask for a role with this rule") && err.contains(lacking),
                "{lacking}: {code}\n{out}{err}"
            );
            ensure!(bed.get("v1", "Namespace", "", "vdo-selftest").await?.is_null(), "{lacking}");
        }
        for kind in ["ClusterRole", "ClusterRoleBinding"] {
            bed.delete(RBAC, kind, "", USER).await?;
        }
        without_class(bed).await
    })
}

/// The API server accepts the objects of a dry run as they are printed: Pod Security restricted has no objection to the pods, which have the
/// image of the driver.
#[test]
fn selftest_shows_objects_that_pod_security_accepts() -> Result<()> {
    INSTALLED.run(async |bed| {
        class(bed, "Immediate").await?;
        let (code, out, err) = bed.vdoctl(&["selftest", "--storage-class", CLASS, "--dry-run", "--test-namespace", "shown"])?;
        ensure!(code == 0, "{code}\n{out}{err}");
        ensure!(
            bed.get("v1", "Namespace", "", "shown").await?.is_null(),
            "a dry run has made its namespace"
        );
        let objects = vdo_api::yaml::load_all(&out)?;
        let kinds: Vec<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
        ensure!(kinds == ["Namespace", "PersistentVolumeClaim", "Pod", "Pod"], "{kinds:?}");
        let plugin = bed.get("apps/v1", "DaemonSet", "vmware-system-csi", "vsphere-csi-node").await?;
        ensure!(
            plugin
                .to_string()
                .contains(&objects[2]["spec"]["containers"][0]["image"].to_string()),
            "{out}"
        );
        for object in &objects {
            // The account of a namespace is made a moment later; the pods do not wait for it.
            let mut object = object.clone();
            if object["kind"] == "Pod" {
                object["spec"]["nodeSelector"] = json!({"no": "node"});
            }
            if object["kind"] == "Namespace" {
                bed.apply(&object).await?;
                bed.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "shown"}}))
                    .await?;
                continue;
            }
            bed.apply(&object).await?;
        }
        let mut privileged = objects[2].clone();
        privileged["metadata"]["name"] = "privileged".into();
        privileged["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
        let refused = bed.apply(&privileged).await;
        ensure!(
            refused.is_err_and(|error| format!("{error:#}").contains("restricted")),
            "the namespace does not enforce Pod Security"
        );
        bed.delete("v1", "Namespace", "", "shown").await?;
        without_class(bed).await
    })
}

#[test]
fn selftest_of_zones_needs_a_class_that_waits_and_a_topology() -> Result<()> {
    INSTALLED.run(async |bed| {
        for (mode, expected) in [
            ("Immediate", "volumeBindingMode Immediate"),
            ("WaitForFirstConsumer", "registered with a topology"),
        ] {
            class(bed, mode).await?;
            let (code, out, err) = bed.vdoctl(&["selftest", "--storage-class", CLASS, "--zones", "--dry-run"])?;
            ensure!(code == 4 && err.contains(expected), "{code}\n{out}{err}");
            without_class(bed).await?;
        }
        Ok(())
    })
}
