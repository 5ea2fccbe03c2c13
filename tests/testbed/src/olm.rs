// SPDX-License-Identifier: Apache-2.0
//! OLM v0 beside a cluster: the real olm-operator and catalog-operator, and a catalog that the real opm serves.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::binaries::Binaries;
use crate::cluster::Cluster;
use crate::executable::write_program;
use crate::ports::Port;
use crate::process::{Launch, Process};
use crate::upstream_programs::Part;
use crate::wait::{PATIENCE, Probe, until};
use crate::workdir::Workdir;

/// The namespace of OLM, in which catalogs are for all namespaces.
pub const OLM_NAMESPACE: &str = "olm";
/// The name of the catalog.
pub const CATALOG: &str = "test-catalog";
/// The account of both operators. Policies tell by it what OLM does from what a user does.
const ACCOUNT: &str = "olm-operator-serviceaccount";
/// An image that no node can pull: the Job that unpacks a bundle waits with it for [`Olm::unpack`].
const NEVER: &str = "test.invalid/opm:v1";
/// How often catalog-operator looks at everything once more, and backs off meanwhile.
const INTERVAL: &str = "10s";

/// OLM's operators. Dropping it ends them.
#[derive(Debug)]
pub struct Olm {
    // Dropped in this order: clients of the catalog before it, the folder last.
    operators: Vec<Process>,
    catalog: Option<Process>,
    port: Port,
    binaries: Binaries,
    folder: Workdir,
}

impl Olm {
    /// What OLM needs of the test bed.
    pub const PARTS: [Part; 4] = [Part::Opm, Part::OlmOperator, Part::OlmCatalog, Part::BundleCheck];

    /// Installs the definitions of OLM and its account, and starts both operators with it. There is no catalog yet.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        let binaries = tokio::task::spawn_blocking(|| Binaries::ensure(&Self::PARTS)).await??;
        for file in binaries.olm_definitions()? {
            cluster.apply_file(file).await?;
        }
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "olm-operator-binding"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": OLM_NAMESPACE}]});
        for object in [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OLM_NAMESPACE}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": OLM_NAMESPACE}}),
            binding,
            json!({"apiVersion": "operators.coreos.com/v1", "kind": "OLMConfig", "metadata": {"name": "cluster"}}),
        ] {
            cluster.apply_yaml(&object.to_string()).await?;
        }
        let mut olm = Self {
            operators: Vec::new(),
            catalog: None,
            port: Port::claim()?,
            binaries,
            folder: Workdir::lasting(&cluster.dir().join("olm"))?,
        };
        olm.start_operators(cluster).await?;
        Ok(olm)
    }

    /// Starts both operators, or does so again after [`Self::kill`].
    pub async fn start_operators(&mut self, cluster: &Cluster) -> Result<()> {
        let kubeconfig = cluster.service_account_kubeconfig(OLM_NAMESPACE, ACCOUNT).await?;
        let text = kubeconfig.to_string_lossy();
        let launch = |part: Part| {
            let log = self.folder.join(format!("{}.log", part.file_name()));
            Launch::new(part.file_name(), self.binaries.path(part), log).flag("namespace", OLM_NAMESPACE)
        };
        // It has no option for the file.
        let operator = launch(Part::OlmOperator).env("KUBECONFIG", &text).spawn()?;
        let catalog = launch(Part::OlmCatalog)
            .flag("kubeconfig", &*text)
            .flag("interval", INTERVAL)
            .flag("opmImage", NEVER)
            .flag("util-image", NEVER)
            .spawn()?;
        self.operators = vec![operator, catalog];
        Ok(())
    }

    /// Ends both operators as a crash would.
    pub fn kill(&mut self) {
        self.operators.clear();
    }

    /// Serves another catalog, given as the text of its file, and has OLM know its address.
    ///
    /// # Errors
    /// When opm refuses it; the message is opm's.
    pub async fn serve(&mut self, cluster: &Cluster, catalog: &str) -> Result<()> {
        self.catalog = None;
        let folder = self.folder.join("catalog");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("catalog.yaml"), catalog)?;
        self.opm(&["validate", &folder.to_string_lossy()])?;
        let launch = Launch::new("opm", self.binaries.path(Part::Opm), self.folder.join("opm.log"))
            .arg("serve")
            .arg(&folder)
            .flag("port", self.port.number().to_string())
            .flag("pprof-addr", "")
            // Where it puts a cache that it does not remove when it is killed.
            .env("TMPDIR", &self.folder.path().to_string_lossy());
        let mut process = launch.spawn()?;
        let address = format!("127.0.0.1:{}", self.port.number());
        until("opm to serve the catalog", PATIENCE, async || {
            process.check()?;
            let connected = tokio::time::timeout(Duration::from_secs(2), tokio::net::TcpStream::connect(&address)).await;
            Ok(Probe::when(matches!(connected, Ok(Ok(_))), "it does not listen"))
        })
        .await?;
        self.catalog = Some(process);
        let source = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": CATALOG, "namespace": OLM_NAMESPACE}, "spec": {"sourceType": "grpc", "address": address, "displayName": "Tests"}});
        cluster.apply_yaml(&source.to_string()).await?;
        Ok(())
    }

    /// Does what the Job does that OLM makes for a bundle's image: the real opm, with the account of the Job, stores the content of the image,
    /// which is in this folder. Gives the name of the image.
    pub async fn unpack(&self, cluster: &Cluster, content: &Path) -> Result<String> {
        let pods: Api<Pod> = Api::namespaced(cluster.client(), OLM_NAMESPACE);
        let job = ListParams::default().labels("operatorframework.io/bundle-unpack-ref");
        let pod = until("a Job that unpacks a bundle to have a pod on a node", PATIENCE, async || {
            let mut all = pods.list(&job).await?.items;
            all.retain(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()));
            Ok(all.pop().map_or_else(|| Probe::not_yet("there is none"), Probe::Ready))
        })
        .await?;
        let pod = serde_json::to_value(pod)?;
        let text = |place: &str| pod.pointer(place).and_then(Value::as_str).unwrap_or_default();
        let (account, image) = (text("/spec/serviceAccountName"), text("/spec/containers/0/env/0/value"));
        let kubeconfig = cluster.service_account_kubeconfig(OLM_NAMESPACE, account).await?;
        let mut command = Command::new(self.binaries.path(Part::Opm));
        // It wants a path that ends with a slash.
        command
            .args(["alpha", "bundle", "extract", "-k"])
            .arg(kubeconfig)
            .arg("-m")
            .arg(content.join(""));
        command
            .args(["-n", OLM_NAMESPACE, "-c", account, "-z"])
            .env("CONTAINER_IMAGE", image);
        let output = command.env("TMPDIR", self.folder.path()).output().context("cannot run opm")?;
        ensure!(output.status.success(), "opm: {}", String::from_utf8_lossy(&output.stderr));
        let done = json!({"status": {"phase": "Succeeded"}});
        pods.patch_status(text("/metadata/name"), &PatchParams::default(), &Patch::Merge(done))
            .await?;
        Ok(image.to_owned())
    }

    /// What opm makes of a bundle's folder: an entry of a catalog that holds all manifests, so that no image is pulled.
    pub fn render(&self, bundle: &Path) -> Result<Value> {
        let text = self.opm(&["render", &bundle.to_string_lossy(), "--output", "json"])?;
        serde_json::from_str(&text).with_context(|| format!("opm rendered {text}"))
    }

    /// Fails if one of the operators has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        self.operators.iter_mut().try_for_each(Process::check)
    }

    /// The folder with the logs.
    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    fn opm(&self, args: &[&str]) -> Result<String> {
        run(&self.binaries.path(Part::Opm), args, self.folder.path())
    }
}

