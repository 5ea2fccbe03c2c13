// SPDX-License-Identifier: Apache-2.0
//! A cluster with a vCenter, as an administrator would find it, and the operator running in it under its own account.
#![allow(dead_code, reason = "every test uses a part of it")]

pub mod contents;
pub mod image;
pub mod interrupt;
pub mod large;
pub mod sample;
pub mod schema;
pub mod state;
pub mod web;

use anyhow::{Context, Result};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PropagationPolicy};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
pub use vdo_testbed::PATIENCE;
use vdo_testbed::{
    Cluster, ClusterOptions, Launch, NodeAgent, NodeOptions, Probe, Process, Proxy, Requests, Vcenter, VcenterOptions, until,
};

/// The namespace of the operator.
pub const NS: &str = "vmware-system-vdo";
/// The nodes with the addresses of their machines.
pub const NODES: [(&str, &str); 4] = [
    ("cp-1", "10.0.10.1"),
    ("w-1", "10.0.10.2"),
    ("w-2", "10.0.10.3"),
    ("w-3", "10.0.10.4"),
];
/// A machine whose node comes later.
pub const GUEST: (&str, &str) = ("w-9", "10.0.10.90");
async fn grant(cluster: &Cluster) -> Result<()> {
    for file in ["namespace.yaml"].into_iter().chain(RIGHTS) {
        cluster
            .apply_file(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file))
            .await?;
    }
    Ok(())
}

/// The files in deploy/ with the rights of the drivers and of the operator, and with what the operator may write.
pub const RIGHTS: [&str; 3] = ["drivers-rbac.yaml", "rbac.yaml", "admission-policy.yaml"];
/// The kinds of the objects that the operator makes.
pub const KINDS: [(&str, &str); 7] = [
    ("v1", "ServiceAccount"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "DaemonSet"),
    ("storage.k8s.io/v1", "CSIDriver"),
];
/// Another password of the same vCenter user, which works as well: a rotation is seen from its first step to its last.
pub const NEXT_PASSWORD: &str = "another password";
/// The user that the operator is to the API server.
pub const OPERATOR: &str = "system:serviceaccount:vmware-system-vdo:vdo-operator";

pub struct Bed {
    pub operator: Option<Process>,
    pub agent: NodeAgent,
    pub vcenter: Vcenter,
    pub cluster: Cluster,
    /// More flags for the operator.
    pub flags: Vec<(&'static str, &'static str)>,
    /// More environment for the operator.
    pub environment: Vec<(&'static str, String)>,
    token: PathBuf,
    direct: PathBuf,
    runs: usize,
}

impl Bed {
    /// One control-plane node and three workers that wait for a cloud provider; CRDs and rights installed; no operator yet.
    pub async fn start() -> Result<Self> {
        Self::start_with(VcenterOptions {
            more_users: [(VcenterOptions::default().user, NEXT_PASSWORD.to_owned())].into(),
            ..VcenterOptions::with_vms(NODES.into_iter().chain([GUEST]))
        })
        .await
    }

    /// The same with another vCenter.
    pub async fn start_with(vcenter: VcenterOptions) -> Result<Self> {
        Self::start_on(ClusterOptions::default(), vcenter).await
    }

    /// The same on another cluster.
    pub async fn start_on(cluster: ClusterOptions, vcenter: VcenterOptions) -> Result<Self> {
        let mut bed = Self::start_bare(cluster, vcenter).await?;
        bed.apply_deploy().await?;
        Ok(bed)
    }

    /// Applies deploy/ but for the operator itself, which is a process here and gets its service account.
    pub async fn apply_deploy(&mut self) -> Result<()> {
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
        self.cluster.apply_file(deploy.join("namespace.yaml")).await?;
        for entry in std::fs::read_dir(deploy.join("crds"))? {
            self.cluster.apply_file(entry?.path()).await?;
        }
        self.grant().await?;
        self.enrol().await
    }

    /// The nodes and the vCenter alone: nothing of deploy/, and no account for an operator outside of a pod.
    pub async fn start_bare(cluster: ClusterOptions, vcenter: VcenterOptions) -> Result<Self> {
        let (cluster, vcenter) = tokio::try_join!(Cluster::start(cluster), Vcenter::start(vcenter))?;
        add_nodes(&cluster).await?;
        let agent = NodeAgent::start(&cluster).await?;
        Ok(Self {
            operator: None,
            agent,
            vcenter,
            cluster,
            flags: Vec::new(),
            environment: Vec::new(),
            direct: PathBuf::new(),
            token: PathBuf::new(),
            runs: 0,
        })
    }

