// SPDX-License-Identifier: Apache-2.0
//! Drivers that the operator does not know by name, requested by `spec.drivers`, from a matrix in a folder: installed once their rights
//! are granted, repaired, upgraded, kept when they are no longer named, and removed when that is asked for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod antrea;
mod manifests;
mod shelf;

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::{EMPTY, INSTALLED};
use crate::install::{ensure_nothing_was_forbidden, until_at_rest};
use crate::page::open;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use shelf::{Release, Shelf};
use vdo_core::drivers;
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");

/// A driver from an empty folder to its rights and to a cluster, by hand.
#[test]
#[ignore = "long"]
fn page_new_driver_works_as_written() -> Result<()> {
    EMPTY.run(async |bed| open(bed, "new-driver.md")?.run_all())
}

/// The rights, as an administrator grants them before the VDOConfig names the driver.
#[test]
fn page_antrea_works_as_written() -> Result<()> {
    EMPTY.run(async |bed| {
        open(bed, "antrea.md")?.run_all()?;
        let role = bed
            .get("rbac.authorization.k8s.io/v1", "ClusterRole", "", "aggregate-antrea-policies-view")
            .await?;
        ensure!(
            role["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true",
            "{role}"
        );
        ensure!(
            bed.get("rbac.authorization.k8s.io/v1", "ClusterRole", "", "vdo-operator-antrea")
                .await?
                .is_object()
        );
        Ok(())
    })
}

/// What is done with a driver in its life.
struct Life<'a> {
    name: &'a str,
    releases: [Release; 2],
    /// Object that is deleted by another, and comes back: API version, kind, namespace, name.
    deleted: (&'a str, &'a str, &'a str, &'a str),
    /// Workload that is changed by another, and is brought back.
    changed: (&'a str, &'a str, &'a str, &'a str),
    /// Object of the first release that the second one has no more, and the other way around.
    replaced: Option<[(&'a str, &'a str, &'a str, &'a str); 2]>,
}

/// What a status says of one driver.
async fn of_driver(bed: &Bed, name: &str) -> Result<Value> {
    let status = bed.status().await?;
    let all = status["drivers"].as_array().cloned().unwrap_or_default();
    Ok(all.into_iter().find(|driver| driver["name"] == name).unwrap_or_default())
}

async fn until_running(bed: &Bed, name: &str, version: &str, each: impl AsyncFn() -> Result<()>) -> Result<()> {
    until(&format!("{name} to run {version}"), PATIENCE, async || {
        each().await?;
        let driver = of_driver(bed, name).await?;
        let ready = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "Ready");
        Ok(Probe::when(
            driver["running"] == version && driver["ready"] == "True",
            format!("{driver} {ready}"),
        ))
    })
    .await
}

async fn exists(bed: &Bed, (api_version, kind, namespace, name): (&str, &str, &str, &str)) -> Result<bool> {
    Ok(bed.get(api_version, kind, namespace, name).await? != Value::Null)
}

async fn request(bed: &Bed, drivers: Value) -> Result<()> {
    bed.apply(&bed.config(json!({"drivers": drivers}))).await
}

/// What matters of the two drivers that everyone has.
async fn others(bed: &Bed) -> Result<Vec<Value>> {
    let mut all = bed.owned().await?;
    all.retain(|object| {
        let driver = &object["metadata"]["labels"]["vdo.vmware.com/driver"];
        driver == "vsphere-cpi" || driver == "vsphere-csi"
    });
    Ok(all)
}

