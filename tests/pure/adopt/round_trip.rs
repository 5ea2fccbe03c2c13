// SPDX-License-Identifier: Apache-2.0
//! Configurations through the objects of VDO and back, for every version of both drivers.

use super::world::{World, spec, versions};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use std::fmt::Write as _;
use vdo_adopt::{Adoption, Document};
use vdo_api::api::VDOConfigSpec;
use vdo_api::types::{DriverVersion, Secret, Trust};
use vdo_core::driverconfig::{Connection, csi};
use vdo_core::drivers::Setup;
use vdo_core::manifest::Object;

/// The connections of an adoption, as they are written into the drivers' files.
fn connections(adoption: &Adoption) -> Vec<Connection> {
    let objects: Vec<Value> = adoption.documents.iter().map(Document::object).collect();
    let of = |kind: &str, name: &Value| {
        objects
            .iter()
            .find(|object| object["kind"] == kind && object["metadata"]["name"] == *name)
    };
    let connection = |object: &Value| {
        let spec = &object["spec"];
        let account = adoption
            .documents
            .iter()
            .find(|one| one.object()["metadata"]["name"] == spec["credentials"]);
        let account = account.and_then(|one| one.account.clone()).unwrap();
        let trust = match (&spec["insecure"], &spec["thumbprint"], &spec["caBundle"]["configMap"]) {
            (Value::Bool(true), ..) => Trust::Insecure,
            (_, Value::String(print), _) => Trust::Thumbprint(print.parse().unwrap()),
            (.., map @ Value::String(_)) => Trust::CaBundle(of("ConfigMap", map).unwrap()["data"]["ca.crt"].as_str().unwrap().to_owned()),
            _ => Trust::SystemRoots,
        };
        Connection {
            name: object["metadata"]["name"].as_str().unwrap().to_owned(),
            server: spec["vcIp"].as_str().unwrap().to_owned(),
            port: spec["port"].as_u64().map_or(443, |port| u16::try_from(port).unwrap()),
            datacenters: serde_json::from_value(spec["datacenters"].clone()).unwrap_or_default(),
            trust,
            sha1: None,
            user: account.user.expose().to_owned(),
            password: Secret::new(account.password.expose()),
        }
    };
    objects
        .iter()
        .filter(|object| object["kind"] == "VsphereCloudConfig")
        .map(connection)
        .collect()
}

/// What the operator writes for a driver.
fn written(driver: &str, version: &DriverVersion, namespace: &str, adoption: &Adoption) -> Vec<Object> {
    let spec: VDOConfigSpec = serde_json::from_value(spec(adoption)).unwrap();
    let id = spec
        .storage_provider
        .as_ref()
        .and_then(|csi| csi.cluster_id.clone())
        .unwrap_or_default();
    let setup = Setup {
        spec: &spec,
        version,
        namespace,
        connections: connections(adoption),
        cluster_id: &id,
        salt: "salt",
        webhook: None,
    };
    setup.write(driver).unwrap_or_else(|error| panic!("{driver} {version}: {error}"))
}

fn values(adoption: &Adoption) -> Vec<Value> {
    adoption.documents.iter().map(Document::object).collect()
}

/// Keys of `[Global]` that are numbers with a field.
const NUMBERS: [&str; 4] = [
    "query-limit",
    "list-volume-threshold",
    "csi-auth-check-intervalinmin",
    "csi-fetch-preferred-datastores-intervalinmin",
];