    /// Gives the operator its service account, which is there by now.
    pub async fn enrol(&mut self) -> Result<()> {
        self.token = self.cluster.service_account_kubeconfig(NS, "vdo-operator").await?;
        self.direct.clone_from(&self.token);
        Ok(())
    }

    /// Applies what an administrator brings for the drivers and the operator once more.
    pub async fn grant(&self) -> Result<()> {
        grant(&self.cluster).await
    }

    /// Replaces all nodes by new ones that wait for a cloud provider.
    pub async fn renew_nodes(&self) -> Result<()> {
        for (name, _) in NODES {
            self.delete("v1", "Node", "", name).await?;
            until("a node to be gone", PATIENCE, async || {
                Ok(Probe::when(self.get("v1", "Node", "", name).await? == Value::Null, name))
            })
            .await?;
        }
        add_nodes(&self.cluster).await
    }

    /// Deletes the VDOConfig and waits until it is gone, and with it the drivers.
    pub async fn uninstall(&self) -> Result<()> {
        self.delete("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        until("the VDOConfig to be gone", PATIENCE, async || {
            let config = self.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
            Ok(Probe::when(config == Value::Null, condition(&config, "Ready")))
        })
        .await
    }

    /// From its next start on the operator reaches the API server through the proxy only.
    pub fn lead_through(&mut self, proxy: &Proxy) -> Result<()> {
        self.token = proxy.kubeconfig(&self.token)?;
        Ok(())
    }

    /// From its next start on the operator reaches the API server itself.
    pub fn lead_directly(&mut self) {
        self.token.clone_from(&self.direct);
    }

    /// Whether the operator reaches the API server through a proxy.
    pub fn is_led_through_a_proxy(&self) -> bool {
        self.token != self.direct
    }

    /// Whether an operator was started and has not ended.
    pub fn operator_runs(&mut self) -> bool {
        self.operator.as_mut().is_some_and(|operator| operator.exited().is_none())
    }

    /// Starts the operator with the token of its own service account, and waits until it is ready.
    pub async fn start_operator(&mut self) -> Result<()> {
        // As its pod would be called: the next process in a pod need not wait for the one before.
        self.operator = Some(self.another_operator("vdo-operator-0").await?);
        Ok(())
    }

    /// Starts one more operator under this name, and waits until it is ready.
    pub async fn another_operator(&mut self, identity: &str) -> Result<Process> {
        let operator = self.launch_operator(identity)?;
        logged(&self.operator_log(), "ready").await?;
        Ok(operator)
    }

    /// Starts one more operator under this name.
    pub fn launch_operator(&mut self, identity: &str) -> Result<Process> {
        self.runs += 1;
        let log = self.operator_log();
        let launch = Launch::new("vdo-operator", env!("CARGO_BIN_EXE_vdo-operator"), &log)
            .env("VDO_KUBECONFIG", &self.token.to_string_lossy())
            .env("VDO_IDENTITY", identity)
            .flag("listen", "127.0.0.1:0")
            .flag("log-format", "json");
        let launch = deployed_environment()?
            .iter()
            .fold(launch, |launch, (name, value)| launch.env(name, value));
        let launch = self
            .environment
            .iter()
            .fold(launch, |launch, (name, value)| launch.env(name, value));
        let launch = self.flags.iter().fold(launch, |launch, (flag, value)| launch.flag(flag, value));
        launch.spawn()
    }

    /// The log of the operator's current run.
    pub fn operator_log(&self) -> PathBuf {
        self.cluster.dir().join(format!("operator-{}.log", self.runs))
    }

    /// Where the operator serves its metrics.
    pub fn operator_address(&self) -> Result<String> {
        let text = std::fs::read_to_string(self.operator_log())?;
        let line = text
            .lines()
            .find(|line| line.contains("\"address\""))
            .context("the log names no address")?;
        Ok(serde_json::from_str::<Value>(line)?["address"]
            .as_str()
            .context("no address")?
            .to_owned())
    }

    /// SIGKILL.
    pub fn kill_operator(&mut self) {
        if let Some(mut operator) = self.operator.take() {
            operator.kill();
        }
    }

    pub fn api(&self, api_version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        if namespace.is_empty() {
            Api::all_with(self.cluster.client(), &resource)
        } else {
            Api::namespaced_with(self.cluster.client(), namespace, &resource)
        }
    }

    /// An object as the administrator sees it; null when there is none.
    pub async fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Result<Value> {
        Ok(self
            .api(api_version, kind, namespace)
            .get_opt(name)
            .await?
            .map_or(Ok(Value::Null), serde_json::to_value)?)
    }

