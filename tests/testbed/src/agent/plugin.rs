// SPDX-License-Identifier: Apache-2.0
//! The CSI driver of a pod of the node plugin, on a machine that has no disks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Pod, PodSpec, Volume, VolumeMount};
use kube::ResourceExt;
use kube::api::{Api, ListParams};

use super::NodeAgent;
use super::address::Address;
use super::pods::locked;
use super::root::Start;
use super::volumes::Volumes;
use crate::process::Process;

const NAMESPACE: &str = "vmware-system-csi";
/// The driver's container in the controller's pod and on nodes.
const CONTROLLER: &str = "vsphere-csi-controller";
const PLUGIN: &str = "vsphere-csi-node";
/// The volumes of its pod that have the socket, there and here.
const CONTROLLER_SOCKET: &str = "socket-dir";
const PLUGIN_SOCKET: &str = "plugin-dir";
const SOCKET: &str = "csi.sock";
/// Where the driver reads which machine it is on.
const FIRMWARE: &str = "/sys/class/dmi/id";
/// Volumes of this machine that a driver without disks does without.
const OF_MACHINE: [&str; 3] = ["device-dir", "blocks-dir", "sys-devices-dir"];

/// The CSI driver of one node. Dropping it ends the process.
#[derive(Debug)]
pub struct CsiPlugin {
    process: Process,
    volumes: PathBuf,
}

impl CsiPlugin {
    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.volumes.join(PLUGIN_SOCKET).join(SOCKET)
    }

    /// A folder that has the same path for it as for everyone else.
    pub fn shared(&self) -> PathBuf {
        self.volumes.join("shared")
    }

    /// Fails, with the end of its log, if it has ended.
    pub fn check(&mut self) -> Result<()> {
        self.process.check()
    }

    /// Where it writes to.
    pub fn log(&self) -> &Path {
        self.process.log()
    }
}

impl NodeAgent {
    /// Where the CSI driver's controller listens, if it is ready.
    pub fn csi_socket(&self) -> Option<PathBuf> {
        let uid = locked(&self.shared.table).ready_pod(NAMESPACE, CONTROLLER)?;
        let volumes = self.shared.site.folder.join(uid).join("volumes");
        Some(volumes.join(CONTROLLER_SOCKET).join(SOCKET))
    }

    /// Runs the CSI driver of the node plugin's pod on this node, with the arguments, the variables and the service account of the pod. Of the
    /// machine it sees that its firmware names the UUID, and nothing else: no disks and no mounts.
    pub async fn start_csi_plugin(&self, node: &str, uuid: &str) -> Result<CsiPlugin> {
        let site = &self.shared.site;
        let pods: Api<Pod> = Api::namespaced(site.client.clone(), NAMESPACE);
        let here = ListParams::default()
            .labels("app=vsphere-csi-node")
            .fields(&format!("spec.nodeName={node}"));
        let found = pods.list(&here).await?.items.into_iter().next();
        let mut pod = found.with_context(|| format!("node {node} has no pod of the CSI node plugin"))?;
        let folder = site.folder.join(format!("plugin-{}", pod.uid().unwrap_or_default()));
        let mut volumes = Volumes::new(&folder.join("volumes"));
        let spec = pod.spec.as_mut().context("a pod without a specification")?;
        without_disks(spec, &volumes.path("shared"));
        volumes.refresh(&site.client, &pod).await?;
        let firmware = volumes.path("firmware").join("product_serial");
        std::fs::write(firmware, serial(uuid))?;
        let container = pod.spec.iter().flat_map(|spec| &spec.containers).next();
        let container = container.with_context(|| format!("the pod has no container {PLUGIN}"))?;
        let reference = container.image.clone().unwrap_or_default();
        let image = locked(&self.shared.images).pull(&reference).cloned();
        let image = image.with_context(|| format!("image {reference} is not served"))?;
        let log = site.folder.join(format!("{NAMESPACE}.{}.{PLUGIN}.log", pod.name_any()));
        let start = Start {
            site,
            isolation: &self.isolation(),
            pod: &pod,
            container,
            image: &image,
            address: &Address::choose(&pod)?,
            volumes: &volumes,
            folder: &folder.join("container"),
            log: &log,
        };
        let launch = start.launch().await.map_err(|refused| anyhow!("{}: {}", refused.0, refused.1))?;
        Ok(CsiPlugin {
            process: launch.spawn()?,
            volumes: folder.join("volumes"),
        })
    }
}

