// SPDX-License-Identifier: Apache-2.0
//! From a specification with everything in it to what is asked of the matrix, to the values of the charts and to the drivers' configuration.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use vdo_api::api::{CREDENTIALS_ANNOTATION, VDOConfigSpec};
use vdo_api::types::{DriverVersion, Secret};
use vdo_core::chart::{self, Chart};
use vdo_core::driverconfig::{Connection, Trust, csi};
use vdo_core::drivers::{self, CPI, CSI, Material, SERVED, Setup, Uses, requests};
use vdo_core::manifest::Object;
use vdo_source::fetch::embedded;

fn spec(value: Value) -> VDOConfigSpec {
    serde_json::from_value(value).unwrap()
}

fn full() -> VDOConfigSpec {
    spec(json!({
        "cloudProvider": {
            "managementState": "Paused", "version": "1.34.0", "allowIncompatible": true, "vsphereCloudConfigs": ["vc1"],
            "topology": {"zone": "k8s-zone", "region": "k8s-region"}, "ipFamilies": ["IPv6", "IPv4"],
            "nodeNetworks": {
                "internal": {"subnets": ["10.0.0.0/8"], "excludedSubnets": ["10.1.0.0/16"], "name": "nodes"},
                "external": {"subnets": ["192.168.0.0/16"]},
            },
            "values": {"logLevel": 4},
        },
        "storageProvider": {
            "managementState": "Removed", "version": "3.7.3", "allowIncompatible": true, "vsphereCloudConfig": "vc2",
            "clusterDistribution": "OpenShift", "customKubeletPath": "/data/kubelet", "topologyCategories": ["zone"],
            "fileVolumes": {"vsanDataStoreUrl": ["ds:///vmfs/volumes/vsan:1/"], "netPermissions": [
                {"ips": "10.0.0.0/8", "permissions": "READ_ONLY", "rootSquash": true},
                {"ips": "10.1.0.0/16", "permissions": "NO_ACCESS"}, {"ips": "*"},
            ]},
            "snapshots": {"maxPerVolume": 3}, "features": {"online-volume-extend": true, "csi-migration": false}, "windows": true,
            "storageClasses": [{"name": "fast"}],
            "values": {"logLevel": "DEBUG"},
        },
        "drivers": [{"name": "antrea", "version": "2.0.0", "allowIncompatible": true, "values": {"mtu": 1400}}],
        "images": {"registry": "registry.example.com", "pullSecrets": ["pull"]},
    }))
}

fn chart(driver: &str, version: &str) -> Chart {
    let source = crate::generate::matrix::source(&Path::new(env!("CARGO_MANIFEST_DIR")).join("charts").join(driver)).unwrap();
    chart::open(&chart::package(&source, &version.parse().unwrap()).unwrap()).unwrap()
}

fn material() -> Material {
    Material {
        bundle: "authorities".into(),
        certificate: "certificate".into(),
        key: Secret::new("key"),
    }
}

#[test]
fn requests_carry_every_field_of_each_driver() {
    let reported: Vec<Value> = requests(&full())
        .into_iter()
        .map(|request| {
            let uses = match request.uses {
                Uses::All => json!("all"),
                Uses::These(names) => json!(names),
            };
            json!([
                request.driver,
                format!("{:?}", request.state),
                request.version,
                request.allow_incompatible,
                uses,
                request.features,
                request.states
            ])
        })
        .collect();
    let features = json!({
        "fileVolumes": "spec.storageProvider.fileVolumes",
        "onlineExpansion": "spec.storageProvider.features[online-volume-extend]",
        "snapshots": "spec.storageProvider.snapshots",
    });
    let states = json!({"csi-migration": false, "online-volume-extend": true});
    assert_eq!(
        reported,
        [
            json!([CPI, "Paused", "1.34.0", true, ["vc1"], {}, {}]),
            json!([CSI, "Removed", "3.7.3", true, ["vc2"], features, states]),
            json!(["antrea", "Managed", "2.0.0", true, [], {}, {}]),
        ]
    );
}

/// A class for shared volumes asks for them, too, and by its name.
#[test]
fn requests_storage_class_for_shared_volumes_needs_file_volumes() {
    let with = |share: Value| {
        let classes = json!([{"name": "plain"}, {"name": "shared", "fileShare": share}]);
        let spec = spec(json!({"storageProvider": {"storageClasses": classes}}));
        requests(&spec).remove(0).features
    };
    assert_eq!(
        with(json!(true))["fileVolumes"],
        "spec.storageProvider.storageClasses[shared].fileShare"
    );
    assert!(with(json!(false)).is_empty() && with(json!(null)).is_empty());
}

