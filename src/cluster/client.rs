//! How the cluster is found and spoken to.

mod pages;
mod reconnects;
mod retry;
mod retry_after;

use kube::client::ClientBuilder;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use pages::Pages;
use reconnects::Reconnects;
use retry::RetryRequested;
use retry_after::ResponseFilter;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout_at};
use tower::buffer::BufferLayer;
use tower::retry::RetryLayer;
use tower::util::MapRequestLayer;
use vdo_api::types::{Later as _, Remedy, nearest};

/// How to find the cluster, with kubectl's meaning.
#[derive(Debug, Clone, Default)]
pub struct KubeOptions {
    /// A kubeconfig file; default: what `KUBECONFIG` names, then the one in the home directory, then in-cluster.
    pub kubeconfig: Option<PathBuf>,
    /// The context in it; default: the current one.
    pub context: Option<String>,
    /// A user to impersonate.
    pub impersonate: Option<String>,
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

/// The cluster cannot be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The kubeconfig is unusable.
    #[error("the kubeconfig cannot be used")]
    Kubeconfig(#[source] KubeconfigError),
    /// The kubeconfig is no text.
    #[error("kubeconfig {} is not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// The kubeconfig is no YAML, or not what a kubeconfig has.
    #[error("kubeconfig {} cannot be read", path.display())]
    NotKubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line where that is known.
        source: KubeconfigError,
    },
    /// There is no such context.
    #[error("the kubeconfig has no context {name:?}")]
    NoContext {
        /// Its name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// There is neither a kubeconfig nor a service account.
    #[error("no cluster is configured")]
    Missing(#[source] kube::config::InferConfigError),
    /// The client cannot be made from the configuration.
    #[error("no client can be made from the kubeconfig")]
    Client(#[source] kube::Error),
    /// The API server is configured to be behind a proxy. Which one is not repeated: its address may hold a password.
    #[error("the kubeconfig names a proxy for the cluster (proxy-url), and requests to an API server go through none")]
    Proxy,
    /// A file or a command takes too long.
    #[error("{what} has not answered within {} s", after.as_secs_f64())]
    TimedOut {
        /// The file or the command.
        what: String,
        /// How long it was waited for.
        after: Duration,
        /// What to do.
        remedy: &'static str,
    },
}

impl Remedy for ClientError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Kubeconfig(_) => Some("Name another with --kubeconfig or KUBECONFIG.".into()),
            Self::NotText { .. } => Some("Save it as UTF-8, or name another with --kubeconfig or KUBECONFIG.".into()),
            Self::NotKubeconfig { .. } => Some("Correct that file, or name another with --kubeconfig or KUBECONFIG.".into()),
            Self::NoContext { known, .. } if known.is_empty() => {
                Some("It has no contexts: name another with --kubeconfig or KUBECONFIG.".into())
            }
            Self::NoContext { name, known } => {
                let near = nearest(name, known.iter().map(String::as_str));
                let guess = near.map(|near| format!("Did you mean {near}? ")).unwrap_or_default();
                Some(format!("{guess}Name one with --context: {}.", known.join(", ")).into())
            }
            Self::Missing(_) => Some("Name a kubeconfig with --kubeconfig or KUBECONFIG.".into()),
            Self::Client(_) => Some("Correct the certificates that it names.".into()),
            Self::Proxy => {
                Some("Remove proxy-url where the API server can be reached without it, or run this inside of the cluster.".into())
            }
            Self::TimedOut { remedy, .. } => Some((*remedy).into()),
        }
    }
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
        let (mut config, context) = found.ok_or_else(|| ClientError::TimedOut {
            what: "the kubeconfig".into(),
            after,
            remedy: "Check that its file can be read.",
        })??;
        if let Some(user) = &self.impersonate {
            config.auth_info.impersonate = Some(user.clone());
        }
        let settings = config.clone();
        let client = aside(deadline, move || from_config(settings)).await;
        let (client, reconnected) = client.ok_or_else(|| ClientError::TimedOut {
            what: command(&config.auth_info),
            after,
            remedy: "Run it by hand to see what it waits for.",
        })??;
        Ok(Connection {
            client,
            config,
            context,
            reconnected,
        })
    }

    async fn find(&self) -> Result<(Config, Option<String>), ClientError> {
        match self.read_config().await {
            // No cluster was named: this may be a pod.
            Err(ClientError::Kubeconfig(_)) if self.kubeconfig.is_none() && self.context.is_none() => {
                Ok((Config::infer().await.map_err(ClientError::Missing)?, None))
            }
            result => result,
        }
    }

    async fn read_config(&self) -> Result<(Config, Option<String>), ClientError> {
        let file = self.read()?;
        let context = self.context.clone().or_else(|| file.current_context.clone());
        if let Some(name) = context
            .as_ref()
            .filter(|name| self.context.is_some() || !file.contexts.is_empty() && !name.is_empty())
        {
            let known: Vec<String> = file.contexts.iter().map(|known| known.name.clone()).collect();
            if !known.contains(name) {
                return Err(ClientError::NoContext { name: name.clone(), known });
            }
        }
        let named = KubeConfigOptions {
            context: context.clone(),
            ..KubeConfigOptions::default()
        };
        let proxy = proxy(&file, context.as_deref());
        let mut config = Config::from_custom_kubeconfig(file, &named)
            .await
            .map_err(ClientError::Kubeconfig)?;
        if proxy {
            return Err(ClientError::Proxy);
        }
        // The one of the environment is for servers elsewhere.
        config.proxy_url = None;
        Ok((config, context))
    }

    /// The contexts that can be named.
    ///
    /// # Errors
    /// When there is no kubeconfig that can be read.
    pub fn contexts(&self) -> Result<Vec<String>, ClientError> {
        Ok(self.read()?.contexts.into_iter().map(|known| known.name).collect())
    }

    /// The file that is named, else those that `KUBECONFIG` lists, else the one in the home directory.
    fn read(&self) -> Result<Kubeconfig, ClientError> {
        if let Some(path) = &self.kubeconfig {
            return read(path);
        }
        #[expect(clippy::disallowed_methods, reason = "KUBECONFIG means here what it means for kubectl")]
        let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
        let paths: Vec<PathBuf> = std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty()).collect();
        if paths.is_empty() {
            let home = std::env::home_dir().ok_or(ClientError::Kubeconfig(KubeconfigError::FindPath))?;
            return read(&home.join(".kube/config"));
        }
        paths.iter().try_fold(Kubeconfig::default(), |all, path| {
            all.merge(read(path)?).map_err(ClientError::Kubeconfig)
        })
    }
}

