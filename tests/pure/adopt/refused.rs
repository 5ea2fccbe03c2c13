// SPDX-License-Identifier: Apache-2.0
//! Installations that cannot be read: each error names object, key and line, and no value.

use super::world::{World, secret, spec};
use serde_json::{Value, json};
use vdo_api::types::Remedy as _;
use vdo_core::manifest::Object;

fn said(world: &World) -> String {
    let error = world.adopted().expect_err("an error");
    let text = vdo_api::api::chain(&error);
    assert!(!text.contains("hunter2"), "{text}");
    let remedy = error.remedy().expect("a remedy");
    text.strip_suffix(&format!(". {remedy}")).expect("the remedy").to_owned()
}

#[test]
fn adopted_file_that_is_wrong_is_refused_with_its_line() {
    let vcenter = "[VirtualCenter \"vc\"]\nuser = u@d\npassword = \"hunter2\"\n";
    for (text, expected) in [
        (String::new(), "csi-vsphere.conf: the file is empty"),
        ("; nothing\n[Global]\n".to_owned(), "csi-vsphere.conf: the file is empty"),
        (
            format!("[Global]\ncluster-id = a\n{vcenter}[GLOBAL]\nport = 1\n"),
            "csi-vsphere.conf, line 6: [global] already exists on line 1",
        ),
        (
            format!("{vcenter}{vcenter}"),
            "csi-vsphere.conf, line 4: [virtualcenter \"vc\"] already exists on line 1",
        ),
        (
            format!("{vcenter}PASSWORD = hunter2\n"),
            "csi-vsphere.conf, line 4: the key password already exists on line 3",
        ),
        (
            "[VirtualCenter \"vc\"]\nuser = DOM\\hunter2\n".to_owned(),
            "csi-vsphere.conf: the driver cannot read the file: line 2: a backslash is written outside of quotes",
        ),
        (
            format!("\u{feff}{vcenter}"),
            "csi-vsphere.conf: the driver cannot read the file: line 1: the text begins with a byte order mark",
        ),
        (format!("{vcenter}port = hunter2\n"), "csi-vsphere.conf, line 4: port is not a port"),
        (
            format!("{vcenter}insecure-flag = hunter2\n"),
            "csi-vsphere.conf, line 4: insecure-flag is not true or false",
        ),
        (
            format!("{vcenter}thumbprint = hunter2\n"),
            "csi-vsphere.conf, line 4: thumbprint is not a thumbprint",
        ),
        (
            format!("{vcenter}[NetPermissions \"a\"]\npermissions = hunter2\n"),
            "csi-vsphere.conf, line 5: permissions is not READ_WRITE, READ_ONLY or NO_ACCESS",
        ),
        ("[Global]\nuser = u@d\n".to_owned(), "csi-vsphere.conf: the file names no vCenter"),
        (
            "[VirtualCenter \"vc\"]\nuser = u@d\n".to_owned(),
            "csi-vsphere.conf, line 1: vCenter vc has no user or no password",
        ),
        (
            format!("{vcenter}password\n"),
            "csi-vsphere.conf, line 4: the key password already exists on line 3",
        ),
        (
            "[VirtualCenter \"vc\"]\nuser\n".to_owned(),
            "csi-vsphere.conf, line 2: user is not followed by a value",
        ),
    ] {
        let world = World::default().with_csi("3.7.3", text.as_bytes());
        let expected = format!("Secret vmware-system-csi/vsphere-config-secret, {expected}");
        assert_eq!(said(&world), expected, "{text}");
    }
    let utf16: Vec<u8> = vcenter.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let text = said(&World::default().with_csi("3.7.3", &utf16));
    assert!(text.contains("NUL") || text.contains("UTF-8"), "{text}");
}

#[test]
fn adopted_file_of_the_cloud_provider_that_is_wrong_is_refused_with_its_line() {
    for (text, expected) in [
        ("", "the file is empty"),
        ("# nothing\n", "the file is empty"),
        ("global:\n", "the file is empty"),
        ("global: {}\nglobal: {}\n", ", line 2: the file is not YAML: "),
        (
            "global:\n  port: hunter2\nvcenter: {a: {server: vc}}\n",
            ", line 2: port is not a port",
        ),
        ("global: {port: 443}\n", "the file names no vCenter"),
        ("vcenter:\n  a:\n    port: 443\n", ", line 2: the file names no vCenter"),
        (
            "vcenter:\n  a:\n    server: vc\n",
            ", line 3: vCenter vc has no user or no password",
        ),
        ("- a\n", "it is not a map of sections"),
        ("[Global]\nuser = \"a\n", "the driver cannot read the file: line 2"),
    ] {
        let found = said(&World::default().with_cpi("vsphere.conf", text));
        assert!(
            found.starts_with("ConfigMap kube-system/vsphere-cloud-config, vsphere.conf"),
            "{found}"
        );
        assert!(found.contains(expected), "{found} for {text}");
    }
}

