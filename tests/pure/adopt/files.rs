// SPDX-License-Identifier: Apache-2.0
//! The files of both drivers.

use super::world::{World, secret, spec, yaml};
use serde_json::json;

const CSI: &str = r#"; made by hand
[Global]
cluster-id = "prod-1"
Cluster-Distribution = "Openshift"   # shown in vCenter
query-limit = 10000
list-volume-threshold = 70

[VirtualCenter "vc01.example.com"]
insecure-flag = "1"
user = "DOM\\k8s"
password = "pa;ss#w\"ord"
port = "19846"
datacenters = "DC0, DC 1"
migration-datastore-url = "ds:///vmfs/volumes/x/"

[NetPermissions "A"]
ips = "10.20.0.0/16"
permissions = "READ_ONLY"
rootsquash

[Labels]
topology-categories = "k8s-region, k8s-zone"

[Snapshot]
global-max-snapshots-per-block-volume = 12
granular-max-snapshots-per-block-volume-vsan = 5
"#;

const CPI: &str = r"global:
  port: 443
  insecureFlag: true
  secretName: vsphere-cloud-secret
  secretNamespace: kube-system
  soapRoundtripCount: 5
vcenter:
  vc:
    server: vc01.example.com
    datacenters: [DC0, DC 1]
    ca-file: /etc/cloud/ca.pem
labels:
  region: k8s-region
  zone: k8s-zone
nodes:
  internalNetworkSubnetCidr: 10.99.0.0/16, fd00::/64
  excludeExternalNetworkSubnetCidr: 192.168.10.0/24
  externalVmNetworkName: 'DPG: nodes'
loadBalancer:
  size: SMALL
";

fn accounts(password: &[u8]) -> serde_json::Value {
    secret(
        "kube-system",
        "vsphere-cloud-secret",
        &[
            ("vc01.example.com.username", b"k8s@vsphere.local\n"),
            ("vc01.example.com.password", password),
        ],
    )
}

#[test]
fn adopted_files_of_both_drivers_become_commented_objects() {
    let world = World::default()
        .with_cpi("vsphere.yaml", CPI)
        .with(accounts(b"hunter2"))
        .with_csi("3.7.3", CSI.as_bytes());
    let adoption = world.adopted().unwrap();
    let text = yaml(&adoption);
    insta::assert_snapshot!(text);
    assert!(!text.contains("hunter2") && !text.contains("pa;ss"), "a password is printed");
    // What is printed with comments is what is created.
    let with_secrets: String = adoption.documents.iter().map(|document| document.yaml(true)).collect();
    let read = vdo_api::yaml::load_all(&with_secrets).unwrap();
    let whole: Vec<_> = adoption.documents.iter().map(vdo_adopt::Document::object).collect();
    assert_eq!(read, whole);
}

/// A connection that leads to the vCenter already is used instead of a second one; another connection is not taken for the drivers'.
#[test]
fn adopted_vcenter_with_a_connection_keeps_that() {
    let connection = |name: &str, address: &str| {
        json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VsphereCloudConfig", "metadata": {"name": name, "namespace": "vmware-system-vdo"},
            "spec": {"vcIp": address, "credentials": "ours"}})
    };
    let csi = "[Global]\ncluster-id = c\n[VirtualCenter \"VC01.example.com\"]\nuser = k8s@vsphere.local\npassword = hunter2\n";
    let used = |field: &str, adoption: &vdo_adopt::Adoption| {
        adoption.documents.last().unwrap().object()["spec"][field]["vsphereCloudConfigs"].clone()
    };
    for (name, others, kept, listed) in [
        ("vc1", &[][..], &["vc1"][..], json!(null)),
        ("vc1", &["vc09.example.com"], &["vc1"], json!(["vc1"])),
        // The name that the adoption itself gives: it is compared as a whole.
        ("vc01.example.com", &[], &[], json!(null)),
    ] {
        let mut world = World::default()
            .with_csi("3.7.3", csi.as_bytes())
            .with(connection(name, "vc01.EXAMPLE.com"));
        for other in others {
            world = world.with(connection("other", other));
        }
        let adoption = world.adopted().unwrap();
        assert_eq!(adoption.kept, kept);
        assert_eq!(used("storageProvider", &adoption), listed, "{name} {others:?}");
        let documents: Vec<String> = adoption.documents.iter().map(vdo_adopt::Document::name).collect();
        assert_eq!(documents.len(), if kept.is_empty() { 3 } else { 1 }, "{documents:?}");
    }
    // Both drivers have accounts of their own there: which of them the connection has is for a person to say.
    let world = World::default()
        .with_cpi("vsphere.yaml", CPI)
        .with(accounts(b"other"))
        .with_csi("3.7.3", csi.as_bytes());
    let adoption = world.with(connection("vc1", "vc01.example.com")).adopted().unwrap();
    assert_eq!(adoption.kept, Vec::<String>::new());
}