/// Whether a kubeconfig names a proxy for the cluster of this context.
fn proxy(file: &Kubeconfig, context: Option<&str>) -> bool {
    let context = file.contexts.iter().find(|known| Some(known.name.as_str()) == context);
    let cluster = context.and_then(|known| known.context.as_ref()).map(|context| &context.cluster);
    let cluster = file.clusters.iter().find(|known| Some(&known.name) == cluster);
    let proxy = cluster
        .and_then(|known| known.cluster.as_ref())
        .and_then(|cluster| cluster.proxy_url.as_ref());
    proxy.is_some_and(|proxy| !proxy.is_empty())
}

/// Reads one file. kube's own reader takes paths in the file as being beside it, but it does not survive every content.
fn read(path: &Path) -> Result<Kubeconfig, ClientError> {
    let unreadable = |error| ClientError::Kubeconfig(KubeconfigError::ReadConfig(error, path.to_owned()));
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let text = text(&bytes).ok_or_else(|| ClientError::NotText { path: path.to_owned() })?;
    // A pipe can be read only once, and nothing is beside it.
    let file = if path.is_file() {
        Kubeconfig::read_from(path)
    } else {
        Kubeconfig::from_yaml(&text)
    };
    file.map_err(|source| ClientError::NotKubeconfig {
        path: path.to_owned(),
        source,
    })
}

