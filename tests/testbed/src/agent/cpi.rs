// SPDX-License-Identifier: Apache-2.0
//! Runs the real cloud provider for its pods.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use k8s_openapi::api::authentication::v1::BoundObjectReference;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::view::View;
use super::{Site, container, lock};
use crate::cluster::token;
use crate::kubeconfig::{self, Proof};
use crate::ports::Port;
use crate::process::{Launch, Process};

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// One cloud provider of one pod.
#[derive(Clone, Debug)]
pub struct CpiRun {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's node.
    pub node: String,
    /// Where the program writes to.
    pub log: PathBuf,
    /// How often it was started for this pod.
    pub starts: u32,
    /// Whether it runs now.
    pub running: bool,
    /// Why it does not.
    pub problem: Option<String>,
    /// Its port on 127.0.0.1 with health and metrics, over TLS; a real node has 10258.
    pub secure_port: u16,
}

/// A pod's program and its past.
struct Run {
    report: CpiRun,
    /// Ours while the program runs.
    secure: Option<Port>,
    process: Option<Process>,
    next_start: Instant,
    pause: Duration,
}

#[derive(Default)]
pub(crate) struct Runs {
    by_uid: BTreeMap<String, Run>,
    closed: bool,
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.by_uid.values().map(|run| &run.report)).finish()
    }
}

impl Runs {
    pub(super) fn report(&self) -> Vec<CpiRun> {
        self.by_uid.values().map(|run| run.report.clone()).collect()
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.by_uid.clear();
    }

    /// Notices programs that have ended; gives the pods they belong to.
    fn reap(&mut self) -> Vec<String> {
        let mut ended = Vec::new();
        for (uid, run) in &mut self.by_uid {
            let Some(status) = run.process.as_mut().and_then(Process::exited) else {
                continue;
            };
            run.process = None;
            run.fail(format!("ended: {status}"));
            ended.push(uid.clone());
        }
        ended
    }
}