/// Runs opm without a cluster, and gives what it prints.
///
/// # Errors
/// When it refuses; the message is opm's.
pub fn opm(args: &[&str]) -> Result<String> {
    let folder = Workdir::temporary("opm")?;
    run(&Binaries::ensure(&[Part::Opm])?.path(Part::Opm), args, folder.path())
}

fn run(program: &PathBuf, args: &[&str], folder: &Path) -> Result<String> {
    let output = Command::new(program).args(args).env("TMPDIR", folder).output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "opm {}: {}", args.join(" "), said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A fault that a validator of the operator framework finds in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Fault {
    /// The validator.
    pub validator: String,
    /// `error` or `warning`.
    pub level: String,
    /// What it found.
    pub message: String,
}

/// What the validators of the operator framework find in a bundle's folder.
pub fn bundle_faults(bundle: &Path) -> Result<Vec<Fault>> {
    let program = Binaries::ensure(&[Part::BundleCheck])?.path(Part::BundleCheck);
    let output = Command::new(&program).arg(bundle).output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    let faults: Vec<Fault> = serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter()
        .collect::<Result<_, _>>()
        .with_context(|| format!("bundlecheck printed {}", String::from_utf8_lossy(&output.stdout)))?;
    let has_errors = faults.iter().any(|fault| fault.level == "error");
    if output.status.success() == has_errors {
        bail!(
            "bundlecheck ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(faults)
}

/// Runs a test of operator-sdk's scorecard on a bundle's folder, and gives its answer. The program looks at `/bundle`, so it gets a root
/// of its own.
///
/// # Errors
/// When this machine permits no user namespaces: the message begins with `needs user namespaces`.
pub fn scorecard(bundle: &Path, test: &str) -> Result<Value> {
    let program = Binaries::ensure(&[Part::Scorecard])?.path(Part::Scorecard);
    let root = Workdir::temporary("scorecard")?;
    copy(bundle, &root.join("bundle"))?;
    std::fs::create_dir(root.join("tmp"))?;
    write_program(&root.join("scorecard-test"), std::fs::read(&program)?)?;
    let mut command = Command::new("unshare");
    command
        .arg("--map-root-user")
        .arg("--root")
        .arg(root.path())
        .arg("/scorecard-test")
        .arg(test);
    let output = command.output().context("needs user namespaces: cannot run unshare")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!said.contains("unshare failed"), "needs user namespaces: {}", said.trim());
    serde_json::from_slice(&output.stdout).with_context(|| format!("scorecard-test {test}: {said}"))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from).with_context(|| format!("folder {}", from.display()))? {
        let (source, target) = (entry?.path(), to.to_owned());
        let target = target.join(source.file_name().unwrap_or_default());
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            std::fs::copy(&source, &target)?;
        }
    }
    Ok(())
}
