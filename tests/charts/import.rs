// SPDX-License-Identifier: Apache-2.0
//! `chart import`: plain manifests become a chart that renders them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test should stop where it fails")]

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use vdo_api::types::{DriverRole, DriverVersion};
use vdo_api::yaml;
use vdo_core::chart::add_release::Manifest;
use vdo_core::chart::import::{ImportError, Imported, Joined, Wanted, import, joined};
use vdo_core::chart::{self, Chart, Context, Source, compare};

use crate::fixture::{release, render};
use crate::sample::upstream;

fn version(text: &str) -> DriverVersion {
    text.parse().unwrap()
}

fn wanted(new: &str) -> Wanted {
    Wanted {
        name: "toy".to_owned(),
        role: DriverRole::Other,
        version: version(new),
        date: None,
        images: std::collections::BTreeMap::new(),
    }
}

fn manifest(name: &str, text: &str) -> Manifest {
    Manifest {
        name: name.to_owned(),
        bytes: text.as_bytes().to_vec(),
        objects: yaml::load_all(text).unwrap(),
    }
}

fn imported(new: &str, text: &str) -> Result<Imported, ImportError> {
    import(&wanted(new), &[manifest("toy.yaml", text)])
}

fn opened(imported: &Imported, new: &str) -> Chart {
    release(&imported.source, &version(new))
}

fn objects(text: &str) -> Vec<Value> {
    yaml::load_all(text).unwrap()
}

/// What differs and is not listed, and what is listed and does not differ.
fn unexpected(chart: &Chart, original: &[Value]) -> compare::Judgement {
    let found = compare::compare(original, &render(chart, Value::Null)).unwrap();
    compare::judge(
        &found,
        &compare::applicable(&chart.deviations, &chart.metadata.version, &chart.values),
    )
}

/// A driver with everything that manifests of projects have.
fn toy(tag: &str) -> String {
    let mut text = format!(
        r#"
apiVersion: v1
kind: Namespace
metadata: {{name: toys}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: boxes.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{kind: Box, plural: boxes}}
  conversion:
    strategy: Webhook
    webhook: {{conversionReviewVersions: [v1], clientConfig: {{service: {{name: toy, namespace: toys, path: /convert}}}}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, description: "a template such as {{{{ .x }}}} in toys"}}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: toy, namespace: toys}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: toy, namespace: toys, annotations: {{"a{{{{b": x}}}}
data:
  script: |
    #!/bin/sh
    # {{{{ not ours }}}} {{% nor this %}} {{# nor that #}}
    echo "a: b" 'c' \ toys.svc
  yes: "on"
  octal: "0440"
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: toy}}
rules: [{{apiGroups: [""], resources: [pods], verbs: [get]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: toy}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: toy}}
subjects:
- {{kind: ServiceAccount, name: toy, namespace: toys}}
- {{kind: ServiceAccount, name: guest, namespace: elsewhere}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: reader, namespace: kube-system}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}}
subjects: [{{kind: ServiceAccount, name: toy, namespace: toys}}]
---
apiVersion: v1
kind: Service
metadata: {{name: toy, namespace: toys}}
spec: {{selector: {{app: toy}}, ports: [{{port: 443}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: toy, namespace: toys}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: toy}}}}
  template:
    metadata: {{labels: {{app: toy}}}}
    spec:
      serviceAccountName: toy
      imagePullSecrets: [{{name: own}}]
      initContainers:
      - {{name: first, image: "registry.example.com/toys/toy:{tag}"}}
      containers:
      - name: toy
        image: registry.example.com/toys/toy:{tag}
        args: ["--helper=registry.example.com/toys/helper:v9", "--namespace=toys"]
        env: [{{name: SECRET, valueFrom: {{secretKeyRef: {{name: brought, key: x}}}}}}]
      - {{name: pinned, image: "registry.example.com/other/toy@sha256:{digest}"}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {{name: sweep, namespace: toys}}
spec:
  schedule: "0 0 * * *"
  jobTemplate: {{spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: sweep, image: "sweeper:{tag}"}}]}}}}}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {{name: toy}}
