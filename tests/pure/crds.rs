// SPDX-License-Identifier: Apache-2.0
//! The definitions in deploy/crds are what the Rust types say, and objects made for the original operator stay valid.

use crate::generate::crds;

use kube::CustomResourceExt;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use vdo_api::api::{CompatibilityConfig, VDOConfig, VsphereCloudConfig};

#[test]
fn crd_files_match_rust_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/crds");
    let files = crds::files().expect("definitions");
    for (name, content) in &files {
        let there = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(
            there == *content,
            "deploy/crds/{name} is not what crates/vdo-api/src/api says; run make manifests"
        );
    }
    let expected: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    for entry in std::fs::read_dir(folder).expect("deploy/crds") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        assert!(expected.contains(name.as_str()), "deploy/crds/{name} belongs to no type");
    }
}

fn schema<K: CustomResourceExt>() -> Value {
    let crd = serde_json::to_value(K::crd()).expect("JSON");
    crd.pointer("/spec/versions/0/schema/openAPIV3Schema").expect("a schema").clone()
}

#[test]
fn crd_conditions_are_merged_by_type() {
    for schema in [schema::<VDOConfig>(), schema::<VsphereCloudConfig>()] {
        let conditions = schema.pointer("/properties/status/properties/conditions").expect("conditions");
        assert_eq!(conditions["x-kubernetes-list-type"], "map");
        assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
    }
}

#[test]
fn crd_every_rule_has_message_and_field_description() {
    for schema in [
        schema::<VDOConfig>(),
        schema::<VsphereCloudConfig>(),
        schema::<CompatibilityConfig>(),
    ] {
        each("", &schema, &mut |path, node| {
            for rule in node.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten() {
                assert!(
                    rule["message"].as_str().is_some_and(|text| text.len() > 10),
                    "{path}: a rule without a message: {rule}"
                );
            }
            assert!(
                path.ends_with(['*', ']']) || node.get("description").is_some(),
                "{path}: no description"
            );
        });
    }
}

/// Calls `visit` for each field of a schema with its path: `.spec.list[].name`, and `.map.*` for free keys.
fn each(path: &str, node: &Value, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, node);
    for (name, field) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        each(&format!("{path}.{name}"), field, visit);
    }
    if let Some(items) = node.get("items") {
        each(&format!("{path}[]"), items, visit);
    }
    if let Some(values) = node.get("additionalProperties").filter(|values| values.is_object()) {
        each(&format!("{path}.*"), values, visit);
    }
}

/// Path, type, and whether it was required of the user who wrote its parent.
type Field = (&'static str, &'static str, bool);

/// Every field of the specifications that the original operator (vmware-tanzu, v1alpha1) defined.
const ORIGINAL: [(&str, &[Field]); 3] = [
    (
        "VDOConfig",
        &[
            (".spec", "object", false),
            (".spec.cloudProvider", "object", false),
            (".spec.cloudProvider.topology", "object", false),
            (".spec.cloudProvider.topology.region", "string", true),
            (".spec.cloudProvider.topology.zone", "string", true),
            (".spec.cloudProvider.vsphereCloudConfigs", "array", false),
            (".spec.cloudProvider.vsphereCloudConfigs[]", "string", false),
            (".spec.storageProvider", "object", true),
            (".spec.storageProvider.clusterDistribution", "string", false),
            (".spec.storageProvider.customKubeletPath", "string", false),
            (".spec.storageProvider.fileVolumes", "object", false),
            (".spec.storageProvider.fileVolumes.netPermissions", "array", false),
            (".spec.storageProvider.fileVolumes.netPermissions[]", "object", false),
            (".spec.storageProvider.fileVolumes.netPermissions[].ips", "string", true),
            (".spec.storageProvider.fileVolumes.netPermissions[].permissions", "string", false),
            (".spec.storageProvider.fileVolumes.netPermissions[].rootSquash", "boolean", false),
            (".spec.storageProvider.fileVolumes.vsanDataStoreUrl", "array", false),
            (".spec.storageProvider.fileVolumes.vsanDataStoreUrl[]", "string", false),
            (".spec.storageProvider.vsphereCloudConfig", "string", true),
        ],
    ),
    (
        "VsphereCloudConfig",
        &[
            // An object without it was accepted and never worked, so ours may ask for it.
            (".spec", "object", true),
            (".spec.credentials", "string", true),
            (".spec.datacenters", "array", true),
            (".spec.datacenters[]", "string", false),
            (".spec.insecure", "boolean", true),
            (".spec.thumbprint", "string", false),
            (".spec.vcIp", "string", true),
        ],
    ),
    (
        "CompatibilityConfig",
        &[(".spec", "object", false), (".spec.matrixURL", "string", false)],
    ),
];

