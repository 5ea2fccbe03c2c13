// SPDX-License-Identifier: Apache-2.0
//! Reads and writes the Secret of an account for `vdoctl users`, generates passwords, and finds the connections that use an account.

use super::super::context::Context;
use super::super::deploy::write::apply_alone;
use super::super::progress::Progress;
use super::super::{CliError, Exit};
use super::failed;
use super::site::{Site, Target};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::ResourceExt;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::json;
use vdo::cluster::{Select, Watch, get, list};
use vdo::reconcile::connection::inputs;
use vdo_admin::accounts::{ChangeError, PasswordPolicy, Principal, password};
use vdo_api::api::{MANAGED_BY, MANAGED_BY_LABEL, SERVERS};
use vdo_api::facts::{Credentials, StoredCredentials};
use vdo_api::types::{ObjectId, Remedy as _, Secret};
use vdo_core::install::{self, Settings, VDOCTL};
use vdo_core::manifest::Object;
use vdo_vsphere::vcenter::{Budget, Session};

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
            "this machine provides no random numbers, so no password was created",
            "",
        ));
    }
    made.map_err(|error| CliError::new(Exit::Refused, error.to_string(), error.remedy().unwrap_or_default()))
}

/// Sees to it that the Secret can be written. The operator's namespace is made where it is missing, as `vdoctl deploy` makes it; then the
/// answer is that object.
pub(super) async fn writable(context: &Context, secret: &ObjectId, progress: &mut Progress) -> Result<Option<Object>, CliError> {
    let id = ObjectId::new("", "Namespace", "", secret.namespace.clone());
    match get(&context.ports.client, "v1", &id).await? {
        Some(live) if live.is_terminating() => {
            return Err(CliError::new(
                Exit::Refused,
                format!("{id} is being deleted, so Secret {} cannot be written", secret.name.as_str()),
                "If the deletion does not end, vdoctl status shows what blocks the deletion. Run the same command again after the deletion.",
            ));
        }
        Some(_) => return Ok(None),
        None => {}
    }
    let settings = Settings {
        namespace: context.namespace().to_owned(),
        ..Settings::default()
    };
    let objects = install::objects(&settings).map_err(|error| CliError::internal(&error))?;
    let Some(namespace) = objects.into_iter().find(|object| *object.identity() == id) else {
        return Err(CliError::new(
            Exit::NotFound,
            format!("there is no namespace {} for the Secret {}", secret.namespace, secret.name.as_str()),
            format!(
                "Name another namespace with -n, or create it: kubectl create namespace {}",
                secret.namespace
            ),
        ));
    };
    apply_alone(context, async || Ok(namespace.clone()), progress).await?;
    Ok(Some(namespace))
}

/// What a Secret without a connection holds, if it is one with a user name and a password.
pub(super) async fn stored(context: &Context, secret: &ObjectId) -> Result<Option<StoredCredentials>, CliError> {
    let Some(found) = get(&context.ports.client, "v1", secret).await? else {
        return Ok(None);
    };
    Ok(credentials(&found).map(|credentials| StoredCredentials {
        credentials,
        secret: format!("{}/{}", secret.namespace, secret.name),
        version: found.resource_version().to_owned(),
    }))
}

/// The user name and the password in a Secret.
fn credentials(secret: &Object) -> Option<Credentials> {
    let text = |key: &str| {
        let encoded = secret.value()["data"][key].as_str().unwrap_or_default();
        let decoded = STANDARD.decode(encoded).unwrap_or_default();
        String::from_utf8(decoded).ok().filter(|text| !text.is_empty())
    };
    Some(Credentials {
        user: text("username")?,
        password: Secret::new(text("password")?),
    })
}

/// What a Secret holds right before it is written.
#[derive(Debug, PartialEq, Eq)]
enum Holds {
    /// What it held when this command looked at it, or what it gets.
    AsSeen,
    /// Another password of the same account: the right one is the last that the vCenter was given.
    OtherPassword,
    /// Another account.
    OtherAccount,
}

fn holds(found: Option<&Credentials>, seen: Option<&Credentials>, new: &Credentials) -> Holds {
    let same_account = |found: &Credentials| new.user.parse::<Principal>().is_ok_and(|own| own.is(&found.user));
    match found {
        _ if found == seen || found == Some(new) => Holds::AsSeen,
        Some(found) if same_account(found) => Holds::OtherPassword,
        _ => Holds::OtherAccount,
    }
}

