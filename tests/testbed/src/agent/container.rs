//! What a container would see: its files, variables and arguments, with paths that lead to files of ours.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapVolumeSource, Container, EnvVar, KeyToPath, Pod, Secret, SecretVolumeSource, Volume, VolumeProjection,
};
use kube::api::Api;
use kube::{Client, ResourceExt};

use crate::workdir::write_private;

/// Arguments and variables, ready to run outside of the container.
pub(super) struct Prepared {
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
}

type Files = BTreeMap<String, Vec<u8>>;

/// Writes the container's files below `folder` and adapts what refers to them.
pub(super) async fn prepare(client: &Client, pod: &Pod, container: &Container, folder: &Path) -> Result<Prepared> {
    let namespace = pod.namespace().unwrap_or_default();
    let spec = pod.spec.as_ref().context("a pod without a spec")?;
    let source = Source {
        client,
        namespace: &namespace,
    };
    let mut mounts = Vec::new();
    let mut volumes = BTreeMap::new();
    for mount in container.volume_mounts.iter().flatten() {
        let volume = spec.volumes.iter().flatten().find(|volume| volume.name == mount.name);
        let Some(files) = source.files(volume.with_context(|| format!("no volume {}", mount.name))?).await? else {
            continue;
        };
        let place = folder.join(&mount.name);
        volumes.insert(place.clone(), files);
        let place = mount.sub_path.as_ref().map_or(place.clone(), |sub| place.join(sub));
        mounts.push((
            mount.mount_path.trim_end_matches('/').to_owned(),
            place.to_string_lossy().into_owned(),
        ));
    }
    // Longer paths first: /etc/cloud/secrets before /etc/cloud.
    mounts.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    for (place, files) in volumes {
        write(&place, files, &mounts)?;
    }

    let mut env: Vec<(String, String)> = Vec::new();
    for variable in container.env.iter().flatten() {
        if let Some(value) = source.variable(pod, variable).await? {
            env.push((variable.name.clone(), redirect(&expand(&value, &env), &mounts)));
        }
    }
    let command = container.command.iter().flatten().skip(1);
    let args = command.chain(container.args.iter().flatten());
    let args = args.map(|arg| redirect(&expand(arg, &env), &mounts)).collect();
    Ok(Prepared { args, env })
}

/// Where the pod's configuration comes from.
struct Source<'a> {
    client: &'a Client,
    namespace: &'a str,
}

impl Source<'_> {
    /// The files of a volume; none for a volume that holds no configuration.
    async fn files(&self, volume: &Volume) -> Result<Option<Files>> {
        if let Some(source) = &volume.config_map {
            return self.config_map_volume(source).await.map(Some);
        }
        if let Some(source) = &volume.secret {
            return self.secret_volume(source).await.map(Some);
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
        Ok(Files::new())
    }

    async fn config_map_volume(&self, source: &ConfigMapVolumeSource) -> Result<Files> {
        Ok(pick(self.config_map(&source.name, source.optional).await?, source.items.as_deref()))
    }

    async fn secret_volume(&self, source: &SecretVolumeSource) -> Result<Files> {
        let name = source.secret_name.as_deref().unwrap_or_default();
        Ok(pick(self.secret(name, source.optional).await?, source.items.as_deref()))
    }

    async fn config_map(&self, name: &str, optional: Option<bool>) -> Result<Files> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), self.namespace);
        let Some(map) = api.get_opt(name).await? else {
            return absent("ConfigMap", name, optional);
        };
        let text = map.data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes()));
        Ok(text
            .chain(map.binary_data.into_iter().flatten().map(|(key, bytes)| (key, bytes.0)))
            .collect())
    }

    async fn secret(&self, name: &str, optional: Option<bool>) -> Result<Files> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), self.namespace);
        let Some(secret) = api.get_opt(name).await? else {
            return absent("Secret", name, optional);
        };
        Ok(secret.data.into_iter().flatten().map(|(key, bytes)| (key, bytes.0)).collect())
    }

    async fn variable(&self, pod: &Pod, variable: &EnvVar) -> Result<Option<String>> {
        let Some(from) = &variable.value_from else {
            return Ok(Some(variable.value.clone().unwrap_or_default()));
        };
        let (files, key) = if let Some(key) = &from.config_map_key_ref {
            (self.config_map(&key.name, key.optional).await?, &key.key)
        } else if let Some(key) = &from.secret_key_ref {
            (self.secret(&key.name, key.optional).await?, &key.key)
        } else {
            let field = from.field_ref.as_ref().map(|field| field.field_path.as_str());
            return Ok(match field {
                Some("metadata.name") => Some(pod.name_any()),
                Some("metadata.namespace") => Some(self.namespace.to_owned()),
                Some("metadata.uid") => pod.uid(),
                Some("spec.nodeName") => pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
                Some("spec.serviceAccountName") => pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone()),
                _ => None,
            });
        };
        Ok(files.get(key).map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
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

fn write(folder: &Path, files: Files, mounts: &[(String, String)]) -> Result<()> {
    // A changed volume must not keep files of its former self.
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder)?;
    for (name, bytes) in files {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        // Configuration names other mounted files, such as a CA's.
        let bytes = String::from_utf8(bytes).map_or_else(|error| error.into_bytes(), |text| redirect(&text, mounts).into_bytes());
        write_private(&path, bytes)?;
    }
    Ok(())
}

/// Replaces paths inside of the container by ours: `/etc/cloud` and what is below, not `/etc/cloudy`.
fn redirect(text: &str, mounts: &[(String, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let hit = mounts.iter().find(|(path, _)| {
            let whole_start = !out.ends_with(|c: char| c.is_alphanumeric() || "/._-".contains(c));
            let after = rest.strip_prefix(path.as_str());
            whole_start && after.is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric() || "._-".contains(c)))
        });
        match hit {
            Some((path, place)) => {
                out.push_str(place);
                rest = &rest[path.len()..];
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

/// Replaces `$(NAME)` as the kubelet does, for the variables known so far.
fn expand(text: &str, env: &[(String, String)]) -> String {
    env.iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("$({name})"), value))
}

#[cfg(test)]
mod tests {
    use super::redirect;

    #[test]
    fn redirect_mounted_paths_are_replaced_as_a_whole() {
        let mounts = [("/etc/cloud/secrets".into(), "/s".into()), ("/etc/cloud".into(), "/c".into())];
        let cases = [
            ("--cloud-config=/etc/cloud/vsphere.conf", "--cloud-config=/c/vsphere.conf"),
            ("secretsDirectory: \"/etc/cloud/secrets\"", "secretsDirectory: \"/s\""),
            ("/etc/cloudy /my/etc/cloud", "/etc/cloudy /my/etc/cloud"),
            ("é/etc/cloud", "é/etc/cloud"),
        ];
        for (text, wanted) in cases {
            assert_eq!(redirect(text, &mounts), wanted);
        }
    }
}
