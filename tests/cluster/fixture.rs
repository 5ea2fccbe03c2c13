// SPDX-License-Identifier: Apache-2.0
//! The control planes that the tests of this binary share: some with the drivers installed, some without, each used by one test at a time.
//!
//! A test says what it needs: [`EMPTY`], [`OPERATOR`], [`INSTALLED`], or [`BARE`] and [`IMAGES`] where it installs VDO itself. The fixture
//! brings the shared cluster there from wherever the last test left it, which takes a second or a few, where a new control plane takes ten
//! seconds of processor time. After a test that failed the cluster is kept for those who look for the cause, and the next test gets a new one.
//!
//! What a test creates is deleted afterwards by its UID, whatever its kind in [`SWEPT`]. What a test changes in objects that were there
//! before (labels of nodes, what the vCenter says), it changes back itself. Evidence from before a test (events, drift entries, audit
//! lines) is still there: a test takes an audit mark, or compares times.
//!
//! After each test it is checked that nothing was written to the vCenter.

mod bare;
mod ended;
mod installed;
mod policies;
mod vcenter;

pub use bare::{BARE, IMAGES};
pub use policies::{policy, without_policy};

use crate::common::{Bed, NODES, NS, PATIENCE, RIGHTS};
use crate::install::until_at_rest;
use anyhow::{Context, Result, anyhow};
use ended::ended;
use futures::FutureExt as _;
use futures::future::try_join_all;
use installed::{is_installed, put_back};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::Path;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use vdo_testbed::{Mark, Probe, Requests, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";

/// Nothing is installed and no operator runs; the nodes wait for a cloud provider.
pub const EMPTY: Fixture = Fixture {
    operator: false,
    installed: false,
    flags: &[],
};
/// The same with an operator that has nothing to do.
pub const OPERATOR: Fixture = Fixture { operator: true, ..EMPTY };
/// The operator has installed both drivers in their newest versions from the samples, and VDOConfig vdo is Ready.
pub const INSTALLED: Fixture = Fixture {
    installed: true,
    ..OPERATOR
};

/// The kinds of which a test may create objects, in the order in which they are deleted.
const SWEPT: [(&str, &str); 30] = [
    ("admissionregistration.k8s.io/v1", policies::BINDING),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ("v1", "ResourceQuota"),
    ("v1", "LimitRange"),
    (VDO, "CompatibilityConfig"),
    (VDO, "VDOConfig"),
    (VDO, "VsphereCloudConfig"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "StatefulSet"),
    ("v1", "Pod"),
    ("storage.k8s.io/v1", "VolumeAttachment"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "PersistentVolume"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("v1", "Namespace"),
    ("v1", "Node"),
    ("coordination.k8s.io/v1", "Lease"),
];

/// What is left in a cluster when it is swept.
#[derive(Clone, Copy, PartialEq)]
enum Keep {
    /// Nothing but what was there before the first test.
    Baseline,
    /// Leases as well: the operator may hold one.
    Operator,
    /// And the samples with the drivers.
    Drivers,
}

/// The state in which a test finds the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Fixture {
    operator: bool,
    installed: bool,
    flags: &'static [(&'static str, &'static str)],
}

/// The shared cluster, and what was in it before the first test: UIDs, and the content of what decides about rights.
struct Shared {
    bed: Bed,
    baseline: BTreeMap<String, Value>,
    /// The drift that the status named when the last test began.
    drift: Value,
    /// Where the audit log ended when the last test began.
    begun: Mark,
}

/// Clients keep tasks in the runtime that made them, so all tests share it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    crate::common::prepare();
    Runtime::new().expect("a runtime")
});
/// Two kinds, so that the drivers are not installed and uninstalled from one test to the next. Most tests want the drivers. With
/// two cores more clusters only make each test slower.
static WITH_DRIVERS: Pool = Pool::of(2);
static WITHOUT_DRIVERS: Pool = Pool::of(1);
/// Each has a control plane of its own.
static ALONE: Semaphore = Semaphore::const_new(1);
/// Tests at work. More of them than keep the processors busy would only make each slower, until it meets its deadlines.
static AT_WORK: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(2, NonZero::get);
    Semaphore::new(2 * processors + 1)
});

