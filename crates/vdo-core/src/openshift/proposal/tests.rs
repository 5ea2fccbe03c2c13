// SPDX-License-Identifier: Apache-2.0
//! Tests the proposal that is read from OpenShift's Infrastructure object and cloud provider configuration.

use super::*;
use serde_json::{Value, json};

fn infrastructure(spec: Value, status: Value) -> Object {
    Object::new(
        json!({"apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": {"name": "cluster"},
        "spec": spec, "status": status}),
    )
    .expect("an object")
}

fn vsphere(vsphere: Value) -> Object {
    infrastructure(
        json!({"platformSpec": {"type": "VSphere", "vsphere": vsphere}}),
        json!({"infrastructureName": "ocp-x7k2p", "platformStatus": {"type": "VSphere"}}),
    )
}

fn servers(found: &Proposal) -> Vec<(String, u16, Vec<String>)> {
    let all = found.vcenters.iter().map(|one| one.value.clone());
    all.map(|one| (one.server, one.port, one.datacenters)).collect()
}

fn one(server: &str, port: u16, datacenters: &[&str]) -> (String, u16, Vec<String>) {
    (server.into(), port, datacenters.iter().map(|&name| name.into()).collect())
}

#[test]
fn proposal_has_every_vcenter_with_its_datacenters() {
    let domain = |server: &str, datacenter: &str| json!({"name": "a", "server": server, "topology": {"datacenter": datacenter}});
    for (spec, expected) in [
        (
            json!({"vcenters": [{"server": "vc.example.com", "datacenters": ["dc1"]}]}),
            vec![one("vc.example.com", 443, &["dc1"])],
        ),
        (
            json!({"vcenters": [{"server": "a", "port": 8443, "datacenters": ["dc1", "dc2"]}, {"server": "b"}]}),
            vec![one("a", 8443, &["dc1", "dc2"]), one("b", 443, &[])],
        ),
        (
            json!({"vcenters": [{"server": "A", "datacenters": ["dc1"]}], "failureDomains": [domain("a", "dc1"), domain("a", "dc2")]}),
            vec![one("A", 443, &["dc1", "dc2"])],
        ),
        (json!({"failureDomains": [domain("b", "dc3")]}), vec![one("b", 443, &["dc3"])]),
        (json!({"vcenters": [{"server": "", "datacenters": ["dc1"]}]}), vec![]),
        (json!({"vcenters": [{"server": "a", "port": 70000}]}), vec![one("a", 443, &[])]),
        (json!({"vcenters": "a", "failureDomains": 3}), vec![]),
        (json!({}), vec![]),
    ] {
        assert_eq!(servers(&proposal(&vsphere(spec.clone()), None)), expected, "{spec}");
    }
}

#[test]
fn proposal_without_vsphere_part_takes_the_cloud_provider_config_or_names_no_vcenter() {
    let ini = "[Global]\nsecret-name = \"vsphere-creds\"\nport = \"8443\"\n; comment\n[Workspace]\nserver = \"other\"\n\
               [VirtualCenter \"vc.example.com\"]\ndatacenters = \"dc1, dc2\"\n[VirtualCenter \"b\"]\nport = 9443\n";
    let yaml = "global:\n  port: 8443\nvcenter:\n  vc.example.com:\n    server: vc.example.com\n    datacenters: [dc1, dc2]\n  b:\n    port: \"9443\"\n";
    let both = vec![one("vc.example.com", 8443, &["dc1", "dc2"]), one("b", 9443, &[])];
    for (config, expected) in [
        (Some(ini), both.clone()),
        (Some(yaml), both),
        (Some("[VirtualCenter \"\"]\n"), vec![]),
        (Some("no: vcenter"), vec![]),
        (Some("{ neither"), vec![]),
        (None, vec![]),
    ] {
        for bare in [infrastructure(json!({}), json!({"platform": "VSphere"})), vsphere(Value::Null)] {
            let found = proposal(&bare, config);
            assert_eq!(servers(&found), expected, "{config:?}");
            assert!(
                found
                    .vcenters
                    .iter()
                    .all(|one| one.origin == "ConfigMap openshift-config/cloud-provider-config")
            );
        }
    }
    // What the object itself says is enough.
    let found = proposal(&vsphere(json!({"vcenters": [{"server": "a"}]})), Some(ini));
    assert_eq!(servers(&found), [one("a", 443, &[])]);
    assert!(without_vcenter().contains("Infrastructure cluster: spec.platformSpec.vsphere.vcenters names no vCenter"));
}

