// SPDX-License-Identifier: Apache-2.0
//! The ClusterServiceVersion of the OLM bundle: description, icon, feature annotations, examples, the Deployment and its permissions.

use super::{NAMESPACE, PACKAGE, Source, descriptors, supported, text};
use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// The version of everything that is released.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
const REPOSITORY: &str = "https://github.com/vdo-project/vdo";
const ICON: &[u8] = include_bytes!("icon.svg");
const DESCRIPTION: &str = include_str!("description.md");
const SUMMARY: &str = "Installs the vSphere cloud provider and CSI driver, and keeps them healthy and up to date";
/// What consoles show of it.
const SUMMARY_LIMIT: usize = 135;
/// Whether the operator has a property for which consoles filter. True is what a test shows.
const FEATURES: [(&str, bool); 8] = [
    // The newest drivers are not all listed by digest, and only digests are redirected everywhere.
    ("disconnected", false),
    ("fips-compliant", false),
    // The operator reaches vCenters and registries through a proxy; the drivers get no variables of it.
    ("proxy-aware", false),
    ("tls-profiles", false),
    ("token-auth-aws", false),
    ("token-auth-azure", false),
    ("token-auth-gcp", false),
    // It installs a CSI driver.
    ("csi", true),
];

/// The name of the ClusterServiceVersion.
pub(super) fn name() -> String {
    format!("{PACKAGE}.v{VERSION}")
}

pub(super) fn csv(source: &Source) -> Result<Value> {
    let deployment = deployment(source)?;
    let image = text(&deployment, "/spec/template/spec/containers/0/image").to_owned();
    let account = text(&deployment, "/spec/template/spec/serviceAccountName").to_owned();
    let definitions = source.definitions.iter().map(descriptors::owned).collect::<Result<Vec<_>>>()?;
    let mut related = vec![json!({"name": "vdo-operator", "image": image})];
    related.extend(supported::related_images(&source.matrix));
    let mode = |kind: &str, supported: bool| json!({"type": kind, "supported": supported});
    Ok(json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": name(),
            "labels": {
                "operatorframework.io/os.linux": "supported",
                "operatorframework.io/arch.amd64": "supported",
                "operatorframework.io/arch.arm64": "supported",
            },
            "annotations": annotations(source, &image)?,
        },
        "spec": {
            "displayName": "vSphere Kubernetes Drivers Operator",
            "description": DESCRIPTION.replace("vVERSION", &format!("v{VERSION}")),
            "version": VERSION,
            "maturity": "alpha",
            "minKubeVersion": supported::oldest_kubernetes(&source.matrix)?,
            "keywords": ["vsphere", "vcenter", "csi", "cpi", "cloud provider", "storage"],
            "maintainers": [{"name": "VDO maintainers", "email": "vdo-project@users.noreply.github.com"}],
            "provider": {"name": "VDO project", "url": REPOSITORY},
            "links": [
                {"name": "Documentation", "url": format!("{REPOSITORY}/tree/main/docs")},
                {"name": "OpenShift", "url": format!("{REPOSITORY}/blob/main/docs/openshift.md")},
                {"name": "Source", "url": REPOSITORY},
            ],
            "icon": [{"base64data": STANDARD.encode(ICON), "mediatype": "image/svg+xml"}],
            // The operator reads its own namespace alone, whatever an OperatorGroup selects.
            "installModes": [
                mode("OwnNamespace", true),
                mode("SingleNamespace", false),
                mode("MultiNamespace", false),
                mode("AllNamespaces", true),
            ],
            "customresourcedefinitions": {"owned": definitions},
            "relatedImages": related,
            "install": {
                "strategy": "deployment",
                "spec": {
                    "clusterPermissions": [{"serviceAccountName": account, "rules": own_rules(source, false)?}],
                    "deployments": [{
                        "name": deployment["metadata"]["name"],
                        "label": deployment["metadata"]["labels"],
                        "spec": deployment["spec"],
                    }],
                },
            },
        },
    }))
}