/// Clusters of one kind. They are started when a test wants one for the first time.
struct Pool {
    places: Semaphore,
    unused: Mutex<Vec<Shared>>,
}

impl Pool {
    const fn of(number: usize) -> Self {
        Self {
            places: Semaphore::const_new(number),
            unused: Mutex::new(Vec::new()),
        }
    }

    fn unused(&self) -> MutexGuard<'_, Vec<Shared>> {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a test in a cluster that no other test uses meanwhile: `prepare` brings one there that an earlier test left, or that `start` made.
    fn run(
        &self,
        start: impl AsyncFnOnce() -> Result<Bed>,
        prepare: impl AsyncFnOnce(&mut Shared) -> Result<()>,
        test: impl AsyncFnOnce(&mut Bed) -> Result<()>,
    ) -> Result<()> {
        RUNTIME.block_on(async {
            let place = self.places.acquire().await?;
            let at_work = AT_WORK.acquire().await?;
            let begun = Instant::now();
            let unused = self.unused().pop();
            let mut shared = match unused {
                Some(shared) => shared,
                None => Shared::of(start().await?).await?,
            };
            let outcome = AssertUnwindSafe(async {
                prepare(&mut shared).await.context("the cluster for this test")?;
                test(&mut shared.bed).await?;
                vcenter::is_only_read(&shared.bed).await
            })
            .catch_unwind()
            .await;
            if matches!(outcome, Ok(Ok(()))) {
                self.unused().push(shared);
            } else {
                shared.bed.cluster.keep_dir();
                drop(shared);
            }
            drop((at_work, place));
            outcome.map_or_else(
                |panic| {
                    let _ = ended(begun, Err(anyhow!(panic.downcast_ref::<String>().cloned().unwrap_or_default())));
                    resume_unwind(panic)
                },
                |outcome| ended(begun, outcome),
            )
        })
    }
}

impl Fixture {
    /// The operator runs with these flags besides the usual ones.
    pub const fn flags(self, flags: &'static [(&'static str, &'static str)]) -> Self {
        Self { flags, ..self }
    }

    /// Runs a test in this state.
    pub fn run(self, test: impl AsyncFnOnce(&mut Bed) -> Result<()>) -> Result<()> {
        let pool = if self.installed { &WITH_DRIVERS } else { &WITHOUT_DRIVERS };
        pool.run(Bed::start, async |shared| shared.restore(self).await, test)
    }
}

/// What the operator has written since then, without status and events.
pub async fn written(bed: &Bed, since: Mark) -> Result<Requests> {
    let writes = bed.operator_requests(since).await?.writes();
    Ok(writes.only(|e| e.subresource != "status" && e.resource != "events"))
}

/// Runs a test that starts what it needs by itself, beside a few other such tests.
pub fn alone(test: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    RUNTIME.block_on(async {
        let _slot = ALONE.acquire().await?;
        let _at_work = AT_WORK.acquire().await?;
        let begun = Instant::now();
        ended(begun, test().await)
    })
}

impl Shared {
    async fn of(bed: Bed) -> Result<Self> {
        let baseline = found(&bed, &SWEPT)
            .await?
            .iter()
            .map(|object| (uid(object), rights(object)))
            .collect();
        let begun = bed.cluster.audit().here();
        Ok(Self {
            bed,
            baseline,
            drift: Value::Null,
            begun,
        })
    }