#[test]
fn values_follow_the_specification_and_free_values_go_over_them() {
    let csi = chart(CSI, "3.7.3");
    let images = json!({"registry": "registry.example.com"});
    assert_eq!(
        drivers::values(&full(), &chart(CPI, "1.34.0"), None),
        json!({"images": images, "imagePullSecrets": ["pull"], "env": {"ENABLE_ALPHA_DUAL_STACK": "true"}, "logLevel": 4})
    );
    assert_eq!(
        drivers::values(&full(), &csi, Some(&material())),
        json!({
            "images": images, "imagePullSecrets": ["pull"], "controller": {"replicas": "auto"}, "kubeletPath": "/data/kubelet",
            "podDisruptionBudgets": true,
            "topology": {"enabled": true, "categories": ["zone"]}, "windows": {"enabled": true}, "logLevel": "DEBUG",
            "webhook": {"enabled": true, "secretName": SERVED, "caBundle": STANDARD.encode("authorities")},
            "storageClasses": [{"name": "fast"}], "featureStates": {"csi-migration": false, "online-volume-extend": true},
        })
    );
    let bare = |value: Value, chart: &Chart| drivers::values(&spec(value), chart, None);
    // Without a mirror an image comes from where it was published again.
    let republished = json!({"useRepublished": true});
    assert_eq!(
        bare(json!({"storageProvider": {}}), &csi),
        json!({"images": republished, "controller": {"replicas": "auto"}, "podDisruptionBudgets": true})
    );
    for families in [json!([]), json!(["IPv4"])] {
        let value = json!({"cloudProvider": {"ipFamilies": families}, "images": {"pullSecrets": []}});
        assert_eq!(bare(value, &chart(CPI, "1.34.0")), json!({"images": republished}));
    }
    // The folder of the kubelet is the same with a slash at its end.
    for storage in [
        json!({"customKubeletPath": "/data/kubelet/"}),
        json!({"values": {"kubeletPath": "/data/kubelet/"}}),
    ] {
        let found = bare(json!({"storageProvider": storage}), &csi);
        assert_eq!(found["kubeletPath"], "/data/kubelet");
    }
    // A chart without that value does not get it.
    let mut further = csi.clone();
    further.metadata.name = "antrea".into();
    further.values = json!({});
    assert_eq!(
        bare(json!({"drivers": [{"name": "antrea", "values": {"mtu": 1400}}]}), &further),
        json!({"mtu": 1400})
    );
    assert_eq!(bare(json!({}), &further), json!({}));
}

/// What a version does not know is named with its field; a feature state that is switched off asks for nothing.
#[test]
fn ignored_options_are_named_with_their_field() {
    let csi = chart(CSI, "3.7.3");
    let unknown =
        |option: &str| format!("spec.storageProvider.{option} has no effect with CSI 3.7.3: the version has no feature state of this name");
    let shares = "spec.storageProvider.fileVolumes.vsanDataStoreUrl has no effect with CSI 3.7.3: CSI 3.2.0 and later put file \
                  shares on the datastores of the clusters that have the vSAN file service";
    assert_eq!(
        drivers::ignored(&full(), &csi),
        [shares.to_owned(), unknown("features[online-volume-extend]")]
    );
    let features = json!({"flying": true, "swimming": false, "trigger-csi-fullsync": true});
    let value = json!({"storageProvider": {"features": features, "values": {"featureStates": {"diving": true, "walking": false}}}});
    assert_eq!(
        drivers::ignored(&spec(value), &csi),
        ["features[flying]", "values.featureStates[diving]"].map(unknown)
    );
    assert!(drivers::ignored(&full(), &chart(CPI, "1.34.0")).is_empty());
    let mut further = csi;
    further.metadata.name = "antrea".into();
    assert!(drivers::ignored(&full(), &further).is_empty());
}

fn written(spec: &VDOConfigSpec, driver: &str, version: &str, password: &str, webhook: Option<&Material>) -> Vec<Object> {
    let connection = Connection {
        name: "vc1".into(),
        server: "vc1.example.com".into(),
        port: 443,
        datacenters: Vec::new(),
        trust: Trust::CaBundle("-----BEGIN CERTIFICATE-----\n".into()),
        sha1: None,
        user: "csi@vsphere.local".into(),
        password: Secret::new(password),
    };
    let version: DriverVersion = version.parse().unwrap();
    let setup = Setup {
        spec,
        version: &version,
        namespace: "drivers",
        connections: vec![connection],
        cluster_id: "cluster",
        salt: "salt",
        webhook,
    };
    setup.write(driver).unwrap()
}

/// The content of a Secret.
fn content(secret: &Object, key: &str) -> String {
    let text = secret.value()["data"][key].as_str().unwrap();
    String::from_utf8(STANDARD.decode(text).unwrap()).unwrap()
}

