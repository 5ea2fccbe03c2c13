// SPDX-License-Identifier: Apache-2.0
//! Refuses to work where a newer operator stored VDOConfigs or VsphereCloudConfigs in a CRD version that this operator does not know.

use crate::cluster::{Reader, Select, Watch};
use crate::reconcile::error::ReconcileError;
use serde_json::Value;
use vdo_api::api::{API_VERSION, GROUP};
use vdo_core::manifest::Object;

/// The definitions of what the operator writes to.
pub const DEFINITIONS: [&str; 2] = ["vdoconfigs.vdo.vmware.com", "vspherecloudconfigs.vdo.vmware.com"];

/// Looks whether objects are stored in versions that this operator does not know.
///
/// # Errors
/// When there are, or the definitions cannot be read.
pub(in crate::reconcile) async fn check(reader: &Reader) -> Result<(), ReconcileError> {
    let watch = |name: &str| Watch::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", Select::Name(name.into()));
    let view = reader.load(DEFINITIONS.map(watch)).await?;
    let mut all = DEFINITIONS.iter().filter_map(|name| view.one(&watch(name)));
    all.try_for_each(|definition| known(&definition))
}

fn known(definition: &Object) -> Result<(), ReconcileError> {
    let own = API_VERSION.trim_start_matches(GROUP).trim_start_matches('/');
    let stored = definition.value().pointer("/status/storedVersions").and_then(Value::as_array);
    let stored = stored.into_iter().flatten().filter_map(Value::as_str);
    let unknown: Vec<&str> = stored.filter(|version| *version != own).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(ReconcileError::NewerDefinition {
        definition: definition.name().to_owned(),
        versions: unknown.join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vdo_api::api::chain;

    #[test]
    fn definition_with_objects_of_an_unknown_version_is_an_error() {
        for (stored, unknown) in [
            (json!(["v1alpha1"]), None),
            (json!([]), None),
            (Value::Null, None),
            (json!(["v1alpha1", "v1beta1"]), Some("version v1beta1,")),
            (json!(["v1", "v1beta1"]), Some("version v1, v1beta1,")),
        ] {
            let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": DEFINITIONS[0]}, "status": {"storedVersions": stored}});
            let found = known(&Object::new(definition).expect("an object")).err().map(|error| chain(&error));
            assert_eq!(found.is_some(), unknown.is_some(), "{found:?}");
            assert!(unknown.is_none_or(|unknown| found.is_some_and(|found| found.contains(unknown))));
        }
    }
}