    async fn restore(&mut self, wanted: Fixture) -> Result<()> {
        let bed = &mut self.bed;
        let all = found(bed, &SWEPT).await?;
        let as_before = |(uid, rights): (&String, &Value)| {
            rights.is_null() || all.iter().any(|o| o["metadata"]["uid"] == **uid && self::rights(o) == *rights)
        };
        if !self.baseline.iter().all(as_before) {
            for file in ["namespace.yaml"].into_iter().chain(RIGHTS) {
                let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file);
                for object in bed.cluster.apply_file(file).await? {
                    let object = serde_json::to_value(object)?;
                    self.baseline.insert(uid(&object), rights(&object));
                }
            }
        }
        let keep = wanted.installed && is_installed(bed).await?;
        self.sweep(all, Keep::Drivers).await?;
        if !keep {
            uninstall(&mut self.bed).await?;
            self.sweep(found(&self.bed, &SWEPT).await?, Keep::Operator).await?;
            renew_nodes(&self.bed).await?;
        }
        let bed = &mut self.bed;
        // Three repairs of one object in ten minutes are a conflict with someone; those of two tests are none.
        let drift = bed.status().await?["drift"].clone();
        let repaired = std::mem::replace(&mut self.drift, drift) != self.drift;
        let audit = bed.cluster.audit();
        let begun = std::mem::replace(&mut self.begun, audit.here());
        // What was refused is asked for again, with a growing pause: the next test would see a request for an object of this one.
        let in_sync = !repaired
            && bed.operator_runs()
            && bed.flags == wanted.flags
            && bed.environment.is_empty()
            && !bed.is_led_through_a_proxy()
            && audit.so_far(begun)?.of(crate::common::OPERATOR).only(|e| e.code == 403).is_empty();
        if !wanted.operator {
            stop(bed);
        } else if !in_sync {
            restart(bed, wanted.flags).await?;
        }
        if wanted.installed && !keep {
            bed.apply_samples().await?;
        }
        if wanted.installed {
            until("the operator to have reconciled", PATIENCE, async || {
                Ok(Probe::when(bed.reconciles().await? > 0, "it has not"))
            })
            .await?;
            bed.until_condition("VsphereCloudConfig", "vc1", "Ready", "Healthy").await?;
            bed.until_ready().await?;
            // After a repair or an installation the operator is ready before it has written down what it did.
            if !(keep && in_sync) {
                until_at_rest(bed).await?;
            }
        }
        Ok(())
    }

    /// Deletes what tests have created, except for what is kept.
    async fn sweep(&self, all: Vec<Value>, keep: Keep) -> Result<()> {
        let bed = &self.bed;
        let left = self.leftovers(all, keep);
        for same in left.chunk_by(|one, other| one["kind"] == other["kind"]) {
            try_join_all(same.iter().map(|object| remove(bed, object))).await?;
        }
        let kinds: Vec<_> = SWEPT
            .into_iter()
            .filter(|(_, kind)| left.iter().any(|o| o["kind"] == *kind))
            .collect();
        if kinds.is_empty() {
            return Ok(());
        }
        until("what the last test created to be deleted", PATIENCE, async || {
            let left = self.leftovers(found(bed, &kinds).await?, keep);
            let left: Vec<String> = left.iter().map(crate::common::name).collect();
            Ok(Probe::when(left.is_empty(), left.join(", ")))
        })
        .await?;
        if left.iter().any(|object| object["kind"] == policies::BINDING) {
            policies::forgotten(bed).await?;
        }
        Ok(())
    }

    fn leftovers(&self, mut all: Vec<Value>, keep: Keep) -> Vec<Value> {
        all.retain(|object| {
            let kept = match keep {
                Keep::Baseline => false,
                Keep::Operator => object["kind"] == "Lease",
                Keep::Drivers => object["kind"] == "Lease" || is_of_the_operator(object),
            };
            let expected = is_of_kubernetes(object) || kept;
            !(expected || self.baseline.contains_key(&uid(object)))
        });
        all
    }
}

/// Deletes an object, whatever its finalizers want.
async fn remove(bed: &Bed, object: &Value) -> Result<()> {
    let [api_version, kind, namespace, name] = ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"]
        .map(|path| object.pointer(path).and_then(Value::as_str).unwrap_or_default());
    if object["metadata"]["finalizers"].is_array() {
        let change = json!({"metadata": {"finalizers": null}});
        // It may be gone meanwhile.
        let _ = bed.merge(api_version, kind, namespace, name, change).await;
    }
    bed.delete(api_version, kind, namespace, name).await
}