    pub async fn list(&self, api_version: &str, kind: &str, selector: &str) -> Result<Vec<Value>> {
        let found = self
            .api(api_version, kind, "")
            .list(&ListParams::default().labels(selector))
            .await?;
        found.items.into_iter().map(|o| Ok(serde_json::to_value(o)?)).collect()
    }

    /// Server-side apply as the administrator.
    pub async fn apply(&self, object: &Value) -> Result<()> {
        self.cluster.apply_yaml(&object.to_string()).await.map(|_| ())
    }

    pub async fn merge(&self, api_version: &str, kind: &str, namespace: &str, name: &str, change: Value) -> Result<()> {
        self.api(api_version, kind, namespace)
            .patch(name, &PatchParams::default(), &Patch::Merge(change))
            .await?;
        Ok(())
    }

    pub async fn delete(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Result<()> {
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        match self.api(api_version, kind, namespace).delete(name, &params).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub fn secret(&self, password: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vc1-credentials", "namespace": NS},
            "type": "kubernetes.io/basic-auth", "stringData": {"username": self.vcenter.user(), "password": password}})
    }

    pub fn connection(&self, name: &str) -> Value {
        json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VsphereCloudConfig", "metadata": {"name": name, "namespace": NS},
            "spec": {"vcIp": self.vcenter.host(), "port": self.vcenter.port(), "credentials": "vc1-credentials", "thumbprint": self.vcenter.thumbprint_sha256()}})
    }

    pub fn config(&self, spec: Value) -> Value {
        json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "metadata": {"name": "vdo", "namespace": NS}, "spec": spec})
    }

    /// What the administrator of the sample applies.
    pub async fn apply_samples(&self) -> Result<()> {
        self.apply(&self.secret(self.vcenter.password())).await?;
        self.apply(&self.connection("vc1")).await?;
        self.apply(&self.config(json!({}))).await
    }

    pub async fn status(&self) -> Result<Value> {
        Ok(self.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?["status"].clone())
    }

    /// Waits until the VDOConfig is ready for its newest generation.
    pub async fn until_ready(&self) -> Result<Value> {
        let log = self.operator_log();
        until("VDOConfig vdo to be ready", PATIENCE, async || {
            let config = self.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
            let ready = condition(&config, "Ready");
            let current = config["status"]["observedGeneration"] == config["metadata"]["generation"];
            Ok(if current && ready["status"] == "True" {
                Probe::Ready(config)
            } else {
                Probe::not_yet(format!("{ready}; log {}", log.display()))
            })
        })
        .await
    }

    /// Waits until a condition of the VDOConfig has this reason for its newest generation; gives the condition.
    pub async fn until_reason(&self, kind: &str, reason: &str) -> Result<Value> {
        self.until_condition("VDOConfig", "vdo", kind, reason).await
    }

    pub async fn until_condition(&self, object: &str, name: &str, kind: &str, reason: &str) -> Result<Value> {
        until(
            &format!("{object} {name} to be {kind} with reason {reason}"),
            PATIENCE,
            async || {
                let config = self.get("vdo.vmware.com/v1alpha1", object, NS, name).await?;
                let found = condition(&config, kind);
                let current = config["status"]["observedGeneration"] == config["metadata"]["generation"];
                Ok(if current && found["reason"] == reason {
                    Probe::Ready(found)
                } else {
                    Probe::not_yet(found)
                })
            },
        )
        .await
    }

    /// Everything that bears the operator's label, without what differs from one installation to the next.
    pub async fn owned(&self) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        for (api_version, kind) in KINDS {
            for mut object in self
                .list(api_version, kind, "app.kubernetes.io/managed-by=vdo,vdo.vmware.com/driver")
                .await?
            {
                object["apiVersion"] = api_version.into();
                object["kind"] = kind.into();
                let map = object.as_object_mut().context("an object")?;
                map.shift_remove("status");
                for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
                    map["metadata"].as_object_mut().context("metadata")?.shift_remove(field);
                }
                if let Some(spec) = map.get_mut("spec").and_then(Value::as_object_mut) {
                    spec.shift_remove("clusterIP");
                    spec.shift_remove("clusterIPs");
                }
                if let Some(annotations) = map["metadata"]["annotations"].as_object_mut() {
                    annotations.shift_remove("deployment.kubernetes.io/revision");
                    annotations.shift_remove("deprecated.daemonset.template.generation");
                }
                all.push(object);
            }
        }
        Ok(all)
    }

    /// `vdoctl` against the same cluster, as the administrator: exit code, stdout, stderr.
    pub fn vdoctl(&self, args: &[&str]) -> Result<(i32, String, String)> {
        let output = std::process::Command::new(vdo_testbed::vdoctl())
            .env("VDO_KUBECONFIG", self.cluster.kubeconfig())
            .args(args)
            .output()?;
        let text = |bytes| String::from_utf8(bytes);
        let (out, err) = (text(output.stdout)?, text(output.stderr)?);
        let faults = schema::faults_of(&out);
        anyhow::ensure!(faults.is_empty(), "{args:?}: {}", faults.join("; "));
        Ok((output.status.code().context("killed")?, out, err))
    }

    /// What the operator answers on its own port, head and body.
    pub async fn fetch(&self, path: &str) -> Result<String> {
        self.fetch_with(path, "").await
    }

    /// The same with more header lines, each with its end.
    pub async fn fetch_with(&self, path: &str, headers: &str) -> Result<String> {
        web::get(self.operator_address()?, path, headers).await
    }

    /// How many reconciles the operator has counted.
    pub async fn reconciles(&self) -> Result<u64> {
        let text = self.fetch("/metrics").await?;
        Ok(text
            .lines()
            .filter(|l| l.starts_with("vdo_reconcile_total"))
            .filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok())
            .sum())
    }

    /// What the operator asked the API server in a time, without its watches and its Lease.
    pub async fn operator_requests(&self, since: vdo_testbed::Mark) -> Result<Requests> {
        let all = self.asked_by_operator(since).await?;
        Ok(all.only(|e| !matches!(e.verb.as_str(), "watch" | "list") && e.resource != "leases"))
    }

    async fn asked_by_operator(&self, since: vdo_testbed::Mark) -> Result<Requests> {
        Ok(self.cluster.audit().since(since).await?.of(OPERATOR))
    }

    /// What the operator deleted since then.
    pub async fn deleted(&self, since: vdo_testbed::Mark) -> Result<Requests> {
        Ok(self.asked_by_operator(since).await?.writes().only(|e| e.verb == "delete"))
    }
}