#[test]
fn adopted_installation_that_contradicts_itself_is_refused() {
    let file = |id: &str| format!("[Global]\ncluster-id = {id}\n[VirtualCenter \"vc\"]\nuser = u@d\npassword = hunter2\n");
    let world = || World::default().with_csi("3.7.3", file("a").as_bytes());
    let generated = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "vsphere-csi-cluster-id", "namespace": "vmware-system-csi"}, "data": {"clusterID": "b"}});
    assert_eq!(
        said(&world().with(generated)),
        "the cluster id differs between Secret vmware-system-csi/vsphere-config-secret, csi-vsphere.conf, line 2 and \
         ConfigMap vmware-system-csi/vsphere-csi-cluster-id, clusterID"
    );
    // A second controller with a file of its own.
    let mut second = world();
    let mut other: Value = second.workloads[0].object.value().clone();
    other["metadata"]["namespace"] = "kube-system".into();
    second = second.with(other).with(secret(
        "kube-system",
        "vsphere-config-secret",
        &[("csi-vsphere.conf", file("b").as_bytes())],
    ));
    assert_eq!(
        said(&second),
        "the configuration of the driver differs between Secret vmware-system-csi/vsphere-config-secret, csi-vsphere.conf and \
         Secret kube-system/vsphere-config-secret, csi-vsphere.conf"
    );
    let mut gone = world();
    gone.objects.clear();
    assert_eq!(
        said(&gone),
        "Secret vmware-system-csi/vsphere-config-secret does not exist, but Deployment vmware-system-csi/vsphere-csi-controller refers to it"
    );
    let mut on_the_node = world();
    for one in &mut on_the_node.workloads {
        let mut value = one.object.value().clone();
        let volumes = value["spec"]["template"]["spec"]["volumes"].as_array_mut().unwrap();
        for volume in volumes.iter_mut().filter(|volume| volume["secret"].is_object()) {
            *volume = json!({"name": volume["name"], "hostPath": {"path": "/etc/cloud"}});
        }
        one.object = Object::new(value).unwrap();
    }
    assert!(said(&on_the_node).contains("reads /etc/cloud/csi-vsphere.conf, but no Secret or ConfigMap"));
}

/// The node plugin mounts no file, so that what names it is gone with the controller.
#[test]
fn adopted_node_plugin_without_controller_reads_the_secret_or_loses_the_file() {
    let file = "[Global]\ncluster-id = a\n[VirtualCenter \"vc\"]\nuser = u@d\npassword = hunter2\n";
    let half = |world: World| {
        let mut world = world.with_csi("3.7.3", file.as_bytes());
        world.workloads.retain(|one| one.object.kind() == "DaemonSet");
        world
    };
    let with_secret = spec(&half(World::default()).adopted().unwrap());
    assert_eq!(with_secret["storageProvider"]["clusterId"], "a");
    let gone = |world| {
        let mut world = half(world);
        world.objects.retain(|object| object.name() != "vsphere-config-secret");
        world
    };
    assert_eq!(
        said(&gone(World::default())),
        "only a part of the driver exists (DaemonSet vmware-system-csi/vsphere-csi-node-windows and DaemonSet \
         vmware-system-csi/vsphere-csi-node); there is no controller and no Secret vsphere-config-secret that names the vCenter"
    );
    let cloud = "global: {user: u, password: hunter2}\nvcenter: {a: {server: vc}}\n";
    let beside = gone(World::default().with_cpi("vsphere.yaml", cloud)).adopted().unwrap();
    let lost: Vec<&str> = beside.losses.iter().map(|loss| loss.key.as_str()).collect();
    assert_eq!(lost, ["csi/file"]);
    assert_eq!(spec(&beside)["storageProvider"], json!({}));
    // The operator's guard of settings is for files: one that no workload mounts cannot be lost by a plan.
    assert_eq!(gone(World::default()).lost([]), Ok(Vec::new()));
}