/// What of a role, a binding or a namespace a test may have changed; null for other kinds.
fn rights(object: &Value) -> Value {
    match object["kind"].as_str() {
        Some("ClusterRole" | "Role") => object["rules"].clone(),
        Some("ValidatingAdmissionPolicy") => object["spec"].clone(),
        Some("ClusterRoleBinding" | "RoleBinding") => object["subjects"].clone(),
        Some("Namespace") => object["metadata"]["labels"].clone(),
        _ => Value::Null,
    }
}

/// Everything of these kinds. Those of VDO are not served where nothing of it is.
async fn found(bed: &Bed, kinds: &[(&str, &str)]) -> Result<Vec<Value>> {
    let lists = kinds.iter().map(async |(api_version, kind)| {
        let mut all = match bed.list(api_version, kind, "").await {
            Err(error) if *api_version == VDO && is_not_found(&error) => Vec::new(),
            all => all?,
        };
        for object in &mut all {
            object["apiVersion"] = (*api_version).into();
            object["kind"] = (*kind).into();
        }
        anyhow::Ok(all)
    });
    Ok(try_join_all(lists).await?.concat())
}

fn is_not_found(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 404)
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// Whether the operator made an object, or it is one of the samples.
fn is_of_the_operator(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let [kind, name] = [&object["kind"], &metadata["name"]].map(|value| value.as_str().unwrap_or_default());
    let known = match kind {
        "VDOConfig" => name == "vdo",
        "VsphereCloudConfig" => name == "vc1",
        "Secret" => matches!(name, "vc1-credentials" | "vdo-state"),
        _ => false,
    };
    known || metadata["labels"]["app.kubernetes.io/managed-by"] == "vdo"
}

/// Whether Kubernetes adds an object by itself, perhaps later than the first look.
fn is_of_kubernetes(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let [kind, namespace, name] = [&object["kind"], &metadata["namespace"], &metadata["name"]].map(|v| v.as_str().unwrap_or_default());
    let known = match kind {
        "ConfigMap" => name == "kube-root-ca.crt",
        // Controllers get their accounts when they start.
        "ServiceAccount" => name == "default" || (namespace == "kube-system" && metadata["labels"].is_null()),
        "Service" => name == "kubernetes",
        "Namespace" => name == "default" || name.starts_with("kube-"),
        "Node" => NODES.iter().any(|(node, _)| *node == name),
        // Of the kubelets and of the API server itself.
        "Lease" => namespace == "kube-node-lease" || name.starts_with("apiserver-"),
        _ => false,
    };
    known || metadata["ownerReferences"].is_array()
}

async fn uninstall(bed: &mut Bed) -> Result<()> {
    if bed.get(VDO, "VDOConfig", NS, "vdo").await? == Value::Null {
        return Ok(());
    }
    if !bed.operator_runs() || bed.is_led_through_a_proxy() || !bed.flags.is_empty() {
        restart(bed, &[]).await?;
    }
    put_back(bed, &bed.config(json!({}))).await?;
    bed.uninstall().await
}

/// Replaces the nodes if one of them was initialised.
async fn renew_nodes(bed: &Bed) -> Result<()> {
    for (name, _) in NODES {
        let node = bed.get("v1", "Node", "", name).await?;
        if !node["spec"]["taints"].to_string().contains("uninitialized") {
            return bed.renew_nodes().await;
        }
    }
    Ok(())
}

fn stop(bed: &mut Bed) {
    bed.kill_operator();
    bed.lead_directly();
    bed.flags.clear();
    bed.environment.clear();
}

async fn restart(bed: &mut Bed, flags: &[(&'static str, &'static str)]) -> Result<()> {
    stop(bed);
    bed.flags = flags.to_vec();
    bed.start_operator().await
}
