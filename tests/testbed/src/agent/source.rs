// SPDX-License-Identifier: Apache-2.0
//! What a pod's specification refers to: the files of its volumes and the values of its variables.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapVolumeSource, DownwardAPIVolumeFile, EnvVar, KeyToPath, Pod, Secret, SecretVolumeSource, Volume, VolumeProjection,
};
use kube::api::Api;
use kube::{Client, ResourceExt};

/// Files by their paths below a volume.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// Where a pod's configuration comes from.
pub(super) struct Source<'a> {
    client: &'a Client,
    pod: &'a Pod,
    namespace: String,
}

impl<'a> Source<'a> {
    pub(super) fn new(client: &'a Client, pod: &'a Pod) -> Self {
        Self {
            client,
            pod,
            namespace: pod.namespace().unwrap_or_default(),
        }
    }

    /// The files of a volume, without tokens; none for a volume that holds no configuration.
    pub(super) async fn files(&self, volume: &Volume) -> Result<Option<Files>> {
        if let Some(source) = &volume.config_map {
            return self.config_map_volume(source).await.map(Some);
        }
        if let Some(source) = &volume.secret {
            return self.secret_volume(source).await.map(Some);
        }
        if let Some(source) = &volume.downward_api {
            return self.downward(source.items.as_deref()).map(Some);
        }
        let Some(projected) = &volume.projected else { return Ok(None) };
        let mut all = Files::new();
        for part in projected.sources.iter().flatten() {
            all.extend(self.projection(part).await?);
        }
        Ok(Some(all))
    }

    async fn projection(&self, part: &VolumeProjection) -> Result<Files> {
        if let Some(map) = &part.config_map {
            return Ok(pick(self.config_map(&map.name, map.optional).await?, map.items.as_deref()));
        }
        if let Some(secret) = &part.secret {
            return Ok(pick(self.secret(&secret.name, secret.optional).await?, secret.items.as_deref()));
        }
        if let Some(downward) = &part.downward_api {
            return self.downward(downward.items.as_deref());
        }
        Ok(Files::new())
    }

    fn downward(&self, items: Option<&[DownwardAPIVolumeFile]>) -> Result<Files> {
        let mut files = Files::new();
        for item in items.into_iter().flatten() {
            let field = item.field_ref.as_ref().map(|field| field.field_path.as_str());
            let Some(value) = field.and_then(|field| self.field(field)) else {
                bail!("file {} of the downward API has no value", item.path);
            };
            files.insert(item.path.clone(), value.into_bytes());
        }
        Ok(files)
    }

    async fn config_map_volume(&self, source: &ConfigMapVolumeSource) -> Result<Files> {
        Ok(pick(self.config_map(&source.name, source.optional).await?, source.items.as_deref()))
    }

    async fn secret_volume(&self, source: &SecretVolumeSource) -> Result<Files> {
        let name = source.secret_name.as_deref().unwrap_or_default();
        Ok(pick(self.secret(name, source.optional).await?, source.items.as_deref()))
    }

    async fn config_map(&self, name: &str, optional: Option<bool>) -> Result<Files> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        let Some(map) = api.get_opt(name).await? else {
            return absent("ConfigMap", name, optional);
        };
        let text = map.data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes()));
        Ok(text
            .chain(map.binary_data.into_iter().flatten().map(|(key, bytes)| (key, bytes.0)))
            .collect())
    }

    async fn secret(&self, name: &str, optional: Option<bool>) -> Result<Files> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let Some(secret) = api.get_opt(name).await? else {
            return absent("Secret", name, optional);
        };
        Ok(secret.data.into_iter().flatten().map(|(key, bytes)| (key, bytes.0)).collect())
    }

    /// The value of a variable; none where a reference leads to nothing.
    pub(super) async fn variable(&self, variable: &EnvVar) -> Result<Option<String>> {
        let Some(from) = &variable.value_from else {
            return Ok(Some(variable.value.clone().unwrap_or_default()));
        };
        let (files, key) = if let Some(key) = &from.config_map_key_ref {
            (self.config_map(&key.name, key.optional).await?, &key.key)
        } else if let Some(key) = &from.secret_key_ref {
            (self.secret(&key.name, key.optional).await?, &key.key)
        } else {
            let field = from.field_ref.as_ref().map(|field| field.field_path.as_str());
            return Ok(field.and_then(|field| self.field(field)));
        };
        Ok(files.get(key).map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
    }

    fn field(&self, path: &str) -> Option<String> {
        let spec = self.pod.spec.as_ref();
        let status = self.pod.status.as_ref();
        match path {
            "metadata.name" => Some(self.pod.name_any()),
            "metadata.namespace" => Some(self.namespace.clone()),
            "metadata.uid" => self.pod.uid(),
            "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()),
            "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()),
            "status.podIP" => status.and_then(|status| status.pod_ip.clone()),
            "status.hostIP" => status.and_then(|status| status.host_ip.clone()),
            _ => None,
        }
    }
}

fn absent(kind: &str, name: &str, optional: Option<bool>) -> Result<Files> {
    if optional == Some(true) {
        return Ok(Files::new());
    }
    bail!("{kind} {name} not found")
}

fn pick(files: Files, items: Option<&[KeyToPath]>) -> Files {
    match items {
        None => files,
        Some(items) => items
            .iter()
            .filter_map(|item| Some((item.path.clone(), files.get(&item.key)?.clone())))
            .collect(),
    }
}

/// Replaces `$(NAME)` as the kubelet does, for the variables known so far.
pub(super) fn expand(text: &str, env: &[(String, String)]) -> String {
    env.iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("$({name})"), value))
}
