// SPDX-License-Identifier: Apache-2.0
//! The Secrets of the operator's matrix source: its address, public keys and credentials, and their mounts in the operator's Deployment.

use super::VDOCTL;
use crate::manifest::{ManifestError, Object};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use vdo_api::api::MANAGED_BY_LABEL;

/// The Secret that names the source, which is no secret: who may write ConfigMaps shall not choose it.
pub const MATRIX: &str = "vdo-matrix";
/// The key of it.
const SOURCE: &str = "source";
/// The Secret that lists the files of a matrix that was a folder.
pub const MATRIX_FILES: &str = "vdo-matrix-files";
/// The Secret with the public keys: who may write ConfigMaps shall not say who is trusted. Formerly a ConfigMap of the same name.
pub const MATRIX_KEYS: &str = "vdo-matrix-keys";
/// The Secret with the credentials.
pub const MATRIX_CREDENTIALS: &str = "vdo-matrix-credentials";

/// Their volumes, each with the flag that takes its folder.
const KEYS: (&str, &str) = ("matrix-keys", "--matrix-keys");
const CREDENTIALS: (&str, &str) = ("matrix-credentials", "--matrix-credentials");

/// A Secret for the operator with these texts.
///
/// # Errors
/// When it is none.
pub fn companion_secret(namespace: &str, name: &str, texts: &[(&str, &str)]) -> Result<Object, ManifestError> {
    let data: Value = texts
        .iter()
        .map(|(key, text)| ((*key).to_owned(), STANDARD.encode(text).into()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    companion(namespace, "Secret", name, json!({"type": "Opaque", "data": data}))
}

/// A ConfigMap or Secret for the operator, with this content.
///
/// # Errors
/// When it is none.
pub fn companion(namespace: &str, kind: &str, name: &str, content: Value) -> Result<Object, ManifestError> {
    // `vdoctl delete` takes away what has the label.
    let mut object = json!({
        "apiVersion": "v1", "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {MANAGED_BY_LABEL: VDOCTL}},
    });
    for (key, value) in content.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
    Object::new(object)
}

/// The Secret that makes the operator take its matrix from this source.
///
/// # Errors
/// When it is none.
pub fn matrix_source(namespace: &str, source: &str) -> Result<Object, ManifestError> {
    companion_secret(namespace, MATRIX, &[(SOURCE, source)])
}

/// What is mounted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mounts {
    /// The public keys.
    pub keys: bool,
    /// The credentials.
    pub credentials: bool,
}

impl Mounts {
    /// What the operator of this Deployment has.
    #[must_use]
    pub fn of(deployment: &Object) -> Self {
        let volumes = deployment.value().pointer("/spec/template/spec/volumes").and_then(Value::as_array);
        let has = |(name, _): (&str, &str)| volumes.is_some_and(|all| all.iter().any(|volume| volume["name"] == name));
        Self {
            keys: has(KEYS),
            credentials: has(CREDENTIALS),
        }
    }

    /// The ConfigMap from which the operator of this Deployment has its public keys, as former versions mounted them.
    #[must_use]
    pub fn former_keys(deployment: &Object) -> Option<&str> {
        let volumes = deployment.value().pointer("/spec/template/spec/volumes")?.as_array()?;
        let volume = volumes.iter().find(|volume| volume["name"] == KEYS.0)?;
        volume["configMap"]["name"].as_str()
    }

    /// Adds them to the operator's Deployment.
    pub(super) fn mount(self, deployment: &mut Value) {
        let pod = &mut deployment["spec"]["template"]["spec"];
        for (mounted, (name, flag), volume) in [
            (self.keys, KEYS, json!({"name": KEYS.0, "secret": {"secretName": MATRIX_KEYS}})),
            (
                self.credentials,
                CREDENTIALS,
                json!({"name": CREDENTIALS.0, "secret": {"secretName": MATRIX_CREDENTIALS}}),
            ),
        ] {
            if !mounted {
                continue;
            }
            let folder = format!("/etc/vdo/{name}");
            push(&mut pod["volumes"], volume);
            let container = &mut pod["containers"][0];
            push(&mut container["args"], format!("{flag}={folder}").into());
            push(
                &mut container["volumeMounts"],
                json!({"name": name, "mountPath": folder, "readOnly": true}),
            );
        }
    }
}

fn push(list: &mut Value, value: Value) {
    match list {
        Value::Array(all) => all.push(value),
        other => *other = json!([value]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_a_deployment_are_those_it_was_given() {
        for (keys, credentials) in [(false, false), (true, false), (false, true), (true, true)] {
            let mounts = Mounts { keys, credentials };
            let settings = crate::install::Settings {
                matrix: mounts,
                ..crate::install::Settings::default()
            };
            let all = crate::install::objects(&settings).expect("tested");
            let deployment = all.iter().find(|object| object.kind() == "Deployment").expect("the operator");
            assert_eq!(Mounts::of(deployment), mounts);
            assert_eq!(Mounts::former_keys(deployment), None);
            let args = deployment.value()["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
            assert_eq!(args.contains("\"--matrix-keys=/etc/vdo/matrix-keys\""), keys, "{args}");
            assert_eq!(
                args.contains("\"--matrix-credentials=/etc/vdo/matrix-credentials\""),
                credentials,
                "{args}"
            );
        }
    }
}
