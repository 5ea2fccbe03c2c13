// SPDX-License-Identifier: Apache-2.0
//! Starts and stops the operator: leader election, watches, both controllers, the port for probes and metrics.
//!
//! There are two loops, one for VDOConfigs and one for vSphere connections; a failure in one does not stop the other. Each loop is woken by
//! its own objects, and by every change in the shared cache of watches.

mod drift_events;
pub mod events;
mod liveness_deadlines;
mod loop_memory;
mod matrix_poll;
mod olm_condition;
mod server_version;
mod sessions;
mod vcenter_schedule;
mod vdoconfig;
mod vsphere_cloud_config;
mod without_lease;

use crate::cluster::{
    Bounded, Cache, ClientError, ClusterError, Connection, Election, Fence, KubeOptions, LEASE_NAME, Reader, Standing, Writer,
};
use crate::reconcile::{CrashLogs, DryRunCache, Ports, RenderCache};
use crate::runtime::args::Args;
use crate::runtime::heartbeat::Heartbeats;
use crate::runtime::http::{Admin, ListenError, Readiness};
use crate::runtime::metrics::Metrics;
use crate::runtime::metrics_access::MetricsAccess;
use events::EventRecorder;
use futures::{Stream, StreamExt, stream};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::controller::{self, Config};
use kube::runtime::{Controller, watcher};
use kube::{Api, Client};
use loop_memory::ControllerState;
use olm_condition::OperatorCondition;
use server_version::ServerVersion;
use sessions::Sessions;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use vdo_api::api::{VDOConfig, VsphereCloudConfig};
use vdo_api::types::{ObjectId, Remedy};
use vdo_core::status::Failure;
use vdo_source::fetch::{ChartRepository, MatrixSource};

/// The operator cannot run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no cluster to speak to.
    #[error("the operator cannot create a client for the API server")]
    Client(#[from] ClientError),
    /// The source of the matrix is none.
    #[error("--matrix: {0}")]
    Matrix(String),
    /// The port for probes and metrics cannot be opened.
    #[error("the operator cannot serve its probes")]
    Listen(#[from] ListenError),
}

impl Remedy for StartError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Client(error) => error.remedy(),
            // They name the flag.
            Self::Listen(_) | Self::Matrix(_) => None,
        }
    }
}

/// Changes that come in one breath are acted upon once.
const DEBOUNCE: Duration = Duration::from_millis(30);

/// As many objects at once as there are.
const UNBOUNDED: u16 = 0;

/// How long writes that are under way may take after the signal to stop.
const LAST_WRITES: Duration = Duration::from_secs(3);
/// How long releasing the Lease and ending the sessions with the vCenters may take after that.
const FAREWELL: Duration = Duration::from_secs(1);

struct Context {
    ports: Ports,
    fence: Fence,
    /// For the one status that is written while nothing else may be.
    unfenced: Writer,
    /// Why the Lease cannot even be asked for, if that is so.
    lease_refused: watch::Sender<Option<Failure>>,
    operator_condition: OperatorCondition,
    metrics: Arc<Metrics>,
    heartbeats: Heartbeats,
    recorder: EventRecorder,
    memory: ControllerState,
    sessions: Sessions,
    version: ServerVersion,
    /// The only one in which VDOConfigs, connections and their Secrets are read.
    namespace: String,
    resync: Duration,
    connection_interval: Duration,
    deletion_patience: Duration,
    /// The value of the annotation by which a person asks for another look.
    asked: watch::Sender<Option<String>>,
}

