// SPDX-License-Identifier: Apache-2.0
//! Reads the embedded manifests of `deploy/`, and adapts them to namespace, image, registry, proxy, host network and OpenShift.

use super::matrix_source_secrets::Mounts;
use super::toleration::{TOLERATIONS, Toleration};
use crate::manifest::{ManifestError, Object};
use crate::openshift::proxy::Proxy;
use serde_json::{Value, json};
use vdo_api::api::OPERATOR_NAMESPACE;
use vdo_api::yaml::{YamlError, load_all};

/// The name of the operator's Deployment, its container excepted.
pub const OPERATOR: &str = "vdo-operator";

/// The admission policy, and its binding, that refuses to delete an operator of OLM while a VDOConfig exists.
pub const REMOVAL_GUARD: &str = "vdo-removal";

/// What vdoctl is called in the record of field managers, in the label `app.kubernetes.io/managed-by` of what it creates beside deploy/, such
/// as the Secret with the credentials, and in `kube-system` as the Lease that one of them at a time holds while it writes.
pub const VDOCTL: &str = "vdoctl";

/// The annotation of everything that a Helm release has.
pub const HELM_RELEASE: &str = "meta.helm.sh/release-name";

/// The files for OpenShift alone.
pub const OPENSHIFT: [&str; 2] = ["openshift-rbac.yaml", "openshift-trusted-ca.yaml"];

/// The files of deploy/ that an installation consists of, in the order in which they are applied.
pub static FILES: &[(&str, &str)] = &[
    (
        "crds/vdo.vmware.com_compatibilityconfigs.yaml",
        include_str!("../../../../deploy/crds/vdo.vmware.com_compatibilityconfigs.yaml"),
    ),
    (
        "crds/vdo.vmware.com_vdoconfigs.yaml",
        include_str!("../../../../deploy/crds/vdo.vmware.com_vdoconfigs.yaml"),
    ),
    (
        "crds/vdo.vmware.com_vspherecloudconfigs.yaml",
        include_str!("../../../../deploy/crds/vdo.vmware.com_vspherecloudconfigs.yaml"),
    ),
    ("namespace.yaml", include_str!("../../../../deploy/namespace.yaml")),
    ("drivers-rbac.yaml", include_str!("../../../../deploy/drivers-rbac.yaml")),
    (OPENSHIFT[0], include_str!("../../../../deploy/openshift-rbac.yaml")),
    (OPENSHIFT[1], include_str!("../../../../deploy/openshift-trusted-ca.yaml")),
    ("admission-policy.yaml", include_str!("../../../../deploy/admission-policy.yaml")),
    ("rbac.yaml", include_str!("../../../../deploy/rbac.yaml")),
    ("readers-rbac.yaml", include_str!("../../../../deploy/readers-rbac.yaml")),
    ("operator.yaml", include_str!("../../../../deploy/operator.yaml")),
    ("service.yaml", include_str!("../../../../deploy/service.yaml")),
    ("network-policy.yaml", include_str!("../../../../deploy/network-policy.yaml")),
];

/// The image of the operator that belongs to this build.
#[must_use]
pub fn released_image() -> String {
    let deployment = objects(&Settings::default()).unwrap_or_default();
    let mut images = deployment
        .iter()
        .map(|object| object.text("/spec/template/spec/containers/0/image"));
    images.find(|image| !image.is_empty()).unwrap_or_default().to_owned()
}

/// What an installation may have otherwise than deploy/ has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The namespace of the operator and its configuration.
    pub namespace: String,
    /// The image of the operator, instead of the released one.
    pub image: Option<String>,
    /// A registry, with or without a path, that replaces the one of the image.
    pub registry: Option<String>,
    /// More arguments for the operator.
    pub args: Vec<String>,
    /// What it gets for the source of its matrix.
    pub matrix: Mounts,
    /// The operator runs in the network of its node.
    pub host_network: Option<HostNetwork>,
    /// With what OpenShift asks for.
    pub openshift: bool,
    /// The proxy that the operator uses.
    pub proxy: Option<Proxy>,
    /// Taints that the operator tolerates besides those of deploy/.
    pub tolerations: Vec<Toleration>,
}

/// How the operator works where there is no pod network yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostNetwork {
    /// Host and port of the API server, for nodes on which nothing leads to the address that it has inside the cluster.
    pub api_server: Option<(String, u16)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: OPERATOR_NAMESPACE.into(),
            image: None,
            registry: None,
            args: Vec::new(),
            matrix: Mounts::default(),
            host_network: None,
            openshift: false,
            proxy: None,
            tolerations: Vec::new(),
        }
    }
}