/// Leaves the driver's container alone, with folders of its own in place of those of the machine, and with one at `shared`.
fn without_disks(spec: &mut PodSpec, shared: &Path) {
    spec.containers.retain(|container| container.name == PLUGIN);
    let mut volumes: Vec<Volume> = spec.volumes.take().unwrap_or_default();
    volumes.retain(|volume| !OF_MACHINE.contains(&volume.name.as_str()));
    let folder = |name: &str| Volume {
        name: name.into(),
        empty_dir: Some(EmptyDirVolumeSource::default()),
        ..Volume::default()
    };
    for volume in volumes.iter_mut().filter(|volume| volume.host_path.is_some()) {
        *volume = folder(&volume.name);
    }
    volumes.extend(["firmware", "shared"].map(folder));
    let names: BTreeSet<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
    let mount = |name: &str, path: String| VolumeMount {
        name: name.into(),
        mount_path: path,
        ..VolumeMount::default()
    };
    for container in &mut spec.containers {
        let mounts = container.volume_mounts.get_or_insert_default();
        mounts.retain(|mount| names.contains(mount.name.as_str()));
        mounts.push(mount("firmware", FIRMWARE.into()));
        mounts.push(mount("shared", shared.to_string_lossy().into_owned()));
    }
    spec.volumes = Some(volumes);
}

/// How the firmware of a virtual machine writes its UUID: `VMware-42 1c …-…`.
fn serial(uuid: &str) -> String {
    let digits: Vec<char> = uuid.chars().filter(char::is_ascii_hexdigit).collect();
    let bytes: Vec<String> = digits.chunks(2).map(|pair| pair.iter().collect()).collect();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    format!("VMware-{}-{}\n", first.join(" "), second.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn serial_is_written_as_firmware_writes_it() {
        assert_eq!(
            serial("421c2042-0dd1-d037-156f-435f999d94c1"),
            "VMware-42 1c 20 42 0d d1 d0 37-15 6f 43 5f 99 9d 94 c1\n"
        );
    }

    #[test]
    fn pod_without_disks_keeps_its_account_and_gets_folders() -> Result<()> {
        let mut spec: PodSpec = serde_json::from_value(json!({
            "containers": [
                {"name": "node-driver-registrar"},
                {"name": PLUGIN, "volumeMounts": [
                    {"name": "plugin-dir", "mountPath": "/csi"},
                    {"name": "device-dir", "mountPath": "/dev"},
                    {"name": "account", "mountPath": "/account"},
                ]},
            ],
            "volumes": [
                {"name": "plugin-dir", "hostPath": {"path": "/var/lib/kubelet/plugins"}},
                {"name": "device-dir", "hostPath": {"path": "/dev"}},
                {"name": "account", "projected": {}},
            ],
        }))?;
        without_disks(&mut spec, Path::new("/a b/shared"));
        let mounts = spec.containers[0].volume_mounts.iter().flatten();
        let mounts: Vec<&str> = mounts.map(|mount| mount.mount_path.as_str()).collect();
        assert_eq!(mounts, ["/csi", "/account", FIRMWARE, "/a b/shared"]);
        assert_eq!(spec.containers.len(), 1);
        let volumes: Vec<(&str, bool)> = spec
            .volumes
            .iter()
            .flatten()
            .map(|volume| (volume.name.as_str(), volume.empty_dir.is_some()))
            .collect();
        assert_eq!(
            volumes,
            [("plugin-dir", true), ("account", false), ("firmware", true), ("shared", true)]
        );
        Ok(())
    }
}
