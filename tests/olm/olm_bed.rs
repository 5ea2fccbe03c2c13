// SPDX-License-Identifier: Apache-2.0
//! A cluster with OLM, in which the node agent runs the operator's image, and bundles of several versions.
#![allow(clippy::expect_used, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, image};
use anyhow::{Context, Result};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use vdo_testbed::{CATALOG, OLM_NAMESPACE, Olm, Probe, until};

/// The API of Subscriptions, InstallPlans and ClusterServiceVersions.
pub const OLM: &str = "operators.coreos.com/v1alpha1";
pub const GROUPS: &str = "operators.coreos.com/v1";
pub const SUBSCRIPTION: &str = "vdo";

/// Whether OLM upgrades by itself.
#[derive(Clone, Copy, Debug)]
pub enum Approval {
    Automatic,
    Manual,
}

/// The cluster with both of OLM's operators.
pub struct OlmBed {
    pub olm: Olm,
    pub bed: Bed,
    folder: TempDir,
}

/// The repository's bundle.
pub fn bundle() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bundle")
}

/// What an administrator applies first.
pub fn prerequisites() -> Result<Vec<Value>> {
    Ok(vdo_api::yaml::load_all(&fs::read_to_string(bundle().join("prerequisites.yaml"))?)?)
}

/// The same in a folder below this one.
pub async fn release(bed: &Bed, below: &Path, version: &str, change: impl FnOnce(&mut Value)) -> Result<PathBuf> {
    let folder = below.join(version);
    copy(&bundle(), &folder)?;
    let reference = format!("{}:v{version}", repository()?);
    edit(&folder.join("manifests/vdo.clusterserviceversion.yaml"), |csv| {
        csv["metadata"]["name"] = format!("vdo.v{version}").into();
        csv["spec"]["version"] = version.into();
        csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["containers"][0]["image"] = reference.as_str().into();
    })?;
    edit(&folder.join("manifests/vdo.vmware.com_vdoconfigs.yaml"), change)?;
    bed.agent.serve_image(&reference, &image::layout()?).await?;
    Ok(folder)
}

/// Runs a test with a cluster of its own.
pub fn run(test: impl AsyncFnOnce(&mut OlmBed) -> Result<()>) -> Result<()> {
    crate::common::prepare();
    tokio::runtime::Runtime::new()?.block_on(async {
        let bed = Bed::start_for_images().await?;
        let olm = Olm::start(&bed.cluster).await?;
        let folder = tempfile::tempdir()?;
        let mut world = OlmBed { olm, bed, folder };
        let outcome = test(&mut world).await;
        if outcome.is_err() {
            world.bed.cluster.keep_dir();
        }
        outcome.with_context(|| format!("logs: {}", world.olm.dir().display()))
    })
}

impl OlmBed {
    /// The bundle as a release of this version, in a folder of its own: another name, another image, and whatever `change` does to the
    /// definition of VDOConfigs.
    pub async fn release(&self, version: &str, change: impl FnOnce(&mut Value)) -> Result<PathBuf> {
        release(&self.bed, self.folder.path(), version, change).await
    }

    /// Has the catalog hold these bundles in the channel stable, each of which replaces the one before it.
    pub async fn publish(&mut self, bundles: &[&Path]) -> Result<()> {
        let mut documents = Vec::new();
        let mut entries: Vec<Value> = Vec::new();
        for folder in bundles {
            let entry = self.olm.render(folder)?;
            let mut named = json!({"name": entry["name"]});
            if let Some(before) = entries.last() {
                named["replaces"] = before["name"].clone();
            }
            entries.push(named);
            documents.push(entry);
        }
        self.publish_graph(&json!(entries), documents).await
    }

    /// The same with the entries of the channel as they are given.
    pub async fn publish_graph(&mut self, entries: &Value, mut documents: Vec<Value>) -> Result<()> {
        documents.push(json!({"schema": "olm.package", "name": "vdo", "defaultChannel": "stable"}));
        documents.push(json!({"schema": "olm.channel", "package": "vdo", "name": "stable", "entries": entries}));
        self.olm.serve(&self.bed.cluster, &vdo_api::yaml::dump_all(&documents)).await
    }

    /// Applies prerequisites.yaml as `kubectl apply --server-side` does.
    pub async fn apply_prerequisites(&self) -> Result<()> {
        for object in prerequisites()? {
            self.bed.apply(&object).await?;
        }
        Ok(())
    }

    pub async fn group(&self, name: &str, namespaces: &[&str]) -> Result<()> {
        let spec = if namespaces.is_empty() {
            json!({})
        } else {
            json!({"targetNamespaces": namespaces})
        };
        let group = json!({"apiVersion": GROUPS, "kind": "OperatorGroup", "metadata": {"name": name, "namespace": NS}, "spec": spec});
        self.bed.apply(&group).await
    }

    pub async fn subscribe(&self, approval: Approval) -> Result<()> {
        let subscription = json!({"apiVersion": OLM, "kind": "Subscription", "metadata": {"name": SUBSCRIPTION, "namespace": NS},
            "spec": {"name": "vdo", "channel": "stable", "source": CATALOG, "sourceNamespace": OLM_NAMESPACE,
                "installPlanApproval": format!("{approval:?}")}});
        self.bed.apply(&subscription).await
    }