/// An embedded file is not a list of Kubernetes objects: a defect of the build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbeddedError {
    /// It is not YAML.
    #[error("the embedded file {0} is not YAML")]
    Yaml(&'static str, #[source] YamlError),
    /// It holds something else than objects.
    #[error("the embedded file {0} contains a document that is not a Kubernetes object")]
    Object(&'static str, #[source] ManifestError),
}

/// The definitions, the namespace, the rights and the operator, in the order in which they are applied.
///
/// # Errors
/// Never in a build that was tested.
pub fn objects(settings: &Settings) -> Result<Vec<Object>, EmbeddedError> {
    let mut all = Vec::new();
    for &(file, text) in FILES.iter().filter(|(file, _)| settings.openshift || !OPENSHIFT.contains(file)) {
        for value in load_all(text).map_err(|error| EmbeddedError::Yaml(file, error))? {
            let value = adapted(value, settings);
            all.push(Object::new(value).map_err(|error| EmbeddedError::Object(file, error))?);
        }
    }
    Ok(all)
}

fn adapted(mut value: Value, settings: &Settings) -> Value {
    let moved = |at: Option<&mut Value>| {
        if let Some(at) = at.filter(|at| *at == OPERATOR_NAMESPACE) {
            *at = settings.namespace.clone().into();
        }
    };
    moved(value.pointer_mut("/metadata/namespace"));
    if value.get("kind").is_some_and(|kind| kind == "Namespace") {
        moved(value.pointer_mut("/metadata/name"));
    }
    for subject in value.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        moved(subject.get_mut("namespace"));
    }
    if value.get("kind").is_some_and(|kind| kind == "ValidatingAdmissionPolicy") {
        rename(&mut value, &settings.namespace);
    }
    if let Some(network) = &settings.host_network {
        in_host_network(&mut value, network);
    }
    if value.get("kind").is_some_and(|kind| kind == "Deployment") {
        if let Some(Value::String(image)) = value.pointer_mut("/spec/template/spec/containers/0/image") {
            if let Some(given) = &settings.image {
                given.clone_into(image);
            } else if let (Some(registry), Some((_, path))) = (&settings.registry, image.split_once('/')) {
                *image = format!("{}/{path}", registry.trim_end_matches('/'));
            }
        }
        if let Some(Value::Array(args)) = value.pointer_mut("/spec/template/spec/containers/0/args") {
            args.extend(settings.args.iter().cloned().map(Value::from));
        }
        let env = value
            .pointer_mut("/spec/template/spec/containers/0/env")
            .and_then(Value::as_array_mut);
        for (env, proxy) in env.into_iter().zip(&settings.proxy) {
            env.extend(proxy.variables().map(|(name, value)| json!({"name": name, "value": value})));
        }
        settings.matrix.mount(&mut value);
        let tolerations = value.pointer_mut(TOLERATIONS).and_then(Value::as_array_mut);
        tolerations
            .into_iter()
            .for_each(|all| all.extend(settings.tolerations.iter().map(Toleration::to_value)));
    }
    value
}

/// The policy names the operator's account and its objects in its expressions.
fn rename(value: &mut Value, namespace: &str) {
    match value {
        Value::String(text) if text.contains(OPERATOR_NAMESPACE) => *text = text.replace(OPERATOR_NAMESPACE, namespace),
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, namespace)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rename(field, namespace)),
        _ => {}
    }
}

/// The same as `overlays/bootstrap`, where each is explained.
fn in_host_network(value: &mut Value, network: &HostNetwork) {
    match value.get("kind").and_then(Value::as_str) {
        Some("Namespace") => {
            if let Some(level) = value.pointer_mut("/metadata/labels/pod-security.kubernetes.io~1enforce") {
                *level = "privileged".into();
            }
        }
        Some("Deployment") => {
            value["spec"]["strategy"]["rollingUpdate"] = json!({"maxSurge": 0, "maxUnavailable": 1});
            let pod = &mut value["spec"]["template"]["spec"];
            pod["hostNetwork"] = true.into();
            pod["dnsPolicy"] = "Default".into();
            if let Some(tolerations) = pod["tolerations"].as_array_mut() {
                tolerations.push(json!({"key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": "NoSchedule"}));
                tolerations.push(json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}));
            }
            if let (Some((host, port)), Some(env)) = (&network.api_server, pod["containers"][0]["env"].as_array_mut()) {
                env.push(json!({"name": "KUBERNETES_SERVICE_HOST", "value": host}));
                env.push(json!({"name": "KUBERNETES_SERVICE_PORT", "value": port.to_string()}));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_in_host_network_gets_the_address_of_the_api_server() {
        let env = |api_server: Option<(String, u16)>| {
            let settings = Settings {
                host_network: Some(HostNetwork { api_server }),
                ..Settings::default()
            };
            let all = objects(&settings).expect("tested");
            let operator = all.iter().find(|object| object.kind() == "Deployment").expect("the operator");
            operator.value()["spec"]["template"]["spec"]["containers"][0]["env"].to_string()
        };
        assert!(!env(None).contains("KUBERNETES_SERVICE"));
        let given = env(Some(("192.0.2.7".into(), 6443)));
        for pair in [
            r#"{"name":"KUBERNETES_SERVICE_HOST","value":"192.0.2.7"}"#,
            r#"{"name":"KUBERNETES_SERVICE_PORT","value":"6443"}"#,
        ] {
            assert!(given.contains(pair), "{given}");
        }
    }

    #[test]
    fn operator_with_a_proxy_gets_it_as_variables() {
        let proxy = json!({"apiVersion": "config.openshift.io/v1", "kind": "Proxy", "metadata": {"name": "cluster"},
            "status": {"httpsProxy": "http://p:3128", "noProxy": ".svc"}});
        let settings = Settings {
            proxy: crate::openshift::proxy::proxy(&Object::new(proxy).expect("an object")),
            ..Settings::default()
        };
        let all = objects(&settings).expect("tested");
        let operator = all.iter().find(|object| object.kind() == "Deployment").expect("the operator");
        let env = operator.value()["spec"]["template"]["spec"]["containers"][0]["env"].to_string();
        for pair in [
            r#"{"name":"HTTPS_PROXY","value":"http://p:3128"}"#,
            r#"{"name":"NO_PROXY","value":".svc"}"#,
        ] {
            assert!(env.contains(pair), "{env}");
        }
    }
}
