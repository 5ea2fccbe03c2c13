// SPDX-License-Identifier: Apache-2.0
//! `KubeOptions::connect`: makes the Kubernetes client from kubeconfig, flags or the service account of a pod.

mod answer_filter;
mod credentials;
mod error;
mod kubeconfig;
mod pages;
mod proxy;
mod reconnects;
mod retry;
mod server;
mod tunnel;

pub use credentials::CredentialsError;
pub use error::ClientError;
pub use kubeconfig::KubeconfigNames;
pub use proxy::ProxyOrigin;
pub use tunnel::ProxyError;

use answer_filter::ResponseFilter;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as Sends;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt as _, DynBody};
use kube::config::{AuthInfo, KubeconfigError};
use kube::{Client, Config};
use pages::Pages;
use proxy::{Environment, Proxy, proxy_for};
use reconnects::Reconnects;
use retry::RetryRequested;
use std::error::Error;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout_at};
use tower::buffer::BufferLayer;
use tower::retry::RetryLayer;
use tower::util::{BoxService, MapRequestLayer};
use tower::{BoxError, ServiceBuilder};
use tunnel::Through;
use vdo_api::types::{Later as _, Secret};

/// How to find the cluster, with kubectl's meaning.
#[derive(Debug, Clone, Default)]
pub struct KubeOptions {
    /// A kubeconfig file; default: what `KUBECONFIG` names, then the one in the home directory, then in-cluster.
    pub kubeconfig: Option<PathBuf>,
    /// The context in it; default: the current one.
    pub context: Option<String>,
    /// The cluster in it; default: that of the context.
    pub cluster: Option<String>,
    /// The user in it; default: that of the context.
    pub user: Option<String>,
    /// A token, which is used instead of all credentials of that user.
    pub token: Option<Secret>,
    /// A user to impersonate.
    pub impersonate: Option<String>,
    /// The groups of that user.
    pub groups: Vec<String>,
    /// Whether the API server is reached through the proxies of the environment; never in a pod.
    pub environment_proxies: bool,
    /// How long files and commands of the kubeconfig may take; default: [`TIMEOUT`].
    pub timeout: Option<Duration>,
}

/// Long enough for a command that asks a person for a login.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// A cluster that can be spoken to.
pub struct Connection {
    /// The client.
    pub client: Client,
    /// What it was made from.
    pub config: Config,
    /// The context of the kubeconfig; none in a pod.
    pub context: Option<String>,
    /// Changes when a watch of the client begins again before its time: the API server may be another one.
    pub reconnected: watch::Receiver<()>,
}

impl KubeOptions {
    /// Finds the configuration, with the name of its context, and makes a client.
    ///
    /// # Errors
    /// When there is no usable configuration. Nothing is sent to the cluster yet.
    pub async fn connect(&self) -> Result<Connection, ClientError> {
        let after = self.timeout.unwrap_or(TIMEOUT);
        let deadline = Instant::now().later(after);
        let (options, here) = (self.clone(), Handle::current());
        let found = aside(deadline, move || here.block_on(options.find())).await;
        let (mut config, context, proxy) = found.ok_or_else(|| ClientError::TimedOut {
            what: "the kubeconfig".into(),
            after,
            remedy: "Check that the kubeconfig file can be read.",
        })??;
        self.identify(&mut config.auth_info)?;
        if let Some(unfit) = CredentialsError::of_token(&config.auth_info) {
            return Err(unfit.into());
        }
        let settings = config.clone();
        let client = aside(deadline, move || from_config(settings, proxy)).await;
        let (client, reconnected) = client.ok_or_else(|| ClientError::TimedOut {
            what: credentials::command(&config.auth_info),
            after,
            remedy: "Run this command by hand to see what it waits for.",
        })??;
        Ok(Connection {
            client,
            config,
            context,
            reconnected,
        })
    }

    /// Who asks, where that is given here.
    fn identify(&self, user: &mut AuthInfo) -> Result<(), ClientError> {
        if let Some(token) = &self.token {
            let (impersonate, groups) = (user.impersonate.take(), user.impersonate_groups.take());
            *user = AuthInfo {
                token: Some(token.expose().to_owned().into()),
                impersonate,
                impersonate_groups: groups,
                ..AuthInfo::default()
            };
        }
        if let Some(name) = &self.impersonate {
            user.impersonate = Some(name.clone());
        }
        if !self.groups.is_empty() {
            if user.impersonate.is_none() {
                return Err(ClientError::GroupsWithoutUser);
            }
            user.impersonate_groups = Some(self.groups.clone());
        }
        Ok(())
    }

    async fn find(&self) -> Result<(Config, Option<String>, Option<Proxy>), ClientError> {
        let nothing_named = self.kubeconfig.is_none() && self.context.is_none() && self.cluster.is_none() && self.user.is_none();
        match self.read_config().await {
            // No cluster was named: this may be a pod, which has its API server within reach.
            Err(ClientError::Kubeconfig(_)) if nothing_named => {
                let missing = |source| ClientError::Missing {
                    listed: kubeconfig::listed(),
                    source,
                };
                Ok((Config::infer().await.map_err(missing)?, None, None))
            }
            result => result,
        }
    }