/// The whole life. `each` runs while something is waited for.
async fn live(bed: &mut Bed, life: &Life<'_>, each: impl AsyncFn(&Bed) -> Result<()>) -> Result<()> {
    let name = life.name;
    let [first, second] = &life.releases;
    until_at_rest(bed).await?;
    let before = others(bed).await?;
    let embedded = life.releases.iter().all(Release::is_embedded);
    let shelf = match embedded {
        true => None,
        false => Some(Shelf::of(bed, name, &life.releases)?),
    };
    if let Some(shelf) = &shelf {
        bed.kill_operator();
        bed.flags.push(("matrix", shelf.index()));
        bed.start_operator().await?;
        bed.until_ready().await?;
    }

    // Without the rights nothing of it is written, and nothing else is the worse for it.
    let mark = bed.cluster.audit().mark().await?;
    request(bed, json!([{"name": name, "version": first.version}])).await?;
    let waits = bed.until_reason("Ready", "RightsMissing").await?;
    let message = waits["message"].as_str().context("a message")?;
    ensure!(
        message.contains(name)
            && message.contains("vdoctl rights --missing")
            && message.contains("vdoctl rights --missing --matrix") != embedded,
        "{message}"
    );
    ensure!(!exists(bed, life.changed).await?, "{name} is installed without rights");
    shelf::grant(bed, message).await?;
    let again = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": "granted"}}});
    bed.merge(VDO, "VDOConfig", NS, "vdo", again).await?;
    until_running(bed, name, first.version, async || each(bed).await).await?;
    if let Some([old, _]) = life.replaced {
        ensure!(exists(bed, old).await?, "{name} {} lacks an object", first.version);
    }
    until_at_rest(bed).await?;

    // Repair.
    let (api_version, kind, namespace, object) = life.deleted;
    bed.delete(api_version, kind, namespace, object).await?;
    until(&format!("{kind} {object} to be back"), PATIENCE, async || {
        Ok(Probe::when(exists(bed, life.deleted).await?, "it is not"))
    })
    .await?;
    let (api_version, kind, namespace, object) = life.changed;
    let account = |object: &Value| object["spec"]["template"]["spec"]["serviceAccountName"].clone();
    let wanted = account(&bed.get(api_version, kind, namespace, object).await?);
    let change = json!({"spec": {"template": {"spec": {"serviceAccountName": "another", "serviceAccount": "another"}}}});
    bed.merge(api_version, kind, namespace, object, change).await?;
    until(&format!("{kind} {object} to be repaired"), PATIENCE, async || {
        let now = account(&bed.get(api_version, kind, namespace, object).await?);
        Ok(Probe::when(now == wanted, now))
    })
    .await?;
    until_running(bed, name, first.version, async || each(bed).await).await?;

    // Upgrade, with everything that the new version has and the old one had.
    request(bed, json!([{"name": name, "version": second.version}])).await?;
    until_running(bed, name, second.version, async || each(bed).await).await?;
    if let Some([old, new]) = life.replaced {
        until(&format!("{name} to be pruned"), PATIENCE, async || {
            each(bed).await?;
            Ok(Probe::when(!exists(bed, old).await?, "it is not"))
        })
        .await?;
        ensure!(exists(bed, new).await?, "{name} {} lacks an object", second.version);
    }

    // No one names it any more: it stays, is repaired, and status says both ways out.
    request(bed, json!([])).await?;
    let driver = until(&format!("{name} to be no longer requested"), PATIENCE, async || {
        each(bed).await?;
        let driver = of_driver(bed, name).await?;
        Ok(if driver["reason"] == "NotRequested" {
            Probe::Ready(driver)
        } else {
            Probe::not_yet(driver)
        })
    })
    .await?;
    let message = driver["message"].as_str().context("a message")?;
    let field = format!("spec.drivers[{name}]");
    ensure!(
        message.contains(&field) && message.contains("managementState to Removed"),
        "{message}"
    );
    bed.delete(life.deleted.0, life.deleted.1, life.deleted.2, life.deleted.3).await?;
    until("a kept driver to be repaired", PATIENCE, async || {
        Ok(Probe::when(exists(bed, life.deleted).await?, "it is not"))
    })
    .await?;

    // Removed, and nothing else.
    request(bed, json!([{"name": name, "managementState": "Removed"}])).await?;
    until(&format!("{name} to be removed"), PATIENCE, async || {
        let (_, text, _) = bed.vdoctl(&["status", "-o", "json"])?;
        let mut found = false;
        for object in [life.deleted, life.changed].into_iter().chain(life.replaced.map(|[_, new]| new)) {
            found |= exists(bed, object).await?;
        }
        Ok(Probe::when(!found && of_driver(bed, name).await? == Value::Null, text))
    })
    .await?;
    bed.until_ready().await?;
    ensure!(others(bed).await? == before, "the life of {name} changed the other drivers");
    ensure_nothing_was_forbidden(bed, mark).await
}

/// A driver with templates of its own: three objects, in a namespace that the administrator brings.
#[test]
#[ignore = "long"]
fn further_driver_with_own_templates_lives_its_whole_life() -> Result<()> {
    INSTALLED.run(async |bed| {
        let life = Life {
            name: "lamp",
            releases: [Release::templates("1.0.0"), Release::templates("1.1.0")],
            deleted: ("v1", "ServiceAccount", "lamps", "lamp"),
            changed: ("apps/v1", "DaemonSet", "lamps", "lamp"),
            replaced: Some([
                ("v1", "ConfigMap", "lamps", "lamp-1.0.0"),
                ("v1", "ConfigMap", "lamps", "lamp-1.1.0"),
            ]),
        };
        live(bed, &life, async |_| Ok(())).await
    })
}

