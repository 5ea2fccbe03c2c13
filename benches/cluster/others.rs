// SPDX-License-Identifier: Apache-2.0
//! The same objects by other hands: a bare client, kubectl, helm. And their removal.

use crate::common::Bed;
use crate::install::now;
use crate::process;
use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use vdo_testbed::{Helm, Probe, until};

/// Writes that are under way at the same time, as many as the operator's.
const CONCURRENCY: usize = 8;

/// How long the removal of everything may take.
pub const LONG: Duration = Duration::from_secs(600);

/// What an installation by others took.
#[derive(Clone, Copy)]
pub struct Taken {
    pub requests: usize,
    /// From the first object created to the last, without the longest pause, in seconds.
    pub writing: f64,
    /// The whole call or process, in seconds.
    pub whole: f64,
    /// Of the API server's processor, in seconds.
    pub server: f64,
}

/// How others install.
#[derive(Clone, Copy)]
pub enum Hand<'a> {
    /// A client that does nothing but write.
    Bare,
    Kubectl(&'a Path),
    Helm(&'a Helm),
}

/// Installs objects, counts, and removes them again.
pub async fn install(bed: &Bed, objects: &[Value], hand: Hand<'_>) -> Result<Taken> {
    let folder = tempfile::tempdir()?;
    let server = process::of_server(bed)?;
    let mark = bed.cluster.audit().mark().await?;
    let (cpu, zero) = (process::seconds(&server)?, now());
    match hand {
        Hand::Bare => bare(bed, objects).await?,
        Hand::Kubectl(program) => kubectl(bed, program, folder.path(), objects).await?,
        Hand::Helm(program) => helm(bed, program, objects).await?,
    }
    let (whole, cpu) = (now().duration_since(zero).as_secs_f64(), process::seconds(&server)? - cpu);
    let asked = bed.cluster.audit().since(mark).await?.of(vdo_testbed::Cluster::ADMIN);
    let created = crate::install::creations(&asked, |e| e.resource != "secrets" || !e.name.starts_with("sh.helm"))?;
    ensure!(
        created.len() >= objects.len(),
        "{} objects were created instead of {}",
        created.len(),
        objects.len()
    );
    let taken = Taken {
        requests: asked.len(),
        writing: crate::install::writing(&created),
        whole,
        server: cpu,
    };
    wipe(bed, objects).await?;
    Ok(taken)
}

/// Deletes objects and waits until they are gone.
pub async fn wipe(bed: &Bed, objects: &[Value]) -> Result<()> {
    // A namespace takes long to go, so it goes first; what is in it goes with it and need not be deleted one by one.
    let mut order: Vec<&Value> = objects.iter().collect();
    order.sort_by_key(|object| object["kind"] != "Namespace");
    let own: Vec<&str> = objects
        .iter()
        .filter(|o| o["kind"] == "Namespace")
        .filter_map(|o| o["metadata"]["name"].as_str())
        .collect();
    order.retain(|object| !own.contains(&object["metadata"]["namespace"].as_str().unwrap_or_default()));
    stream::iter(order)
        .map(|object| async move { delete(bed, object).await })
        .buffer_unordered(CONCURRENCY)
        .try_collect::<Vec<()>>()
        .await?;
    for object in objects.iter().filter(|o| o["kind"] == "Namespace") {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        until("a namespace to be gone", LONG, async || {
            let left = bed.get("v1", "Namespace", "", name).await?;
            Ok(Probe::when(left == Value::Null, &left["status"]))
        })
        .await?;
    }
    Ok(())
}

async fn delete(bed: &Bed, object: &Value) -> Result<()> {
    let (api, name) = api(bed, object)?;
    match api.delete(&name, &DeleteParams::background()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn api(bed: &Bed, object: &Value) -> Result<(Api<DynamicObject>, String)> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("/apiVersion").rsplit_once('/').unwrap_or(("", text("/apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
    let client = bed.cluster.client();
    let api = match text("/metadata/namespace") {
        "" => Api::all_with(client, &resource),
        namespace => Api::namespaced_with(client, namespace, &resource),
    };
    Ok((api, text("/metadata/name").to_owned()))
}

/// The bare limit: namespaces, then everything, as fast as the server takes it.
async fn bare(bed: &Bed, objects: &[Value]) -> Result<()> {
    let (first, rest): (Vec<&Value>, Vec<&Value>) = objects.iter().partition(|o| o["kind"] == "Namespace");
    for group in [first, rest] {
        stream::iter(group)
            .map(|object| async move {
                let (api, name) = api(bed, object)?;
                api.patch(&name, &PatchParams::apply("bare").force(), &Patch::Apply(object)).await?;
                anyhow::Ok(())
            })
            .buffer_unordered(CONCURRENCY)
            .try_collect::<Vec<()>>()
            .await?;
    }
    Ok(())
}

async fn kubectl(bed: &Bed, program: &Path, folder: &Path, objects: &[Value]) -> Result<()> {
    let file = folder.join("objects.yaml");
    std::fs::write(&file, vdo_api::yaml::dump_all(objects))?;
    let mut command = tokio::process::Command::new(program);
    command.arg("--kubeconfig").arg(bed.cluster.kubeconfig());
    command.arg("--cache-dir").arg(folder.join("cache"));
    command.args(["apply", "--server-side", "--filename"]).arg(&file);
    run(command).await
}

async fn helm(bed: &Bed, helm: &Helm, objects: &[Value]) -> Result<()> {
    let chart = helm.chart("bulk", objects)?;
    helm.run(&["--namespace", "default", "install", "bulk", &chart]).await?;
    // Its record of the release; what it installed goes with everything else.
    bed.delete("v1", "Secret", "default", "sh.helm.release.v1.bulk.v1").await
}

async fn run(mut command: tokio::process::Command) -> Result<()> {
    let output = command.output().await?;
    ensure!(
        output.status.success(),
        "{:?}: {}",
        command.as_std().get_program(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
