// SPDX-License-Identifier: Apache-2.0
//! A TLS server with a certificate of our making and one canned answer: for what a real vCenter never does.

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub(crate) struct Authority {
    pub(crate) pem: String,
    pub(crate) issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            pem,
            issuer: Issuer::new(params, key),
        }
    }

    pub(crate) fn sign(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity {
            certificate: certificate.der().clone(),
            key: key.serialize_der(),
        }
    }
}

pub(crate) struct Identity {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: Vec<u8>,
}

/// What the server sends once it has seen a request.
#[derive(Clone)]
pub(crate) enum Answer {
    Bytes(Vec<u8>),
    Silence,
}

pub(crate) fn http(status: &str, body: &str) -> Answer {
    Answer::Bytes(
        format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .into_bytes(),
    )
}

pub(crate) fn soap(api_type: &str, version: &str) -> Answer {
    http(
        "200 OK",
        &format!(
            r#"<?xml version="1.0"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body>
            <RetrieveServiceContentResponse xmlns="urn:vim25"><returnval><rootFolder type="Folder">group-d1</rootFolder><about><name>n</name>
            <fullName>VMware vCenter &amp; Server {version}</fullName><version>{version}</version><build>24022515</build>
            <apiType>{api_type}</apiType><apiVersion>8.0.3.0</apiVersion><instanceUuid>u-u-i-d</instanceUuid></about></returnval>
            </RetrieveServiceContentResponse></soapenv:Body></soapenv:Envelope>"#
        ),
    )
}

/// A server that has started; `requests` counts the HTTP requests that reached it.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) requests: Arc<AtomicUsize>,
}

/// TLS as the one with this certificate speaks it.
pub(crate) fn acceptor(identity: &Identity) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![identity.certificate.clone()],
            PrivateKeyDer::try_from(identity.key.clone()).unwrap(),
        )
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

pub(crate) async fn serve(identity: Option<&Identity>, answer: Answer) -> Server {
    let tls = identity.map(acceptor);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(AtomicUsize::new(0));
    let count = requests.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (tls, answer, count) = (tls.clone(), answer.clone(), count.clone());
            tokio::spawn(async move {
                match tls {
                    None => talk(stream, answer, &count).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            talk(stream, answer, &count).await;
                        }
                    }
                }
            });
        }
    });
    Server { port, requests }
}

pub(crate) async fn talk(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: Answer, requests: &AtomicUsize) {
    let mut seen = vec![];
    while !seen.ends_with(b"</Envelope>") {
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return,
            Ok(n) => seen.extend_from_slice(&part[..n]),
        }
        if !b"POST".starts_with(&seen[..seen.len().min(4)]) {
            // Not HTTP at all: what a plain web server says to a TLS greeting.
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            return;
        }
    }
    let head = String::from_utf8_lossy(&seen).to_ascii_lowercase();
    assert!(
        head.starts_with("post /sdk http/1.1\r\n") && head.contains("soapaction: urn:vim25/6.7\r\n"),
        "{head}"
    );
    assert!(
        !head.contains("authorization") && !head.contains("cookie"),
        "a credential was sent: {head}"
    );
    requests.fetch_add(1, Ordering::SeqCst);
    match answer {
        Answer::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Answer::Silence => std::future::pending().await,
    }
}
