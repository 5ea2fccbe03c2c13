// SPDX-License-Identifier: Apache-2.0
//! What the drivers read is what was meant: files are read back by readers that share no code with the writers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod settings;
#[path = "../cluster/secrets/shapes.rs"]
mod shapes;
mod trust;

use crate::fuzz::readers::{read_cpi_secret, read_gcfg};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use std::collections::BTreeMap;
use vdo_api::types::{DriverVersion, Remedy as _, Secret};
use vdo_core::driverconfig::cpi::{self, CpiConfig, CpiOptions, IpFamily, NodeNetwork};
use vdo_core::driverconfig::csi::{self, Access, CsiOptions, NetPermission, SnapshotLimits, Tuning};
use vdo_core::driverconfig::{ConfigError, Connection, Thumbprint, Trust};

const NASTY: &str = r##"p@ss"w\or d#;%$='"##;
const PEM: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

fn connection(name: &str, server: &str) -> Connection {
    Connection {
        name: name.into(),
        server: server.into(),
        port: 443,
        datacenters: vec![],
        trust: Trust::SystemRoots,
        sha1: None,
        user: "csi@vsphere.local".into(),
        password: Secret::new(NASTY),
    }
}

fn version(text: &str) -> DriverVersion {
    text.parse().unwrap()
}

fn cpi_options() -> CpiOptions {
    CpiOptions {
        secret_name: "vsphere-cloud-secret".into(),
        secret_namespace: "kube-system".into(),
        ..CpiOptions::default()
    }
}

fn csi_text(version_text: &str, options: &CsiOptions, connections: &[Connection]) -> String {
    csi::render(&version(version_text), options, connections).unwrap()[csi::FILE]
        .expose()
        .to_owned()
}

/// Printable text with everything that has a meaning in some grammar, well beyond ASCII.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{1,40}",
        "[\\\\\"';#=%$ \t\n\\[\\]]{1,12}",
        proptest::collection::vec(any::<char>().prop_filter("not expressible", |c| !matches!(c, '\0' | '\r')), 1..24)
            .prop_map(|chars| chars.into_iter().collect()),
    ]
}

fn listable() -> impl Strategy<Value = String> {
    "[^,\\pC]{1,20}".prop_filter("trimmed", |name| name.trim() == name)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn csi_config_random_connection_round_trips(user in text(), password in text(), datacenters in proptest::collection::vec(listable(), 0..3), port in 1u16..) {
        let mut meant = connection("vc1", "vcenter.example.com");
        (meant.user, meant.password, meant.datacenters, meant.port) = (user, Secret::new(password), datacenters, port);
        // 3.1.1 is the last version that takes any user name.
        let read = read_gcfg(&csi_text("3.1.1", &CsiOptions::new("cluster"), std::slice::from_ref(&meant))).unwrap();
        let get = |key: &str| read.get(&("virtualcenter".into(), meant.server.clone(), key.into())).cloned();
        prop_assert_eq!(get("user"), Some(meant.user.clone()));
        prop_assert_eq!(get("password"), Some(meant.password.expose().to_owned()));
        prop_assert_eq!(get("port"), Some(meant.port.to_string()));
        prop_assert_eq!(get("datacenters").unwrap_or_default(), meant.datacenters.join(","));
    }

    #[test]
    fn cpi_config_random_connection_round_trips(user in text(), password in text(), datacenters in proptest::collection::vec(listable(), 0..3), six in any::<bool>()) {
        let mut meant = connection("old-password", if six { "fd01::1" } else { "vcenter.example.com" });
        (meant.user, meant.password, meant.datacenters) = (user, Secret::new(password), datacenters);
        let CpiConfig { conf, secret, .. } = cpi::render(&version("1.34.0"), &cpi_options(), std::slice::from_ref(&meant)).unwrap();
        let expected = BTreeMap::from([(meant.server.clone(), (meant.user.clone(), meant.password.expose().to_owned()))]);
        prop_assert_eq!(read_cpi_secret(&secret), expected);
        for read in both_yaml_readers(&conf) {
            prop_assert_eq!(&read["vcenter"]["old-password"]["server"], &meant.server);
            let names: Vec<_> = read["vcenter"]["old-password"]["datacenters"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap().to_owned()).collect();
            prop_assert_eq!(names, meant.datacenters.clone());
        }
    }
}

