// SPDX-License-Identifier: Apache-2.0
//! `vdoctl configure connection`: checks and changes a VsphereCloudConfig, its Secret and certificate; shared with `vdoctl secrets set`.

use super::super::args::{ConfigureConnection as Args, CredentialsSecret, Global};
use super::super::certificate_question::trusted;
use super::super::context::{Context, Deciding};
use super::super::deploy::configuration::{CONNECTION, Configuration, connection, secret, trusting};
use super::super::deploy::vcenter::stored;
use super::super::deploy::{Judge, judged};
use super::super::error::unknown;
use super::super::object_write::Change;
use super::super::password_file::{password, private};
use super::super::preflight_checks::{Asking, check};
use super::super::progress::Progress;
use super::super::vcenter_address::{endpoint, trust};
use super::super::{Answer, CliError, Exit, prompt};
use super::write;
use kube::ResourceExt;
use serde_json::{Value, json};
use vdo::cluster::get;
use vdo::reconcile::{self, connection_objects};
use vdo_api::api::{API_VERSION, SERVERS, VsphereCloudConfig};
use vdo_api::types::{ObjectId, Secret, Trust, names_server};
use vdo_core::chart::values::merge;
use vdo_core::manifest::Object;
use vdo_vsphere::vcenter::{Budget, Endpoint};

/// A connection of the cluster, or one to come.
pub(crate) struct Target {
    pub name: String,
    pub live: Option<VsphereCloudConfig>,
    /// Every one.
    pub all: Vec<VsphereCloudConfig>,
}

impl Target {
    /// The one that is named, the only one, or a new one.
    pub(crate) async fn find(context: &Context, named: Option<&str>) -> Result<Self, CliError> {
        let all = connection_objects(&context.ports.reader, context.namespace()).await?;
        let name = match (named, &all[..]) {
            (Some(name), _) => name.to_owned(),
            (None, []) => CONNECTION.to_owned(),
            (None, [only]) => only.name_any(),
            (None, several) => {
                let names: Vec<String> = several.iter().map(ResourceExt::name_any).collect();
                return Err(CliError::new(
                    Exit::Usage,
                    format!(
                        "there are {} vSphere connections, and the command names none of them",
                        several.len()
                    ),
                    format!("Name one of them: {}.", names.join(", ")),
                ));
            }
        };
        let live = all.iter().find(|connection| connection.name_any() == name).cloned();
        Ok(Self { name, live, all })
    }

    /// The same, for what changes nothing but a connection that is there.
    pub(crate) fn existing(&self) -> Result<&VsphereCloudConfig, CliError> {
        let names: Vec<String> = self.all.iter().map(ResourceExt::name_any).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.live.as_ref().ok_or_else(|| unknown("vSphere connection", &self.name, &names))
    }

    /// Where its Secret is, or will be.
    pub(crate) async fn secret(&self, context: &Context) -> Result<(ObjectId, Option<Object>), CliError> {
        let own = context.namespace();
        let name = self
            .live
            .as_ref()
            .map_or_else(|| format!("{}-credentials", self.name), |live| live.spec.credentials.clone());
        let places = match self.live.as_ref().and_then(|live| live.spec.credentials_namespace.as_deref()) {
            Some(place) => vec![place],
            None if self.live.is_some() => vec![own, "kube-system"],
            None => vec![own],
        };
        let mut first = None;
        for place in places {
            let id = ObjectId::new("", "Secret", place, &name);
            let found = get(&context.ports.client, "v1", &id).await?;
            if found.is_some() {
                return Ok((id, found));
            }
            first.get_or_insert(id);
        }
        Ok((first.unwrap_or_else(|| ObjectId::new("", "Secret", own, &name)), None))
    }
}

pub(super) async fn run(args: &Args, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let mut context = Context::open(global).await?.like_the_operator(global).await?;
    let config = context.acting_object().await?;
    let target = Target::find(&context, args.name.as_deref()).await?;
    let args = &asked(args, &target)?;
    let endpoint = reached(args, &target, progress).await?;
    let account = account(args, &target)?;
    let mut changes = Vec::new();
    let (secret_id, found) = target.secret(&context).await?;
    if let Some((user, password)) = &account {
        let change = credentials(&context, &secret_id, found, user.as_deref(), password, &endpoint).await?;
        changes.push(change);
    }
    let (mut spec, map) = specification(args, &target, &endpoint, context.namespace());
    if let Some(map) = map {
        let map = Object::new(map).map_err(|error| CliError::internal(&error))?;
        changes.push(Change::apply(&context, &map).await?);
    }
    if let Some(name) = &args.credentials_secret {
        stored(&context, std::slice::from_ref(&named(name))).await?;
        spec["credentials"] = name.clone().into();
    }
    let own = match &target.live {
        Some(_) => {
            let id = ObjectId::new(vdo_api::api::GROUP, "VsphereCloudConfig", context.namespace(), &target.name);
            let live = get(&context.ports.client, API_VERSION, &id).await?;
            let live = live.ok_or_else(|| CliError::new(Exit::NotFound, format!("{id} was deleted just now"), "Run vdoctl status."))?;
            Change::merge(&context, live, json!({"spec": spec})).await?
        }
        None => {
            if spec["credentials"].is_null() {
                spec["credentials"] = secret_id.name.clone().into();
            }
            let mut whole = json!({});
            merge(&mut whole, &spec);
            let object = Object::new(connection(&target.name, context.namespace(), whole)).map_err(|error| CliError::internal(&error))?;
            Change::apply(&context, &object).await?
        }
    };
    changes.push(own);
    let judge = Judge::of(args.writing.ignore_checks);
    inspected(&mut context, &target, &config, &changes, judge, args.yes, progress).await?;
    write(&context, &changes, args.writing, progress).await
}

