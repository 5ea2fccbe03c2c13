// SPDX-License-Identifier: Apache-2.0
//! Reads the Secret with the credentials of a vCenter, and checks its namespace, type, keys and `vdo.vmware.com/servers` (effect).

use super::cluster::{by_name, texts};
use super::connections::{port, thumbprint};
use crate::cluster::{ClusterError, Reader};
use crate::reconcile::error::ReconcileError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::ResourceExt;
use vdo_api::api::{SERVERS, VsphereCloudConfig};
use vdo_api::facts::{Credentials, StoredCredentials};
use vdo_api::types::{Secret, names_server};
use vdo_core::manifest::Object;

/// Where Secrets of the original operator are.
const KUBE_SYSTEM: &str = "kube-system";

/// The user name and password of a connection, by the name of the Secret only.
///
/// # Errors
/// When the Secret is missing, of another type, or lacks a part.
pub async fn credentials(reader: &Reader, object: &VsphereCloudConfig) -> Result<StoredCredentials, ReconcileError> {
    let own = object.namespace().unwrap_or_default();
    let name = &object.spec.credentials;
    // A user who may write a connection must not thereby read the Secrets of others.
    let mut places = match &object.spec.credentials_namespace {
        Some(namespace) if *namespace != own && namespace != KUBE_SYSTEM => {
            return Err(ReconcileError::SecretElsewhere {
                connection: object.name_any(),
                secret: format!("{namespace}/{name}"),
                namespace: own,
            });
        }
        Some(namespace) => vec![namespace.clone()],
        None => vec![own, KUBE_SYSTEM.into()],
    };
    places.dedup();
    let mut refused = None;
    for (place, namespace) in places.iter().enumerate() {
        let watch = by_name("Secret", namespace, name);
        match reader.load([watch.clone()]).await {
            Ok(view) => {
                if let Some(secret) = view.one(&watch) {
                    meant_for(&secret, object)?;
                    return read(&secret, &object.name_any());
                }
            }
            // No one needs to grant the right to look elsewhere too; but what cannot be seen in the first place may be there.
            Err(error @ ClusterError::Forbidden { .. }) if place > 0 => refused = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    Err(ReconcileError::SecretNotFound {
        connection: object.name_any(),
        name: name.clone(),
        places: places.join(" or "),
        source: refused,
    })
}

/// Whether the Secret may be sent to the server of this connection. One that names no servers may be sent to all.
fn meant_for(secret: &Object, object: &VsphereCloudConfig) -> Result<(), ReconcileError> {
    let Some(servers) = texts(secret, "/metadata/annotations").remove(SERVERS) else {
        return Ok(());
    };
    let (host, port) = (&object.spec.vc_ip, port(object));
    // One that is none proves nothing; `trust` reports it.
    let proven = thumbprint(object).ok().flatten();
    if names_server(&servers, host, port, proven.as_ref()) {
        return Ok(());
    }
    Err(ReconcileError::ServerNotNamed {
        connection: object.name_any(),
        server: format!("{host}:{port}"),
        secret: format!("{}/{}", secret.namespace(), secret.name()),
        servers,
    })
}

fn read(secret: &Object, connection: &str) -> Result<StoredCredentials, ReconcileError> {
    const BASIC_AUTH: &str = "kubernetes.io/basic-auth";
    let id = format!("{}/{}", secret.namespace(), secret.name());
    let kind = secret.text("/type");
    if kind != BASIC_AUTH {
        return Err(ReconcileError::SecretWrongType {
            connection: connection.into(),
            secret: id,
            found: kind.into(),
        });
    }
    let part = |key: &'static str| {
        let text = secret.text(&format!("/data/{key}"));
        let bytes = STANDARD.decode(text).unwrap_or_default();
        let missing = || ReconcileError::SecretIncomplete {
            connection: connection.into(),
            secret: id.clone(),
            key,
        };
        let text = String::from_utf8(bytes)
            .ok()
            .filter(|value| !value.is_empty())
            .ok_or_else(missing)?;
        if text.ends_with(['\n', '\r']) {
            return Err(ReconcileError::SecretLineBreak {
                connection: connection.into(),
                secret: id.clone(),
                key,
            });
        }
        Ok(text)
    };
    let credentials = Credentials {
        user: part("username")?,
        password: Secret::new(part("password")?),
    };
    Ok(StoredCredentials {
        credentials,
        secret: id,
        version: secret.resource_version().into(),
    })
}
