// SPDX-License-Identifier: Apache-2.0
use super::*;

/// What the repository holds.
fn source() -> Source {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let args = Args {
        source: root.join("deploy"),
        matrix: root.join("matrix-index/index.yaml"),
        image: None,
        output: PathBuf::new(),
    };
    Source::read(&args).expect("the manifests")
}

fn object(files: &BTreeMap<String, String>, path: &str) -> Value {
    yaml::load_value(&files[path]).expect("YAML")
}

#[test]
fn bundle_and_prerequisites_hold_every_object_once() {
    let source = source();
    let files = files(&source).expect("a bundle");
    let id = |object: &Value| format!("{} {}", text(object, "/kind"), text(object, "/metadata/name"));
    let mut held: Vec<String> = Vec::new();
    for (path, content) in &files {
        if path.starts_with("manifests/") || path == "prerequisites.yaml" {
            held.extend(yaml::load_all(content).expect("YAML").iter().map(id));
        }
    }
    for object in source.objects.iter().chain(&source.definitions).chain(&source.namespaces) {
        // What OLM makes by itself, from the CSV.
        let made = ["Deployment", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"].contains(&text(object, "/kind"));
        if made && text(object, "/metadata/name") == "vdo-operator" {
            continue;
        }
        assert!(held.contains(&id(object)), "{} is in no file", id(object));
    }
    let namespaced = |path: &&String| path.starts_with("manifests/");
    for path in files.keys().filter(namespaced) {
        assert_eq!(
            object(&files, path)["metadata"]["namespace"],
            Value::Null,
            "{path}: OLM chooses the namespace"
        );
    }
}

/// Every rule of the operator's account is in the CSV or in the prerequisites; those to write definitions are in the second alone.
#[test]
fn bundle_rules_of_the_operator_are_all_granted_once() {
    let source = source();
    let csv = csv::csv(&source).expect("a CSV");
    let in_csv = csv
        .pointer("/spec/install/spec/clusterPermissions/0/rules")
        .and_then(Value::as_array)
        .expect("rules");
    let files = files(&source).expect("a bundle");
    let granted = yaml::load_all(&files["prerequisites.yaml"]).expect("YAML");
    let role = granted
        .iter()
        .find(|object| object["metadata"]["name"] == "vdo-operator-definitions" && object["kind"] == "ClusterRole");
    let in_role = role.expect("a role")["rules"].as_array().expect("rules").clone();
    assert!(
        !in_role.is_empty()
            && in_role
                .iter()
                .all(|rule| rule["resources"] == serde_json::json!(["customresourcedefinitions"]))
    );
    assert!(!in_csv.iter().any(|rule| in_role.contains(rule)));
    let own = |object: &&Value| object["kind"] == "ClusterRole" && object["metadata"]["name"] == "vdo-operator";
    let whole = source.objects.iter().find(own).expect("the role")["rules"]
        .as_array()
        .expect("rules");
    assert_eq!(in_csv.len() + in_role.len(), whole.len());
}

#[test]
fn bundle_pods_run_as_whom_the_platform_chooses() {
    let csv = csv::csv(&source()).expect("a CSV");
    let deployments = csv.pointer("/spec/install/spec/deployments").expect("deployments").to_string();
    assert!(
        !deployments.contains("runAsUser") && !deployments.contains("runAsGroup"),
        "{deployments}"
    );
    assert!(deployments.contains("\"runAsNonRoot\":true"), "{deployments}");
}

#[test]
fn bundle_with_another_image_names_it_everywhere() {
    let source = Source {
        image: Some("example.com/vdo@sha256:0".to_owned()),
        ..source()
    };
    let csv = csv::csv(&source).expect("a CSV").to_string();
    assert_eq!(
        csv.matches("example.com/vdo@sha256:0").count(),
        3,
        "the Deployment, relatedImages, containerImage"
    );
    assert!(!csv.contains("ghcr.io/vdo-project/vdo-operator:"), "{csv}");
}

#[test]
fn bundle_platforms_are_those_of_both_drivers() {
    let index = |cpi: &str, csi: &str| {
        let version = |range: &str| {
            let (min, max) = range.split_once('-').expect("a range");
            format!(
                "    versions:\n    - version: 1.0.0\n      chart: {{urls: [a.tgz], sha256: '{}'}}\n      kubernetes: {{min: '{min}', max: '{max}', confidence: unverified}}\n      vsphere: {{min: null, max: null, confidence: unverified}}\n",
                "0".repeat(64)
            )
        };
        let text = format!(
            "apiVersion: vdo.vmware.com/matrix/v1\nkind: CompatibilityMatrix\nversion: 1\ndrivers:\n  vsphere-cpi:\n    role: cloud-provider\n{}  vsphere-csi:\n    role: storage\n{}",
            version(cpi),
            version(csi)
        );
        Index::parse(text.as_bytes()).expect("an index")
    };
    let of = |index: &Index| (supported::oldest_kubernetes(index).ok(), supported::newest_openshift(index).ok());
    let both = |oldest: &str, newest: &str| (Some(oldest.to_owned()), Some(newest.to_owned()));
    assert_eq!(of(&index("1.25-1.37", "1.27-1.33")), both("1.27.0", "4.20"));
    assert_eq!(of(&index("1.33-1.34", "1.27-1.40")), both("1.33.0", "4.21"));
    assert_eq!(of(&index("1.33-1.34", "1.35-1.36")), (None, None));
}
