// SPDX-License-Identifier: Apache-2.0
//! Identifies the program of a container (driver, syncer, provisioner, …) by its name or image, and reads the container's variables.

use serde_json::{Map, Value};
use vdo_core::drivers::{CLOUD_PROVIDER, STORAGE};
use vdo_core::installed::Image;

/// The programs of both drivers, as the values of the charts call them, with the names of the charts' containers.
const PROGRAMS: [(&str, &[&str]); 9] = [
    ("manager", &["vsphere-cloud-controller-manager"]),
    ("driver", &["vsphere-csi-controller", "vsphere-csi-node"]),
    ("syncer", &["vsphere-syncer"]),
    ("attacher", &["csi-attacher"]),
    ("resizer", &["csi-resizer"]),
    ("provisioner", &["csi-provisioner"]),
    ("snapshotter", &["csi-snapshotter"]),
    ("livenessProbe", &["liveness-probe"]),
    ("registrar", &["node-driver-registrar"]),
];

/// The program of a container, by its name or its image; mirrors and charts rename both.
pub(super) fn program(container: &Value) -> Option<&'static str> {
    let name = container["name"].as_str().unwrap_or_default();
    let named = PROGRAMS.iter().find(|(_, names)| names.contains(&name));
    if let Some((program, _)) = named {
        return Some(program);
    }
    let image = Image::parse(container["image"].as_str()?)?;
    if (STORAGE.is_image)(&image) {
        return Some("driver");
    }
    if (CLOUD_PROVIDER.is_image)(&image) {
        return Some("manager");
    }
    let words = [
        "syncer",
        "attacher",
        "resizer",
        "provisioner",
        "snapshotter",
        "livenessprobe",
        "registrar",
    ];
    let word = words.into_iter().find(|word| image.has_word(word))?;
    PROGRAMS
        .iter()
        .map(|(program, _)| *program)
        .find(|program| program.eq_ignore_ascii_case(word))
}

/// The containers of a pod, but for those that run before them.
pub(super) fn all(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["containers"].as_array().into_iter().flatten()
}

/// The container with a program.
pub(super) fn of<'a>(pod: &'a Value, wanted: &str) -> Option<&'a Value> {
    all(pod).find(|container| program(container) == Some(wanted))
}

/// The variables of a container: the text of each, or none where it is taken from elsewhere.
pub(crate) fn variables(container: &Value) -> Vec<(&str, Option<&str>)> {
    let list = container["env"].as_array().into_iter().flatten();
    list.filter_map(|variable| {
        let elsewhere = variable.get("valueFrom").is_some_and(|from| !from.is_null());
        let value = (!elsewhere).then(|| variable["value"].as_str().unwrap_or_default());
        Some((variable["name"].as_str()?, value))
    })
    .collect()
}

/// Whether a container of a pod has a variable of this value.
pub(super) fn has_variable(pod: &Value, name: &str, value: &str) -> bool {
    all(pod).any(|container| variables(container).contains(&(name, Some(value))))
}

/// A map of an object, without what is null.
pub(super) fn fields(value: &Value) -> Map<String, Value> {
    let fields = value.as_object().cloned().unwrap_or_default();
    fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
}
