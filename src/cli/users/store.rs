//! The Secret of an account, and who uses an account.

use super::super::context::Context;
use super::super::deploy::write::apply;
use super::super::progress::Progress;
use super::super::{CliError, Exit};
use super::site::{Site, Target};
use crate::accounts::{PasswordPolicy, Principal, password};
use crate::api::{MANAGED_BY, MANAGED_BY_LABEL, SERVERS};
use crate::cluster::{Select, Watch, get, list};
use crate::facts::{Credentials, StoredCredentials};
use crate::install::VDOCTL;
use crate::manifest::Object;
use crate::reconcile::connection::inputs;
use crate::types::{ObjectId, Remedy as _, Secret};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::ResourceExt;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::json;

/// On the Secret of an account that took the place of another one, until the drivers use it and the other one is deleted.
pub(super) const ROTATED_FROM: &str = "users.vdo.vmware.com/rotated-from";

/// A new password that no one knows.
pub(super) fn new_password(policy: &PasswordPolicy) -> Result<Secret, CliError> {
    let source = SystemRandom::new();
    let mut broken = false;
    let made = password(policy, |bytes| broken |= source.fill(bytes).is_err());
    if broken {
        return Err(CliError::new(
            Exit::Refused,
            "this machine gives no random numbers, so no password was made",
            "",
        ));
    }
    made.map_err(|error| CliError::new(Exit::Refused, error.to_string(), error.remedy().unwrap_or_default()))
}

/// That the Secret can be written: its namespace is there.
pub(super) async fn writable(context: &Context, secret: &ObjectId) -> Result<(), CliError> {
    let namespace = ObjectId::new("", "Namespace", "", secret.namespace.clone());
    match get(&context.ports.client, "v1", &namespace).await? {
        Some(_) => Ok(()),
        None => Err(CliError::new(
            Exit::NotFound,
            format!("there is no namespace {} for the Secret {}", secret.namespace, secret.name.as_str()),
            format!("Create it, or name another with -n: kubectl create namespace {}", secret.namespace),
        )),
    }
}

/// What a Secret without a connection holds, if it is one with a user name and a password.
pub(super) async fn stored(context: &Context, secret: &ObjectId) -> Result<Option<StoredCredentials>, CliError> {
    let Some(found) = get(&context.ports.client, "v1", secret).await? else {
        return Ok(None);
    };
    let text = |key: &str| {
        let encoded = found.value()["data"][key].as_str().unwrap_or_default();
        let decoded = STANDARD.decode(encoded).unwrap_or_default();
        String::from_utf8(decoded).unwrap_or_default()
    };
    let credentials = Credentials {
        user: text("username"),
        password: Secret::new(text("password")),
    };
    let complete = !credentials.user.is_empty() && !credentials.password.is_empty();
    Ok(complete.then(|| StoredCredentials {
        credentials,
        secret: format!("{}/{}", secret.namespace, secret.name),
        version: found.resource_version().to_owned(),
    }))
}

/// The account that this one has taken the place of and that the drivers may still use.
pub(super) async fn rotated_from(context: &Context, target: &Target) -> Result<Option<String>, CliError> {
    let found = get(&context.ports.client, "v1", &target.secret).await?;
    let annotation = found.and_then(|secret| secret.value()["metadata"]["annotations"][ROTATED_FROM].as_str().map(str::to_owned));
    Ok(annotation)
}

/// Writes user name and password, and which account they took the place of.
pub(super) async fn store(
    site: &Site,
    target: &Target,
    user: &str,
    password: &Secret,
    from: Option<&str>,
    progress: &mut Progress,
) -> Result<(), CliError> {
    let encoded = |text: &str| STANDARD.encode(text);
    let mut annotations = json!({SERVERS: site.endpoint.server});
    if let Some(from) = from {
        annotations[ROTATED_FROM] = from.into();
    }
    let mut value = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": target.secret.name.as_str(), "namespace": target.secret.namespace, "annotations": annotations},
        "data": {"username": encoded(user), "password": encoded(password.expose())},
    });
    match get(&site.context.ports.client, "v1", &target.secret).await? {
        // Its type cannot be changed, and whose it is stays.
        Some(found) => value["type"] = found.value()["type"].clone(),
        None => {
            value["type"] = "kubernetes.io/basic-auth".into();
            value["metadata"]["labels"] = json!({MANAGED_BY_LABEL: VDOCTL});
        }
    }
    let object = Object::new(value).map_err(|error| CliError::internal(&error))?;
    apply(&site.context, &[object], None, progress).await
}

/// The Secrets that the operator wrote for the drivers and that name this account.
pub(super) async fn driver_secrets(context: &Context, user: &Principal) -> Result<Vec<String>, CliError> {
    let watch = Watch::new("v1", "Secret", "", Select::Labels(format!("{MANAGED_BY_LABEL}={MANAGED_BY}")));
    let found = list(&context.ports.client, &watch).await?;
    let name = user.to_string();
    let names = |secret: &Object| {
        let data = secret.value()["data"].as_object();
        data.into_iter().flatten().any(|(_, value)| {
            let decoded = value.as_str().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
            String::from_utf8_lossy(&decoded).to_lowercase().contains(&name.to_lowercase())
        })
    };
    Ok(found.iter().filter(|secret| names(secret)).map(ToString::to_string).collect())
}

/// Who uses this account: connections by their Secrets, and drivers by theirs.
pub(super) async fn users_of(site: &Site, account: &Principal) -> Result<Vec<String>, CliError> {
    let mut users = Vec::new();
    for connection in &site.connections {
        let stored = inputs(&site.context.ports.reader, connection).await.credentials;
        let name = connection.name_any();
        let Ok(stored) = stored else { continue };
        if account.is(&stored.credentials.user) {
            users.push(format!("connection {name} by Secret {}", stored.secret));
        }
    }
    users.extend(driver_secrets(&site.context, account).await?);
    Ok(users)
}