/// Makes every check of this connection as if the changes were made.
///
/// # Errors
/// When one fails that `judge` counts, or when another vCenter is behind the connection than before.
pub(crate) async fn inspected(
    context: &mut Deciding,
    target: &Target,
    config: &Object,
    changes: &[Change],
    judge: Judge,
    other: bool,
    progress: &mut Progress,
) -> Result<(), CliError> {
    let mut objects: Vec<Object> = changes.iter().map(|change| change.after.clone()).collect();
    for connection in &target.all {
        let object = serde_json::to_value(connection).ok().and_then(|value| Object::new(value).ok());
        objects.extend(object.filter(|object| changes.iter().all(|change| change.after.identity() != object.identity())));
    }
    objects.push(config.clone());
    let there = serde_json::from_value(config.value().clone()).ok();
    let configuration = Configuration { objects };
    let asking = Asking {
        only: Some(&target.name),
        installed: &[],
        there: there.as_ref(),
        surplus: false,
        budget: Budget::default(),
    };
    let checked = check(context, &configuration, asking).await?;
    judged(&checked, judge, progress)?;
    let before = target.live.as_ref().and_then(|live| live.status.as_ref()?.about.as_ref());
    let another = before.filter(|before| !before.instance_uuid.is_empty() && checked.instances().any(|now| now != before.instance_uuid));
    match another {
        Some(before) if !other => Err(CliError::new(
            Exit::Refused,
            format!(
                "connection {} would use another vCenter than before (instance {} instead of {})",
                target.name,
                checked.instances().collect::<Vec<_>>().join(", "),
                before.instance_uuid
            ),
            "Nodes and volumes belong to their vCenter: add another connection for the other vCenter. --yes changes this connection anyway.",
        )),
        _ => Ok(()),
    }
}

/// The Secret with the new credentials. A user that is not named stays.
pub(crate) async fn credentials(
    context: &Context,
    id: &ObjectId,
    found: Option<Object>,
    user: Option<&str>,
    password: &Secret,
    endpoint: &Endpoint,
) -> Result<Change, CliError> {
    let server = &endpoint.server;
    let whole = secret(&id.name, &id.namespace, server, user.unwrap_or_default(), password);
    if user.is_none() && !has_user(found.as_ref()) {
        let what = format!("{id} has no user name, and the command names no user");
        return Err(CliError::new(Exit::Usage, what, "Name the user with --user NAME."));
    }
    let Some(live) = found else {
        let object = Object::new(whole).map_err(|error| CliError::internal(&error))?;
        return Change::apply(context, &object).await;
    };
    let mut patch = json!({"data": {"password": whole["data"]["password"]}});
    if user.is_some() {
        patch["data"]["username"] = whole["data"]["username"].clone();
    }
    // It was meant for other servers: now also for this one, to which it has just been given.
    let proven = match &endpoint.trust {
        Trust::Thumbprint(print) => Some(print),
        _ => None,
    };
    if let Some(servers) = live
        .annotation(SERVERS)
        .filter(|servers| !names_server(servers, server, endpoint.port, proven))
    {
        patch["metadata"] = json!({"annotations": {SERVERS: format!("{servers},{server}")}});
    }
    // The type of a Secret cannot be changed, and the operator reads no other.
    if live.value()["type"] != whole["type"] {
        patch["type"] = whole["type"].clone();
        return Change::recreate(live, &patch);
    }
    Change::merge(context, live, patch).await
}

/// Whether a Secret is there and has a user name.
pub(crate) fn has_user(secret: Option<&Object>) -> bool {
    secret.is_some_and(|secret| !secret.text("/data/username").is_empty())
}