/// Runs the operator until it is asked to stop: SIGTERM or SIGINT. Then it ends within five seconds.
///
/// # Errors
/// When it cannot start. Once it runs, nothing but a signal ends it.
pub async fn run(args: &Args) -> Result<(), StartError> {
    let source = args.matrix.as_deref().map(str::parse).transpose().map_err(StartError::Matrix)?;
    let metrics = Arc::new(Metrics::new());
    let readiness = Readiness::default();
    let heartbeats = Heartbeats::default();
    let admin = Admin::bind(args.listen, readiness.clone(), heartbeats.clone(), metrics.clone()).await?;
    if let Some(address) = admin.address() {
        tracing::info!(%address, "serving /healthz, /readyz and /metrics");
    }
    let options = KubeOptions {
        kubeconfig: args.kubeconfig.clone(),
        ..KubeOptions::default()
    };
    let Connection {
        client,
        config,
        reconnected,
        ..
    } = options.connect().await?;
    // In a task of its own, so that a probe is answered while the API server hangs and while a reconcile computes.
    let mut port = JoinSet::new();
    port.spawn(admin.run(MetricsAccess::new(args.metrics_auth, &client)));
    tracing::info!(server = %config.cluster_url, version = env!("CARGO_PKG_VERSION"), "starting");

    let (changed, changes) = watch::channel(());
    let fence = Fence::shut();
    let counted = metrics.clone();
    let writer = Writer::new(client.clone(), move |verb, kind| counted.wrote(verb.as_str(), kind));
    let cache = Arc::new(Cache::new(client.clone(), changed.clone()));
    liveness_deadlines::watches(&heartbeats, cache.clone());
    let context = Arc::new(Context {
        ports: ports(args, source, &client, cache, writer.clone().behind(fence.clone())),
        fence: fence.clone(),
        unfenced: writer,
        lease_refused: watch::Sender::new(None),
        operator_condition: OperatorCondition::new(&args.namespace, args.operator_condition.as_deref()),
        metrics,
        heartbeats: heartbeats.clone(),
        recorder: EventRecorder::new(client.clone()),
        memory: ControllerState::default(),
        sessions: Sessions::default(),
        version: ServerVersion::new(client.clone()),
        namespace: args.namespace.clone(),
        resync: args.resync_interval,
        connection_interval: args.connection_interval,
        deletion_patience: args.deletion_patience,
        asked: watch::Sender::new(None),
    });

    match context.version.get().await {
        Ok(version) => tracing::info!(kubernetes = %version, "the API server answers"),
        Err(error) => tracing::warn!(error = %vdo_api::api::chain(&error), "the API server does not answer yet"),
    }
    let (synced, both) = controllers(args, &client, &changes, &context);
    let ready = async {
        if synced.await {
            tracing::info!("ready");
            readiness.synced();
        }
        std::future::pending::<()>().await;
    };
    let mut election = Election::new(client.clone(), LEASE_NAME, identity(args), fence.clone());
    let finished = {
        let work = std::pin::pin!(async {
            tokio::select! {
                _ = both => tracing::info!("stopped"),
                () = ready => {}
                () = liveness_deadlines::beat(&heartbeats) => {}
                _ = port.join_next() => {}
                () = election.run(|standing| stands(standing, &context, &readiness, &changed)) => {}
                () = matrix_poll::follow(&context.ports.repository, &fence, args.matrix_interval, context.asked.subscribe(), || changed.send_replace(())) => {}
                () = context.version.follow(reconnected, || changed.send_replace(())) => {}
            }
        });
        finish(work, &fence).await
    };
    say_goodbye(finished.then_some(&mut election), &context.sessions).await;
    Ok(())
}

/// Shows how the election stands, and wakes the loops when it is won, or cannot be won for want of rights.
fn stands(standing: Standing, context: &Context, readiness: &Readiness, changed: &watch::Sender<()>) {
    context.metrics.lease(
        matches!(standing, Standing::Won | Standing::Leads),
        matches!(standing, Standing::Leaderless | Standing::Forbidden(_)),
    );
    // Without rights it does all that it can: the status of the VDOConfig says what is missing.
    if !matches!(standing, Standing::Leaderless) {
        readiness.led();
    }
    let refused = match &standing {
        Standing::Forbidden(error) => Some(without_lease::failure(error, &context.namespace)),
        _ => None,
    };
    let is_refused = refused.is_some();
    let is_new = context
        .lease_refused
        .send_if_modified(|known| std::mem::replace(known, refused.clone()) != refused);
    if matches!(standing, Standing::Won) || is_new && is_refused {
        changed.send_replace(());
    }
}

/// Works until the signal to stop. Then no write begins any more, and those under way are finished. Whether all are.
async fn finish(mut work: std::pin::Pin<&mut impl Future<Output = ()>>, fence: &Fence) -> bool {
    tokio::select! {
        () = &mut work => return true,
        signal = stop_signal() => tracing::info!(signal, "stopping"),
    }
    fence.stop();
    let finished = tokio::select! {
        () = work => true,
        idle = fence.idle(LAST_WRITES) => idle,
    };
    if !finished {
        tracing::warn!("writes took too long and are aborted; the Lease is kept until it expires");
    }
    finished
}

/// Lets others go on: the Lease is free, unless a write may still arrive, and no session stays open in a vCenter.
async fn say_goodbye(election: Option<&mut Election>, sessions: &Sessions) {
    let release = async {
        match election {
            Some(election) => election.release().await,
            None => Ok(()),
        }
    };
    let (released, closed) = tokio::join!(
        tokio::time::timeout(FAREWELL, release),
        tokio::time::timeout(FAREWELL, sessions.close())
    );
    match released {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(error = %vdo_api::api::chain(&error), "the Lease could not be released; it expires later"),
        Err(_) => tracing::warn!("the Lease could not be released in time; it expires later"),
    }
    if closed.is_err() {
        tracing::warn!("a vCenter did not end its session in time; the vCenter ends the session later");
    }
}

