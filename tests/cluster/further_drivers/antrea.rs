// SPDX-License-Identifier: Apache-2.0
//! Antrea's controller, as far as the API server meets it: it serves the aggregated APIs, and adds its authority to the objects that name its
//! Service. The agents of real nodes are not played.

use crate::common::Bed;
use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use vdo_testbed::{Authority, Validity};

const PORT: u16 = 10349;
/// The kinds that the controller lists, with the places of an authority in each, `*` for every item of a list.
const KINDS: [(&str, &str, &str); 4] = [
    ("apiregistration.k8s.io/v1", "APIService", "/spec/caBundle"),
    (
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "/webhooks/*/clientConfig/caBundle",
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "/webhooks/*/clientConfig/caBundle",
    ),
    (
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "/spec/conversion/webhook/clientConfig/caBundle",
    ),
];
/// The objects that it serves.
const SERVED: &str = "app=antrea,served-by=antrea-controller";
/// What the controller writes about itself.
pub const INFO: (&str, &str) = ("crd.antrea.io/v1beta1", "AntreaControllerInfo");

pub struct Controller {
    server: JoinHandle<()>,
    /// Where it is: an address of this machine that is not a loopback, which endpoints may not have.
    address: String,
    authority: String,
    /// Where the authority was seen: the UID of the object, and the place in it.
    seen: Mutex<BTreeSet<(String, String)>>,
}

impl Controller {
    pub async fn start() -> Result<Self> {
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
        Ok(Self {
            server: tokio::spawn(serve(listener, acceptor)),
            address,
            authority: STANDARD.encode(authority.pem()),
            seen: Mutex::default(),
        })
    }

    /// The pods of the controller are at this machine, the objects that it serves have its authority, and it has written about itself.
    pub async fn act(&self, bed: &Bed) -> Result<()> {
        let pods = bed.list("v1", "Pod", "app=antrea,component=antrea-controller").await?;
        for pod in &pods {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            if pod["status"]["podIP"].is_string() && pod["status"]["podIP"] != *self.address {
                let here = json!({"status": {"podIP": self.address, "podIPs": [{"ip": self.address}]}});
                let api = bed.api("v1", "Pod", "kube-system");
                api.patch_status(name, &PatchParams::default(), &Patch::Merge(here)).await?;
            }
        }
        if pods.is_empty() {
            return Ok(());
        }
        for (api_version, kind, place) in KINDS {
            for object in bed.list(api_version, kind, SERVED).await? {
                self.sign(bed, (api_version, kind), object, place).await?;
            }
        }
        let (api_version, kind) = INFO;
        if bed.get(api_version, kind, "", "antrea-controller").await? == Value::Null {
            let info = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "antrea-controller"}, "version": "test"});
            // Its kind may not be served yet.
            let _ = bed.apply(&info).await;
        }
        Ok(())
    }

    /// Writes the authority as the controller does, which replaces the whole object. It is an error where one was taken away.
    async fn sign(&self, bed: &Bed, (api_version, kind): (&str, &str), mut object: Value, place: &str) -> Result<()> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (uid, name) = (text("/metadata/uid"), text("/metadata/name"));
        let places: Vec<String> = match place.split_once("/*") {
            Some((list, rest)) => {
                let items = object.pointer(list).and_then(Value::as_array).map_or(0, Vec::len);
                (0..items).map(|at| format!("{list}/{at}{rest}")).collect()
            }
            None => vec![place.to_owned()],
        };
        let mut changed = false;
        for place in places {
            let (parent, field) = place.rsplit_once('/').unwrap_or_default();
            // An item of a list by its name: its place may be another one later.
            let item = parent.rsplit_once('/').map_or("", |(item, _)| item);
            let item = object.pointer(&format!("{item}/name")).and_then(Value::as_str).unwrap_or_default();
            let key = (uid.clone(), item.to_owned());
            let known = object.pointer(&place).is_some_and(|found| *found == *self.authority);
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            ensure!(known || !seen.contains(&key), "{kind} {name} {item} lost its authority");
            if known {
                seen.insert(key);
            } else if let Some(parent) = object.pointer_mut(parent) {
                parent[field] = self.authority.clone().into();
                changed = true;
            }
        }
        if changed {
            let object: DynamicObject = serde_json::from_value(object)?;
            let params = PostParams {
                field_manager: Some("antrea-controller".into()),
                ..PostParams::default()
            };
            match bed.api(api_version, kind, "").replace(&name, &params, &object).await {
                // Another write came first, or it was deleted.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// How many authorities were seen in their places.
    pub fn authorities(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor) {
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
