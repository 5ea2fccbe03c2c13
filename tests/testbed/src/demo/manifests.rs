//! The project's own manifests, applied where the cluster has something else.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::discovery::{Scope, pinned_kind};
use serde_json::{Value, json};

use super::VcenterState;

/// `deploy/` of this repository.
pub(super) fn folder() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).join("deploy")
}

/// The namespace, the definitions and the rights, in that order; not the Deployment.
pub(super) fn installation() -> Result<Vec<Value>> {
    let deploy = folder();
    let crds = deploy.join("crds");
    let entries = std::fs::read_dir(&crds).with_context(|| format!("folder {}", crds.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.insert(0, deploy.join("namespace.yaml"));
    files.extend(["drivers-rbac.yaml", "rbac.yaml"].map(|file| deploy.join(file)));
    let documents: Vec<Vec<Value>> = files.iter().map(|file| read(file)).collect::<Result<_>>()?;
    Ok(documents.concat())
}

/// The sample Secret, connection and VDOConfig; the connection leads to this vCenter.
pub(super) fn samples(vcenter: &VcenterState) -> Result<Vec<Value>> {
    let samples = folder().join("samples");
    let mut secret = read(&samples.join("secret.yaml"))?;
    for object in &mut secret {
        object["metadata"]["annotations"]["vdo.vmware.com/servers"] = vcenter.host.clone().into();
    }
    let password = std::fs::read_to_string(&vcenter.password_file).context("the vCenter's password")?;
    let fits = |object: &Value| object["stringData"] == json!({"username": vcenter.user, "password": password});
    ensure!(
        secret.iter().any(fits),
        "{} has another user or password than the simulated vCenter (user {}, password in {})",
        samples.join("secret.yaml").display(),
        vcenter.user,
        vcenter.password_file.display()
    );
    let mut connection = read(&samples.join("connection.yaml"))?;
    for object in connection.iter_mut().filter(|object| object["kind"] == "VsphereCloudConfig") {
        object["spec"]["vcIp"] = vcenter.host.clone().into();
        object["spec"]["port"] = vcenter.port.into();
        object["spec"]["thumbprint"] = vcenter.thumbprint_sha256.clone().into();
    }
    let config = read(&samples.join("vdoconfig.yaml"))?;
    Ok([secret, connection, config].concat())
}

fn read(file: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("manifest {}", file.display()))?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|error| anyhow!("manifest {}: {error}", file.display()))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// `Kind name`.
pub(super) fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// Applies an object unless the cluster has it already with all these fields. Says whether it wrote.
pub(super) async fn apply(client: &Client, object: &Value) -> Result<bool> {
    let live = live(client, object).await.with_context(|| name(object))?;
    if live.is_some_and(|live| contains(&live, &as_stored(object))) {
        return Ok(false);
    }
    crate::apply::apply(client, &object.to_string()).await?;
    Ok(true)
}

async fn live(client: &Client, object: &Value) -> Result<Option<Value>> {
    let types: TypeMeta = serde_json::from_value(object.clone())?;
    let kind = GroupVersionKind::try_from(&types).map_err(|error| anyhow!("apiVersion {}: {error}", types.api_version))?;
    let Ok((resource, capabilities)) = pinned_kind(client, &kind).await else {
        return Ok(None);
    };
    let api: Api<DynamicObject> = match (&capabilities.scope, object["metadata"]["namespace"].as_str()) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        (Scope::Namespaced, namespace) => Api::namespaced_with(client.clone(), namespace.unwrap_or("default"), &resource),
    };
    let found = api.get_opt(object["metadata"]["name"].as_str().unwrap_or_default()).await?;
    Ok(found.map(serde_json::to_value).transpose()?)
}

/// The object as the API server keeps it: a Secret's text becomes bytes.
fn as_stored(object: &Value) -> Value {
    let mut stored = object.clone();
    let text = stored.as_object_mut().and_then(|fields| fields.remove("stringData"));
    for (key, value) in text.iter().filter_map(Value::as_object).flatten() {
        stored["data"][key] = STANDARD.encode(value.as_str().unwrap_or_default()).into();
    }
    stored
}

/// Whether everything of `wanted` is in `live`, which may have more fields, such as defaults.
fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (_, Value::Object(wanted)) => wanted.iter().all(|(key, value)| contains(&live[key], value)),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| contains(live, wanted))
        }
        (Value::Number(live), Value::Number(wanted)) => live.as_f64() == wanted.as_f64(),
        _ => live == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contains_fewer_fields_with_same_values_is_true() {
        let live = json!({"spec": {"a": 1.0, "b": [{"c": "x", "default": true}], "e": {}}, "status": {}});
        for same in [
            json!({}),
            json!({"spec": {}}),
            json!({"spec": {"a": 1, "b": [{"c": "x"}]}}),
            json!({"gone": {}}),
        ] {
            assert!(contains(&live, &same), "{same}");
        }
    }

    #[test]
    fn contains_other_value_or_missing_field_is_false() {
        let live = json!({"spec": {"a": 1.0, "b": [{"c": "x", "default": true}], "e": {}}, "status": {}});
        for other in [
            json!({"spec": {"a": 2}}),
            json!({"spec": {"b": []}}),
            json!({"spec": {"b": [{"c": "y"}]}}),
            json!({"spec": {"d": "new"}}),
        ] {
            assert!(!contains(&live, &other), "{other}");
        }
    }

    #[test]
    fn as_stored_secret_string_data_becomes_base64() {
        let stored = as_stored(&json!({"kind": "Secret", "stringData": {"password": "p@ss"}}));
        assert_eq!(stored, json!({"kind": "Secret", "data": {"password": "cEBzcw=="}}));
    }

    #[test]
    fn installation_manifests_begin_with_namespace() -> Result<()> {
        let kinds: Vec<String> = installation()?.iter().map(name).collect();
        assert_eq!(kinds.first().map(String::as_str), Some("Namespace vmware-system-vdo"));
        assert!(!kinds.iter().any(|kind| kind.starts_with("Deployment")), "{kinds:?}");
        Ok(())
    }
}