webhooks:
- {{name: a.example.com, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {{service: {{name: toy, namespace: toys}}}}}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: v1.boxes.example.com}}
spec: {{group: boxes.example.com, version: v1, groupPriorityMinimum: 1, versionPriority: 1, service: {{name: toy, namespace: toys}}}}
---
apiVersion: example.com/v1
kind: Box
metadata: {{name: first, namespace: toys}}
spec: {{}}
"#,
        digest = "a".repeat(64)
    );
    // a definition as large as those of real projects
    text += "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: larges.example.com}\nspec:\n  group: example.com\n  scope: Cluster\n  names: {kind: Large, plural: larges}\n  versions:\n  - name: v1\n    schema:\n      openAPIV3Schema:\n        properties:\n";
    for number in 0..4000 {
        let _ = writeln!(
            text,
            "          field{number}:\n            description: 'The field, of which it''s said: \"{number}\" #1'\n            type: string"
        );
    }
    text
}

#[test]
fn import_chart_renders_the_manifests_and_has_no_finding() {
    let text = toy("v1.0.0");
    let toy = imported("1.0.0", &text).unwrap();
    let chart = opened(&toy, "1.0.0");
    assert_eq!(toy.findings, [""; 0]);
    assert_eq!(unexpected(&chart, &objects(&text)), compare::Judgement::default());
    assert_eq!(chart.deviations, []);
    assert_eq!(
        chart.metadata.annotations["vdo.vmware.com/given"],
        "Secret/brought ServiceAccount/guest"
    );
    let of_kind = chart.templates.keys().filter(|path| path.contains("customresourcedefinition"));
    let files: Vec<&str> = of_kind.map(|path| path.trim_start_matches("templates/")).collect();
    assert_eq!(
        files[files.len() - 2..],
        ["customresourcedefinition-2.yaml", "customresourcedefinition.yaml"]
    );
    assert!(
        files[0] == "_customresourcedefinition-2-part-1.yaml" && files.len() > 8,
        "{files:?}"
    );
    insta::assert_snapshot!("import_notes", toy.notes.join("\n"));
    insta::assert_snapshot!("import_template", &chart.templates["templates/deployment.yaml"]);
    let again = imported("1.0.0", &text).unwrap();
    assert_eq!(again.source, toy.source, "the same every time");
}

#[test]
fn import_values_reach_images_namespace_and_pull_secrets() {
    let text = toy("v1.0.0");
    let chart = opened(&imported("1.0.0", &text).unwrap(), "1.0.0");
    let digest = "a".repeat(64);
    assert_eq!(
        chart::images(&render(
            &chart,
            json!({"images": {"registry": "mirror.example.com/m", "overrides": {"sweeper": "own.example.com/s:2"}}})
        )),
        [
            format!("mirror.example.com/m/other/toy@sha256:{digest}"),
            "mirror.example.com/m/toys/toy:v1.0.0".to_owned(),
            "own.example.com/s:2".to_owned(),
        ]
    );
    let moved = render(&chart, json!({"namespace": "elsewhere", "imagePullSecrets": ["mine"]}));
    let found = |kind: &str, path: &str| -> Vec<Value> {
        let of = moved.iter().filter(|object| object["kind"] == kind);
        of.filter_map(|object| object.pointer(path).cloned()).collect()
    };
    for (kind, path, expected) in [
        ("Namespace", "/metadata/name", "elsewhere"),
        ("ServiceAccount", "/metadata/namespace", "elsewhere"),
        ("Box", "/metadata/namespace", "elsewhere"),
        ("ClusterRoleBinding", "/subjects/0/namespace", "elsewhere"),
        ("RoleBinding", "/subjects/0/namespace", "elsewhere"),
        // bound where the Role is, whose reader it is
        ("RoleBinding", "/metadata/namespace", "kube-system"),
        (
            "MutatingWebhookConfiguration",
            "/webhooks/0/clientConfig/service/namespace",
            "elsewhere",
        ),
        ("APIService", "/spec/service/namespace", "elsewhere"),
        (
            "CustomResourceDefinition",
            "/spec/conversion/webhook/clientConfig/service/namespace",
            "elsewhere",
        ),
    ] {
        assert_eq!(found(kind, path), [json!(expected)], "{kind} {path}");
    }
    let (deployment, job) = ("/spec/template/spec", "/spec/jobTemplate/spec/template/spec");
    assert_eq!(
        found("Deployment", &format!("{deployment}/imagePullSecrets")),
        [json!([{"name": "own"}, {"name": "mine"}])]
    );
    assert_eq!(found("CronJob", &format!("{job}/imagePullSecrets")), [json!([{"name": "mine"}])]);
    let refused = chart::render(&chart, &json!({"images": {"overrides": {"swepper": "x:1"}}}), &Context::default()).unwrap_err();
    assert!(matches!(refused, chart::RenderError::Values { .. }), "{refused}");
}