/// Ten thousand passwords, and the crafted ones, reach both drivers byte by byte: the CSI driver's file through its own parser, the cloud
/// provider's Secret through the rules of its credential manager. What cannot be expressed is refused and named, never changed.
#[test]
fn driver_config_random_passwords_are_byte_exact() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let random = (0..10_000).map(|_| text().new_tree(&mut runner).unwrap().current());
    let passwords: Vec<String> = random.chain(shapes::all()).collect();
    let expressible = |password: &&String| !password.contains('\r');
    let refused = passwords.iter().filter(|password| !expressible(password)).count();
    let mut options = CsiOptions::new("cluster");
    options.topology_categories = vec!["zone".into()];
    let connections: Vec<Connection> = passwords
        .iter()
        .filter(expressible)
        .enumerate()
        .map(|(at, password)| Connection {
            password: Secret::new(password),
            ..connection(&format!("vc{at}"), &format!("vc{at}.example.com"))
        })
        .collect();
    let files: Vec<String> = connections
        .chunks(csi::MAX_VCENTERS)
        .map(|some| csi_text("3.7.3", &options, some))
        .collect();
    let read = vdo_testbed::parsed_many(vdo_testbed::Grammar::Csi, &files).unwrap();
    let mut exact = 0;
    for (some, read) in connections.chunks(csi::MAX_VCENTERS).zip(&read) {
        let secret = cpi::render(&version("1.34.0"), &cpi_options(), some).unwrap().secret;
        let of_cpi = read_cpi_secret(&secret);
        for meant in some {
            let password = meant.password.expose();
            assert_eq!(read["VirtualCenter"][&meant.server]["password"], password, "CSI");
            assert_eq!(of_cpi[&meant.server].1, password, "CPI");
            exact += 1;
        }
    }
    for password in passwords.iter().filter(|password| password.contains('\r')) {
        let mut meant = connection("vc1", "vcenter.example.com");
        meant.password = Secret::new(password);
        let error = csi::render(&version("3.7.3"), &options, &[meant]).unwrap_err();
        assert!(error.to_string().contains("carriage return"), "{error}");
    }
    println!(
        "{exact} of {} passwords byte-exact in both files, {refused} refused by name",
        passwords.len()
    );
    assert!(exact >= 10_000 && refused > 0);
}

fn both_yaml_readers(text: &str) -> [serde_json::Value; 2] {
    [serde_yaml::from_str(text).unwrap(), serde_saphyr::from_str(text).unwrap()]
}

