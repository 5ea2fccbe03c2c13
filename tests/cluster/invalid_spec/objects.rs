// SPDX-License-Identifier: Apache-2.0
//! What is wrong with the objects that an administrator writes.

use super::{RUNNING, VDO, guard, reported, untouched, workloads};
use crate::common::{Bed, NS, PATIENCE};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

#[test]
fn vdoconfig_with_wrong_name_version_or_value_is_stalled() -> Result<()> {
    RUNNING.run(async |bed| {
        for (spec, reason, words) in [
            (
                json!({"cloudProvider": {}, "storageProvider": {"vsphereCloudConfigs": ["vc9"]}}),
                "ConnectionNotFound",
                &["vc9", "the existing connections are: vc1"][..],
            ),
            (
                json!({"storageProvider": {"version": "9.9.9"}, "cloudProvider": {}}),
                "UnknownVersion",
                &["vsphere-csi", "9.9.9", "3.8.0"],
            ),
            (
                json!({"storageProvider": {"version": "3.5.1"}, "cloudProvider": {}}),
                "IncompatiblePin",
                &["3.5.1", "1.33", "1.34", "3.8.0"],
            ),
            (
                json!({"cloudProvider": {"version": "1.33.1"}, "storageProvider": {}}),
                "IncompatiblePin",
                &["vsphere-cpi", "1.33.1", "1.34"],
            ),
            (
                json!({"cloudProvider": {"version": "newest"}, "storageProvider": {}}),
                "InvalidSpec",
                &["spec.cloudProvider.version", "newest"],
            ),
            (
                json!({"cloudProvider": {"values": {"logLevl": 3}}, "storageProvider": {}}),
                "InvalidValues",
                &["logLevl", "vsphere-cpi"],
            ),
        ] {
            let guard = guard(bed).await?;
            bed.apply(&bed.config(spec)).await?;
            reported(bed, VDO, ("Ready", reason), words).await?;
            reported(bed, VDO, ("Stalled", reason), words).await?;
            untouched(bed, guard, reason).await?;
        }
        bed.apply(&bed.config(json!({}))).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// A right that is missing is named as the rule to add, and is used as soon as it is given.
#[test]
fn right_missing_is_named_as_rule_and_used_once_granted() -> Result<()> {
    RUNNING.run(async |bed| {
        let role = bed
            .get("rbac.authorization.k8s.io/v1", "Role", "kube-system", "vdo-operator")
            .await?;
        let mut rules = role["rules"].as_array().context("rules")?.clone();
        for rule in &mut rules {
            if rule["resources"].to_string().contains("daemonsets") && rule["verbs"].to_string().contains("patch") {
                rule["verbs"] = json!(["create", "delete"]);
            }
        }
        bed.merge(
            "rbac.authorization.k8s.io/v1",
            "Role",
            "kube-system",
            "vdo-operator",
            json!({"rules": rules}),
        )
        .await?;
        let before = workloads(bed).await?;
        bed.apply(&bed.config(json!({"cloudProvider": {"values": {"logLevel": 4}}, "storageProvider": {}})))
            .await?;
        reported(
            bed,
            VDO,
            ("Ready", "Forbidden"),
            &[
                "patch",
                "DaemonSet kube-system/vsphere-cloud-controller-manager",
                "apiGroups: [\"apps\"]",
                "resources: [daemonsets]",
                "Role in namespace kube-system",
            ],
        )
        .await?;
        ensure!(workloads(bed).await? == before, "a workload changed");
        bed.merge(
            "rbac.authorization.k8s.io/v1",
            "Role",
            "kube-system",
            "vdo-operator",
            json!({"rules": role["rules"]}),
        )
        .await?;
        bed.until_ready().await?;
        let daemon_set = bed
            .get("apps/v1", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager")
            .await?;
        ensure!(
            daemon_set["spec"].to_string().contains("--v=4"),
            "the change came through once the right was there"
        );
        Ok(())
    })
}

#[test]
fn vdoconfig_second_in_cluster_is_not_active() -> Result<()> {
    RUNNING.run(async |bed| {
        let guard = guard(bed).await?;
        let mut second = bed.config(json!({}));
        second["metadata"]["name"] = "second".into();
        bed.apply(&second).await?;
        reported(
            bed,
            ("VDOConfig", "second"),
            ("Ready", "NotActive"),
            &["VDOConfig vdo acts for this cluster", "delete one of the two"],
        )
        .await?;
        untouched(bed, guard, "second VDOConfig").await?;
        bed.delete("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "second").await?;
        until("the second VDOConfig to be gone", PATIENCE, async || {
            Ok(Probe::when(
                bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "second").await? == Value::Null,
                "still there",
            ))
        })
        .await
    })
}

/// What the schema can see is refused at once, with the words to write instead.
#[test]
fn schema_refuses_malformed_fields_with_advice() -> Result<()> {
    RUNNING.run(async |bed| {
        let connection = |change: Value| {
            let mut object = bed.connection("vc3");
            object["spec"]
                .as_object_mut()
                .expect("a map")
                .extend(change.as_object().expect("a map").clone());
            object
        };
        let config = |spec: Value| {
            let mut object = bed.config(spec);
            object["metadata"]["name"] = "third".into();
            object
        };
        for (object, words) in [
            (
                connection(json!({"vcIp": "https://vcenter.example.com/sdk"})),
                "write only the host name or IP address",
            ),
            (
                connection(json!({"thumbprint": "12:34"})),
                "write 40 (SHA-1) or 64 (SHA-256) hex digits",
            ),
            (
                connection(json!({"caBundle": {"configMap": "a"}})),
                "write either caBundle or thumbprint",
            ),
            (
                connection(json!({"thumbprint": "", "caBundle": {"configMap": "a", "secret": "b"}})),
                "write either configMap or secret",
            ),
            (connection(json!({"port": 70000})), "65535"),
            (
                connection(json!({"type": "Paravirtual"})),
                "Paravirtual is not yet supported; leave type out to connect to a vCenter",
            ),
            (connection(json!({"type": "vcenter"})), "supported values: \"VCenter\", \"Paravirtual\""),
            (
                config(json!({"storageProvider": {"vsphereCloudConfig": "a", "vsphereCloudConfigs": ["b"]}})),
                "write only vsphereCloudConfigs (a list)",
            ),
            (
                config(json!({"images": {"registry": "https://registry.example.com/"}})),
                "without https://",
            ),
            (
                config(json!({"maintenanceWindows": [{"schedule": "0 2 * * *", "duration": "0s"}]})),
                "write a time longer than zero",
            ),
            (
                config(json!({"maintenanceWindows": [{"schedule": "", "duration": "1h"}]})),
                "spec.maintenanceWindows[0].schedule",
            ),
            (config(json!({"progressDeadline": "0s"})), "write a time longer than zero"),
            (config(json!({"progressDeadline": "soon"})), "spec.progressDeadline"),
            (config(json!({"revisionHistoryLimit": -1})), "spec.revisionHistoryLimit"),
            (
                config(json!({"storageProvider": {"fileVolumes": {"netPermissions": [{"ips": "*", "permissions": "ALL"}]}}})),
                "READ_WRITE",
            ),
            (
                config(json!({"storageProvider": {"fileVolumes": {"netPermissions": [{"ips": "10.0.0.1,10.0.0.2"}]}}})),
                "netPermissions[0].ips",
            ),
            (
                config(json!({"storageProvider": {"fileVolumes": {"vsanClusters": [{"vsphereCloudConfig": "vc1", "clusters": ["Cluster 1"]}]}}})),
                "vsanClusters[0].clusters[0]",
            ),
            (config(json!({"storageProvider": {"tuning": {"queryLimit": 0}}})), "tuning.queryLimit"),
            (
                config(json!({"storageProvider": {"customKubeletPath": "kubelet"}})),
                "write an absolute path",
            ),
        ] {
            let error = bed.apply(&object).await.err().with_context(|| format!("{object} was accepted"))?;
            let text = format!("{error:#}");
            ensure!(text.contains(words), "{words:?} is not in {text}");
        }
        Ok(())
    })
}

async fn status_id(bed: &Bed) -> Result<String> {
    Ok(bed.status().await?["clusterId"].as_str().context("no cluster id")?.to_owned())
}

/// Volumes are registered under the first one: another is refused even where none was written before.
#[test]
fn cluster_id_other_than_the_registered_one_is_refused() -> Result<()> {
    RUNNING.run(async |bed| {
        let guard = guard(bed).await?;
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"clusterId": "another"}})))
            .await?;
        reported(
            bed,
            VDO,
            ("Ready", "InvalidSpec"),
            &["spec.storageProvider.clusterId", &status_id(bed).await?],
        )
        .await?;
        untouched(bed, guard, "another cluster id").await?;
        bed.apply(&bed.config(json!({}))).await?;
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"clusterId": status_id(bed).await?}})))
            .await?;
        bed.until_ready().await?;
        let error = bed
            .apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"clusterId": "another"}})))
            .await
            .err()
            .context("it was accepted")?;
        ensure!(format!("{error:#}").contains("clusterId cannot be changed"), "{error:#}");
        Ok(())
    })
}

