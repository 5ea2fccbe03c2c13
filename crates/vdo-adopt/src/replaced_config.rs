// SPDX-License-Identifier: Apache-2.0
//! Finds the settings of an installation that are lost when VDO replaces its Secrets and ConfigMaps of the same names.

use crate::config::Parts;
use crate::connections::{Connection, merged};
use crate::draft::Draft;
use crate::error::AdoptError;
use crate::files::{self, Depth};
use crate::origin::{Loss, Origin};
use crate::server::Server;
use crate::{Installation, Objects};
use serde_json::Value;
use std::collections::BTreeMap;

/// What the files of the drivers say.
struct Said {
    config: Draft,
    connections: Vec<Connection>,
    /// What no field expresses.
    losses: Vec<Loss>,
}

/// The settings of the drivers' files that are in no object of `after`, which take the place of those with the same names; those of the
/// cluster id, of accounts and of certificates are judged elsewhere. A setting has the name of the field that keeps it.
///
/// # Errors
/// When the files cannot be read, before or after. What is in no object is not there.
pub fn lost(installation: &Installation<'_>, after: &Objects) -> Result<Vec<Loss>, AdoptError> {
    let before = match said(installation) {
        Ok(before) => before,
        Err(AdoptError::Missing { .. } | AdoptError::NoFile { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let objects = installation.objects.under(after);
    let after = said(&Installation {
        objects: &objects,
        ..*installation
    })?;
    let vcenters = before.connections.iter().filter(|one| !after.has(one.address()));
    let vcenters = vcenters.map(|one| loss(format!("vCenter {}", one.address()), one.origin()));
    let fields = before
        .config
        .origins
        .iter()
        .filter(|(path, _)| is_lost(path, &before.config, &after.config));
    let fields = fields.map(|(path, origin)| loss(path.join("."), origin));
    let known = |loss: &&Loss| after.losses.iter().any(|one| one.key == loss.key);
    let unknown = before.losses.iter().filter(|loss| !known(loss)).cloned();
    Ok(vcenters.chain(fields).chain(unknown).collect())
}

fn loss(key: String, origin: &Origin) -> Loss {
    let because = "the new objects do not have this setting".to_owned();
    let origin = origin.clone();
    Loss { key, origin, because }
}

impl Said {
    fn has(&self, address: &str) -> bool {
        self.connections.iter().any(|one| one.address() == address)
    }
}

/// Reads the files. Connections that are there already have no part in it: what is compared is what drivers read.
fn said(installation: &Installation<'_>) -> Result<Said, AdoptError> {
    let (charts, none) = (BTreeMap::new(), Vec::new());
    let installation = Installation {
        charts: &charts,
        connections: &none,
        ..*installation
    };
    let cpi = files::cpi(&installation, Depth::Files)?;
    let csi = files::csi(&installation, Depth::Files)?;
    let of_cpi = cpi.iter().flat_map(|(file, _)| file.servers.iter().map(|one| one.server.clone()));
    let of_csi = csi.iter().flat_map(|(file, _)| file.servers.iter().cloned());
    let connections = merged(of_cpi.collect::<Vec<Server>>(), of_csi.collect(), &none);
    let mut losses = Vec::new();
    for lost in [cpi.as_ref().map(|(_, lost)| lost), csi.as_ref().map(|(_, lost)| lost)] {
        losses.extend(lost.iter().flat_map(|lost| lost.all.iter().cloned()));
    }
    let parts = Parts {
        installation: &installation,
        connections: &connections,
        cpi: cpi.as_ref().map(|(file, _)| file),
        csi: csi.as_ref().map(|(file, _)| file),
    };
    Ok(Said {
        config: parts.config(&mut losses),
        losses,
        connections,
    })
}

/// Whether a field has another value, or none. An element of a list may be at another place; names of connections are of their reading.
fn is_lost(path: &[String], before: &Draft, after: &Draft) -> bool {
    let steps: Vec<&str> = path.iter().map(String::as_str).collect();
    let at = |draft: &Draft, steps: &[&str]| -> Option<Value> { draft.object.pointer(&format!("/{}", steps.join("/"))).cloned() };
    match steps.split_last() {
        Some((&("clusterId" | "vsphereCloudConfigs"), _)) | None => false,
        Some((last, list)) if last.parse::<usize>().is_ok() => {
            let all = at(after, list).and_then(|list| list.as_array().cloned()).unwrap_or_default();
            at(before, &steps).is_some_and(|value| !all.contains(&value))
        }
        Some(_) => at(before, &steps) != at(after, &steps),
    }
}