/// Where the vCenter is and how it is trusted, after a person has confirmed a certificate that no authority has signed.
async fn reached(args: &Args, target: &Target, progress: &mut Progress) -> Result<Endpoint, CliError> {
    let given = trust(args.thumbprint.as_ref(), args.ca_file.as_deref(), args.insecure)?;
    let mut endpoint = match (&args.vcenter, &target.live) {
        (Some(address), _) => endpoint(address, given)?,
        (None, Some(live)) => Endpoint {
            server: live.spec.vc_ip.clone(),
            port: reconcile::port(live),
            trust: given,
        },
        (None, None) => {
            return Err(CliError::new(
                Exit::Usage,
                format!(
                    "connection {} does not exist yet, and the command does not name its vCenter",
                    target.name
                ),
                "Name the vCenter with --vcenter HOST and the user with --user NAME; --interactive asks for all values.",
            ));
        }
    };
    if args.fetch_certificate || (target.live.is_none() && endpoint.trust == Trust::SystemRoots) {
        endpoint.trust = Trust::SystemRoots;
        trusted(&mut endpoint, args.fetch_certificate && args.yes, progress).await?;
    }
    Ok(endpoint)
}

/// A Secret for all that use the connection.
fn named(name: &str) -> CredentialsSecret {
    CredentialsSecret {
        field: None,
        name: name.to_owned(),
    }
}

/// The user and the password that are given; `None` where those in the Secret stay.
fn account(args: &Args, target: &Target) -> Result<Option<(Option<String>, Secret)>, CliError> {
    if args.credentials_secret.is_some() {
        return Ok(None);
    }
    if target.live.is_some() && args.user.is_none() && args.password_file.is_none() {
        let status = target.live.as_ref().and_then(|live| live.status.as_ref()?.credential.as_ref());
        return match status.and_then(|credential| credential.refused.as_ref()) {
            None => Ok(None),
            Some(reason) => Err(CliError::new(
                Exit::Refused,
                format!(
                    "the vCenter of connection {} refuses the account ({reason}), and the same password is not sent again",
                    target.name
                ),
                "Give the correct user and password: --user NAME --password-file FILE.",
            )),
        };
    }
    let Some(user) = args
        .user
        .clone()
        .or_else(|| Some(target.live.as_ref()?.status.as_ref()?.credential.as_ref()?.user.clone()))
    else {
        return Err(CliError::new(
            Exit::Usage,
            format!("the user of connection {} is not known", target.name),
            "Name the user with --user NAME.",
        ));
    };
    if let Some(file) = &args.password_file {
        private(file)?;
    }
    let (password, _) = password(args.password_file.as_deref(), &user)?;
    Ok(Some((Some(user), password)))
}

/// What is set in the specification of the connection; null takes a field away.
fn specification(args: &Args, target: &Target, endpoint: &Endpoint, namespace: &str) -> (Value, Option<Value>) {
    let mut spec = json!({});
    if args.vcenter.is_some() {
        spec["vcIp"] = endpoint.server.clone().into();
        spec["port"] = endpoint.port.into();
    }
    if !args.datacenter.is_empty() {
        let named: Vec<&String> = args.datacenter.iter().filter(|name| !name.is_empty()).collect();
        spec["datacenters"] = json!(named);
    }
    let trusts = args.thumbprint.is_some() || args.ca_file.is_some() || args.insecure || args.fetch_certificate || target.live.is_none();
    let mut map = None;
    if trusts {
        let (fields, bundle) = trusting(&endpoint.trust, &target.name, namespace);
        fields.into_iter().for_each(|(field, value)| spec[field] = value);
        map = bundle;
    }
    (spec, map)
}

/// What is typed, and what a person answers where it was asked to ask.
fn asked(args: &Args, target: &Target) -> Result<Args, CliError> {
    let mut args = args.clone();
    if !args.interactive {
        return Ok(args);
    }
    let live = target.live.as_ref();
    let spec = live.map(|live| &live.spec);
    let ask = |what: &str, now: Option<String>| prompt::line(what, now.as_deref()).map_err(|error| unreadable(&error));
    let address = spec.map(|spec| match spec.port {
        443 => spec.vc_ip.clone(),
        port => format!("{}:{port}", spec.vc_ip),
    });
    if args.vcenter.is_none() {
        let answer = ask("vCenter (host, or host:port)", address.clone())?;
        args.vcenter = answer.filter(|answer| Some(answer) != address.as_ref());
    }
    let user = live.and_then(|live| live.status.as_ref()?.credential.as_ref().map(|credential| credential.user.clone()));
    if args.user.is_none() {
        let answer = ask("User", user.clone())?;
        args.user = answer.filter(|answer| Some(answer) != user.as_ref());
    }
    if args.datacenter.is_empty() {
        let known = spec.map(|spec| spec.datacenters.join(" and ")).filter(|known| !known.is_empty());
        let mut answer = ask("Datacenter, by name or path (empty: all)", known.clone())?.filter(|answer| Some(answer) != known.as_ref());
        // A name may have any character in it, so that each has an answer of its own.
        while let Some(name) = answer {
            args.datacenter.push(name);
            answer = ask("Another datacenter (empty: no more)", None)?;
        }
    }
    Ok(args)
}

fn unreadable(error: &std::io::Error) -> CliError {
    CliError::new(
        Exit::Usage,
        format!("the answer cannot be read from the terminal: {error}"),
        "Without a terminal, give the values as flags.",
    )
}