/// The operator's ClusterRole, among those of the drivers.
fn own_role(source: &Source) -> Result<&Value> {
    let own = |object: &&Value| object["kind"] == "ClusterRole" && object["metadata"]["name"] == "vdo-operator";
    source
        .objects
        .iter()
        .find(own)
        .context("the manifests contain no ClusterRole vdo-operator")
}

/// The rules of the operator's account in the whole cluster: those to write definitions, or all others. OLM's checks take an operator that
/// creates definitions for one that installs operators, so these are for an administrator to grant.
pub(super) fn own_rules(source: &Source, of_definitions: bool) -> Result<Vec<Value>> {
    let has = |rule: &Value, list: &str, word: &str| rule[list].as_array().is_some_and(|all| all.iter().any(|one| one == word));
    let writes = |rule: &&Value| has(rule, "resources", "customresourcedefinitions") && has(rule, "verbs", "create");
    let rules = own_role(source)?["rules"]
        .as_array()
        .context("ClusterRole vdo-operator has no rules")?;
    Ok(rules.iter().filter(|rule| writes(rule) == of_definitions).cloned().collect())
}

/// The Deployment, with the image of this bundle.
fn deployment(source: &Source) -> Result<Value> {
    let mut deployment = source.one("Deployment", NAMESPACE)?.clone();
    if let Some(image) = &source.image {
        let place = deployment
            .pointer_mut("/spec/template/spec/containers/0/image")
            .context("the Deployment has no container with an image")?;
        *place = image.as_str().into();
    }
    Ok(deployment)
}

fn annotations(source: &Source, image: &str) -> Result<Value> {
    (SUMMARY.len() <= SUMMARY_LIMIT)
        .then_some(())
        .context("the summary is too long for consoles")?;
    let examples = examples(source)?;
    let first = examples.iter().find(|example| example["kind"] == "VDOConfig");
    let namespace = source.namespaces.iter().find(|one| one["metadata"]["name"] == NAMESPACE);
    let mut all = Map::new();
    let mut put = |key: &str, value: String| all.insert(key.to_owned(), value.into());
    put("alm-examples", serde_json::to_string(&examples)?);
    put("capabilities", "Seamless Upgrades".to_owned());
    put("categories", "Cloud Provider,Storage".to_owned());
    put("containerImage", image.to_owned());
    put("description", SUMMARY.to_owned());
    put("repository", REPOSITORY.to_owned());
    put("support", REPOSITORY.to_owned());
    put(
        "operatorframework.io/initialization-resource",
        serde_json::to_string(first.context("the samples contain no VDOConfig")?)?,
    );
    put("operatorframework.io/suggested-namespace", NAMESPACE.to_owned());
    put(
        "operatorframework.io/suggested-namespace-template",
        serde_json::to_string(namespace.context("namespace.yaml lacks the operator's namespace")?)?,
    );
    for (feature, has) in FEATURES {
        put(&format!("features.operators.openshift.io/{feature}"), has.to_string());
    }
    Ok(all.into())
}

/// An example of each kind: the samples, which the console creates in the namespace that is open.
fn examples(source: &Source) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for definition in &source.definitions {
        let kind = text(definition, "/spec/names/kind");
        let mut example = match source.samples.iter().find(|sample| sample["kind"] == kind) {
            Some(sample) => sample.clone(),
            // The original operator's kind, for which there is no sample: the matrix that the operator brings.
            None => json!({
                "apiVersion": format!("{}/v1alpha1", text(definition, "/spec/group")),
                "kind": kind,
                "metadata": {"name": "matrix"},
                "spec": {},
            }),
        };
        let metadata = example["metadata"].as_object_mut().context("metadata")?;
        metadata.shift_remove("namespace");
        all.push(example);
    }
    Ok(all)
}