#[test]
fn crd_original_fields_keep_type_and_requirement() {
    for (kind, fields) in ORIGINAL {
        let schema = match kind {
            "VDOConfig" => schema::<VDOConfig>(),
            "VsphereCloudConfig" => schema::<VsphereCloudConfig>(),
            _ => schema::<CompatibilityConfig>(),
        };
        let (mut types, mut required) = (Vec::new(), Vec::new());
        each("", &schema, &mut |path, node| {
            types.push((path.to_owned(), node["type"].as_str().unwrap_or_default().to_owned()));
            for name in node.get("required").and_then(Value::as_array).into_iter().flatten() {
                let name = name.as_str().unwrap_or_default();
                if node.pointer(&format!("/properties/{name}/default")).is_none() {
                    required.push(format!("{path}.{name}"));
                }
            }
        });
        for (path, kind_of, _) in fields {
            let found = types.iter().find(|(there, _)| there == path).map(|(_, kind_of)| kind_of.as_str());
            assert_eq!(found, Some(*kind_of), "{kind}{path}");
        }
        for path in required.iter().filter(|path| path.starts_with(".spec")) {
            let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
            if parent.is_empty() || fields.iter().any(|(there, _, _)| there == &parent) {
                assert!(
                    fields.iter().any(|(there, _, required)| there == path && *required),
                    "{kind}{path} is required and was not"
                );
            }
        }
    }
}

/// Every field that a definition of this project ever had: kind and path, type, and whether it is required. Lines are only added.
const RECORD: &str = include_str!("../fixtures/fields.txt");

/// Lines as [`RECORD`] has them.
fn fields_now() -> BTreeSet<String> {
    let mut now = BTreeSet::new();
    for (kind, schema) in [
        ("VDOConfig", schema::<VDOConfig>()),
        ("VsphereCloudConfig", schema::<VsphereCloudConfig>()),
        ("CompatibilityConfig", schema::<CompatibilityConfig>()),
    ] {
        let mut required = BTreeSet::new();
        each("", &schema, &mut |path, node| {
            let names = node.get("required").and_then(Value::as_array).into_iter().flatten();
            required.extend(names.filter_map(Value::as_str).map(|name| format!("{path}.{name}")));
            let kind_of = node["type"].as_str().unwrap_or("any");
            let needed = if required.contains(path) { " required" } else { "" };
            if !path.is_empty() {
                now.insert(format!("{kind}{path} {kind_of}{needed}"));
            }
        });
    }
    now
}

#[test]
fn crd_fields_of_every_build_stay_as_they_were() {
    let now = fields_now();
    for line in RECORD.lines().filter(|line| !line.starts_with('#')) {
        // What is no longer required is taken from everyone who wrote it.
        let relaxed = line.trim_end_matches(" required");
        assert!(
            now.contains(line) || now.contains(relaxed),
            "{line}: the field has gone, has another type or has become required, which v1alpha1 promises not to do (docs/upgrade.md)"
        );
    }
    let new: Vec<&str> = now
        .iter()
        .map(String::as_str)
        .filter(|field| !RECORD.lines().any(|line| line == *field))
        .collect();
    assert!(new.is_empty(), "add these lines to tests/fixtures/fields.txt:\n{}", new.join("\n"));
}

#[test]
fn crd_original_vdoconfig_is_read() {
    let config: VDOConfig = serde_json::from_value(json!({
        "apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "metadata": {"name": "vdo-sample", "namespace": "vmware-system-vdo"},
        "spec": {
            "cloudProvider": {"vsphereCloudConfigs": ["vc1"], "topology": {"zone": "k8s-zone", "region": "k8s-region"}},
            "storageProvider": {
                "vsphereCloudConfig": "vc1", "clusterDistribution": "OpenShift", "customKubeletPath": "/var/lib/kubelet",
                "fileVolumes": {"vsanDataStoreUrl": ["ds:///vmfs/volumes/vsan:1/"], "netPermissions": [{"ips": "*", "permissions": "READ_ONLY", "rootSquash": true}]}
            }
        },
        "status": {"cpi": {"phase": "Configured", "nodeStatus ": {"n1": "ready"}}, "csi": {"phase": "Deployed"}}
    }))
    .expect("a VDOConfig");
    let storage = config.spec.storage_provider.expect("a storage provider");
    assert_eq!(storage.vsphere_cloud_config.as_deref(), Some("vc1"));
    assert!(config.status.expect("a status").conditions.is_empty());
}

#[test]
fn crd_original_vspherecloudconfig_is_read() {
    let connection: VsphereCloudConfig = serde_json::from_value(json!({
        "apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VsphereCloudConfig", "metadata": {"name": "vc1", "namespace": "vmware-system-vdo"},
        "spec": {"vcIp": "10.0.0.1", "insecure": true, "credentials": "vc1-creds", "datacenters": ["DC0"]},
        "status": {"config": "verified", "message": "ok"}
    }))
    .expect("a VsphereCloudConfig");
    assert_eq!((connection.spec.port, connection.spec.insecure), (443, true));
}