/// Objects as they were written for the original operator.
#[test]
fn objects_of_the_original_operator_are_accepted() -> Result<()> {
    RUNNING.run(async |bed| {
        for object in [
            json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VsphereCloudConfig", "metadata": {"name": "old", "namespace": "default"},
                "spec": {"vcIp": "10.10.10.10", "insecure": true, "credentials": "vc-creds", "thumbprint": "", "datacenters": ["DC0"]}}),
            json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "metadata": {"name": "old", "namespace": "default"},
                "spec": {"cloudProvider": {"vsphereCloudConfigs": ["old"], "topology": {"zone": "k8s-zone", "region": "k8s-region"}},
                    "storageProvider": {"vsphereCloudConfig": "old", "clusterDistribution": "OpenShift", "customKubeletPath": "/var/data/kubelet",
                        "fileVolumes": {"vsanDataStoreUrl": ["ds:///vmfs/volumes/vsan:1/"], "netPermissions": [{"ips": "10.0.0.0/8", "permissions": "READ_ONLY", "rootSquash": true}]}}}}),
            json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "CompatibilityConfig", "metadata": {"name": "old", "namespace": "default"},
                "spec": {"matrixURL": "https://example.com/matrix.json"}}),
        ] {
            bed.apply(&object).await?;
        }
        bed.delete("vdo.vmware.com/v1alpha1", "CompatibilityConfig", "default", "old").await
    })
}