#[test]
fn import_of_further_version_joins_equal_templates_alone() {
    let first = imported("1.0.0", &toy("v1.0.0")).unwrap();
    let next = imported("1.0.1", &toy("v1.0.1")).unwrap();
    let Joined::With { file, text } = joined(&first.source, &next.source, &version("1.0.1")).unwrap() else {
        panic!("the templates are equal")
    };
    let mut both = first.source.clone();
    both.files.insert(file.clone(), text.clone().into_bytes());
    assert_eq!(file, "releases/1.0.yaml");
    assert_eq!(both.versions(), [version("1.0.0"), version("1.0.1")]);
    for (release_of, text) in [("1.0.0", toy("v1.0.0")), ("1.0.1", toy("v1.0.1"))] {
        assert_eq!(
            unexpected(&release(&both, &version(release_of)), &objects(&text)),
            compare::Judgement::default()
        );
    }
    // a new minor gets a file of its own
    let minor = imported("1.1.0", &toy("v1.1.0")).unwrap();
    let Joined::With { file, text } = joined(&both, &minor.source, &version("1.1.0")).unwrap() else {
        panic!("the templates are equal")
    };
    assert_eq!(file, "releases/1.1.yaml");
    both.files.insert(file, text.into_bytes());
    assert_eq!(both.versions().len(), 3);
    assert_eq!(joined(&both, &next.source, &version("1.0.1")).unwrap(), Joined::There);
    let changed = imported("1.2.0", &toy("v1.2.0").replace("replicas: 1", "replicas: 2")).unwrap();
    assert_eq!(joined(&both, &changed.source, &version("1.2.0")).unwrap(), Joined::Other);
    let other = imported("1.0.1", &toy("v1.0.2")).unwrap();
    let error = joined(&both, &other.source, &version("1.0.1")).unwrap_err().to_string();
    assert!(error.contains("already lists 1.0.1"), "{error}");
}

#[test]
fn import_rules_for_namespaces_are_the_same_everywhere() {
    let map = |name: &str, namespace: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{namespace}}}\n");
    let of = |texts: &[String]| imported("1.0.0", &texts.join("---\n"));
    for (texts, main, deviations) in [
        (
            vec![
                map("a", ", namespace: one"),
                map("b", ", namespace: two"),
                map("c", ", namespace: two"),
            ],
            Some("two"),
            0,
        ),
        (vec![map("a", ", namespace: one"), map("b", ", namespace: two")], Some("one"), 0),
        // kubectl would ask the user
        (vec![map("a", ""), map("b", ", namespace: two")], Some("two"), 2),
        (vec![map("a", "")], Some("default"), 2),
        (
            vec!["apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: a}\n".to_owned()],
            None,
            0,
        ),
    ] {
        let toy = of(&texts).unwrap();
        let chart = opened(&toy, "1.0.0");
        assert_eq!(chart.values.get("namespace").and_then(Value::as_str), main, "{texts:?}");
        assert_eq!(chart.deviations.len(), deviations, "{texts:?}");
        assert_eq!(toy.findings, [""; 0], "{texts:?}");
        assert_eq!(
            unexpected(&chart, &objects(&texts.join("---\n"))),
            compare::Judgement::default(),
            "{texts:?}"
        );
    }
}

