// SPDX-License-Identifier: Apache-2.0
//! Tests the recognition of drivers by their pods, and of their versions.

use super::*;
use serde_json::json;

fn workload(pod: Value) -> Object {
    Object::new(json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "x", "namespace": "any"}, "spec": {"template": {"spec": pod}}}))
        .expect("an object")
}

fn container(image: &str, args: &[&str]) -> Value {
    json!({"containers": [{"name": "c", "image": image, "args": args}]})
}

/// Mirrors rename images, and charts rename workloads; what the pods do stays.
#[test]
fn installed_driver_is_recognised_by_its_pods() {
    for (pod, expected) in [
        (
            container("registry.k8s.io/cloud-pv-vsphere/cloud-provider-vsphere:v1.34.0", &[]),
            "CPI 1.34.0 image",
        ),
        (
            container("gcr.io/cloud-provider-vsphere/cpi/release/manager:v1.28.0", &[]),
            "CPI 1.28.0 image",
        ),
        (
            container(
                "mirror.example.com/rancher/mirrored-cloud-provider-vsphere:v1.34.0-build20260101",
                &[],
            ),
            "CPI 1.34.0 image",
        ),
        (container("mirror.example.com:5000/vsphere/cpi@sha256:00", &[]), "CPI - image"),
        (
            container("mirror.example.com/ccm:1", &["--v=2", "--cloud-provider=vsphere"]),
            "CPI - argument",
        ),
        (
            container("mirror.example.com/ccm:1", &["--cloud-provider", "vsphere"]),
            "CPI - argument",
        ),
        (
            container("mirror.example.com/ccm:1", &["exec /bin/vsphere-cloud-controller-manager --v=2"]),
            "CPI - argument",
        ),
        (container("mirror.example.com/ccm:1", &["--cloud-provider=openstack"]), ""),
        // Before the cloud providers moved out of Kubernetes its own components had the argument.
        (
            container("registry.k8s.io/kube-controller-manager:v1.25.0", &["--cloud-provider=vsphere"]),
            "",
        ),
        (
            container("mirror.example.com/k:1", &["/usr/bin/kube-apiserver", "--cloud-provider=vsphere"]),
            "",
        ),
        (container("registry.k8s.io/csi-vsphere/driver:v3.7.3", &[]), "CSI 3.7.3 image"),
        (
            container("gcr.io/cloud-provider-vsphere/csi/release/driver:v3.0.3", &[]),
            "CSI 3.0.3 image",
        ),
        (
            container("rancher/mirrored-cloud-provider-vsphere-csi-release-driver:v3.7.2", &[]),
            "CSI 3.7.2 image",
        ),
        (
            container("registry.example.com/vmware-vsphere-csi-driver-rhel9:latest", &[]),
            "CSI - image",
        ),
        (container("registry.example.com/vmware-vsphere-csi-driver-operator:v1.0.0", &[]), ""),
        (container("gcr.io/cloud-provider-vsphere/csi/release/syncer:v3.0.3", &[]), ""),
        (
            container(
                "mirror.example.com/d:7",
                &["--fss-name=internal-feature-states.csi.vsphere.vmware.com"],
            ),
            "CSI - argument",
        ),
        (
            json!({"containers": [{"name": "c", "image": "mirror.example.com/d:7"}],
                "volumes": [{"name": "p", "hostPath": {"path": "/var/lib/k0s/kubelet/plugins/csi.vsphere.vmware.com/"}}]}),
            "CSI - folder",
        ),
        // A backup tool or a monitor.
        (
            container("mirror.example.com/backup:1.2.3", &["--driver=csi.vsphere.vmware.com"]),
            "CSI - mention",
        ),
        (
            json!({"containers": [{"name": "c", "image": "mirror.example.com/backup:1", "env": [{"name": "DRIVER", "value": "csi.vsphere.vmware.com"}]}]}),
            "CSI - mention",
        ),
        (container("registry.k8s.io/sig-storage/csi-provisioner:v5.0.0", &[]), ""),
        (json!({}), ""),
    ] {
        let found = Installed::of(&workload(pod.clone()));
        let said = found.map(|found| {
            let evidence = match found.evidence {
                Evidence::Image(_) => "image",
                Evidence::Argument(_) => "argument",
                Evidence::Socket(_) => "folder",
                Evidence::Mention(_) => "mention",
            };
            let version = found.version.map_or("-".to_owned(), |version| version.to_string());
            format!("{} {version} {evidence}", found.driver.short)
        });
        assert_eq!(said.unwrap_or_default(), expected, "{pod}");
    }
}

#[test]
fn installed_workload_without_replicas_is_not_active() {
    for (kind, spec, metadata, active) in [
        ("Deployment", json!({"replicas": 1}), json!({}), true),
        ("Deployment", json!({}), json!({}), true),
        ("Deployment", json!({"replicas": 0}), json!({}), false),
        ("DaemonSet", json!({}), json!({}), true),
        ("DaemonSet", json!({}), json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), false),
    ] {
        let mut value = workload(container("registry.k8s.io/csi-vsphere/driver:v3.7.3", &[])).into_value();
        value["kind"] = kind.into();
        for (place, parts) in [("spec", &spec), ("metadata", &metadata)] {
            for (key, part) in parts.as_object().into_iter().flatten() {
                value[place][key] = part.clone();
            }
        }
        let found = Installed::of(&Object::new(value).expect("an object")).expect("a driver");
        assert_eq!(found.is_active(), active, "{kind} {spec} {metadata}");
    }
}

/// What a kubelet shows of a pod that it runs from a file. Any other pod belongs to its workload, which is looked at instead.
#[test]
fn installed_static_pod_is_known_by_the_mark_of_its_kubelet() {
    let pod = |annotations: Value| {
        let spec = container("registry.k8s.io/cloud-pv-vsphere/cloud-provider-vsphere:v1.34.0", &[]);
        Object::new(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ccm-cp", "namespace": "kube-system",
            "annotations": annotations}, "spec": spec}),
        )
        .expect("an object")
    };
    let found = Installed::of(&pod(json!({"kubernetes.io/config.mirror": "hash"}))).expect("a driver");
    assert!(found.is_static() && found.is_active() && found.evidence.is_proof());
    assert_eq!(found.version.map(|version| version.to_string()).as_deref(), Some("1.34.0"));
    assert!(Installed::of(&pod(json!({}))).is_none());
}

#[test]
fn installed_version_is_upstreams_whatever_a_distribution_adds() {
    for (tag, expected) in [
        ("v3.7.3", "3.7.3"),
        ("3.7.3", "3.7.3"),
        ("v1.34.0-rancher1", "1.34.0"),
        ("v3.0.0-rc.1", "3.0.0-rc.1"),
        ("latest", "-"),
        ("v3.7", "-"),
        ("", "-"),
    ] {
        assert_eq!(
            version(tag).map_or("-".to_owned(), |version| version.to_string()),
            expected,
            "{tag}"
        );
    }
}