/// A file of the CSI driver as people write it: any case, order and quoting, with keys that have no field. What it loses is listed.
fn csi_file(version: &DriverVersion) -> impl Strategy<Value = (String, usize)> + use<> {
    let before = |limit: &str| *version < limit.parse().unwrap();
    let most = if before("3.0.0") { 1 } else { 3 };
    let (per_vcenter, datastores, migration) = (!before("3.3.0"), before("3.2.0"), !before("3.0.0"));
    let vcenter = (
        proptest::option::of(1u16..),
        proptest::option::of(any::<bool>()),
        proptest::option::of("[0-9A-F]{40}"),
        proptest::collection::vec("[A-Za-z0-9/]{1,3}( [a-z]{1,2})?", 0..3),
        "[ -~]{1,12}",
        any::<bool>(),
        proptest::collection::vec("domain-c[0-9]{1,4}", 0..3),
    );
    let clients = prop_oneof![
        Just("*".to_owned()),
        (any::<std::net::Ipv4Addr>(), 0..33u8).prop_map(|(address, length)| format!("{address}/{length}")),
        any::<std::net::Ipv6Addr>().prop_map(|address| address.to_string()),
        (1..9u8, 9..20u8).prop_map(|(from, to)| format!("10.0.0.{from}-10.0.0.{to}")),
    ];
    let numbers = proptest::collection::vec(proptest::option::of(1..60u32), 6);
    let rest = (
        "[a-z0-9-]{1,20}",
        proptest::option::of("[A-Za-z ]{0,5}[A-Za-z]"),
        proptest::collection::vec((clients, 0..3usize, any::<bool>()), 0..3),
        proptest::collection::vec("[a-z-]{1,8}", 1..4),
        proptest::option::of(1..33),
        any::<bool>(),
        numbers,
    );
    (proptest::collection::vec(vcenter, 1..=most), rest).prop_map(
        move |(vcenters, (id, distribution, nets, categories, snapshots, unknown, numbers))| {
            let (mut text, mut losses) = (format!("# by hand\n[GLOBAL]\r\nCluster-ID={id}\n"), 0);
            if let Some(distribution) = distribution {
                let _ = writeln!(text, "cluster-distribution = \"{distribution}\" ; a label");
            }
            if unknown {
                text.push_str("cnspvcprotection-cleanup-intervalinmin = 77\nno-such-key = \"x\"\n");
                losses += 2;
            }
            for (key, number) in NUMBERS.iter().zip(&numbers) {
                if let Some(number) = number {
                    let _ = writeln!(text, "{key} = {number}");
                }
            }
            let several = vcenters.len() > 1;
            for (at, (port, insecure, print, datacenters, password, quoted, clusters)) in vcenters.into_iter().enumerate() {
                let _ = writeln!(text, "[VirtualCenter \"vc{at}.example.com\"]\nuser = u{at}@d");
                let escaped = password.replace('\\', "\\\\").replace('"', "\\\"");
                let plain = quoted || password.contains(['\\', '"', ';', '#']) || password.trim() != password;
                let _ = if plain {
                    writeln!(text, "PASSWORD = \"{escaped}\"")
                } else {
                    writeln!(text, "password={password}")
                };
                if let Some(port) = port {
                    let _ = writeln!(text, "port = {port}");
                }
                if let Some(insecure) = insecure {
                    let _ = writeln!(text, "insecure-flag = {}", if insecure { "Yes" } else { "\"0\"" });
                }
                if let Some(print) = print.filter(|_| per_vcenter) {
                    let _ = writeln!(text, "thumbprint = {print}");
                }
                if !datacenters.is_empty() {
                    let _ = writeln!(text, "datacenters = \"{}\"", datacenters.join(" , "));
                }
                if !clusters.is_empty() {
                    let _ = writeln!(text, "targetvSANFileShareClusters = {}", clusters.join(", "));
                }
                if migration && !several {
                    text.push_str("migration-datastore-url = ds:///vmfs/volumes/a/\n");
                }
                if datastores {
                    text.push_str("targetvSANFileShareDatastoreURLs = ds:///vmfs/volumes/vsan:1/, ds:///vmfs/volumes/vsan:2/\n");
                }
            }
            for (at, (ips, access, squash)) in nets.into_iter().enumerate() {
                let access = ["READ_WRITE", "READ_ONLY", "NO_ACCESS"][access];
                let _ = writeln!(
                    text,
                    "[NetPermissions \"n{at}\"]\nips = \"{ips}\"\npermissions = {access}\nrootsquash = {squash}"
                );
            }
            if several {
                let _ = writeln!(text, "[Labels]\ntopology-categories = {}", categories.join(", "));
            }
            text.push_str("[Snapshot]\n");
            if let Some(limit) = snapshots {
                let _ = writeln!(text, "global-max-snapshots-per-block-volume = {limit}");
            }
            for (kind, number) in ["vsan", "vvol"].iter().zip(&numbers[NUMBERS.len()..]) {
                if let Some(number) = number.filter(|number| *number <= 32) {
                    let _ = writeln!(text, "granular-max-snapshots-per-block-volume-{kind} = {number}");
                }
            }
            (text, losses)
        },
    )
}