async fn add_nodes(cluster: &Cluster) -> Result<()> {
    for (name, _) in NODES {
        let node = if name.starts_with("cp") {
            NodeOptions::control_plane(name)
        } else {
            NodeOptions::worker(name)
        };
        cluster.add_node(node.uninitialized()).await?;
    }
    Ok(())
}

/// Waits until an operator has logged this message.
pub async fn logged(log: &Path, message: &str) -> Result<()> {
    let line = format!("\"message\":\"{message}");
    until(&format!("the operator to log {message:?}"), PATIENCE, async || {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        Ok(Probe::when(
            text.contains(&line),
            format!("its log ends with {:?}", text.lines().last()),
        ))
    })
    .await
}

/// The time, for a test that compares it with what the operator says.
#[expect(clippy::disallowed_methods, reason = "a test has no port for the time")]
pub fn now() -> k8s_openapi::jiff::Timestamp {
    k8s_openapi::jiff::Timestamp::now()
}

/// A condition of an object; null when it has none of that type.
pub fn condition(object: &Value, kind: &str) -> Value {
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|c| c["type"] == kind).unwrap_or_default()
}

/// The name of an object for messages.
pub fn name(object: &Value) -> String {
    format!(
        "{} {}/{}",
        object["kind"].as_str().unwrap_or("?"),
        object["metadata"]["namespace"].as_str().unwrap_or(""),
        object["metadata"]["name"].as_str().unwrap_or("?")
    )
}

/// Makes logs and certificates usable in a test process.
pub fn prepare() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The environment that the operator's Deployment gives to it, as far as it is written there; and what makes the allocator of glibc, which
/// the program of the tests is linked with, behave like that of musl in the image: one heap, from which memory is given back.
fn deployed_environment() -> Result<Vec<(String, String)>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/operator.yaml");
    let allocator = [("MALLOC_ARENA_MAX", "1"), ("MALLOC_TRIM_THRESHOLD_", "131072")];
    let mut all: Vec<_> = allocator.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    for document in vdo_api::yaml::load_all(&std::fs::read_to_string(file)?)? {
        let variables = document.pointer("/spec/template/spec/containers/0/env").and_then(Value::as_array);
        let text = |variable: &Value, key: &str| variable[key].as_str().map(str::to_owned);
        let variables = variables.into_iter().flatten();
        all.extend(variables.filter_map(|variable| Some((text(variable, "name")?, text(variable, "value")?))));
    }
    Ok(all)
}