    /// The operator installed by a Subscription in its usual form, after the prerequisites.
    pub async fn install(&mut self, version: &str, namespaces: &[&str]) -> Result<PathBuf> {
        let folder = self.release(version, |_| ()).await?;
        self.publish(&[&folder]).await?;
        self.apply_prerequisites().await?;
        self.group("vdo", namespaces).await?;
        self.subscribe(Approval::Automatic).await?;
        self.until_succeeded(version).await?;
        Ok(folder)
    }

    pub async fn csv(&self, version: &str) -> Result<Value> {
        self.bed.get(OLM, "ClusterServiceVersion", NS, &format!("vdo.v{version}")).await
    }

    /// Waits until OLM says that this version is installed, and the operator's pod with its image is ready.
    pub async fn until_succeeded(&mut self, version: &str) -> Result<Value> {
        let csv = until(&format!("vdo.v{version} to have succeeded"), PATIENCE, async || {
            self.olm.check()?;
            let csv = self.csv(version).await?;
            Ok(match csv["status"]["phase"] == "Succeeded" {
                true => Probe::Ready(csv),
                false => Probe::not_yet(self.state(&csv).await?),
            })
        })
        .await?;
        let image = format!("{}:v{version}", repository()?);
        until(&format!("a pod of {image} to be ready alone"), PATIENCE, async || {
            let pods = self.bed.list("v1", "Pod", "app.kubernetes.io/name=vdo-operator").await?;
            let ready = |pod: &Value| {
                pod["spec"]["containers"][0]["image"] == image.as_str() && crate::common::condition(pod, "Ready")["status"] == "True"
            };
            Ok(Probe::when(
                pods.len() == 1 && ready(&pods[0]),
                format!("{} pods\n{}", pods.len(), self.bed.agent.logs()),
            ))
        })
        .await?;
        Ok(csv)
    }

    /// What OLM says where a version is not installed.
    async fn state(&self, csv: &Value) -> Result<String> {
        let subscription = self.bed.get(OLM, "Subscription", NS, SUBSCRIPTION).await?;
        let plans = self.bed.list(OLM, "InstallPlan", "").await?;
        let plans = plans
            .iter()
            .map(|plan| format!("{} {}", plan["status"]["phase"], plan["status"]["conditions"]));
        Ok(format!(
            "CSV: {} {}\nSubscription: {} {}\nInstallPlans: {}\n{}",
            csv["status"]["phase"],
            csv["status"]["message"],
            subscription["status"]["state"],
            subscription["status"]["conditions"],
            plans.collect::<Vec<_>>().join("; "),
            self.bed.agent.logs()
        ))
    }

    /// Waits until an InstallPlan of the Subscription is in this phase.
    pub async fn until_plan(&self, phase: &str) -> Result<Value> {
        until(&format!("an InstallPlan that is {phase}"), PATIENCE, async || {
            let plans = self.bed.list(OLM, "InstallPlan", "").await?;
            let found = plans.iter().find(|plan| plan["status"]["phase"] == phase);
            match found {
                Some(plan) => Ok(Probe::Ready(plan.clone())),
                None => Ok(Probe::not_yet(self.state(&Value::Null).await?)),
            }
        })
        .await
    }

    /// What the API server would say to the administrator who deletes a ClusterServiceVersion; nothing where it would do so. The policy that
    /// refuses it knows the definition of VDOConfigs half a minute after it was created, and refuses everything before.
    pub async fn refusal(&self, version: &str) -> Result<Option<String>> {
        let params = DeleteParams {
            dry_run: true,
            ..DeleteParams::default()
        };
        let (api, name) = (self.bed.api(OLM, "ClusterServiceVersion", NS), format!("vdo.v{version}"));
        until("the policy to know the definition", PATIENCE, async || {
            let refusal = match api.delete(&name, &params).await {
                Ok(_) => None,
                Err(kube::Error::Api(status)) => Some(status.message),
                Err(error) => return Err(error.into()),
            };
            let early = refusal.as_ref().filter(|message| message.contains("failed to configure policy"));
            Ok(match early {
                Some(message) => Probe::not_yet(message),
                None => Probe::Ready(refusal),
            })
        })
        .await
    }
}

/// The operator's image without its tag.
pub fn repository() -> Result<String> {
    let reference = image::reference()?;
    let (name, _) = reference.rsplit_once(':').context("a reference with a tag")?;
    Ok(name.to_owned())
}

/// Changes a file with one object.
pub fn edit(path: &Path, change: impl FnOnce(&mut Value)) -> Result<()> {
    let mut object = vdo_api::yaml::load_value(&fs::read_to_string(path)?)?;
    change(&mut object);
    Ok(fs::write(path, vdo_api::yaml::dump(&object)?)?)
}

/// Copies a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("{}: make bundle", from.display()))? {
        let source = entry?.path();
        let target = to.join(source.file_name().expect("a name"));
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}
