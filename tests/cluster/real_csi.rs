// SPDX-License-Identifier: Apache-2.0
//! The real CSI driver: installed by the operator, run from the operator's own objects, with volumes of a vCenter.

mod conformance;
mod life;
mod metrics;
mod minors;
mod moving;
mod rights;
mod selftest;
mod selftest_classes;
mod selftest_places;
mod syncer;
mod troubles;
mod upgrade;

use crate::common::{Bed, NODES, NS, condition};
use crate::fixture::alone;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::io::Write as _;
use vdo_testbed::{CSI_IMAGES, ClusterOptions, CsiVersion, Isolation, PATIENCE, Probe, VcenterOptions, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const CLASS: &str = "fast";
const CLAIM: &str = "PersistentVolumeClaim";
const VOLUME: &str = "PersistentVolume";
const SNAPSHOTS: &str = "snapshot.storage.k8s.io/v1";
/// The account that the chart gives to everything in the controller's pod.
const ACCOUNT: &str = "system:serviceaccount:vmware-system-csi:vsphere-csi-controller";

/// How the driver shall know its vCenter.
#[derive(Clone, Copy, Debug)]
enum Trust {
    Thumbprint,
    Authority,
}

/// Runs a test in a cluster of its own, whose nodes can pull these versions of the driver. An operator runs, and the vCenter is known.
fn with_driver(versions: &[CsiVersion], trust: Trust, test: impl AsyncFnOnce(&mut Bed) -> Result<()>) -> Result<()> {
    with_driver_on(ClusterOptions::default(), versions, trust, test)
}

/// The same on another control plane.
fn with_driver_on(
    cluster: ClusterOptions,
    versions: &[CsiVersion],
    trust: Trust,
    test: impl AsyncFnOnce(&mut Bed) -> Result<()>,
) -> Result<()> {
    with_driver_in(cluster, VcenterOptions::with_vms(NODES), versions, trust, test)
}

/// The same with another vCenter.
fn with_driver_in(
    cluster: ClusterOptions,
    vcenter: VcenterOptions,
    versions: &[CsiVersion],
    trust: Trust,
    test: impl AsyncFnOnce(&mut Bed) -> Result<()>,
) -> Result<()> {
    alone(async || {
        let cluster = ClusterOptions {
            images: vec![CSI_IMAGES.into()],
            ..cluster
        };
        let mut bed = Bed::start_on(cluster, vcenter).await?;
        if let Isolation::None(problem) = bed.agent.isolation() {
            let line = format!("SKIPPED: needs user and mount namespaces for the CSI driver's containers ({problem})\n");
            // Past the harness, which captures what tests print.
            return Ok(std::io::stderr().write_all(line.as_bytes())?);
        }
        for version in versions {
            bed.agent.serve_csi(*version).await?;
        }
        bed.start_operator().await?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        connect(&bed, trust).await?;
        let outcome = test(&mut bed).await;
        if outcome.is_err() {
            bed.cluster.keep_dir();
        }
        outcome
    })
}

async fn connect(bed: &Bed, trust: Trust) -> Result<()> {
    let mut connection = bed.connection("vc1");
    if let (Trust::Authority, Some(spec)) = (trust, connection["spec"].as_object_mut()) {
        let authority = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vcenter-ca", "namespace": NS},
            "data": {"ca.crt": bed.vcenter.ca_pem()}});
        bed.apply(&authority).await?;
        spec.shift_remove("thumbprint");
        spec.insert("caBundle".into(), json!({"configMap": "vcenter-ca"}));
    }
    bed.apply(&connection).await
}

/// Installs this version, or changes to it.
async fn install(bed: &Bed, version: &str) -> Result<()> {
    install_as(bed, storage(version)).await
}

/// Installs the driver with this specification.
async fn install_as(bed: &Bed, storage: Value) -> Result<()> {
    bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": storage})))
        .await?;
    bed.until_ready().await?;
    Ok(())
}

fn storage(version: &str) -> Value {
    json!({"version": version, "storageClasses": [{"name": CLASS}], "defaultStorageClass": {}})
}

fn claim(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": CLAIM, "metadata": {"name": name, "namespace": "default"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": CLASS, "resources": {"requests": {"storage": "1Gi"}}}})
}

/// Waits until an object is as it should be; gives what was seen.
async fn until_is<T>(
    bed: &Bed,
    what: &str,
    (api_version, kind, namespace, name): (&str, &str, &str, &str),
    seen: impl Fn(&Value) -> Option<T>,
) -> Result<T> {
    // The driver may miss that the simulator's CNS is done at once; it tries again after five minutes of its own.
    until(&format!("{kind} {name} to be {what}"), 2 * PATIENCE, async || {
        let object = bed.get(api_version, kind, namespace, name).await?;
        Ok(seen(&object).map_or_else(|| Probe::not_yet(format!("{object}\n{}", bed.agent.logs())), Probe::Ready))
    })
    .await
}

/// Waits until a claim is bound; gives the name of its volume.
async fn until_bound(bed: &Bed, name: &str) -> Result<String> {
    until_is(bed, "bound", ("v1", CLAIM, "default", name), |claim| {
        let volume = claim["spec"]["volumeName"].as_str();
        volume.filter(|_| claim["status"]["phase"] == "Bound").map(str::to_owned)
    })
    .await
}

async fn until_deleted(bed: &Bed, api_version: &str, kind: &str, namespace: &str, name: &str) -> Result<()> {
    until_is(bed, "deleted", (api_version, kind, namespace, name), |object| {
        object.is_null().then_some(())
    })
    .await
}

/// Deletes a claim and waits until its volume is deleted, too: Kubernetes lets it go when the driver has deleted the disk.
async fn delete_claim(bed: &Bed, name: &str, volume: &str) -> Result<()> {
    bed.delete("v1", CLAIM, "default", name).await?;
    until_deleted(bed, "v1", VOLUME, "", volume).await
}

/// The removal of the driver is refused because of this volume, and nothing is deleted.
async fn removal_is_refused(bed: &Bed, version: &str, volume: &str) -> Result<()> {
    let mark = bed.cluster.audit().mark().await?;
    let removed = json!({"cloudProvider": {}, "storageProvider": {"version": version, "managementState": "Removed"}});
    bed.apply(&bed.config(removed)).await?;
    is_refused_because_of(bed, volume).await?;
    let deleted = bed.deleted(mark).await?;
    anyhow::ensure!(deleted.is_empty(), "in spite of a volume:\n{deleted}");
    install(bed, version).await
}

/// Waits until the VDOConfig says that this volume needs the driver.
async fn is_refused_because_of(bed: &Bed, volume: &str) -> Result<()> {
    until_is(bed, "in need of its driver", (VDO, "VDOConfig", NS, "vdo"), |config| {
        let ready = condition(config, "Ready");
        let current = config["status"]["observedGeneration"] == config["metadata"]["generation"];
        let named = ready["message"].as_str().is_some_and(|message| message.contains(volume));
        (current && named && ready["reason"] == "VolumesInUse").then_some(())
    })
    .await
}

fn text(object: &Value, pointer: &str) -> Result<String> {
    let text = object.pointer(pointer).and_then(Value::as_str);
    Ok(text.with_context(|| format!("no {pointer} in {object}"))?.to_owned())
}
