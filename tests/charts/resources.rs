// SPDX-License-Identifier: Apache-2.0
//! Requests and limits by values.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failing test should stop where it fails")]

use crate::fixture::{chart, render, source};
use serde_json::{Value, json};

/// Policies may ask for requests and limits of every container.
#[test]
fn resources_values_reach_every_container_of_every_version() {
    let own = json!({"requests": {"cpu": "11m", "memory": "12Mi"}, "limits": {"memory": "13Mi"}});
    let of = |names: &[&str]| Value::Object(names.iter().map(|name| ((*name).to_owned(), own.clone())).collect());
    let controller = [
        "driver",
        "syncer",
        "attacher",
        "resizer",
        "provisioner",
        "snapshotter",
        "livenessProbe",
    ];
    for driver in ["vsphere-cpi", "vsphere-csi"] {
        for version in source(driver).versions() {
            let values = match driver {
                "vsphere-cpi" => json!({"resources": own}),
                _ => json!({
                    "controller": {"resources": of(&controller)},
                    "node": {"resources": of(&["driver", "registrar", "livenessProbe"])},
                    "webhook": {"enabled": true, "caBundle": "Q0E=", "resources": own},
                    "windows": {"enabled": true},
                }),
            };
            for object in render(&chart(driver, &version.to_string()), values) {
                let spec = &object["spec"]["template"]["spec"];
                for list in ["initContainers", "containers"] {
                    for container in spec[list].as_array().into_iter().flatten() {
                        let place = format!("{driver} {version}: {} {}", object["metadata"]["name"], container["name"]);
                        assert_eq!(container["resources"], own, "{place}");
                    }
                }
            }
        }
    }
}