/// Configuration, objects, the file that the operator writes, objects: the same objects, and no further loss.
#[test]
fn adopted_csi_file_of_each_version_survives_the_way_through_the_objects() {
    let mut runner = TestRunner::deterministic();
    for version in versions("vsphere-csi") {
        let files = csi_file(&version);
        let (text, losses) = files.new_tree(&mut runner).unwrap().current();
        let world = World::default().with_csi(&version.to_string(), text.as_bytes());
        let first = world.adopted().unwrap_or_else(|error| panic!("{version}: {error}\n{text}"));
        let lost: Vec<&str> = first.losses.iter().map(|loss| loss.key.as_str()).collect();
        assert_eq!(lost.len(), losses, "{version}: {lost:?}\n{text}");
        let file = written("vsphere-csi", &version, "vmware-system-csi", &first);
        let mut again = World::default().with_csi(&version.to_string(), text.as_bytes());
        again.objects.retain(|object| object.name() != "vsphere-config-secret");
        again.objects.extend(file);
        let second = again.adopted().unwrap();
        assert_eq!(values(&second), values(&first), "{version}\n{text}");
        assert_eq!(second.losses, [], "{version}\n{text}");
    }
}

/// The same for the cloud provider, from YAML and from INI.
#[test]
fn adopted_cpi_file_of_each_version_survives_the_way_through_the_objects() {
    let yaml = "global: {port: 8443, user: u@d, password: hunter2, ipFamily: [ipv6, ipv4]}\n\
                vcenter:\n  a: {server: vc1.example.com, insecureFlag: true, datacenters: [DC0, 'DC 1']}\n  b: {server: 'fd01::1', port: 443}\n\
                labels: {zone: k8s-zone, region: k8s-region}\n\
                nodes: {internalNetworkSubnetCidr: '10.0.0.0/8, fd00::/64', externalVmNetworkName: 'a: b', excludeInternalNetworkSubnetCidr: 10.1.0.0/16}\n\
                route: {routerPath: /x}\n";
    let ini = "[Global]\nport = 8443\nuser = u@d\npassword = \"hunter2\"\nip-family = ipv6,ipv4\n\
               [VirtualCenter \"vc1.example.com\"]\ninsecure-flag\ndatacenters = \"DC0, DC 1\"\n[VirtualCenter \"fd01::1\"]\nport = 443\n\
               [Labels]\nzone = k8s-zone\nregion = k8s-region\n\
               [Nodes]\ninternal-network-subnet-cidr = 10.0.0.0/8, fd00::/64\nexternal-vm-network-name = \"a: b\"\nexclude-internal-network-subnet-cidr = 10.1.0.0/16\n\
               [Route]\nrouter-path = /x\n";
    for version in versions("vsphere-cpi") {
        let mut found = Vec::new();
        for text in [yaml, ini] {
            let mut world = World::default().with_cpi("vsphere.conf", text);
            for one in &mut world.workloads {
                one.version = Some(version.clone());
            }
            world.charts.clear();
            let first = world.adopted().unwrap();
            assert_eq!(first.losses.len(), 1, "{:?}", first.losses);
            let file = written("vsphere-cpi", &version, "kube-system", &first);
            let mut again = World::default().with_cpi("vsphere.conf", text);
            again.charts.clear();
            again.objects.retain(|object| object.name() != "vsphere-cloud-config");
            again.objects.extend(file);
            let second = again.adopted().unwrap();
            assert_eq!(values(&second), values(&first), "{version}");
            assert_eq!(second.losses, [], "{version}");
            found.push(values(&first));
        }
        assert_eq!(found[0], found[1], "{version}");
    }
}

/// The key of the Secret is where every version looks for it.
#[test]
fn adopted_csi_file_is_the_one_that_the_operator_writes() {
    let text = b"[Global]\ncluster-id = c\n[VirtualCenter \"vc\"]\nuser = u@d\npassword = p\n";
    let adoption = World::default().with_csi("3.7.3", text).adopted().unwrap();
    let file = written("vsphere-csi", &"3.7.3".parse().unwrap(), "vmware-system-csi", &adoption);
    let id = csi::cluster_id(&base64_of(file[0].text("/data/csi-vsphere.conf")));
    assert_eq!(id.as_deref(), Some("c"));
}

fn base64_of(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}