/// One account for both drivers is one connection.
#[test]
fn adopted_drivers_that_agree_share_a_connection() {
    let csi = "[Global]\ncluster-id = c\nuser = k8s@vsphere.local\npassword = hunter2\nca-file = /etc/cloud/ca.pem\n\
               [VirtualCenter \"VC01.example.com\"]\n";
    let cpi = "[Global]\nsecret-name = vsphere-cloud-secret\nsecret-namespace = kube-system\nca-file = \"/etc/cloud/ca.pem\"\n\
               [VirtualCenter \"vc01.example.com\"]\n[Nodes]\ninternal-vm-network-name = a\\\n b\n[Global \"x\"]\ny = 1\n";
    let pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    let mut world = World::default()
        .with_cpi("vsphere.conf", cpi)
        .with(accounts(b"hunter2"))
        .with_csi("3.7.3", csi.as_bytes());
    for object in &mut world.objects {
        let mut value = object.value().clone();
        match (object.kind(), object.name()) {
            ("ConfigMap", "vsphere-cloud-config") => value["data"]["ca.pem"] = pem.into(),
            ("Secret", "vsphere-config-secret") => value["stringData"] = json!({"ca.pem": pem}),
            _ => {}
        }
        *object = vdo_core::manifest::Object::new(value).unwrap();
    }
    let adoption = world.adopted().unwrap();
    insta::assert_snapshot!(yaml(&adoption));
}

#[test]
fn adopted_cloud_provider_reads_each_form_of_its_secret() {
    let cpi = "global: {secretsDirectory: /etc/secrets}\nvcenter:\n  a: {server: 'fd01::1', ipFamily: [ipv6, ipv4]}\n";
    let mut world = World::default().with_cpi("vsphere.conf", cpi);
    let mut value = world.workloads[0].object.value().clone();
    let pod = &mut value["spec"]["template"]["spec"];
    pod["volumes"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "s", "secret": {"secretName": "accounts"}}));
    let mounts = pod["containers"][0]["volumeMounts"].as_array_mut().unwrap();
    mounts.push(json!({"name": "s", "mountPath": "/etc/secrets"}));
    world.workloads[0].object = vdo_core::manifest::Object::new(value).unwrap();
    let world = world.with(secret(
        "kube-system",
        "accounts",
        &[
            ("server_1", b"fd01::1"),
            ("username_1", b"u@d"),
            ("password_1", b"p\n"),
            ("other", b"x"),
        ],
    ));
    let adoption = world.adopted().unwrap();
    let account = adoption.documents[0].account.as_ref().unwrap();
    assert_eq!((account.user.expose(), account.password.expose()), ("u@d", "p\n"));
    assert_eq!(adoption.documents[1].object()["spec"]["vcIp"], "fd01::1");
    assert_eq!(spec(&adoption), json!({"cloudProvider": {"ipFamilies": ["IPv6", "IPv4"]}}));
    let keys: Vec<&str> = adoption.losses.iter().map(|loss| loss.key.as_str()).collect();
    assert_eq!(keys, ["cpi/Secret/other"]);
}

/// What one version reads another ignores.
#[test]
fn adopted_keys_mean_what_the_installed_version_reads() {
    let text = "[Global]\ncluster-id = c\ncnsvolumeoperationrequest-cleanup-intervalinmin = 1440\nvc-client-timeout = 5\n\
                [VirtualCenter \"vc\"]\nuser = u@d\npassword = p\nthumbprint = 0000000000000000000000000000000000000000\n\
                targetvSANFileShareDatastoreURLs = ds:///vmfs/volumes/vsan:1/\n";
    for (version, expected, losses) in [
        (
            "3.0.0",
            json!({"clusterId": "c", "fileVolumes": {"vsanDataStoreUrl": ["ds:///vmfs/volumes/vsan:1/"]}}),
            vec!["csi/global/vc-client-timeout", "csi/virtualcenter[vc]/thumbprint"],
        ),
        (
            "3.7.3",
            json!({"clusterId": "c"}),
            vec![
                "csi/global/cnsvolumeoperationrequest-cleanup-intervalinmin",
                "csi/virtualcenter[vc]/targetvsanfilesharedatastoreurls",
            ],
        ),
    ] {
        let adoption = World::default().with_csi(version, text.as_bytes()).adopted().unwrap();
        assert_eq!(spec(&adoption), json!({"storageProvider": expected}), "{version}");
        let keys: Vec<&str> = adoption.losses.iter().map(|loss| loss.key.as_str()).collect();
        assert_eq!(keys, losses, "{version}");
    }
}