#[test]
fn csi_config_all_options_renders_expected_file() {
    let mut one = connection("vc1", "vcenter.example.com");
    one.datacenters = vec!["DC0".into(), "/Site \"A\"/DC1".into()];
    one.trust = Trust::CaBundle(PEM.into());
    let mut two = connection("vc2", "fd01::1");
    two.user = r"VSPHERE.LOCAL\csi_user".into();
    two.trust = Trust::Thumbprint(Thumbprint::from_sha1([0xAB; 20]));
    let options = CsiOptions {
        cluster_distribution: Some("OpenShift".into()),
        topology_categories: vec!["zone".into(), "region".into()],
        net_permissions: vec![NetPermission {
            ips: "10.0.0.0/8".into(),
            access: Access::ReadOnly,
            root_squash: true,
        }],
        file_share_datastore_urls: vec!["ds:///vmfs/volumes/vsan:1/".into()],
        file_share_clusters: BTreeMap::from([("vc2".to_owned(), vec!["domain-c8".to_owned(), "domain-c9".to_owned()])]),
        snapshots: SnapshotLimits {
            per_volume: Some(3),
            vsan: None,
            vvol: Some(5),
        },
        tuning: Tuning {
            query_limit: Some(500),
            list_volume_threshold: Some(20),
            auth_check_minutes: Some(10),
            preferred_datastores_minutes: Some(15),
        },
        ..CsiOptions::new("cluster-1")
    };
    let data = csi::render(&version("3.7.3"), &options, &[two.clone(), one.clone()]).unwrap();
    insta::assert_snapshot!(data[csi::FILE].expose(), @r##"
    [Global]
    cluster-id = "cluster-1"
    cluster-distribution = "OpenShift"
    query-limit = "500"
    list-volume-threshold = "20"
    csi-auth-check-intervalinmin = "10"
    csi-fetch-preferred-datastores-intervalinmin = "15"

    [VirtualCenter "vcenter.example.com"]
    user = "csi@vsphere.local"
    password = "p@ss\"w\\or d#;%$='"
    port = "443"
    insecure-flag = "false"
    ca-file = "/etc/cloud/vc1.ca.pem"
    datacenters = "DC0,/Site \"A\"/DC1"

    [VirtualCenter "fd01::1"]
    user = "VSPHERE.LOCAL\\csi_user"
    password = "p@ss\"w\\or d#;%$='"
    port = "443"
    insecure-flag = "false"
    thumbprint = "AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB"
    targetvSANFileShareClusters = "domain-c8,domain-c9"

    [NetPermissions "permission-0"]
    ips = "10.0.0.0/8"
    permissions = "READ_ONLY"
    rootsquash = "true"

    [Labels]
    topology-categories = "zone,region"

    [Snapshot]
    global-max-snapshots-per-block-volume = "3"
    granular-max-snapshots-per-block-volume-vvol = "5"
    "##);
    assert_eq!(data["vc1.ca.pem"].expose(), PEM);
    assert_eq!(data.len(), 2);
    assert_eq!(
        data,
        csi::render(&version("3.7.3"), &options, &[one, two]).unwrap(),
        "the order of connections matters"
    );
    let ignored = csi::ignored(&version("3.7.3"), &options);
    assert_eq!(ignored.len(), 1);
    assert_eq!(ignored[0].option, "fileVolumes.vsanDataStoreUrl");
    assert!(csi::ignored(&version("3.1.2"), &options).is_empty());
    let of = |at: &str, options: &csi::CsiOptions| -> Vec<String> {
        let ignored = csi::ignored(&version(at), options);
        ignored.into_iter().map(|one| one.option).collect()
    };
    let tuning_2_6 = [
        "tuning.queryLimit",
        "tuning.listVolumeThreshold",
        "tuning.preferredDatastoresMinutes",
    ];
    assert_eq!(
        of("2.3.0", &options),
        [&["snapshots", "topologyCategories"][..], &tuning_2_6].concat()
    );
    let bare = csi::CsiOptions {
        snapshots: csi::SnapshotLimits::default(),
        topology_categories: Vec::new(),
        tuning: Tuning {
            auth_check_minutes: Some(10),
            ..Tuning::default()
        },
        ..options
    };
    assert!(of("2.3.0", &bare).is_empty());
    assert_eq!(
        of("2.1.0", &bare),
        ["clusterDistribution", "fileVolumes.vsanClusters", "tuning.authCheckMinutes"]
    );
    let migrating = csi::CsiOptions {
        migration_datastore_url: Some("ds:///vmfs/volumes/a/".into()),
        ..CsiOptions::new("cluster-1")
    };
    assert_eq!(of("2.7.4", &migrating), ["migrationDatastoreUrl"]);
    for (at, written) in [("2.7.4", false), ("3.0.0", true)] {
        let data = csi::render(&version(at), &migrating, &[connection("vc1", "vcenter.example.com")]).unwrap();
        let line = "migration-datastore-url = \"ds:///vmfs/volumes/a/\"";
        assert_eq!(data[csi::FILE].expose().contains(line), written, "{at}");
    }
}

#[test]
fn cpi_config_all_options_renders_expected_file() {
    let mut one = connection("vc1", "vcenter.example.com");
    one.datacenters = vec!["DC0".into(), "/Site \"A\"/DC1".into()];
    one.trust = Trust::CaBundle(PEM.into());
    let mut two = connection("no", "fd01::1");
    two.trust = Trust::Insecure;
    two.port = 8443;
    let mut options = cpi_options();
    options.topology = Some(cpi::Topology {
        zone: "k8s-zone".into(),
        region: "k8s-region".into(),
    });
    options.addresses.families = vec![IpFamily::V6, IpFamily::V4];
    options.addresses.internal = NodeNetwork {
        subnets: vec!["192.168.10.0/24".into(), "fd00:10::/64".into()],
        excluded: vec!["10.244.0.0/16".into()],
        name: Some("DPG: \"nodes\"".into()),
    };
    options.addresses.external.subnets = vec!["0.0.0.0/0".into()];
    let made = cpi::render(&version("1.34.0"), &options, &[one, two]).unwrap();
    insta::assert_snapshot!(made.conf, @r##"
    global:
      secretName: "vsphere-cloud-secret"
      secretNamespace: "kube-system"
      ipFamily: ["ipv6", "ipv4"]
    vcenter:
      "no":
        server: "fd01::1"
        port: 8443
        insecureFlag: true
      "vc1":
        server: "vcenter.example.com"
        port: 443
        datacenters: ["DC0", "/Site \"A\"/DC1"]
        caFile: "/etc/cloud/vc1.ca.pem"
    labels:
      zone: "k8s-zone"
      region: "k8s-region"
    nodes:
      internalNetworkSubnetCidr: "192.168.10.0/24,fd00:10::/64"
      externalNetworkSubnetCidr: "0.0.0.0/0"
      excludeInternalNetworkSubnetCidr: "10.244.0.0/16"
      internalVmNetworkName: "DPG: \"nodes\""
    "##);
    assert_eq!(made.files, BTreeMap::from([("vc1.ca.pem".to_owned(), PEM.to_owned())]));
    assert_eq!(
        made.secret.keys().collect::<Vec<_>>(),
        [
            "password_no-vc",
            "server_no-vc",
            "username_no-vc",
            "vcenter.example.com.password",
            "vcenter.example.com.username"
        ]
    );
    let [left, right] = both_yaml_readers(&made.conf);
    assert_eq!(left, right);
    assert!(!made.conf.contains("p@ss"), "the ConfigMap holds a password");
}

#[test]
fn cpi_config_subnet_not_in_cidr_form_is_refused() {
    let try_one = |subnet: &str| {
        let mut options = cpi_options();
        options.addresses.external.excluded = vec!["10.0.0.0/8".into(), subnet.into()];
        cpi::render(&version("1.34.0"), &options, &[connection("vc1", "vcenter.example.com")]).map(drop)
    };
    for good in ["0.0.0.0/0", "10.1.0.0/32", "fd00::/128", "::/0"] {
        assert_eq!(try_one(good), Ok(()), "{good}");
    }
    for bad in [
        "",
        "10.0.0.0",
        "10.0.0.0/33",
        "10.0.0.0/08",
        "10.0.0.0/+8",
        "10.0.0.0/",
        "fd00::/129",
        "nodes/24",
        "10.0.0.0/8,10.1.0.0/16",
    ] {
        let error = try_one(bad).expect_err(bad);
        assert_eq!(error.to_string(), format!("the subnet {bad:?} is not in CIDR form"));
    }
}

#[test]
fn cpi_config_ambiguous_server_or_password_uses_indirect_keys() {
    for (server, password) in [
        ("a.password.example.com", "x"),
        ("a.username", "x"),
        ("vc.example.com", "x\n"),
        ("fd01::1", "x\r\n"),
        ("münchen.example", "x"),
    ] {
        let mut meant = connection("vc1", server);
        meant.password = Secret::new(password);
        let secret = cpi::render(&version("1.34.0"), &cpi_options(), &[meant]).unwrap().secret;
        assert_eq!(read_cpi_secret(&secret)[server].1, password, "{server}");
        assert!(secret.contains_key("server_vc1-vc"));
    }
}

fn clients(ips: &str) -> NetPermission {
    NetPermission {
        ips: ips.into(),
        access: Access::ReadWrite,
        root_squash: false,
    }
}

/// A valid baseline, one change, one error; and no error shows a password.
#[test]
fn csi_config_each_invalid_field_is_rejected() {
    type Mutation = fn(&mut Vec<Connection>, &mut CsiOptions);
    let cases: &[(Mutation, &str)] = &[
        (|c, _| c.clear(), "no vSphere connection"),
        (|c, _| c[0].name = "a/b".into(), "cannot be part of a Secret key"),
        (|c, _| c.push(c[0].clone()), "is given twice"),
        (
            |c, _| {
                c.push(Connection {
                    name: "b".into(),
                    server: "VCENTER.example.com".into(),
                    ..c[0].clone()
                })
            },
            "both have the address",
        ),
        (|c, _| c[0].server = "https://vc".into(), "is not an address"),
        (|c, _| c[0].server = "[fd01::1]".into(), "is not an address"),
        (|c, _| c[0].server = "a\"]\n[Global".into(), "is not an address"),
        (|c, _| c[0].server = String::new(), "is not an address"),
        (|c, _| c[0].user = String::new(), "the user is empty"),
        (|c, _| c[0].password = Secret::default(), "the password is empty"),
        (|c, _| c[0].password = Secret::new("hunter2\r"), "contains a carriage return"),
        (|c, _| c[0].password = Secret::new("hunter2\0"), "contains a NUL"),
        (|c, _| c[0].user = "administrator".into(), "does not accept the user"),
        (|c, _| c[0].user = "a b@c".into(), "does not accept the user"),
        (|c, _| c[0].user = "a@b@c".into(), "does not accept the user"),
        (|c, _| c[0].datacenters = vec!["DC, West".into()], "commas separate"),
        (|c, _| c[0].datacenters = vec![" DC".into()], "drops spaces"),
        (|c, _| c[0].trust = Trust::CaBundle("hello".into()), "contains no certificate"),
        (
            |c, _| c[0].trust = Trust::CaBundle(format!("{PEM}-----BEGIN RSA PRIVATE KEY-----")),
            "contains a private key",
        ),
        (|c, _| c.push(connection("b", "b.example.com")), "but no topology categories"),
        (
            |c, _| c.extend((0..5).map(|i| connection(&format!("c{i}"), &format!("c{i}.example.com")))),
            "at most 5",
        ),
        (|_, o| o.cluster_id = String::new(), "is empty"),
        (|_, o| o.cluster_id = "x".repeat(65), "is too long"),
        (|_, o| o.topology_categories = vec!["a".into(); 6], "there are too many"),
        (|_, o| o.topology_categories = vec!["a,b".into()], "commas separate"),
        (|_, o| o.cluster_distribution = Some("a\rb".into()), "carriage return"),
        (|_, o| o.file_share_datastore_urls = vec!["ds:///a,b".into()], "the datastore URL"),
        (|_, o| o.migration_datastore_url = Some("ds:///a\u{1}".into()), "the datastore URL"),
        (
            |_, o| o.net_permissions.push(clients("10.0.0.1, 10.0.0.2")),
            "fileVolumes.netPermissions[0].ips \"10.0.0.1, 10.0.0.2\" is not an address",
        ),
        (
            |_, o| o.net_permissions.extend([clients("*"), clients("10.0.0.0/40")]),
            "fileVolumes.netPermissions[1].ips",
        ),
        (
            |_, o| drop(o.file_share_clusters.insert("vc1".into(), vec!["a,b".into()])),
            "the vSAN cluster",
        ),
        (
            |_, o| drop(o.file_share_clusters.insert("vc9".into(), vec!["domain-c8".into()])),
            "names vSphere connection vc9, which the CSI driver does not use",
        ),
        (
            |c, o| {
                c.push(connection("b", "b.example.com"));
                o.topology_categories = vec!["zone".into()];
                o.migration_datastore_url = Some("ds:///vmfs/volumes/a/".into());
            },
            "can be used with only one vCenter, but 2 vSphere connections are given",
        ),
    ];
    for (mutate, expected) in cases {
        let (mut connections, mut options) = (vec![connection("vc1", "vcenter.example.com")], CsiOptions::new("cluster"));
        assert!(csi::render(&version("3.7.3"), &options, &connections).is_ok());
        mutate(&mut connections, &mut options);
        let error = csi::render(&version("3.7.3"), &options, &connections).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error} does not say {expected:?}");
        assert!(
            !format!("{error} {error:?} {connections:?}").contains("hunter2"),
            "a password in {error:?}"
        );
        assert!(error.remedy().is_some(), "{error} does not say what to do");
    }
}

#[test]
fn csi_config_2_7_second_vcenter_is_rejected() {
    let two = [connection("a", "a.example.com"), connection("b", "b.example.com")];
    let error = csi::render(&version("2.7.4"), &CsiOptions::new("cluster"), &two).unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("CSI 2.7.4 supports only one vCenter, but 2 are given"), "{said}");
    assert_eq!(
        error,
        ConfigError::OneVcenterOnly {
            version: version("2.7.4"),
            count: 2
        }
    );
}

/// What is not asked for is not in the file: a driver may take an empty value for one.
#[test]
fn csi_config_without_options_has_no_empty_keys() {
    let data = csi::render(&version("3.7.3"), &CsiOptions::new("id"), &[connection("vc1", "vc1.example")]).unwrap();
    let text: String = data.values().map(Secret::expose).collect();
    for key in [
        "targetvSANFileShareDatastoreURLs",
        "[Labels]",
        "[Snapshot]",
        "datacenters",
        "NetPermissions",
    ] {
        assert!(!text.contains(key), "{key} is in:\n{text}");
    }
}
