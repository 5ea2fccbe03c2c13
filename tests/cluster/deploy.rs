// SPDX-License-Identifier: Apache-2.0
//! `vdoctl deploy` into an empty cluster: what it refuses before it writes, what it writes, that it can be killed and run again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod asked;
mod bootstrap;
mod builds;
mod image;
mod killed;
mod matrix;
mod preflight;
mod published;
mod recording;
mod refused;
mod streams;
mod upgrade;
mod values;
mod waiting;

use crate::adoption::kubectl;
use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::BARE;
use crate::page::commands;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use vdo_testbed::{Probe, Proxy, until};

const ADMIN: &str = vdo_testbed::Cluster::ADMIN;

/// A proxy before the API server, and the kubeconfig of an administrator who uses it.
pub async fn administrator(bed: &Bed) -> Result<(Proxy, String)> {
    let proxy = Proxy::start(&bed.cluster).await?;
    // The proxy passes tokens on, not certificates.
    let binding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: deployer}\n\
        roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n\
        subjects: [{kind: ServiceAccount, name: deployer, namespace: default}]\n---\n\
        apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: deployer, namespace: default}\n";
    bed.cluster.apply_yaml(binding).await?;
    let direct = bed.cluster.service_account_kubeconfig("default", "deployer").await?;
    let through = proxy.kubeconfig(&direct)?.display().to_string();
    Ok((proxy, through))
}

/// The command, with the vCenter of a bed and a password that no one else can read.
pub struct Deploy {
    folder: tempfile::TempDir,
    args: Vec<String>,
}

impl Deploy {
    pub fn to(bed: &Bed) -> Result<Self> {
        let deploy = Self {
            folder: tempfile::tempdir()?,
            args: Vec::new(),
        };
        let password = deploy.file("password", bed.vcenter.password(), 0o600)?;
        let args = [
            "--vcenter".into(),
            bed.vcenter.address(),
            "--user".into(),
            bed.vcenter.user().to_owned(),
            "--password-file".into(),
            password.display().to_string(),
            "--thumbprint".into(),
            bed.vcenter.thumbprint_sha256(),
        ];
        Ok(Self {
            args: args.to_vec(),
            ..deploy
        })
    }

    fn file(&self, name: &str, text: &str, mode: u32) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
        Ok(path)
    }

    /// The flags without these and what they say.
    fn without(&self, flags: &[&str]) -> Vec<String> {
        let pairs = self.args.chunks(2).filter(|pair| !flags.contains(&pair[0].as_str()));
        pairs.flatten().cloned().collect()
    }

    fn command(&self, bed: &Bed, more: &[&str]) -> Command {
        command(bed, &self.args, more)
    }

    pub fn run(&self, bed: &Bed, more: &[&str]) -> Result<Output> {
        Ok(self.command(bed, more).output()?)
    }
}

fn command(bed: &Bed, args: &[String], more: &[&str]) -> Command {
    let mut command = vdoctl(bed, &["deploy".to_owned()]);
    command.args(args).args(more);
    command
}

fn vdoctl(bed: &Bed, args: &[String]) -> Command {
    vdoctl_of(Path::new(vdo_testbed::vdoctl()), bed, args)
}

/// The same of another build.
fn vdoctl_of(program: &Path, bed: &Bed, args: &[String]) -> Command {
    let mut command = Command::new(program);
    command.args(args).env("VDO_KUBECONFIG", bed.cluster.kubeconfig());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What an installation consists of, as it is stored.
async fn stored(bed: &Bed, yaml: &str) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for object in vdo_api::yaml::load_all(yaml)? {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        let mut live = bed.get(text("/apiVersion"), kind, text("/metadata/namespace"), name).await?;
        ensure!(live != Value::Null, "{kind} {name} is not there");
        live.as_object_mut().context("an object")?.remove("status");
        let metadata = live["metadata"].as_object_mut().context("metadata")?;
        for own in ["managedFields", "uid", "creationTimestamp", "resourceVersion", "finalizers"] {
            metadata.remove(own);
        }
        all.push(live);
    }
    Ok(all)
}

/// Starts the operator as its pod would, once its service account is there.
pub async fn operate(bed: &mut Bed) -> Result<()> {
    until("the operator's Deployment to be there", PATIENCE, async || {
        let found = bed.get("apps/v1", "Deployment", NS, "vdo-operator").await?;
        Ok(Probe::when(found != Value::Null, "no Deployment"))
    })
    .await?;
    bed.enrol().await?;
    bed.start_operator().await
}

