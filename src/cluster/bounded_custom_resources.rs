// SPDX-License-Identifier: Apache-2.0
//! Deserializes VDOConfigs and VsphereCloudConfigs for kube's controllers; of a resource that is too large, only its name.

use super::bounded_deserialize::{SMALL, read_within};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error};
use std::borrow::Cow;
use std::sync::Arc;

/// A custom resource, if it is not too large.
#[derive(Clone, Debug)]
pub struct Bounded<K> {
    meta: ObjectMeta,
    object: Option<Arc<K>>,
}

impl<K> Bounded<K> {
    /// The resource; `None` when it is too large.
    #[must_use]
    pub fn object(&self) -> Option<Arc<K>> {
        self.object.clone()
    }
}

impl<'de, K: DeserializeOwned + Resource> Deserialize<'de> for Bounded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (value, is_cut) = read_within(deserializer, &[], false, SMALL)?;
        if is_cut {
            let meta = value.get("metadata").cloned().unwrap_or_default();
            let meta = serde_json::from_value(meta).map_err(D::Error::custom)?;
            return Ok(Self { meta, object: None });
        }
        let object: K = serde_json::from_value(value).map_err(D::Error::custom)?;
        Ok(Self {
            meta: object.meta().clone(),
            object: Some(Arc::new(object)),
        })
    }
}

impl<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>> Resource for Bounded<K> {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vdo_api::api::VDOConfig;

    #[test]
    fn config_that_is_too_large_keeps_nothing_but_its_name() {
        let config = |annotation: &str| {
            let metadata = json!({"name": "vdo", "namespace": "n", "uid": "u", "resourceVersion": "3", "annotations": {"a": annotation},
                "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}]});
            let text = json!({"apiVersion": "v", "kind": "VDOConfig", "metadata": metadata, "spec": {}}).to_string();
            serde_json::from_str::<Bounded<VDOConfig>>(&text).expect("a resource")
        };
        let whole = config("x");
        assert!(whole.object().is_some_and(|object| object.metadata.managed_fields.is_none()));
        let large = config(&"x".repeat(SMALL));
        assert!(large.object().is_none());
        assert_eq!(
            (large.meta().name.as_deref(), large.meta().uid.as_deref()),
            (Some("vdo"), Some("u"))
        );
    }
}
