//! What wakes a reconcile, and what becomes of its result: watches, mapping, pacing, backoff, events, metrics.
//!
//! Two loops, one for VDOConfigs and one for vSphere connections; a failure in one does not stop the other. Both are woken
//! by their own objects, and by every change that the shared cache of watches sees.
//!
//! Layer 3: may use everything below and `runtime`; not `cli`.

mod connections;
mod drivers;
mod logins;
mod memory;

use crate::api::{VDOConfig, VsphereCloudConfig};
use crate::cluster::{Cache, ClientError, KubeOptions, Reader, Writer, connect, server_version};
use crate::fetch::{Library, Store};
use crate::reconcile::{Evidence, World};
use crate::runtime::admin::{Admin, ListenError, Readiness};
use crate::runtime::args::Args;
use crate::runtime::metrics::Metrics;
use crate::types::KubernetesVersion;
use futures::{Stream, StreamExt, stream};
use k8s_openapi::jiff::Timestamp;
use kube::runtime::controller::Config;
use kube::runtime::events::{Recorder, Reporter};
use kube::runtime::reflector;
use kube::runtime::{Controller, watcher};
use kube::{Api, Client};
use logins::Logins;
use memory::Memory;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, watch};

/// The operator cannot run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no cluster to speak to.
    #[error("the operator has no cluster to work for")]
    Client(#[from] ClientError),
    /// The port for probes and metrics cannot be opened.
    #[error("the operator cannot serve its probes")]
    Listen(#[from] ListenError),
}

/// Changes that come in one breath are acted upon once.
const DEBOUNCE: Duration = Duration::from_millis(30);

/// How long a version of the API server is believed: it changes with an upgrade of the cluster only.
const VERSION_AGE: Duration = Duration::from_secs(300);

struct Context {
    world: World,
    metrics: Arc<Metrics>,
    recorder: Recorder,
    memory: Memory,
    logins: Logins,
    version: Mutex<Option<(Instant, KubernetesVersion)>>,
    configs: std::sync::OnceLock<reflector::Store<VDOConfig>>,
    resync: Duration,
    connection_interval: Duration,
    deletion_patience: Duration,
}

/// Runs the operator until it is told to stop.
///
/// # Errors
/// When it cannot start. Once it runs, nothing but a signal ends it.
pub async fn run(args: &Args) -> Result<(), StartError> {
    let metrics = Arc::new(Metrics::new());
    let readiness = Readiness::default();
    let admin = Admin::bind(args.listen, readiness.clone(), metrics.clone()).await?;
    if let Some(address) = admin.address() {
        tracing::info!(%address, "serving /healthz, /readyz and /metrics");
    }
    let options = KubeOptions {
        kubeconfig: args.kubeconfig.clone(),
        ..KubeOptions::default()
    };
    let (client, config) = connect(&options).await?;
    tracing::info!(server = %config.cluster_url, version = env!("CARGO_PKG_VERSION"), "starting");

    let (changed, changes) = watch::channel(());
    let counted = metrics.clone();
    let context = Arc::new(Context {
        world: World {
            client: client.clone(),
            reader: Reader::Watching(Arc::new(Cache::new(client.clone(), changed))),
            writer: Writer::new(client.clone(), move |verb, kind| counted.wrote(verb.as_str(), kind)),
            evidence: Evidence::default(),
            library: Library::new(Store::Embedded),
        },
        metrics,
        recorder: Recorder::new(
            client.clone(),
            Reporter {
                controller: "vdo-operator".into(),
                instance: None,
            },
        ),
        memory: Memory::default(),
        logins: Logins::default(),
        version: Mutex::default(),
        configs: std::sync::OnceLock::new(),
        resync: args.resync_interval,
        connection_interval: args.connection_interval,
        deletion_patience: args.deletion_patience,
    });

    match context.version().await {
        Ok(version) => tracing::info!(kubernetes = %version, "the API server answers"),
        Err(error) => tracing::warn!(error = %crate::api::chain(&error), "the API server does not answer yet"),
    }
    let drivers = controller::<VDOConfig>(&client, &changes);
    let connections = controller::<VsphereCloudConfig>(&client, &changes);
    let (config_store, connection_store) = (drivers.store(), connections.store());
    let _ = context.configs.set(config_store.clone());
    let both = futures::future::join(
        drivers
            .run(drivers::reconcile, |_, error, _| match *error {}, context.clone())
            .for_each(|_| std::future::ready(())),
        connections
            .run(connections::reconcile, |_, error, _| match *error {}, context.clone())
            .for_each(|_| std::future::ready(())),
    );
    let ready = async {
        let synced = futures::future::join(config_store.wait_until_ready(), connection_store.wait_until_ready()).await;
        if synced.0.is_ok() && synced.1.is_ok() {
            tracing::info!("ready");
            readiness.set(true);
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = both => tracing::info!("stopped"),
        () = ready => {}
        () = admin.run() => {}
    }
    context.logins.close().await;
    Ok(())
}

/// A loop over all objects of a kind that is also woken by the cache.
fn controller<K>(client: &Client, changes: &watch::Receiver<()>) -> Controller<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    Controller::new(Api::<K>::all(client.clone()), watcher::Config::default())
        .with_config(Config::default().concurrency(4).debounce(DEBOUNCE))
        .reconcile_all_on(wakes(changes.clone()))
        .shutdown_on_signal()
}

fn wakes(changes: watch::Receiver<()>) -> impl Stream<Item = ()> + Send + 'static {
    stream::unfold(changes, |mut changes| async move {
        changes.changed().await.ok().map(|()| ((), changes))
    })
}

impl Context {
    /// The version of the API server, asked for again after a while.
    async fn version(&self) -> Result<KubernetesVersion, crate::cluster::ClusterError> {
        let mut known = self.version.lock().await;
        if let Some((at, version)) = known.as_ref()
            && at.elapsed() < VERSION_AGE
        {
            return Ok(version.clone());
        }
        match server_version(&self.world.client).await {
            Ok(version) => {
                *known = Some((Instant::now(), version.clone()));
                Ok(version)
            }
            // An old answer is better than none: versions do not change while a server is away.
            Err(error) => known.as_ref().map(|(_, version)| version.clone()).ok_or(error),
        }
    }
}

/// The time, at the edge where it enters.
#[expect(clippy::disallowed_methods, reason = "the clock enters the operator here")]
fn now() -> Timestamp {
    Timestamp::now()
}
