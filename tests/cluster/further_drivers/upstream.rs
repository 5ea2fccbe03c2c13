//! The same with what projects really publish.

use super::shelf::Release;
use super::{Life, live};
use crate::common::{Bed, sample};
use crate::fixture::INSTALLED;
use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{Patch, PatchParams};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use vdo_testbed::{Authority, Validity};

/// The manifests in a folder below VDO_UPSTREAM_DIR.
fn texts(folder: &str) -> Result<Vec<String>> {
    let folder = sample::upstream().context("VDO_UPSTREAM_DIR is not set")?.join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml" || extension == "yml"));
    files.sort();
    Ok(files.iter().map(std::fs::read_to_string).collect::<Result<_, _>>()?)
}

#[test]
#[ignore = "needs VDO_UPSTREAM_DIR, a folder with the drivers' own manifests"]
fn further_driver_snapshot_controller_lives_its_whole_life() -> Result<()> {
    INSTALLED.run(async |bed: &mut Bed| {
        let release = |version: &'static str| -> Result<Release> {
            Ok(Release::manifests(
                "other",
                version,
                texts(&format!("external-snapshotter/{version}"))?,
            ))
        };
        let life = Life {
            name: "snapshot-controller",
            releases: [release("8.2.1")?, release("8.6.0")?],
            deleted: ("v1", "ServiceAccount", "kube-system", "snapshot-controller"),
            changed: ("apps/v1", "Deployment", "kube-system", "snapshot-controller"),
            replaced: None,
        };
        live(bed, &life, async |_| Ok(())).await
    })
}

/// Antrea's controller, as far as the API server meets it: it serves the aggregated APIs, and adds its authority to the objects that
/// name its Service.
struct Controller {
    server: JoinHandle<()>,
    /// Where it is: an address of this machine that is no loopback, which endpoints may not have.
    address: String,
    authority: String,
}

const PORT: u16 = 10349;

impl Controller {
    async fn start() -> Result<Self> {
        // Nothing is sent: this only chooses the way.
        let way = std::net::UdpSocket::bind("0.0.0.0:0")?;
        way.connect("192.0.2.1:9")?;
        let address = way.local_addr()?.ip().to_string();
        let authority = Authority::new("antrea")?;
        let leaf = authority.server(&[&address], Validity::Good)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(leaf.cert.as_bytes())?],
                PrivateKeyDer::from_pem_slice(leaf.key.as_bytes())?,
            )?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((address.as_str(), PORT)).await?;
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut head = vec![0; 8192];
                    let Ok(read) = stream.read(&mut head).await else { return };
                    let head = String::from_utf8_lossy(&head[..read]).into_owned();
                    let path = head.split(' ').nth(1).unwrap_or_default();
                    let answer = answer(path);
                    let _ = stream.write_all(answer.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Ok(Self {
            server,
            address,
            authority: STANDARD.encode(authority.pem()),
        })
    }

    /// The pods of the controller are at this machine, and the APIs have its authority.
    async fn act(&self, bed: &Bed) -> Result<()> {
        let pods = bed.api("v1", "Pod", "kube-system");
        for pod in bed.list("v1", "Pod", "app=antrea,component=antrea-controller").await? {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            if pod["status"]["podIP"].is_string() && pod["status"]["podIP"] != *self.address {
                let here = json!({"status": {"podIP": self.address, "podIPs": [{"ip": self.address}]}});
                pods.patch_status(name, &PatchParams::default(), &Patch::Merge(here)).await?;
            }
        }
        for api in bed.list("apiregistration.k8s.io/v1", "APIService", "app=antrea").await? {
            let name = api["metadata"]["name"].as_str().unwrap_or_default();
            if api["spec"]["caBundle"].is_null() {
                let change = json!({"spec": {"caBundle": self.authority}});
                bed.merge("apiregistration.k8s.io/v1", "APIService", "", name, change).await?;
            }
        }
        Ok(())
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A group with no resources.
fn answer(path: &str) -> String {
    let body = path.strip_prefix("/apis/").filter(|version| version.matches('/').count() == 1);
    let (code, body) = match body {
        Some(version) => (
            "200 OK",
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": []}),
        ),
        None => ("404 Not Found", json!({})),
    };
    let body = body.to_string();
    format!(
        "HTTP/1.1 {code}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[test]
#[ignore = "needs VDO_UPSTREAM_DIR, a folder with the drivers' own manifests"]
fn further_driver_antrea_lives_its_whole_life() -> Result<()> {
    INSTALLED.run(async |bed: &mut Bed| {
        let controller = Controller::start().await?;
        let release = |version: &'static str| -> Result<Release> {
            // Its manifests name no version.
            let image = |name: &str| format!("{name}=antrea/{name}:v{version}");
            let images = ["antrea-agent-ubuntu", "antrea-controller-ubuntu"].map(image);
            Ok(Release::manifests("network", version, texts(&format!("antrea/{version}"))?).with_images(&images))
        };
        let life = Life {
            name: "antrea",
            releases: [release("2.6.3")?, release("2.7.0")?],
            deleted: ("v1", "Service", "kube-system", "antrea"),
            changed: ("apps/v1", "Deployment", "kube-system", "antrea-controller"),
            replaced: None,
        };
        live(bed, &life, async |bed| controller.act(bed).await).await
    })
}
