// SPDX-License-Identifier: Apache-2.0
//! Computes the completions of an argument's value: from its definition, the matrix, the kubeconfig, or the objects in the cluster.

use super::super::args::{Global, MatrixFile};
use super::super::context::Context;
use super::super::explain;
use super::super::history::Histories;
use super::super::matrix::Choice;
use super::Value;
use super::words::Asked;
use clap::Arg;
use kube::ResourceExt;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use vdo::cluster::{KubeOptions, KubeconfigNames, Select, Watch, list};
use vdo::reconcile::connection_objects;
use vdo_api::api::ConditionType;
use vdo_core::drivers::{known, short};
use vdo_core::install::spec_fields;
use vdo_core::matrix::Index;
use vdo_core::plan::Revision;

/// How long the cluster may take: a person waits for the shell.
const PATIENCE: Duration = Duration::from_secs(2);

/// The values of an argument, and whether the shell offers files where there are none.
pub(super) async fn of(asked: &Asked<'_>, arg: &Option<&Arg>) -> (Vec<Value>, bool) {
    let Some(arg) = arg else { return (Vec::new(), false) };
    let possible = arg.get_possible_values();
    if !possible.is_empty() {
        let about = |value: &clap::builder::PossibleValue| value.get_help().map(ToString::to_string).unwrap_or_default();
        let shown = possible.iter().filter(|value| !value.is_hide_set());
        return (shown.map(|value| Value::new(value.get_name(), about(value))).collect(), false);
    }
    let path = asked.path();
    let found = match (path.as_slice(), arg.get_id().as_str()) {
        (_, "context") => entries(asked, |known| known.contexts),
        (_, "contexts") => listed(&asked.prefix, entries(asked, |known| known.contexts)),
        (_, "kube_cluster") => entries(asked, |known| known.clusters),
        (_, "kube_user") => entries(asked, |known| known.users),
        (_, "namespace") => namespaces(asked).await,
        (["doctor", "connection"] | ["configure", "connection"], "name") | (_, "connection") => connections(asked).await,
        (["matrix", "show" | "why-not"], "version") => versions(asked, asked.given.get("driver").or_else(|| asked.given.get("name"))).await,
        (["matrix", "why-not"], "name") | (_, "driver" | "installed" | "to") => return (drivers(asked, arg).await, false),
        (["history" | "rollback"], "revision") => revisions(asked).await,
        (["explain"], "word") => explain::words().into_iter().map(|(word, about)| Value::new(word, about)).collect(),
        (["wait"], "what") => goals(),
        (["plan" | "diff"] | ["configure", "drivers"], "settings") => settings(&asked.prefix),
        (_, "kubernetes" | "what_if_kubernetes") => minors(asked).await,
        _ => return (Vec::new(), takes_files(arg)),
    };
    (found, false)
}

/// Whether an argument names a file or a folder.
fn takes_files(arg: &Arg) -> bool {
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().any(|name| {
        ["FILE", "FOLDER", "PATH", "SOURCE", "PACKAGE", "DIR", "CHART"]
            .iter()
            .any(|word| name.contains(word))
    })
}

/// The index that the command would decide with.
async fn index(asked: &Asked<'_>) -> Option<Arc<Index>> {
    let named = MatrixFile {
        matrix: asked.given.get("matrix").and_then(|text| text.parse().ok()),
        ..MatrixFile::default()
    };
    let global = global(asked);
    let choice = tokio::time::timeout(PATIENCE, Choice::at_desk(&named, &global)).await;
    let choice = match choice {
        Ok(choice) => choice,
        Err(_) => Choice::own("the cluster has not answered".into(), None).await,
    };
    Some(choice.ok()?.loaded.index)
}

/// Drivers by what they are called, and after `=` their versions.
async fn drivers(asked: &Asked<'_>, arg: &Arg) -> Vec<Value> {
    let Some(index) = index(asked).await else { return Vec::new() };
    let pins = arg
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .any(|name| name.contains("VERSION"));
    if let Some((name, _)) = asked.prefix.split_once('=') {
        let name = name.to_owned();
        return versions(asked, Some(&name))
            .await
            .into_iter()
            .map(|value| Value::new(format!("{name}={}", value.text), value.about))
            .collect();
    }
    let mut all = Vec::new();
    for name in index.drivers.keys() {
        let about = known(name).map_or("", |driver| driver.what);
        let called = short(name).to_lowercase();
        all.push(Value::new(called.clone(), about));
        if called != **name {
            all.push(Value::new(name.as_str(), about));
        }
        if pins {
            all.push(Value::new(format!("{called}="), "a version of this driver"));
        }
    }
    all
}

/// The versions of a driver, the newest first.
async fn versions(asked: &Asked<'_>, driver: Option<&String>) -> Vec<Value> {
    let (Some(index), Some(typed)) = (index(asked).await, driver) else {
        return Vec::new();
    };
    let Ok((_, driver)) = super::super::matrix::driver(&index, typed) else {
        return Vec::new();
    };
    let mut entries: Vec<_> = driver.versions.iter().collect();
    entries.sort_by(|a, b| b.version.cmp(&a.version));
    entries
        .into_iter()
        .map(|entry| Value::new(entry.version.to_string(), format!("Kubernetes {}", entry.kubernetes.range)))
        .collect()
}