/// UTF-8; or UTF-16 as some shells write it, with its mark.
fn text(bytes: &[u8]) -> Option<String> {
    let wide = |bytes: &[u8], number: fn([u8; 2]) -> u16| {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let text = String::from_utf16(&pairs.iter().copied().map(number).collect::<Vec<_>>()).ok();
        text.filter(|_| rest.is_empty())
    };
    match bytes {
        [0xff, 0xfe, bytes @ ..] => wide(bytes, u16::from_le_bytes),
        [0xfe, 0xff, bytes @ ..] => wide(bytes, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, bytes @ ..] | bytes => String::from_utf8(bytes.to_vec()).ok(),
    }
}

/// The command that gives the credentials, for messages; its arguments may hold secrets.
fn command(user: &AuthInfo) -> String {
    let exec = user.exec.as_ref().and_then(|exec| exec.command.as_ref());
    let provider = || user.auth_provider.as_ref().and_then(|provider| provider.config.get("cmd-path"));
    match exec.or_else(provider) {
        Some(command) => format!("the command {command:?}, which the kubeconfig names for the credentials,"),
        None => "what the kubeconfig names for the credentials".into(),
    }
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
fn from_config(mut config: Config) -> Result<(Client, watch::Receiver<()>), ClientError> {
    config.default_retry = false;
    let retry = RetryRequested::new().map_err(|error| ClientError::Client(kube::Error::Service(error.into())))?;
    let builder = ClientBuilder::try_from(config).map_err(ClientError::Client)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::types::with_remedy;

    #[test]
    fn kubeconfig_proxy_counts_for_the_cluster_of_its_context() {
        let text = "{clusters: [{name: a, cluster: {server: 'https://a.test', proxy-url: 'http://u:p@b.test'}}, {name: b, cluster: {server: 'https://b.test'}}], \
                    contexts: [{name: one, context: {cluster: a, user: u}}, {name: two, context: {cluster: b, user: u}}]}";
        let file = Kubeconfig::from_yaml(text).expect("a kubeconfig");
        assert!(proxy(&file, Some("one")));
        assert!(!proxy(&file, Some("two")) && !proxy(&file, None));
        assert!(!ClientError::Proxy.to_string().contains("b.test"));
    }

    #[test]
    fn kubeconfig_text_is_read_in_every_encoding_of_kubectl() {
        let plain = "kind: Config # Füße";
        let wide = |mark: [u8; 2], number: fn(u16) -> [u8; 2]| [mark.to_vec(), plain.encode_utf16().flat_map(number).collect()].concat();
        for bytes in [
            plain.as_bytes().to_vec(),
            [b"\xef\xbb\xbf", plain.as_bytes()].concat(),
            wide([0xff, 0xfe], u16::to_le_bytes),
            wide([0xfe, 0xff], u16::to_be_bytes),
        ] {
            assert_eq!(text(&bytes).as_deref(), Some(plain), "{bytes:?}");
        }
    }

    #[test]
    fn kubeconfig_bytes_that_are_no_text_are_none() {
        for bytes in [
            &b"\xff\xfe\x00"[..],
            b"\xfe\xff\x00",
            b"\xff\xfe\x00\xd8",
            b"a\xff",
            b"\xef\xbb\xbf\xff",
            b"\x80",
        ] {
            assert_eq!(text(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn kubeconfig_pipe_is_read_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let writer = path.clone();
        let written = thread::spawn(move || std::fs::write(writer, "current-context: here\n"));
        assert_eq!(read(&path).expect("a kubeconfig").current_context.as_deref(), Some("here"));
        written.join().expect("it ends").expect("written");
    }

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
            "the command \"sleep\", which the kubeconfig names for the credentials, has not answered within 0.3 s. \
             Run it by hand to see what it waits for."
        );
    }
}