#[test]
fn import_image_without_version_is_found_and_can_be_named() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nspec: {containers: [{name: c, image: \"example.com/agent:latest\"}, {name: d, image: \"example.com/old/agent:v1\"}]}\n";
    let toy = imported("1.0.0", pod).unwrap();
    assert_eq!(
        toy.findings,
        ["Pod a: the image example.com/agent:latest has the tag latest; name a version"]
    );
    assert_eq!(unexpected(&opened(&toy, "1.0.0"), &objects(pod)), compare::Judgement::default());
    let mut named = wanted("1.0.0");
    named.images = [("agent".to_owned(), "example.com/agent:v2".to_owned())].into();
    let toy = import(&named, &[manifest("pod.yaml", pod)]).unwrap();
    let chart = opened(&toy, "1.0.0");
    assert_eq!(toy.findings, [""; 0]);
    assert_eq!(
        chart::images(&render(&chart, Value::Null)),
        ["example.com/agent:v2", "example.com/old/agent:v1"]
    );
    assert_eq!(unexpected(&chart, &objects(pod)), compare::Judgement::default());
    assert_eq!(chart.deviations[0].original, Some("example.com/agent:latest".into()));
    named.images = [("agnet".to_owned(), "example.com/agent:v2".to_owned())].into();
    let error = import(&named, &[manifest("pod.yaml", pod)]).unwrap_err().to_string();
    assert_eq!(error, "the manifests have no image \"agnet\"; they have agent, agent-2");
}

#[test]
fn import_of_unusable_manifests_is_refused() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n";
    let twice = import(&wanted("1.0.0"), &[manifest("one.yaml", map), manifest("two.yaml", map)]).unwrap_err();
    assert_eq!(twice.to_string(), "ConfigMap b/a is defined twice: in one.yaml and in two.yaml");
    assert!(matches!(imported("1.0.0", "").unwrap_err(), ImportError::Empty));
    for name in ["", "Toy", "to_y", "-toy", "toy-", "toy/../x"] {
        let named = Wanted {
            name: name.to_owned(),
            ..wanted("1.0.0")
        };
        assert!(
            matches!(import(&named, &[manifest("a.yaml", map)]).unwrap_err(), ImportError::Name(_)),
            "{name}"
        );
    }
    let huge = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: b}}\ndata: {{x: \"{}\"}}\n",
        "y".repeat(3 << 20)
    );
    assert!(imported("1.0.0", &huge).is_err(), "above a limit of charts");
}

fn read(folder: &Path) -> Vec<Manifest> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
        .iter()
        .map(|path| {
            manifest(
                &path.file_name().unwrap().to_string_lossy(),
                &std::fs::read_to_string(path).unwrap(),
            )
        })
        .collect()
}

/// Manifests of real projects, where this machine has them.
#[test]
#[ignore = "needs VDO_UPSTREAM_DIR, a folder with the drivers' own manifests"]
fn import_of_upstream_manifests_renders_them() {
    let folder = upstream().expect("VDO_UPSTREAM_DIR is set");
    for (name, role, versions, images) in [
        (
            "antrea",
            DriverRole::Network,
            ["2.6.3", "2.7.0"],
            &["antrea-agent-ubuntu", "antrea-controller-ubuntu"][..],
        ),
        ("external-snapshotter", DriverRole::Other, ["8.2.1", "8.6.0"], &[]),
    ] {
        let mut charts: Vec<Source> = Vec::new();
        for new in versions {
            let manifests = read(&folder.join(name).join(new));
            let original: Vec<Value> = manifests.iter().flat_map(|manifest| manifest.objects.clone()).collect();
            let wanted = Wanted {
                name: name.to_owned(),
                role,
                // the manifests in its repository name no version
                images: images
                    .iter()
                    .map(|image| ((*image).to_owned(), format!("antrea/{image}:v{new}")))
                    .collect(),
                ..wanted(new)
            };
            let toy = import(&wanted, &manifests).unwrap();
            let chart = opened(&toy, new);
            assert_eq!(toy.findings, [""; 0], "{name} {new}");
            assert_eq!(unexpected(&chart, &original), compare::Judgement::default(), "{name} {new}");
            let mirrored = chart::images(&render(&chart, json!({"images": {"registry": "mirror.example.com"}})));
            assert!(
                !mirrored.is_empty() && mirrored.iter().all(|image| image.starts_with("mirror.example.com/")),
                "{mirrored:?}"
            );
            charts.push(toy.source);
        }
        assert_eq!(joined(&charts[0], &charts[1], &version(versions[1])).unwrap(), Joined::Other);
    }
}
