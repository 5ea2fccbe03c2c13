// SPDX-License-Identifier: Apache-2.0
//! What drivers of another tool lose where the operator's objects take the place of their own.

use super::world::{World, secret};
use serde_json::json;
use vdo_adopt::AdoptError;
use vdo_core::manifest::Object;

const CSI: &str = "[Global]\ncluster-id = \"a\"\n[VirtualCenter \"vc1\"]\nuser = \"u\"\npassword = \"p\"\ninsecure-flag = \"true\"\n";
const CPI: &str = "global: {port: 443, insecureFlag: true, secretName: cpi-creds, secretNamespace: kube-system}\n\
                   vcenter:\n  vc: {server: vc1, datacenters: [DC0]}\n";

fn conf(text: &str) -> Object {
    Object::new(secret(
        "vmware-system-csi",
        "vsphere-config-secret",
        &[("csi-vsphere.conf", text.as_bytes())],
    ))
    .unwrap()
}

fn cloud(text: &str) -> Object {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vsphere-cloud-config", "namespace": "kube-system"},
        "data": {"vsphere.yaml": text}});
    Object::new(map).unwrap()
}

/// Each setting by its field and its line; what is only spelled in another way, accounts and the cluster id are no loss.
#[test]
fn adopt_lost_settings_of_the_csi_driver_have_their_fields() {
    for (case, before, after, expected) in [
        ("the same", String::new(), "", vec![]),
        ("another account and id", "[Snapshot]\n".into(), "", vec![]),
        (
            "topology",
            "[Labels]\ntopology-categories = \"k8s-region, k8s-zone\"\n".into(),
            "",
            vec!["spec.storageProvider.topologyCategories (Secret vmware-system-csi/vsphere-config-secret, csi-vsphere.conf, line 8)"],
        ),
        (
            "topology with another blank",
            "[Labels]\ntopology-categories = \"k8s-region, k8s-zone\"\n".into(),
            "[Labels]\ntopology-categories = \"k8s-region,k8s-zone\"\n",
            vec![],
        ),
        (
            "one of two networks, in another order",
            "[NetPermissions \"A\"]\nips = \"10.0.0.0/8\"\n[NetPermissions \"B\"]\nips = \"10.1.0.0/16\"\n".into(),
            "[NetPermissions \"X\"]\nips = \"10.1.0.0/16\"\n",
            vec![
                "spec.storageProvider.fileVolumes.netPermissions.0 (Secret vmware-system-csi/vsphere-config-secret, csi-vsphere.conf, line 7)",
            ],
        ),
        (
            "a number",
            "[Snapshot]\nglobal-max-snapshots-per-block-volume = 12\n".into(),
            "[Snapshot]\nglobal-max-snapshots-per-block-volume = 3\n",
            vec!["spec.storageProvider.snapshots.maxPerVolume (Secret vmware-system-csi/vsphere-config-secret, csi-vsphere.conf, line 8)"],
        ),
        (
            "a second vCenter",
            "[VirtualCenter \"vc2\"]\nuser = \"u\"\npassword = \"p\"\n".into(),
            "",
            vec!["vCenter vc2 (Secret vmware-system-csi/vsphere-config-secret, csi-vsphere.conf, line 7)"],
        ),
    ] {
        let world = World::default().with_csi("3.7.3", format!("{CSI}{before}").as_bytes());
        let after = conf(&format!("{}{after}", CSI.replace("\"u\"", "\"v\"").replace("\"a\"", "\"b\"")));
        assert_eq!(world.lost([after]), Ok(expected.into_iter().map(str::to_owned).collect()), "{case}");
    }
}

/// Also what no field keeps is lost; the Secret of the accounts need not be read.
#[test]
fn adopt_lost_settings_of_the_cloud_provider_have_their_fields() {
    let labels = format!("{CPI}labels: {{region: k8s-region, zone: k8s-zone}}\n");
    let world = World::default().with_cpi("vsphere.yaml", &labels);
    assert_eq!(world.lost([cloud(&labels)]), Ok(vec![]));
    let found = world.lost([cloud(CPI)]).unwrap();
    let place = "ConfigMap kube-system/vsphere-cloud-config, vsphere.yaml";
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found
            .iter()
            .all(|one| one.contains("spec.cloudProvider.topology.") && one.contains(place)),
        "{found:?}"
    );
}

/// Without a file there is nothing to lose, and one that cannot be read is no reason to go on.
#[test]
fn adopt_lost_settings_of_a_file_that_cannot_be_read_are_an_error() {
    let mut world = World::default().with_csi("3.7.3", CSI.as_bytes());
    world.objects.clear();
    assert_eq!(world.lost([conf(CSI)]), Ok(vec![]));
    let twice = format!("{CSI}[Global]\ncluster-id = \"b\"\n");
    let world = World::default().with_csi("3.7.3", twice.as_bytes());
    assert!(matches!(world.lost([conf(CSI)]), Err(AdoptError::Twice { .. })));
}
