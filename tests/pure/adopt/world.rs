// SPDX-License-Identifier: Apache-2.0
//! Clusters in which another tool has installed the drivers.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use vdo_adopt::{AdoptError, Adoption, Installation, Objects, adoption, lost, missing};
use vdo_api::types::DriverVersion;
use vdo_core::chart::{self, Chart, Source};
use vdo_core::installed::Installed;
use vdo_core::manifest::Object;
use vdo_source::fetch::embedded;

static SOURCES: LazyLock<BTreeMap<String, Source>> = LazyLock::new(embedded::sources);

/// All versions of a driver.
pub fn versions(driver: &str) -> Vec<DriverVersion> {
    SOURCES[driver].versions().into_iter().collect()
}

/// The chart of a version.
pub fn chart(driver: &str, version: &DriverVersion) -> Chart {
    chart::open(&chart::package(&SOURCES[driver], version).unwrap()).unwrap()
}

/// The newest chart.
pub fn newest(driver: &str) -> Chart {
    chart(driver, &versions(driver).into_iter().max().unwrap())
}

/// What is in a cluster.
#[derive(Default)]
pub struct World {
    pub workloads: Vec<Installed>,
    pub objects: Vec<Object>,
    pub connections: Vec<Object>,
    pub charts: BTreeMap<&'static str, Chart>,
    /// The nodes of the control plane; three unless a test says otherwise.
    pub control_planes: Option<u32>,
}

impl World {
    /// A cluster with the objects that charts render; what is not a workload is what others refer to.
    pub fn with_driver(mut self, driver: &'static str, chart: Chart, rendered: Vec<Value>) -> Self {
        for object in rendered {
            self = self.with(object);
        }
        self.charts.insert(driver, chart);
        self
    }

    /// One more object.
    pub fn with(mut self, object: Value) -> Self {
        let object = Object::new(object).unwrap();
        if object.kind() == "VsphereCloudConfig" {
            self.connections.push(object);
            return self;
        }
        match Installed::of(&object) {
            Some(found) => self.workloads.push(found),
            None => self.objects.push(object),
        }
        self
    }

    /// The cloud provider of the newest version, with this file.
    pub fn with_cpi(self, key: &str, text: &str) -> Self {
        let chart = newest("vsphere-cpi");
        let mut rendered = chart::render(&chart, &json!({}), &chart::Context::default()).unwrap();
        for object in rendered.iter_mut().filter(|object| object["kind"] == "DaemonSet") {
            object["spec"]["template"]["spec"]["containers"][0]["args"][2] = format!("--cloud-config=/etc/cloud/{key}").into();
        }
        self.with_driver("vsphere-cpi", chart, rendered).with(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vsphere-cloud-config", "namespace": "kube-system"}, "data": {key: text},
        }))
    }

    /// The CSI driver of a version, with this file.
    pub fn with_csi(self, version: &str, text: &[u8]) -> Self {
        let chart = chart("vsphere-csi", &version.parse().unwrap());
        let topology = String::from_utf8_lossy(text).contains("topology-categories");
        let values = json!({"topology": {"enabled": topology}});
        let rendered = chart::render(&chart, &values, &chart::Context::default()).unwrap();
        self.with_driver("vsphere-csi", chart, rendered).with(secret(
            "vmware-system-csi",
            "vsphere-config-secret",
            &[("csi-vsphere.conf", text)],
        ))
    }

    /// Reads it, with nothing but what is asked for.
    pub fn adopted(&self) -> Result<Adoption, AdoptError> {
        let all = Objects::new(self.objects.iter().cloned());
        let mut given = Objects::default();
        let mut found: Vec<Object> = Vec::new();
        loop {
            let installation = self.installation(&given);
            let more = missing(&installation);
            let more: Vec<Object> = more.iter().filter_map(|id| all.get(id).cloned()).collect();
            if more.is_empty() {
                return adoption(&installation);
            }
            found.extend(more);
            given = Objects::new(found.iter().cloned());
        }
    }

    /// The settings that are lost where these take the place of objects of the same names.
    pub fn lost(&self, after: impl IntoIterator<Item = Object>) -> Result<Vec<String>, AdoptError> {
        let objects = Objects::new(self.objects.iter().cloned());
        let losses = lost(&self.installation(&objects), &Objects::new(after))?;
        Ok(losses.iter().map(|loss| format!("{} ({})", loss.key, loss.origin)).collect())
    }

    fn installation<'a>(&'a self, objects: &'a Objects) -> Installation<'a> {
        Installation {
            workloads: &self.workloads,
            objects,
            charts: &self.charts,
            connections: &self.connections,
            control_planes: self.control_planes.unwrap_or(3),
            namespace: "vmware-system-vdo",
            name: "vdo",
        }
    }
}

/// A Secret.
pub fn secret(namespace: &str, name: &str, data: &[(&str, &[u8])]) -> Value {
    use base64::Engine as _;
    let encoded = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let data: BTreeMap<&str, String> = data.iter().map(|(key, bytes)| (*key, encoded(bytes))).collect();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data})
}

/// The documents of an adoption as people see them.
pub fn yaml(adoption: &Adoption) -> String {
    let mut text: String = adoption.documents.iter().map(|document| document.yaml(false)).collect();
    for loss in &adoption.losses {
        text.push_str(&format!("LOST {} ({}): {}\n", loss.key, loss.origin, loss.because));
    }
    text
}

/// The specification of the VDOConfig.
pub fn spec(adoption: &Adoption) -> Value {
    adoption.documents.last().unwrap().object()["spec"].clone()
}