/// The Kubernetes minors that the matrix knows.
async fn minors(asked: &Asked<'_>) -> Vec<Value> {
    let Some(index) = index(asked).await else { return Vec::new() };
    let minors: BTreeSet<(u64, u64)> = super::super::matrix::minors(&index).into_iter().collect();
    minors
        .into_iter()
        .rev()
        .map(|(major, minor)| Value::new(format!("{major}.{minor}"), ""))
        .collect()
}

fn goals() -> Vec<Value> {
    let words = [("healthy", "the drivers are healthy"), ("deleted", "the VDOConfig is deleted")];
    let own = words.map(|(word, about)| Value::new(word, about));
    own.into_iter()
        .chain(ConditionType::of_config().map(|kind| Value::new(kind.as_str(), "this condition is True")))
        .collect()
}

/// Fields of a VDOConfig's specification, one step at a time, and after `=` their values where these are known.
fn settings(prefix: &str) -> Vec<Value> {
    let path = prefix.split_once('=').map_or(prefix, |(path, _)| path);
    let (root, below) = match path.strip_prefix("spec.") {
        Some(below) => ("spec.", below),
        None => ("", path),
    };
    let parent = match prefix.contains('=') {
        true => below,
        false => below.rsplit_once('.').map_or("", |(parent, _)| parent),
    };
    let at: Vec<&str> = parent.split('.').filter(|step| !step.is_empty()).collect();
    let found = spec_fields(&at);
    if prefix.contains('=') {
        return found
            .values
            .into_iter()
            .map(|value| Value::new(format!("{root}{below}={value}"), ""))
            .collect();
    }
    let lead = if parent.is_empty() {
        root.to_owned()
    } else {
        format!("{root}{parent}.")
    };
    let one = |field: vdo_core::install::Field| {
        Value::new(
            format!("{lead}{}{}", field.name, if field.has_fields { "." } else { "=" }),
            field.about,
        )
    };
    found.fields.into_iter().map(one).collect()
}

/// Names in the kubeconfig.
fn entries(asked: &Asked<'_>, which: impl Fn(KubeconfigNames) -> Vec<String>) -> Vec<Value> {
    let options = KubeOptions {
        kubeconfig: asked.given.get("kubeconfig").map(Into::into),
        ..KubeOptions::default()
    };
    let names = options.names().map(which).unwrap_or_default();
    names.into_iter().map(|name| Value::new(name, "")).collect()
}

/// What can follow in a list that is separated by commas: each name that is not in it yet, behind it.
fn listed(prefix: &str, names: Vec<Value>) -> Vec<Value> {
    let (list, _) = prefix.rsplit_once(',').unwrap_or_default();
    let lead = if list.is_empty() { String::new() } else { format!("{list},") };
    let new = names.into_iter().filter(|name| list.split(',').all(|given| given != name.text));
    new.map(|name| Value::new(format!("{lead}{}", name.text), name.about)).collect()
}

/// The cluster that the words name.
fn global(asked: &Asked<'_>) -> Global {
    let text = |name: &str| asked.given.get(name).cloned();
    Global {
        kubeconfig: text("kubeconfig").map(Into::into),
        context: text("context"),
        namespace: text("namespace").unwrap_or_else(|| vdo_api::api::OPERATOR_NAMESPACE.to_owned()),
        kube_cluster: text("kube_cluster"),
        kube_user: text("kube_user"),
        // What waits for stdin would have the shell wait.
        token_file: text("token_file").filter(|file| file != "-").map(Into::into),
        impersonate: text("impersonate"),
        groups: text("groups").into_iter().collect(),
        color: super::super::args::Color::Never,
        timeout: Some(PATIENCE),
        request_timeout: None,
    }
}

/// The same, if it answers soon.
async fn cluster(asked: &Asked<'_>) -> Option<Context> {
    Context::open(&global(asked)).await.ok()
}

async fn namespaces(asked: &Asked<'_>) -> Vec<Value> {
    let found = async {
        let context = cluster(asked).await?;
        list(&context.ports.client, &Watch::new("v1", "Namespace", "", Select::All))
            .await
            .ok()
    };
    let found = tokio::time::timeout(PATIENCE, found).await.ok().flatten().unwrap_or_default();
    found.iter().map(|namespace| Value::new(namespace.name(), "")).collect()
}

async fn connections(asked: &Asked<'_>) -> Vec<Value> {
    let found = async {
        let context = cluster(asked).await?;
        connection_objects(&context.ports.reader, context.namespace()).await.ok()
    };
    let found = tokio::time::timeout(PATIENCE, found).await.ok().flatten().unwrap_or_default();
    found
        .iter()
        .map(|connection| Value::new(connection.name_any(), connection.spec.vc_ip.as_str()))
        .collect()
}

/// The revisions of the driver that was typed, the newest first.
async fn revisions(asked: &Asked<'_>) -> Vec<Value> {
    let global = global(asked);
    let found = tokio::time::timeout(PATIENCE, Histories::read(&global)).await;
    let (Ok(Ok(all)), Some(driver)) = (found, asked.given.get("driver")) else {
        return Vec::new();
    };
    let revisions = all.driver(driver).map_or(&[][..], |(_, revisions)| revisions);
    let value = |revision: &Revision| {
        Value::new(
            revision.number.to_string(),
            format!("{} {}", revision.about.version, revision.outcome),
        )
    };
    revisions.iter().rev().map(value).collect()
}
