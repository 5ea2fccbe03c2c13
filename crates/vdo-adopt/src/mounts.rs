// SPDX-License-Identifier: Apache-2.0
//! Finds the Secret or ConfigMap and its key that a container reads at a path, from the volumes and mounts of the pod.

use crate::error::AdoptError;
use crate::origin::{Origin, named};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_api::types::ObjectId;
use vdo_core::manifest::Object;

/// Secrets and ConfigMaps, by their identity.
#[derive(Debug, Clone, Default)]
pub struct Objects(BTreeMap<ObjectId, Object>);

impl Objects {
    /// These objects.
    #[must_use]
    pub fn new(objects: impl IntoIterator<Item = Object>) -> Self {
        Self(objects.into_iter().map(|object| (object.id(), object)).collect())
    }

    /// These, and each that is not among them as it is here.
    #[must_use]
    pub fn under(&self, others: &Self) -> Self {
        let mut all = self.clone();
        all.0.extend(others.0.clone());
        all
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, id: &ObjectId) -> Option<&Object> {
        self.0.get(id)
    }

    /// The content of a key.
    pub(crate) fn content(&self, place: &Place, by: &str) -> Result<Vec<u8>, AdoptError> {
        let missing = |what: String| AdoptError::Missing {
            object: what,
            by: by.to_owned(),
        };
        let object = self.get(&place.object).ok_or_else(|| missing(named(&place.object)))?;
        let found = content(object, &place.key);
        found.ok_or_else(|| missing(format!("key {} of {}", place.key, named(&place.object))))
    }
}

/// The content of a key of a Secret or a ConfigMap.
pub(crate) fn content(object: &Object, key: &str) -> Option<Vec<u8>> {
    let value = object.value();
    let plain = |field: &str| value[field][key].as_str();
    let encoded = |field: &str| STANDARD.decode(plain(field)?).ok();
    match object.is_secret() {
        true => plain("stringData").map(|text| text.as_bytes().to_vec()).or_else(|| encoded("data")),
        false => plain("data").map(|text| text.as_bytes().to_vec()).or_else(|| encoded("binaryData")),
    }
}

/// The keys of a Secret or a ConfigMap.
pub(crate) fn keys(object: &Object) -> Vec<String> {
    let fields = ["data", "stringData", "binaryData"];
    let keys = fields.iter().filter_map(|field| object.value()[*field].as_object());
    keys.flat_map(|data| data.keys().cloned()).collect()
}

/// A key of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub object: ObjectId,
    pub key: String,
}

impl Place {
    pub(crate) fn origin(&self) -> Origin {
        Origin::new(named(&self.object), self.key.clone())
    }
}

/// Where a container finds the file at a path.
pub(crate) fn file(pod: &Value, container: &Value, namespace: &str, path: &str) -> Option<Place> {
    let (volume, below) = volume(pod, container, path)?;
    let all = sources(volume);
    all.iter().find_map(|(kind, name, source)| {
        let key = match source["items"].as_array() {
            Some(items) => items.iter().find(|item| item["path"] == below)?["key"].as_str()?.to_owned(),
            None => below.clone(),
        };
        Some(Place {
            object: ObjectId::new("", *kind, namespace, name.clone()),
            key,
        })
    })
}

/// The objects whose keys a container finds in a folder.
pub(crate) fn folder(pod: &Value, container: &Value, namespace: &str, path: &str) -> Vec<ObjectId> {
    let Some((volume, _)) = volume(pod, container, &format!("{}/x", path.trim_end_matches('/'))) else {
        return Vec::new();
    };
    let id = |(kind, name, _): (&str, String, &Value)| ObjectId::new("", kind, namespace, &name);
    sources(volume).into_iter().map(id).collect()
}

/// The Secrets and ConfigMaps that a pod mounts.
pub(crate) fn mounted(pod: &Value, namespace: &str) -> Vec<ObjectId> {
    let volumes = pod["volumes"].as_array().into_iter().flatten();
    let all = volumes.flat_map(sources);
    all.map(|(kind, name, _)| ObjectId::new("", kind, namespace, name)).collect()
}

/// The volume at a path, and the rest of the path below it.
fn volume<'a>(pod: &'a Value, container: &Value, path: &str) -> Option<(&'a Value, String)> {
    let mounts = container["volumeMounts"].as_array()?.iter();
    let found = mounts.filter_map(|mount| {
        let at = mount["mountPath"].as_str()?.trim_end_matches('/');
        let rest = path.strip_prefix(at)?;
        let part = mount["subPath"].as_str();
        let below = match (rest.strip_prefix('/'), part) {
            (None, Some(part)) if rest.is_empty() => part.to_owned(),
            (Some(rest), None) => rest.to_owned(),
            (Some(rest), Some(part)) => format!("{part}/{rest}"),
            _ => return None,
        };
        Some((at.len(), mount["name"].as_str()?, below))
    });
    let (_, name, below) = found.max_by_key(|(length, ..)| *length)?;
    let volume = pod["volumes"].as_array()?.iter().find(|volume| volume["name"] == name)?;
    Some((volume, below))
}

/// The Secrets and ConfigMaps of a volume: kind, name, and where its items are listed.
fn sources(volume: &Value) -> Vec<(&'static str, String, &Value)> {
    let one = |source: &'_ Value, key: &str| source[key].as_str().filter(|name| !name.is_empty()).map(str::to_owned);
    let mut all = Vec::new();
    all.extend(one(&volume["secret"], "secretName").map(|name| ("Secret", name, &volume["secret"])));
    all.extend(one(&volume["configMap"], "name").map(|name| ("ConfigMap", name, &volume["configMap"])));
    for source in volume["projected"]["sources"].as_array().into_iter().flatten() {
        all.extend(one(&source["secret"], "name").map(|name| ("Secret", name, &source["secret"])));
        all.extend(one(&source["configMap"], "name").map(|name| ("ConfigMap", name, &source["configMap"])));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn mounted_file_is_found_in_each_kind_of_volume() {
        let pod = json!({"volumes": [
            {"name": "s", "secret": {"secretName": "conf"}},
            {"name": "i", "secret": {"secretName": "items", "items": [{"key": "k", "path": "csi-vsphere.conf"}]}},
            {"name": "p", "projected": {"sources": [{"secret": {"name": "a", "items": [{"key": "x", "path": "y"}]}}, {"configMap": {"name": "b"}}]}},
            {"name": "h", "hostPath": {"path": "/etc/cloud"}},
        ]});
        let place = |name: &str, at: &str, sub: Option<&str>| {
            let mut mount = json!({"name": name, "mountPath": at});
            if let Some(sub) = sub {
                mount["subPath"] = sub.into();
            }
            let container = json!({"volumeMounts": [{"name": "h", "mountPath": "/etc"}, mount]});
            let found = file(&pod, &container, "n", "/etc/cloud/csi-vsphere.conf");
            found.map(|place| format!("{} {}", named(&place.object), place.key))
        };
        assert_eq!(place("s", "/etc/cloud/", None).as_deref(), Some("Secret n/conf csi-vsphere.conf"));
        assert_eq!(place("i", "/etc/cloud", None).as_deref(), Some("Secret n/items k"));
        assert_eq!(place("p", "/etc/cloud", None).as_deref(), Some("ConfigMap n/b csi-vsphere.conf"));
        assert_eq!(
            place("s", "/etc/cloud/csi-vsphere.conf", Some("other")).as_deref(),
            Some("Secret n/conf other")
        );
        assert_eq!(place("h", "/etc/cloud", None), None);
        assert_eq!(place("s", "/etc/clo", None), None);
    }
}
