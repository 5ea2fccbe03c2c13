// SPDX-License-Identifier: Apache-2.0
//! What a container would see: its files, variables and arguments, with paths that lead to files of ours.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::Client;

use super::source::{Files, Source, expand};
use crate::workdir::write_private;

/// Arguments and variables, ready to run outside of the container.
pub(super) struct Prepared {
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
}

/// Writes the container's files below `folder` and adapts what refers to them.
pub(super) async fn prepare(client: &Client, pod: &Pod, container: &Container, folder: &Path) -> Result<Prepared> {
    let spec = pod.spec.as_ref().context("a pod without a spec")?;
    let source = Source::new(client, pod);
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
        if let Some(value) = source.variable(variable).await? {
            env.push((variable.name.clone(), redirect(&expand(&value, &env), &mounts)));
        }
    }
    let command = container.command.iter().flatten().skip(1);
    let args = command.chain(container.args.iter().flatten());
    let args = args.map(|arg| redirect(&expand(arg, &env), &mounts)).collect();
    Ok(Prepared { args, env })
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
pub(super) fn redirect(text: &str, mounts: &[(String, String)]) -> String {
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