#[test]
fn cloud_provider_is_configured_by_config_map_and_secret() {
    let objects = |password: &str| written(&full(), CPI, "1.34.0", password, None);
    let all = objects("p");
    let [map, secret] = &all[..] else { panic!("{all:?}") };
    assert_eq!(map.to_string(), "ConfigMap drivers/vsphere-cloud-config");
    assert_eq!(secret.to_string(), "Secret drivers/vsphere-cloud-secret");
    let data = &map.value()["data"];
    let conf = data["vsphere.conf"].as_str().unwrap();
    for line in [
        "secretName: \"vsphere-cloud-secret\"",
        "secretNamespace: \"drivers\"",
        "ipFamily: [\"ipv6\", \"ipv4\"]",
        "zone: \"k8s-zone\"",
        "region: \"k8s-region\"",
        "internalNetworkSubnetCidr: \"10.0.0.0/8\"",
        "excludeInternalNetworkSubnetCidr: \"10.1.0.0/16\"",
        "externalNetworkSubnetCidr: \"192.168.0.0/16\"",
        "internalVmNetworkName: \"nodes\"",
    ] {
        assert!(conf.contains(line), "{line} is not in\n{conf}");
    }
    assert_eq!(data["vc1.ca.pem"], "-----BEGIN CERTIFICATE-----\n");
    assert_eq!(content(secret, "vc1.example.com.password"), "p");
    // The pods mount the ConfigMap alone, so a new password shows there, and not the password itself.
    let credentials = |objects: &[Object]| objects[0].annotation(CREDENTIALS_ANNOTATION).unwrap().to_owned();
    assert_ne!(credentials(&all), credentials(&objects("q")));
    assert_eq!(credentials(&all), credentials(&objects("p")));
}

#[test]
fn csi_driver_is_configured_by_secrets() {
    let all = written(&full(), CSI, "3.1.2", "p", Some(&material()));
    let [config, served] = &all[..] else { panic!("{all:?}") };
    assert_eq!(config.to_string(), "Secret drivers/vsphere-config-secret");
    let conf = content(config, csi::FILE);
    for line in [
        "cluster-id = \"cluster\"",
        "cluster-distribution = \"OpenShift\"",
        "password = \"p\"",
        "targetvSANFileShareDatastoreURLs = \"ds:///vmfs/volumes/vsan:1/\"",
        "ips = \"10.0.0.0/8\"\npermissions = \"READ_ONLY\"\nrootsquash = \"true\"",
        "ips = \"10.1.0.0/16\"\npermissions = \"NO_ACCESS\"\nrootsquash = \"false\"",
        "ips = \"*\"\npermissions = \"READ_WRITE\"\nrootsquash = \"false\"",
        "topology-categories = \"zone\"",
        "global-max-snapshots-per-block-volume = \"3\"",
    ] {
        assert!(conf.contains(line), "{line} is not in\n{conf}");
    }
    assert_eq!(served.to_string(), format!("Secret drivers/{SERVED}"));
    assert_eq!(["tls.crt", "tls.key"].map(|key| content(served, key)), ["certificate", "key"]);
    assert!(content(served, "webhook.config").contains("cert-file = \"/run/secrets/tls/tls.crt\""));
    assert_eq!(written(&full(), CSI, "3.7.3", "p", None).len(), 1);
    assert!(written(&full(), "antrea", "2.0.0", "p", None).is_empty());
}

/// The identity of volumes is found again where a driver has it: in its file, or where it keeps the one that it made up.
#[test]
fn cluster_id_of_installed_driver_is_found_in_its_places() {
    let [(kind, namespace, name), made_up, ..] = drivers::cluster_id_places();
    assert_eq!((kind, namespace, name), ("Secret", "vmware-system-csi", "vsphere-config-secret"));
    assert_eq!(made_up, ("ConfigMap", "vmware-system-csi", "vsphere-csi-cluster-id"));
    let config = written(&full(), CSI, "3.7.3", "p", None).remove(0);
    assert_eq!(drivers::cluster_id(&config).as_deref(), Some("cluster"));
    let map = |data: Value| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "n"}, "data": data});
        drivers::cluster_id(&Object::new(map).unwrap())
    };
    assert_eq!(map(json!({"clusterID": "made-up"})).as_deref(), Some("made-up"));
    assert_eq!((map(json!({"clusterID": ""})), map(json!({}))), (None, None));
}

/// The table says which workloads are ours; an installation of others in the same place is adopted and no rival.
#[test]
fn table_of_drivers_names_every_workload_of_the_charts() {
    for driver in drivers::KNOWN {
        let mut named = BTreeSet::new();
        let source = embedded::sources().remove(driver.name).expect("a chart");
        for version in source.versions() {
            let chart = chart::open(&chart::package(&source, &version).expect("a package")).expect("a chart");
            for object in chart::render(&chart, &chart::everything(&chart), &chart::Context::default()).expect("objects") {
                let object = Object::new(object).expect("an object");
                if object.pod_spec().is_some() {
                    assert_eq!(object.namespace(), driver.namespace, "{version}: {object}");
                    named.insert(object.name().to_owned());
                }
            }
        }
        let known: BTreeSet<String> = driver.workloads.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(named, known, "{}", driver.name);
    }
}