#[test]
fn specification_has_topology_where_there_is_more_than_one_place() {
    let domain = json!({"name": "a", "server": "vc", "topology": {"datacenter": "dc"}});
    let two = json!(["openshift-region", "openshift-zone"]);
    for (spec, expected) in [
        (
            json!({"vcenters": [{"server": "vc"}], "failureDomains": [domain.clone()]}),
            Value::Null,
        ),
        (
            json!({"vcenters": [{"server": "vc"}], "failureDomains": [domain.clone(), domain.clone()]}),
            two.clone(),
        ),
        (json!({"vcenters": [{"server": "vc"}, {"server": "b"}]}), two),
    ] {
        let found = proposal(&vsphere(spec.clone()), None).specification();
        assert_eq!(found["storageProvider"]["topologyCategories"], expected, "{spec}");
        assert_eq!(found["storageProvider"]["clusterDistribution"], "OpenShift");
        assert_eq!(found["storageProvider"]["clusterId"], "ocp-x7k2p");
        assert_eq!(found["cloudProvider"], Value::Null, "OpenShift runs it itself");
    }
    let long = infrastructure(json!({}), json!({"infrastructureName": "x".repeat(65), "platform": "None"}));
    assert_eq!(proposal(&long, None).specification()["storageProvider"]["clusterId"], Value::Null);
}

#[test]
fn networks_are_those_of_the_cloud_provider_where_vdo_installs_it() {
    let networking = json!({"nodeNetworking": {
        "internal": {"network": "VM Network", "networkSubnetCidr": ["10.0.0.0/16"], "excludeNetworkSubnetCidr": ["10.0.9.0/24"]},
        "external": {"networkSubnetCidr": ["192.0.2.0/24"]}},
        "failureDomains": [{"server": "vc"}, {"server": "vc"}]});
    let external = infrastructure(
        json!({"platformSpec": {"type": "External", "vsphere": networking}}),
        json!({"platformStatus": {"type": "External", "external": {"cloudControllerManager": {"state": "External"}}}}),
    );
    let found = proposal(&external, None);
    assert_eq!(
        found.specification()["cloudProvider"],
        json!({"topology": {"region": "openshift-region", "zone": "openshift-zone"},
        "nodeNetworks": {"internal": {"name": "VM Network", "subnets": ["10.0.0.0/16"], "excludedSubnets": ["10.0.9.0/24"]},
            "external": {"subnets": ["192.0.2.0/24"]}}})
    );
    let lines = found.lines().join("\n");
    let line = "internal addresses of nodes: network VM Network, subnets 10.0.0.0/16, excluded subnets 10.0.9.0/24 \
                (Infrastructure cluster: spec.platformSpec.vsphere.nodeNetworking)";
    assert!(lines.contains(line), "{lines}");
    let found = proposal(&vsphere(networking), None);
    assert_eq!(found.specification()["cloudProvider"], Value::Null);
    assert!(!found.lines().join("\n").contains("10.0.0.0/16"), "{:?}", found.lines());
}

#[test]
fn lines_name_each_value_with_its_origin() {
    let found = proposal(
        &vsphere(json!({"vcenters": [{"server": "vc.example.com", "port": 8443, "datacenters": ["dc1"]}]})),
        None,
    );
    assert_eq!(
        found.lines(),
        [
            "vCenter vc.example.com:8443, datacenter dc1 (Infrastructure cluster: spec.platformSpec.vsphere.vcenters)",
            "drivers: CSI alone; OpenShift runs the cloud provider itself (Infrastructure cluster: platform VSphere), and two cloud providers would overwrite each other's changes to its nodes",
            "cluster distribution: OpenShift",
            "cluster id: ocp-x7k2p (Infrastructure cluster: status.infrastructureName)",
        ]
    );
}

#[test]
fn addresses_are_written_as_a_person_types_them() {
    for (server, port, expected) in [
        ("vc", 443, "vc"),
        ("vc", 8443, "vc:8443"),
        ("::1", 443, "::1"),
        ("::1", 8443, "[::1]:8443"),
    ] {
        let vcenter = Vcenter {
            server: server.into(),
            port,
            datacenters: vec![],
        };
        assert_eq!(vcenter.address(), expected);
    }
}
