// SPDX-License-Identifier: Apache-2.0
//! Reads VsphereCloudConfigs as facts: trust, credentials, last status, and whether a driver may use them (effect).

use super::ca_bundle;
use super::cluster::{by_name, objects, texts};
use super::vcenter_secret::credentials;
use crate::cluster::{ClusterError, Reader, Select, View, Watch};
use crate::reconcile::error::ReconcileError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::ResourceExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use vdo_api::api::{API_VERSION, CertificateStatus, ConditionType, Conditions, Reason, VsphereCloudConfig, VsphereCloudConfigStatus};
use vdo_api::facts::{Connection, StoredCredentials};
use vdo_api::types::{Thumbprint, Trust, VcenterVersion};

/// The connections of a namespace.
#[must_use]
pub fn connections_watch(namespace: &str) -> Watch {
    Watch::new(API_VERSION, "VsphereCloudConfig", namespace, Select::All)
}

/// All connection objects of a namespace.
///
/// # Errors
/// When they cannot be read.
pub async fn connection_objects(reader: &Reader, namespace: &str) -> Result<Vec<VsphereCloudConfig>, ReconcileError> {
    let watch = connections_watch(namespace);
    let view = reader.load([watch.clone()]).await?;
    Ok(view
        .list(&watch)
        .into_iter()
        .filter_map(|o| serde_json::from_value(o.into_value()).ok())
        .collect())
}

/// The same, as each connection looks at all others: an object is not parsed once for each of them, and a write of ours is seen when
/// the watch shows it.
///
/// # Errors
/// When they cannot be read.
pub async fn neighbours(reader: &Reader, namespace: &str) -> Result<Vec<Arc<VsphereCloudConfig>>, ClusterError> {
    objects(reader, &connections_watch(namespace)).await
}

/// A connection with everything that it refers to.
///
/// # Errors
/// When its Secret or its certificate authorities are missing or unusable.
pub async fn connection(reader: &Reader, object: &VsphereCloudConfig) -> Result<Connection, ReconcileError> {
    let name = object.name_any();
    let status = object.status.clone().unwrap_or_default();
    let current = status.observed_generation == object.metadata.generation;
    let ready = Conditions::find(&status.conditions, ConditionType::Ready);
    let found = credentials(reader, object).await?;
    let trust = trust(reader, object).await?;
    Ok(Connection {
        server: object.spec.vc_ip.clone(),
        port: port(object),
        datacenters: object.spec.datacenters.clone(),
        sha1: sha1(&trust, status.certificate.as_ref().filter(|_| current)),
        trust,
        version: vcenter_version(object),
        blocked: blocked(&status, current, &found),
        lacking_privileges: lacking_privileges(&status, current),
        machines_twice: machines_twice(&status, current),
        tag_categories: tag_categories(&status),
        drivers: vec![],
        build: status.about.filter(|_| current).map(|about| about.build),
        ready: ready.filter(|_| current).and_then(|c| match c.status.as_str() {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }),
        message: ready
            .filter(|_| current)
            .map_or_else(|| "the vSphere connection has not been checked yet".into(), |c| c.message.clone()),
        credentials: found.credentials,
        name,
    })
}

/// The SHA-1 thumbprint of the certificate that is trusted by its SHA-256 thumbprint, where that certificate was presented last.
fn sha1(trust: &Trust, presented: Option<&CertificateStatus>) -> Option<Thumbprint> {
    let Trust::Thumbprint(print) = trust else { return None };
    let presented = presented.filter(|certificate| certificate.sha256.parse().as_ref() == Ok(print))?;
    presented.sha1.as_ref()?.parse().ok()
}

/// Why a connection must not reach a driver as it is now. In an outage, what was found before counts.
fn blocked(status: &VsphereCloudConfigStatus, current: bool, found: &StoredCredentials) -> Option<String> {
    let failed = |kind| {
        let condition = Conditions::find(&status.conditions, kind).filter(|c| current && c.status == "False");
        condition.map(|c| c.message.clone())
    };
    let credential = status.credential.as_ref();
    if credential.and_then(|c| c.verified.as_ref()) != Some(&found.version) {
        let judged = credential.is_some_and(|c| c.version == found.version);
        let message = failed(ConditionType::Authenticated).filter(|_| judged);
        return Some(message.unwrap_or_else(|| format!("the credentials in Secret {} are being checked", found.secret)));
    }
    failed(ConditionType::DatacentersFound)
}

