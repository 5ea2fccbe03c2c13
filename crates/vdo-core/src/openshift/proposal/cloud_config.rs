// SPDX-License-Identifier: Apache-2.0
//! Reads the addresses and datacenters of vCenters from the configuration of OpenShift's cloud provider, in YAML or INI format.

use super::{CLOUD_CONFIG, Proposed, Vcenter};
use crate::driverconfig::gcfg_reader;
use serde_json::Value;
use vdo_api::yaml::load_all;

/// The vCenters in such a text. What is neither grammar names none.
pub(super) fn vcenters(config: &str) -> Vec<Proposed<Vcenter>> {
    let of_yaml = || load_all(config).ok()?.into_iter().find_map(|document| yaml(&document));
    let (namespace, name) = CLOUD_CONFIG;
    of_yaml()
        .unwrap_or_else(|| ini(config))
        .into_iter()
        .filter(|found| !found.server.is_empty())
        .map(|value| Proposed {
            value,
            origin: format!("ConfigMap {namespace}/{name}"),
        })
        .collect()
}

fn yaml(document: &Value) -> Option<Vec<Vcenter>> {
    let all = document.get("vcenter")?.as_object()?;
    let global = &document["global"];
    let read = |(name, one): (&String, &Value)| Vcenter {
        server: one["server"].as_str().unwrap_or(name).to_owned(),
        port: port(&one["port"]).or_else(|| port(&global["port"])).unwrap_or(443),
        datacenters: texts(&one["datacenters"]),
    };
    Some(all.iter().map(read).collect())
}

/// Written as a number or as a text.
fn port(value: &Value) -> Option<u16> {
    let number = value.as_u64().and_then(|port| u16::try_from(port).ok());
    let port = number.or_else(|| value.as_str()?.parse().ok());
    port.filter(|port| *port != 0)
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(all) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::String(text) => list(text),
        _ => Vec::new(),
    }
}

fn list(text: &str) -> Vec<String> {
    let each = text.split(',').map(str::trim);
    each.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn ini(config: &str) -> Vec<Vcenter> {
    let contents = gcfg_reader::read_partly(config.as_bytes());
    let port = |subsection: Option<&str>, section: &str| {
        let text = contents.value(section, subsection, "port")?;
        text.parse::<u16>().ok().filter(|port| *port != 0)
    };
    let headers = contents.sections.iter().filter(|section| section.name == "virtualcenter");
    let read = |header: &gcfg_reader::Section| {
        let subsection = header.subsection.as_deref();
        Vcenter {
            server: subsection.unwrap_or_default().to_owned(),
            port: port(subsection, "virtualcenter").or_else(|| port(None, "global")).unwrap_or(443),
            datacenters: contents
                .value("virtualcenter", subsection, "datacenters")
                .map(list)
                .unwrap_or_default(),
        }
    };
    headers.map(read).collect()
}