    async fn read_config(&self) -> Result<(Config, Option<String>, Option<Proxy>), ClientError> {
        let mut file = self.read()?;
        let entries = self.entries(&mut file)?;
        kubeconfig::complete(&mut file, &entries)?;
        let named = kubeconfig::cluster(&file, &entries).and_then(|cluster| cluster.proxy_url.clone());
        let mut config = Config::from_custom_kubeconfig(file, &entries).await.map_err(|error| match error {
            KubeconfigError::ParseProxyUrl(_) => ClientError::Proxy {
                origin: match named.as_ref().is_some_and(|named| !named.is_empty()) {
                    true => ProxyOrigin::Kubeconfig,
                    false => ProxyOrigin::Variable("HTTPS_PROXY"),
                },
            },
            error => ClientError::Kubeconfig(error),
        })?;
        credentials::read_token_file(&mut config.auth_info);
        // kube has looked at the environment by rules of its own.
        config.proxy_url = None;
        let environment = self.environment_proxies.then(Environment::read);
        let proxy = proxy_for(&config.cluster_url, named.as_deref(), environment.as_ref());
        let proxy = proxy.map_err(|origin| ClientError::Proxy { origin })?;
        Ok((config, entries.context.filter(|name| !name.is_empty()), proxy))
    }
}

/// The error of this type among the causes of an error.
fn cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// Runs what cannot be interrupted on a thread of its own, and waits for it until the deadline. After that the thread is abandoned;
/// a thread of the runtime would be waited for at the end.
async fn aside<T: Send + 'static>(deadline: Instant, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (send, receive) = oneshot::channel();
    let here = Handle::current();
    let work = move || {
        let _inside = here.enter();
        let _ = send.send(work());
    };
    thread::Builder::new().name("connect".into()).spawn(work).ok()?;
    timeout_at(deadline, receive).await.ok()?.ok()
}

/// Requests that may wait for their turn.
const QUEUE: usize = 1024;

/// Makes a client that repeats a request only where the server asks for it, and seldom: by default kube repeats a call for
/// minutes without a word, and every caller here has its own deadline and its own way of retrying. Beside it what changes when a watch begins again
/// before its time.
fn from_config(mut config: Config, proxy: Option<Proxy>) -> Result<(Client, watch::Receiver<()>), ClientError> {
    config.default_retry = false;
    let command = credentials::command(&config.auth_info);
    let retry = RetryRequested::new().map_err(|error| ClientError::Client(kube::Error::Service(error.into())))?;
    let builder = match proxy {
        None => ClientBuilder::try_from(config),
        Some(proxy) => through(&config, proxy),
    };
    let builder = builder.map_err(|error| match &error {
        kube::Error::Auth(problem) => CredentialsError::of(problem, &command).map_or_else(|| ClientError::Client(error), Into::into),
        _ => ClientError::Client(error),
    })?;
    // One service for all clones: a pause that the server asks for holds for all of them.
    let reconnects = Reconnects::default();
    let reconnected = reconnects.subscribe();
    let one = builder
        .with_layer(&ResponseFilter::default())
        .with_layer(&MapRequestLayer::new(move |request| reconnects.note(request)))
        .with_layer(&BufferLayer::new(QUEUE));
    let one = one.with_layer(&RetryLayer::new(retry)).with_layer(&Pages::default());
    Ok((one.build(), reconnected))
}

/// What sends requests: the part of a client below all layers.
type Sender = BoxService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// The same client as kube makes, whose connections go through a proxy.
fn through(config: &Config, proxy: Proxy) -> Result<ClientBuilder<Sender>, kube::Error> {
    let mut dial = HttpConnector::new();
    dial.enforce_http(false);
    // The proxy is neither the API server nor entrusted with its credentials: its certificate is believed like that of any web server.
    let dial = Config::new(config.cluster_url.clone()).rustls_https_connector_with_connector(dial)?;
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(Through::new(proxy, dial))?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    let sender = ServiceBuilder::new()
        .map_response(|response: Response<Incoming>| response.map(|body| Box::new(body.map_err(BoxError::from)) as Box<DynBody>))
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(Sends::builder(TokioExecutor::new()).build(connector));
    Ok(ClientBuilder::new(BoxService::new(sender), config.default_namespace.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::types::{Remedy as _, with_remedy};

    #[tokio::test]
    async fn client_that_takes_too_long_names_its_command_and_not_its_arguments() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config");
        let exec = r#"{"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["30"], "interactiveMode": "Never"}"#;
        let text = format!(
            r#"{{"current-context": "c", "contexts": [{{"name": "c", "context": {{"cluster": "c", "user": "u"}}}}],
            "clusters": [{{"name": "c", "cluster": {{"server": "http://127.0.0.1:1"}}}}],
            "users": [{{"name": "u", "user": {{"exec": {exec}}}}}]}}"#
        );
        std::fs::write(&path, text).expect("written");
        let options = KubeOptions {
            kubeconfig: Some(path),
            timeout: Some(Duration::from_millis(300)),
            ..KubeOptions::default()
        };
        let error = options.connect().await.err().expect("it takes too long");
        assert_eq!(
            with_remedy(&error.to_string(), &error.remedy().unwrap_or_default()),
            "the credential command \"sleep\" of the kubeconfig has not answered within 0.3 s. \
             Run this command by hand to see what it waits for."
        );
    }
}
