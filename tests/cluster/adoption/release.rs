// SPDX-License-Identifier: Apache-2.0
//! A release of the real Helm: how it comes, and what Helm may still do with it after its objects were taken over.

use super::{Tool, managed_by_us_alone, running, same, state};
use crate::common::{Bed, PATIENCE};
use crate::page::open;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_testbed::{Helm, Probe, until};

const RELEASE: &str = "vsphere";
const NAMESPACE: &str = "kube-system";
/// Where Helm keeps what it installed.
const RECORD: &str = "sh.helm.release.v1.vsphere.v1";

/// `helm install` of a chart with these objects.
pub async fn install(bed: &Bed, manifests: &[Value]) -> Result<()> {
    let helm = Helm::of(&bed.cluster).await?;
    let chart = helm.chart(RELEASE, manifests)?;
    helm.run(&["--namespace", NAMESPACE, "install", RELEASE, &chart]).await?;
    for kind in ["DaemonSet", "Deployment"] {
        for workload in super::workloads(bed, kind).await? {
            let metadata = &workload["metadata"];
            ensure!(
                metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm"
                    && metadata["annotations"]["meta.helm.sh/release-name"] == RELEASE
                    && metadata["managedFields"].to_string().contains(r#""manager":"helm""#),
                "this is not how Helm installs: {metadata}"
            );
        }
    }
    Ok(())
}

/// What docs/taking-over.md says of a release whose objects VDO keeps now.
pub async fn what_helm_may_still_do(bed: &Bed, manifests: &[Value], reference: &BTreeMap<String, Value>) -> Result<()> {
    let helm = Helm::of(&bed.cluster).await?;
    let ready = running(bed).await?;
    let record = bed.get("v1", "Secret", NAMESPACE, RECORD).await?;
    ensure!(
        record["metadata"]["managedFields"].to_string().matches("\"manager\"").count() == 1,
        "Helm's record was written by another manager: {}",
        record["metadata"]
    );
    let releases = async || helm.run(&["--namespace", NAMESPACE, "list", "--short"]).await;
    ensure!(releases().await?.trim() == RELEASE, "the release is gone");

    // An upgrade writes Helm's marks again; they are taken off again, and no pod is restarted.
    let chart = helm.chart(RELEASE, manifests)?;
    let mark = bed.cluster.audit().mark().await?;
    helm.run(&["--namespace", NAMESPACE, "upgrade", RELEASE, &chart]).await?;
    let written = bed.cluster.audit().since(mark).await?.of(vdo_testbed::Cluster::ADMIN).writes();
    ensure!(
        !written.only(|e| e.resource == "daemonsets").is_empty(),
        "Helm's upgrade wrote nothing to be taken back"
    );
    until_as_before(bed, reference).await?;
    managed_by_us_alone(bed, Tool::Helm).await?;
    ensure!(running(bed).await? == ready, "workloads or pods changed after an upgrade by Helm");

    // Without its records Helm has nothing to remove.
    let records = bed.list("v1", "Secret", &format!("owner=helm,name={RELEASE}")).await?;
    let mut page = open(bed, "taking-over.md")?.set("NAMESPACE", NAMESPACE).set("RELEASE", RELEASE);
    page.run("kubectl --namespace \"$NAMESPACE\" delete secret")?;
    page.end(&[
        "vdoctl plan",
        "vdoctl adopt",
        "vdoctl release",
        "kubectl apply",
        "kubectl --namespace vmware-system-vdo",
        "kubectl --namespace kube-system",
    ])?;
    ensure!(records.len() == 2, "an installation and an upgrade have {} records", records.len());
    ensure!(releases().await?.trim().is_empty(), "the release is still there");
    let uninstall = async || helm.run(&["--namespace", NAMESPACE, "uninstall", RELEASE]).await;
    let refusal = uninstall().await.err().context("helm removed a release that it does not know")?;
    ensure!(refusal.to_string().contains("not found"), "{refusal}");
    ensure!(running(bed).await? == ready, "workloads or pods changed");

    // With them it deletes by name, no matter who manages the objects by then: everything is created again, and every pod is another one.
    for mut record in records {
        for field in ["uid", "resourceVersion", "managedFields", "creationTimestamp"] {
            record["metadata"].as_object_mut().context("metadata")?.shift_remove(field);
        }
        record["apiVersion"] = "v1".into();
        record["kind"] = "Secret".into();
        bed.apply(&record).await?;
    }
    uninstall().await?;
    until_as_before(bed, reference).await?;
    let again = running(bed).await?;
    ensure!(
        again.len() == ready.len() && again.iter().all(|(key, content)| ready.get(key) != Some(content)),
        "something outlived `helm uninstall`:\n{ready:#?}\n{again:#?}"
    );
    println!("Helm: upgrade taken back, release forgotten, uninstall repaired");
    Ok(())
}

/// Waits until everything is as it was, and the VDOConfig is ready.
async fn until_as_before(bed: &Bed, reference: &BTreeMap<String, Value>) -> Result<()> {
    until("everything to be as before", PATIENCE, async || {
        Ok(match same(reference, &state(bed).await?, Tool::Helm) {
            Ok(()) => Probe::Ready(()),
            Err(differs) => Probe::not_yet(differs),
        })
    })
    .await?;
    bed.until_ready().await.map(|_| ())
}