/// Waits for the signal to stop, and says which it was.
async fn stop_signal() -> &'static str {
    use tokio::signal::unix::{SignalKind, signal};
    let wait = async |kind| match signal(kind) {
        Ok(mut signal) => drop(signal.recv().await),
        Err(error) => {
            tracing::warn!(%error, "no handler can be installed for a signal");
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = wait(SignalKind::terminate()) => "SIGTERM",
        () = wait(SignalKind::interrupt()) => "SIGINT",
    }
}

/// The name for the Lease: as given, or one that no other process has.
fn identity(args: &Args) -> String {
    args.identity.clone().unwrap_or_else(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        format!("{}-{}-{}", host.trim(), std::process::id(), now().as_millisecond())
    })
}

/// The ports of every reconcile.
fn ports(args: &Args, source: Option<MatrixSource>, client: &Client, cache: Arc<Cache>, writer: Writer) -> Ports {
    Ports {
        client: client.clone(),
        reader: Reader::Watching(cache),
        writer,
        renders: RenderCache::default(),
        permitted: crate::reconcile::Permitted::default(),
        contents: crate::reconcile::SoundContents::default(),
        evidence: CrashLogs::default(),
        repository: ChartRepository::at(source, args.matrix_keys.clone(), args.matrix_credentials.clone()),
        dry_runs: args.server_dry_run.then(DryRunCache::default),
    }
}

/// The controllers of both kinds: whether they have read the objects of their kind, and their work.
fn controllers(
    args: &Args,
    client: &Client,
    changes: &watch::Receiver<()>,
    context: &Arc<Context>,
) -> (impl Future<Output = bool> + use<>, impl Future<Output = ()> + use<>) {
    let drivers = controller::<VDOConfig>(client, &args.namespace, changes, 4);
    // A vCenter that is slow keeps its own connections only: `Inspections` says how many are inspected at once.
    let connections = controller::<VsphereCloudConfig>(client, &args.namespace, changes, UNBOUNDED);
    let (config_store, connection_store) = (drivers.store(), connections.store());
    let synced = async move {
        let synced = futures::future::join(config_store.wait_until_ready(), connection_store.wait_until_ready()).await;
        synced.0.is_ok() && synced.1.is_ok()
    };
    let drivers = drivers
        .run(
            |object, context| liveness_deadlines::within(object, context, vdoconfig::reconcile),
            |_, error, _| match *error {},
            context.clone(),
        )
        .for_each(log_errors::<VDOConfig, _>(&args.namespace));
    let connections = connections
        .run(
            |object, context| liveness_deadlines::within(object, context, vsphere_cloud_config::reconcile),
            |_, error, _| match *error {},
            context.clone(),
        )
        .for_each(log_errors::<VsphereCloudConfig, _>(&args.namespace));
    let both = async move {
        futures::future::join(drivers, connections).await;
    };
    (synced, both)
}

/// A loop over all objects of a kind in a namespace that is also woken by the cache.
fn controller<K>(client: &Client, namespace: &str, changes: &watch::Receiver<()>, at_once: u16) -> Controller<Bounded<K>>
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug
        + Send
        + Sync
        + 'static,
{
    Controller::new(Api::<Bounded<K>>::namespaced(client.clone(), namespace), watcher::Config::default())
        .with_config(Config::default().concurrency(at_once).debounce(DEBOUNCE))
        .reconcile_all_on(wakes(changes.clone()))
}

/// That our own objects cannot be seen can be reported nowhere but in the log.
fn log_errors<K: kube::Resource<DynamicType = ()>, T>(
    namespace: &str,
) -> impl Fn(Result<T, controller::Error<std::convert::Infallible, watcher::Error>>) -> std::future::Ready<()> + use<K, T> {
    let id = ObjectId::new(K::group(&()), K::kind(&()), namespace, "");
    move |done| {
        if let Err(controller::Error::QueueError(error)) = done
            && let Some(error) = ClusterError::of_watch(&K::api_version(&()), &id, error)
        {
            tracing::warn!(
                error = %vdo_api::api::chain(&error),
                "{} objects cannot be watched; the operator does nothing until it can watch these objects",
                K::kind(&())
            );
        }
        std::future::ready(())
    }
}

fn wakes(changes: watch::Receiver<()>) -> impl Stream<Item = ()> + Send + 'static {
    stream::unfold(changes, |mut changes| async move {
        changes.changed().await.ok().map(|()| ((), changes))
    })
}

impl Context {
    /// Ends the watches that neither loop has asked for in its last two runs, such as those on volumes during an upgrade or a removal.
    fn sweep(&self) {
        if let Some(cache) = self.ports.reader.cache() {
            cache.sweep(self.resync.max(self.connection_interval).saturating_mul(2));
        }
    }
}

/// The time, at the edge where it enters.
#[expect(clippy::disallowed_methods, reason = "this is the place where the controllers read the clock")]
fn now() -> Timestamp {
    Timestamp::now()
}