/// A driver of role network that was imported from manifests: definitions, a webhook, a budget, jobs, rights of every kind.
#[test]
#[ignore = "long"]
fn further_driver_from_manifests_lives_its_whole_life() -> Result<()> {
    INSTALLED.run(async |bed| {
        let life = Life {
            name: "mesh",
            releases: ["1.0.0", "1.1.0"].map(|version| Release::manifests("network", version, vec![manifests::mesh(version)])),
            deleted: ("v1", "Service", "mesh", "controller"),
            changed: ("apps/v1", "Deployment", "mesh", "controller"),
            replaced: Some([
                ("policy/v1", "PodDisruptionBudget", "mesh", "controller"),
                ("apps/v1", "StatefulSet", "mesh", "store"),
            ]),
        };
        live(bed, &life, async |_| Ok(())).await
    })
}

/// The driver of the embedded matrix that a VDOConfig gets only when it names it: without a network, from the binary alone.
#[test]
#[ignore = "long"]
fn further_driver_snapshot_controller_lives_its_whole_life() -> Result<()> {
    INSTALLED.run(async |bed| {
        ensure!(of_driver(bed, "snapshot-controller").await? == Value::Null, "no one asked for it");
        let (_, text, talk) = bed.vdoctl(&["rights", "--missing"])?;
        ensure!(!text.contains("snapshot-controller"), "{text} {talk}");
        let life = Life {
            name: "snapshot-controller",
            releases: ["8.2.1", "8.6.0"].map(Release::embedded),
            deleted: ("v1", "ServiceAccount", "kube-system", "snapshot-controller"),
            changed: ("apps/v1", "Deployment", "kube-system", "snapshot-controller"),
            replaced: None,
        };
        live(bed, &life, async |_| Ok(())).await
    })
}

/// The pod network of the embedded matrix, of which not even the operator has rights before it is named. Its controller adds its authority to
/// objects that the operator has written, and keeps objects of its own definitions.
#[test]
#[ignore = "long"]
fn further_driver_antrea_lives_its_whole_life() -> Result<()> {
    INSTALLED.run(async |bed| {
        ensure!(of_driver(bed, drivers::ANTREA).await? == Value::Null, "no one asked for it");
        let (_, text, talk) = bed.vdoctl(&["rights", "--missing"])?;
        ensure!(!text.contains("antrea"), "{text} {talk}");
        let life = Life {
            name: drivers::ANTREA,
            releases: ["2.6.3", "2.7.0"].map(Release::embedded),
            deleted: ("v1", "Service", "kube-system", "antrea"),
            changed: ("apps/v1", "Deployment", "kube-system", "antrea-controller"),
            replaced: None,
        };
        let controller = antrea::Controller::start().await?;
        live(bed, &life, async |bed| controller.act(bed).await).await?;
        // Three APIs, two mutating and fifteen validating webhooks, of which two are of the first version alone, and a conversion.
        ensure!(controller.authorities() == 21, "{} authorities", controller.authorities());
        for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
            let left = bed.list("admissionregistration.k8s.io/v1", kind, "app=antrea").await?;
            ensure!(left.is_empty(), "{left:?}");
        }
        let left = bed.list("apiregistration.k8s.io/v1", "APIService", "app=antrea").await?;
        ensure!(left.is_empty(), "{left:?}");
        // Only the definition with an object is kept, and it goes with its object.
        let definitions = bed.list(DEFINITIONS.0, DEFINITIONS.1, "").await?;
        let left = definitions.iter().filter_map(|definition| definition["metadata"]["name"].as_str());
        let left: Vec<&str> = left.filter(|name| name.ends_with(".crd.antrea.io")).collect();
        ensure!(left == ["antreacontrollerinfos.crd.antrea.io"], "{left:?}");
        bed.delete(DEFINITIONS.0, DEFINITIONS.1, "", left[0]).await
    })
}

/// A further driver that cannot be chosen is a matter of its own.
#[test]
fn further_driver_unknown_to_the_matrix_fails_alone() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        request(bed, json!([{"name": "nothing"}])).await?;
        let found = bed.until_reason("Ready", "NoCompatibleVersion").await?;
        let message = found["message"].as_str().context("a message")?;
        ensure!(message.contains("nothing"), "{message}");
        for kind in ["CloudProviderReady", "StorageReady"] {
            ensure!(
                condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, kind)["status"] == "True",
                "{kind}"
            );
        }
        for name in ["vsphere-cpi", "vsphere-csi"] {
            let refused = bed.apply(&bed.config(json!({"drivers": [{"name": name}]}))).await;
            let error = format!("{:#}", refused.err().context("the name was taken")?);
            ensure!(error.contains("spec.drivers cannot contain"), "{error}");
        }
        Ok(())
    })
}
