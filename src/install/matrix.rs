//! What the operator gets to judge and to reach the source of its matrix: public keys and credentials, mounted as folders.

use super::VDOCTL;
use crate::api::MANAGED_BY_LABEL;
use crate::manifest::{ManifestError, Object};
use serde_json::{Value, json};

/// The ConfigMap that names the source.
const MATRIX: &str = "vdo-matrix";
/// The key of it.
const SOURCE: &str = "source";
/// The ConfigMap that lists the files of a matrix that was a folder.
pub const MATRIX_FILES: &str = "vdo-matrix-files";
/// The ConfigMap with the public keys.
pub const MATRIX_KEYS: &str = "vdo-matrix-keys";
/// The Secret with the credentials.
pub const MATRIX_CREDENTIALS: &str = "vdo-matrix-credentials";

/// Their volumes, each with the flag that takes its folder.
const KEYS: (&str, &str) = ("matrix-keys", "--matrix-keys");
const CREDENTIALS: (&str, &str) = ("matrix-credentials", "--matrix-credentials");

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

/// The ConfigMap that makes the operator take its matrix from this source.
///
/// # Errors
/// When it is none.
pub fn matrix_source(namespace: &str, source: &str) -> Result<Object, ManifestError> {
    companion(namespace, "ConfigMap", MATRIX, json!({"data": {SOURCE: source}}))
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

    /// Adds them to the operator's Deployment.
    pub(super) fn mount(self, deployment: &mut Value) {
        let pod = &mut deployment["spec"]["template"]["spec"];
        for (mounted, (name, flag), volume) in [
            (self.keys, KEYS, json!({"name": KEYS.0, "configMap": {"name": MATRIX_KEYS}})),
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