#[test]
fn deploy_into_empty_cluster_is_ready_and_again_changes_nothing() -> Result<()> {
    BARE.run(async |bed| {
        let deploy = Deploy::to(bed)?;
        let yaml = deploy.run(bed, &["-o", "yaml"])?;
        ensure!(yaml.status.success(), "{}", err(&yaml));
        let yaml = out(&yaml);
        let tried = deploy.run(bed, &["--dry-run", "server"])?;
        ensure!(
            tried.status.success() && out(&tried).contains("VDOConfig vmware-system-vdo/vdo would be created"),
            "{}{}",
            out(&tried),
            err(&tried)
        );
        ensure!(
            bed.get("v1", "Namespace", "", NS).await? == Value::Null,
            "a dry run made a namespace"
        );

        let waiting = deploy.command(bed, &[]).spawn()?;
        operate(bed).await?;
        let done = waiting.wait_with_output()?;
        let text = out(&done);
        ensure!(done.status.success(), "{text}{}", err(&done));
        for line in [
            "cluster testbed",
            "is vCenter 8.0.3",
            "chosen: CPI 1.34.0 (its minor version must equal Kubernetes 1.34)",
            "chosen: CSI 3.8.0 (newest that supports Kubernetes 1.34",
            "interrupting is safe",
            "CPI 1.34.0 and CSI 3.8.0 installed and healthy",
        ] {
            ensure!(text.contains(line), "{line:?} is not in {text}");
        }
        ensure!(!text.contains(bed.vcenter.password()) && !err(&done).contains(bed.vcenter.password()));

        // A claim without a class has one.
        let class = bed.get("storage.k8s.io/v1", "StorageClass", "", "vsphere").await?;
        let mark = &class["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"];
        ensure!(mark == "true" && class["provisioner"] == "csi.vsphere.vmware.com", "{class}");

        // kubectl with what -o yaml prints leads to the same.
        let before = stored(bed, &yaml).await?;
        let manifests: Vec<Value> = vdo_api::yaml::load_all(&yaml)?;
        kubectl(bed, &["apply", "--server-side", "--force-conflicts", "-f", "-"], &manifests)?;
        let after = stored(bed, &yaml).await?;
        for (before, after) in before.iter().zip(&after) {
            ensure!(before == after, "kubectl made of {before} {after}");
        }

        // Again, as json: a stream of documents, and nothing is written that is not there.
        let versions = async |bed: &Bed| -> Result<Vec<Value>> {
            let mut all = Vec::new();
            for object in &manifests {
                let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
                let live = bed
                    .get(
                        text("/apiVersion"),
                        text("/kind"),
                        text("/metadata/namespace"),
                        text("/metadata/name"),
                    )
                    .await?;
                all.push(live["metadata"]["generation"].clone());
            }
            Ok(all)
        };
        let before = versions(bed).await?;
        let again = deploy.run(bed, &["-o", "json"])?;
        ensure!(again.status.success(), "{}", err(&again));
        ensure!(out(&again).contains("objects are in sync"), "{}", out(&again));
        for line in out(&again).lines() {
            let event: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
            ensure!(event["apiVersion"] == "vdoctl/v1" && event["kind"] == "Progress", "{event}");
        }
        ensure!(versions(bed).await? == before);
        // What was missing is applied, and the operator is woken: without its rights it may wait minutes for its next attempt.
        let woken = async |bed: &Bed| -> Result<bool> {
            let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
            Ok(config["metadata"]["annotations"]["vdo.vmware.com/reconcile-at"].is_string())
        };
        ensure!(!woken(bed).await?, "nothing was changed");
        bed.delete("rbac.authorization.k8s.io/v1", "RoleBinding", "vmware-system-csi", "vdo-operator")
            .await?;
        let repaired = deploy.run(bed, &[])?;
        ensure!(
            repaired.status.success() && woken(bed).await?,
            "{}{}",
            out(&repaired),
            err(&repaired)
        );
        page(bed, &deploy)?;
        refused::in_an_installed_cluster(bed, &deploy).await
    })
}

/// What docs/install.md has people type with `vdoctl`.
fn page(bed: &Bed, deploy: &Deploy) -> Result<()> {
    let authority = deploy.file("vcenter-ca.pem", bed.vcenter.ca_pem(), 0o600)?.display().to_string();
    let password = deploy.folder.path().join("password").display().to_string();
    let typed = ["Before you begin", "With vdoctl"].map(|heading| commands("install.md", heading));
    let mut count = BTreeMap::new();
    for line in typed.into_iter().collect::<Result<Vec<_>>>()?.concat() {
        // A recording shows commands, too.
        if !line.starts_with("vdoctl") || !line.contains("--vcenter") {
            continue;
        }
        let words = shlex::split(&line).context("words")?;
        let mut args: Vec<String> = words
            .into_iter()
            .skip(1)
            .map(|word| match word.as_str() {
                "vcenter.example.com" => bed.vcenter.address(),
                "k8s@vsphere.local" => bed.vcenter.user().to_owned(),
                "password" => password.clone(),
                "vcenter-ca.pem" => authority.clone(),
                _ => word,
            })
            .collect();
        let verb = args.first().cloned().context("a verb")?;
        // What the page has a person answer on the terminal; and everything is there already.
        let tried = [("--dry-run", "client")].into_iter().filter(|_| verb == "deploy");
        for (flag, value) in [("--password-file", password.as_str()), ("--ca-file", &authority)]
            .into_iter()
            .chain(tried)
        {
            if !args.iter().any(|arg| arg == flag) {
                args.extend([flag.to_owned(), value.to_owned()]);
            }
        }
        let output = vdoctl(bed, &args).output()?;
        ensure!(output.status.success(), "{line}: {}{}", out(&output), err(&output));
        *count.entry(verb).or_insert(0) += 1;
    }
    ensure!(
        count == BTreeMap::from([("deploy".to_owned(), 2), ("doctor".to_owned(), 1)]),
        "{count:?}"
    );
    Ok(())
}