/// Another administrator works on the same account.
pub(super) fn taken(user: &str, place: &str) -> CliError {
    CliError::new(
        Exit::Refused,
        format!("another administrator has just written {user} into Secret {place}; the Secret was not changed"),
        "Run the same command again: it continues with the current content of the Secret.",
    )
}

/// The account that this one has taken the place of and that the drivers may still use.
pub(super) async fn rotated_from(context: &Context, target: &Target) -> Result<Option<String>, CliError> {
    let found = get(&context.ports.client, "v1", &target.secret).await?;
    let annotation = found.and_then(|secret| secret.value()["metadata"]["annotations"][ROTATED_FROM].as_str().map(str::to_owned));
    Ok(annotation)
}

/// Writes user name and password, and which account they took the place of. What another administrator has written since the Secret was
/// `seen` stays, but for an older password of the same account.
pub(super) async fn store(
    site: &Site,
    target: &Target,
    new: &Credentials,
    seen: Option<&Credentials>,
    from: Option<&str>,
    progress: &mut Progress,
) -> Result<(), CliError> {
    let made = async || {
        let found = get(&site.context.ports.client, "v1", &target.secret).await?;
        let held = found.as_ref().and_then(credentials);
        let stays = match holds(held.as_ref(), seen, new) {
            Holds::AsSeen => false,
            Holds::OtherPassword => !is_accepted(site, new).await?,
            Holds::OtherAccount => true,
        };
        match stays {
            true => Err(taken(&held.map(|held| held.user).unwrap_or_default(), &target.place())),
            false => secret(site, target, new, from, found.as_ref()),
        }
    };
    apply_alone(&site.context, made, progress).await
}

/// Whether the vCenter still accepts these credentials: once more, since another administrator may have set another password meanwhile.
async fn is_accepted(site: &Site, credentials: &Credentials) -> Result<bool, CliError> {
    match Session::open(site.endpoint.clone(), credentials.clone(), &Budget::default()).await {
        Ok(session) => {
            session.close().await;
            Ok(true)
        }
        Err(error) if error.is_rejection() => Ok(false),
        Err(error) => Err(failed(&ChangeError::Session(error))),
    }
}

fn secret(site: &Site, target: &Target, new: &Credentials, from: Option<&str>, found: Option<&Object>) -> Result<Object, CliError> {
    let encoded = |text: &str| STANDARD.encode(text);
    let mut annotations = json!({SERVERS: site.endpoint.server});
    if let Some(from) = from {
        annotations[ROTATED_FROM] = from.into();
    }
    let mut value = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": target.secret.name.as_str(), "namespace": target.secret.namespace, "annotations": annotations},
        "data": {"username": encoded(&new.user), "password": encoded(new.password.expose())},
    });
    match found {
        // Its type cannot be changed, and whose it is stays.
        Some(found) => {
            value["type"] = found.value()["type"].clone();
            value["metadata"]["resourceVersion"] = found.resource_version().into();
        }
        None => {
            value["type"] = "kubernetes.io/basic-auth".into();
            value["metadata"]["labels"] = json!({MANAGED_BY_LABEL: VDOCTL});
        }
    }
    Object::new(value).map_err(|error| CliError::internal(&error))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_secret_written_by_another_administrator_is_noticed() {
        let one = |user: &str, password: &str| Credentials {
            user: user.into(),
            password: Secret::new(password),
        };
        let (old, new) = (one("k8s@vsphere.local", "old"), one("vdo-a@vsphere.local", "new"));
        for (found, seen, expected) in [
            (None, None, Holds::AsSeen),
            (Some(&old), Some(&old), Holds::AsSeen),
            // Written by this command before.
            (Some(&new), Some(&old), Holds::AsSeen),
            (Some(&new), None, Holds::AsSeen),
            (Some(&one("VSPHERE.LOCAL\\vdo-a", "other")), None, Holds::OtherPassword),
            (Some(&one("vdo-a@vsphere.local", "other")), Some(&old), Holds::OtherPassword),
            (Some(&one("vdo-b@vsphere.local", "new")), Some(&old), Holds::OtherAccount),
            (Some(&old), None, Holds::OtherAccount),
            // Deleted, which no one does while it is made.
            (None, Some(&old), Holds::OtherAccount),
        ] {
            assert_eq!(holds(found, seen, &new), expected, "{found:?} {seen:?}");
        }
    }
}
