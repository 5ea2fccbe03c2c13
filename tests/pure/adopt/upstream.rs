// SPDX-License-Identifier: Apache-2.0
//! The manifests of other installers, where `VDO_UPSTREAM_DIR` names them.

use super::world::{World, chart, newest, secret, versions, yaml};
use crate::sample::upstream;
use serde_json::json;
use vdo_api::yaml::load_all;
use vdo_core::installed::Installed;
use vdo_core::manifest::Object;

/// An installer's manifests as a cluster, with charts of the versions that run.
fn installed(file: &str) -> World {
    let folder = upstream().expect("VDO_UPSTREAM_DIR").join("installers");
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    let mut world = World::default();
    for document in load_all(&text).unwrap() {
        let items = document["items"].as_array().cloned();
        for object in items.unwrap_or_else(|| vec![document]) {
            world = world.with(object);
        }
    }
    for driver in ["vsphere-cpi", "vsphere-csi"] {
        let found = world
            .workloads
            .iter()
            .find(|one: &&Installed| one.driver.name == driver && one.version.is_some());
        let version = found.and_then(|one| one.version.clone());
        let known = version.filter(|version| versions(driver).contains(version));
        let name = if driver == "vsphere-cpi" {
            vdo_core::drivers::CPI
        } else {
            vdo_core::drivers::CSI
        };
        world
            .charts
            .insert(name, known.map_or_else(|| newest(driver), |version| chart(driver, &version)));
    }
    world
}

#[test]
#[ignore = "needs VDO_UPSTREAM_DIR"]
fn adopted_installers_keep_their_settings() {
    const CONF: &[u8] = b"[Global]\ncluster-id = capv\n[VirtualCenter \"vc\"]\nuser = u@d\npassword = p\ndatacenters = DC0\n";
    let account = |name: &str| {
        secret(
            "kube-system",
            name,
            &[("vcenter.local.username", b"u@d"), ("vcenter.local.password", b"p")],
        )
    };
    let capv = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cloud-config", "namespace": "kube-system"},
        "data": {"vsphere.conf": "global: {user: u, password: p}\nvcenter: {a: {server: vc}}\n"}});
    for (file, more, found, lost) in [
        (
            "rancher-cpi.yaml",
            vec![],
            "insecure: true",
            "cpi/manager/images cpi/manager/dnsPolicy",
        ),
        (
            "rancher-csi.yaml",
            vec![],
            "clusterId: rancher-c-1",
            "csi/controller/images csi/node/images",
        ),
        (
            "upstream-cpi.yaml",
            vec![account("vsphere-cloud-secret")],
            "zone: k8s-zone",
            "cpi/manager/securityContext cpi/manager/manager/resources",
        ),
        (
            "capv-cpi.yaml",
            vec![capv],
            "key: CriticalAddonsOnly",
            "cpi/version cpi/manager/securityContext cpi/manager/manager/resources",
        ),
        (
            "capv-csi.yaml",
            vec![secret("vmware-system-csi", "vsphere-config-secret", &[("csi-vsphere.conf", CONF)])],
            "clusterId: capv",
            "",
        ),
    ] {
        let mut world = installed(file);
        for object in more {
            let object = Object::new(object).unwrap();
            world.objects.retain(|known| known.id() != object.id());
            world.objects.push(object);
        }
        let adoption = world.adopted().unwrap();
        let keys: Vec<&str> = adoption.losses.iter().map(|loss| loss.key.as_str()).collect();
        assert_eq!(keys.join(" "), lost, "{file}");
        assert!(yaml(&adoption).contains(found), "{file}: {}", yaml(&adoption));
    }
}