/// The drivers that a new installation of would not do its work.
fn lacking_privileges(status: &VsphereCloudConfigStatus, current: bool) -> Vec<String> {
    let authorized = Conditions::find(&status.conditions, ConditionType::Authorized);
    match &status.privileges {
        Some(privileges) if current && authorized.is_some_and(|c| c.status == "False") => privileges.drivers.clone(),
        _ => vec![],
    }
}

/// What the connection says of nodes with a machine in the vCenter of another one, too.
fn machines_twice(status: &VsphereCloudConfigStatus, current: bool) -> Option<String> {
    let distinct = Conditions::find(&status.conditions, ConditionType::Distinct).filter(|_| current)?;
    (distinct.reason == Reason::MachineInSeveralVcenters.as_str()).then(|| distinct.message.clone())
}

/// Whether the vCenter has each of the tag categories that it was asked for. Where the last look could not read tags, nothing is known.
fn tag_categories(status: &VsphereCloudConfigStatus) -> Option<BTreeMap<String, bool>> {
    let consistent = Conditions::find(&status.conditions, ConditionType::TopologyConsistent);
    if consistent.is_some_and(|c| c.status == "Unknown") {
        return None;
    }
    let all = status.tag_categories.iter();
    Some(all.map(|category| (category.name.clone(), category.found)).collect())
}

/// The version that the vCenter of a connection said last, of the connection as it is specified now.
#[must_use]
pub fn vcenter_version(object: &VsphereCloudConfig) -> Option<VcenterVersion> {
    let status = object
        .status
        .as_ref()
        .filter(|status| status.observed_generation == object.metadata.generation)?;
    status.about.as_ref()?.version.parse().ok()
}

/// The port as the network has it.
#[must_use]
pub fn port(object: &VsphereCloudConfig) -> u16 {
    u16::try_from(object.spec.port).unwrap_or(443)
}

/// The thumbprint that the certificate of a connection must have; none where it is not checked, or checked in another way.
pub(super) fn thumbprint(object: &VsphereCloudConfig) -> Result<Option<Thumbprint>, ReconcileError> {
    let text = object.spec.thumbprint.as_deref();
    let Some(text) = text.filter(|text| !object.spec.insecure && !text.is_empty()) else {
        return Ok(None);
    };
    let parsed = text.parse::<Thumbprint>().map(Some);
    parsed.map_err(|error| ReconcileError::InvalidSpec {
        object: format!("vSphere connection {}", object.name_any()),
        field: "spec.thumbprint".into(),
        problem: error.to_string(),
    })
}

/// How the certificate of a connection is trusted. A missing thumbprint never means insecure.
///
/// # Errors
/// When the certificate authorities cannot be read, or the thumbprint is none.
pub async fn trust(reader: &Reader, object: &VsphereCloudConfig) -> Result<Trust, ReconcileError> {
    let spec = &object.spec;
    if spec.insecure {
        return Ok(Trust::Insecure);
    }
    if let Some(thumbprint) = thumbprint(object)? {
        return Ok(Trust::Thumbprint(thumbprint));
    }
    let Some(bundle) = &spec.ca_bundle else {
        return Ok(Trust::SystemRoots);
    };
    let namespace = object.namespace().unwrap_or_default();
    let (kind, name) = match (&bundle.config_map, &bundle.secret) {
        (Some(name), _) => ("ConfigMap", name),
        (None, Some(name)) => ("Secret", name),
        (None, None) => return Ok(Trust::SystemRoots),
    };
    let text = text_of(reader, kind, &namespace, name, &bundle.key).await?;
    let (connection, place, key) = (object.name_any(), format!("{kind} {namespace}/{name}"), bundle.key.clone());
    let Some(text) = text else {
        return Err(ReconcileError::CaBundle { connection, place, key });
    };
    match ca_bundle::certificates(&text) {
        Ok(pem) => Ok(Trust::CaBundle(pem)),
        Err(found) => Err(ReconcileError::CaBundleContent {
            connection,
            place,
            key,
            found,
        }),
    }
}

/// The text of a key of a ConfigMap or a Secret, which is watched from now on. `None` where there is no such object, key or text.
///
/// # Errors
/// When it may not be read.
pub(crate) async fn text_of(reader: &Reader, kind: &str, namespace: &str, name: &str, key: &str) -> Result<Option<String>, ClusterError> {
    let watch = by_name(kind, namespace, name);
    let view: View = reader.load([watch.clone()]).await?;
    let text = view.one(&watch).map(|o| texts(&o, "/data")).and_then(|mut data| data.remove(key));
    Ok(match kind {
        "Secret" => text.and_then(|t| STANDARD.decode(t).ok()).and_then(|b| String::from_utf8(b).ok()),
        _ => text,
    })
}