impl Run {
    fn fail(&mut self, problem: String) {
        self.report.running = false;
        self.report.problem = Some(problem);
        self.next_start = Instant::now() + self.pause;
        // A program that keeps ending is left alone longer; files that are missing may be there any moment.
        if self.report.starts > 0 {
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Makes the running programs those of the running pods.
pub(super) async fn reconcile(site: &Site, view: &View, runs: &Mutex<Runs>) {
    let wanted: BTreeMap<String, (&Pod, &Container)> = view
        .running_pods()
        .filter_map(|pod| Some((pod.uid()?, (pod, provider(pod)?))))
        .collect();
    let present: BTreeSet<&String> = wanted.keys().collect();
    let (ended, due) = {
        let mut runs = lock(runs);
        runs.by_uid.retain(|uid, _| present.contains(uid));
        let ended = runs.reap();
        let idle = |uid: &String| match runs.by_uid.get(uid) {
            None => true,
            Some(run) => run.process.is_none() && run.next_start <= Instant::now(),
        };
        (ended, wanted.keys().filter(|uid| idle(uid)).cloned().collect::<Vec<_>>())
    };
    for uid in due {
        let (pod, container) = wanted[&uid];
        start(site, &uid, pod, container, runs).await;
        tell(&site.client, container, runs, &uid).await;
    }
    for uid in ended {
        let (_, container) = wanted[&uid];
        tell(&site.client, container, runs, &uid).await;
    }
}

/// The container of a DaemonSet's pod that is the cloud provider.
fn provider(pod: &Pod) -> Option<&Container> {
    if !pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet") {
        return None;
    }
    let containers = &pod.spec.as_ref()?.containers;
    containers.iter().find(|container| {
        let mut words = container.command.iter().flatten().chain(container.args.iter().flatten());
        words.any(|word| word == "--cloud-provider=vsphere")
    })
}

async fn start(site: &Site, uid: &str, pod: &Pod, container: &Container, runs: &Mutex<Runs>) {
    let claimed = Port::claim();
    let launched = match &claimed {
        Ok(port) => launch(site, uid, pod, container, port.number()).await,
        Err(error) => Err(anyhow!("{error:#}")),
    };
    let mut runs = lock(runs);
    if runs.closed {
        return;
    }
    let run = runs.by_uid.entry(uid.to_owned()).or_insert_with(|| Run {
        report: CpiRun {
            namespace: pod.namespace().unwrap_or_default(),
            pod: pod.name_any(),
            node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
            log: log_file(site, pod),
            starts: 0,
            running: false,
            problem: None,
            secure_port: 0,
        },
        secure: None,
        process: None,
        next_start: Instant::now(),
        pause: FIRST_PAUSE,
    });
    match launched.and_then(Launch::spawn) {
        Ok(process) => {
            run.process = Some(process);
            run.secure = claimed.ok();
            run.report.secure_port = run.secure.as_ref().map_or(0, Port::number);
            run.report.starts += 1;
            run.report.running = true;
            run.report.problem = None;
        }
        Err(error) => run.fail(format!("{error:#}")),
    }
}

fn log_file(site: &Site, pod: &Pod) -> PathBuf {
    site.folder
        .join(format!("{}.{}.log", pod.namespace().unwrap_or_default(), pod.name_any()))
}

/// What to run: the pod's own command line, as its own service account.
async fn launch(site: &Site, uid: &str, pod: &Pod, container: &Container, secure: u16) -> Result<Launch> {
    let folder = site.folder.join(uid);
    std::fs::create_dir_all(&folder)?;
    let prepared = container::prepare(&site.client, pod, container, &folder).await?;
    let namespace = pod.namespace().unwrap_or_default();
    let account = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.service_account_name.clone())
        .context("a pod without a service account")?;
    let bound = BoundObjectReference {
        api_version: Some("v1".into()),
        kind: Some("Pod".into()),
        name: Some(pod.name_any()),
        uid: Some(uid.to_owned()),
    };
    let token = token(&site.client, &namespace, &account, Some(bound)).await?;
    let user = format!("system:serviceaccount:{namespace}:{account}");
    let kubeconfig = kubeconfig::write(&folder.join("kubeconfig"), &site.server, &site.ca, &user, &Proof::Token(&token))?;
    let launch = Launch::new("vsphere-cloud-controller-manager", &site.program, log_file(site, pod)).only_env(prepared.env);
    // The last one counts: what the pod says about these is for a life inside of the cluster.
    Ok(prepared
        .args
        .iter()
        .fold(launch, Launch::arg)
        .flag("kubeconfig", &kubeconfig)
        // In a pod, the program asks about the callers of its port with its own account.
        .flag("authentication-kubeconfig", &kubeconfig)
        .flag("authorization-kubeconfig", &kubeconfig)
        .flag("leader-elect", "false")
        .flag("bind-address", "127.0.0.1")
        .flag("secure-port", secure.to_string()))
}

/// Says in the pod's status what the kubelet would say.
async fn tell(client: &Client, container: &Container, runs: &Mutex<Runs>, uid: &str) {
    let Some(report) = lock(runs).by_uid.get(uid).map(|run| run.report.clone()) else {
        return;
    };
    let status = pod_status(container, &report);
    let api: Api<Pod> = Api::namespaced(client.clone(), &report.namespace);
    let outcome = api
        .patch_status(&report.pod, &PatchParams::default(), &Patch::Strategic(status))
        .await;
    if let Err(error) = outcome {
        tracing::debug!("status of pod {}: {error}", report.pod);
    }
}

fn pod_status(container: &Container, report: &CpiRun) -> Value {
    let waiting = |reason: &str| json!({ "waiting": { "reason": reason, "message": report.problem }, "running": null });
    let state = match (report.running, report.starts) {
        (true, _) => json!({ "running": {}, "waiting": null }),
        (false, 0) => waiting("ContainerCreating"),
        (false, _) => waiting("CrashLoopBackOff"),
    };
    let ready = if report.running { "True" } else { "False" };
    json!({ "status": {
        "conditions": [{ "type": "Ready", "status": ready }, { "type": "ContainersReady", "status": ready }],
        "containerStatuses": [{
            "name": container.name,
            "image": container.image.as_deref().unwrap_or_default(),
            "imageID": "",
            "ready": report.running,
            "restartCount": report.starts.saturating_sub(1),
            "state": state,
        }],
    } })
}
