use super::again::AskAgain;
use super::answers::Answers;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use std::path::PathBuf;
use tower::buffer::BufferLayer;
use tower::retry::RetryLayer;

/// How to find the cluster, with kubectl's meaning.
#[derive(Debug, Clone, Default)]
pub struct KubeOptions {
    /// A kubeconfig file; default: what `KUBECONFIG` names, then the one in the home directory, then in-cluster.
    pub kubeconfig: Option<PathBuf>,
    /// The context in it; default: the current one.
    pub context: Option<String>,
    /// A user to impersonate.
    pub impersonate: Option<String>,
}

/// The cluster cannot be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The kubeconfig is unusable.
    #[error("the kubeconfig cannot be used; name another with --kubeconfig or KUBECONFIG")]
    Kubeconfig(#[source] KubeconfigError),
    /// There is neither a kubeconfig nor a service account.
    #[error("no cluster is configured; name a kubeconfig with --kubeconfig or KUBECONFIG")]
    Missing(#[source] kube::config::InferConfigError),
    /// The client cannot be made from the configuration.
    #[error("no client can be made from the kubeconfig")]
    Client(#[source] kube::Error),
}

/// Finds the configuration and makes a client.
///
/// # Errors
/// When there is no usable configuration. Nothing is sent to the cluster yet.
pub async fn connect(options: &KubeOptions) -> Result<(Client, Config), ClientError> {
    let named = KubeConfigOptions {
        context: options.context.clone(),
        ..KubeConfigOptions::default()
    };
    let mut config = match &options.kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path).map_err(ClientError::Kubeconfig)?;
            Config::from_custom_kubeconfig(file, &named)
                .await
                .map_err(ClientError::Kubeconfig)?
        }
        None if options.context.is_some() => Config::from_kubeconfig(&named).await.map_err(ClientError::Kubeconfig)?,
        None => Config::infer().await.map_err(ClientError::Missing)?,
    };
    if let Some(user) = &options.impersonate {
        config.auth_info.impersonate = Some(user.clone());
    }
    Ok((from_config(config.clone())?, config))
}

/// Requests that may wait for their turn.
const QUEUE: usize = 1024;

/// Makes a client that repeats a request only where the server asks for it, and seldom: by default kube repeats a call for
/// minutes without a word, and every caller here has its own deadline and its own way of trying again.
///
/// # Errors
/// When the configuration names unusable certificates or a proxy that is not supported.
pub fn from_config(mut config: Config) -> Result<Client, ClientError> {
    config.default_retry = false;
    let again = AskAgain::new().map_err(|error| ClientError::Client(kube::Error::Service(error.into())))?;
    let builder = ClientBuilder::try_from(config).map_err(ClientError::Client)?;
    // One service for all clones: a pause that the server asks for is kept by everybody.
    let one = builder.with_layer(&Answers::default()).with_layer(&BufferLayer::new(QUEUE));
    Ok(one.with_layer(&RetryLayer::new(again)).build())
}
