// SPDX-License-Identifier: Apache-2.0
//! The door: how a connection begins, rightly or not.

use std::sync::Arc;

use anyhow::Result;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::pki::Leaf;

/// How the proxy greets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// TLS 1.2 or 1.3, as the client likes.
    Tls,
    /// TLS 1.2 only.
    Tls12,
    /// TLS 1.3 only.
    Tls13,
    /// TLS 1.1 at most, as servers of long ago.
    Tls11,
    /// HTTP without TLS.
    Plain,
    /// Another protocol, that speaks first.
    Ssh,
    /// Nothing at all: the connection is accepted and stays silent.
    Mute,
    /// The connection is closed in the middle of the handshake.
    Hangup,
}

/// A stream of either kind.
pub(super) enum Entered {
    Tls(Box<TlsStream<TcpStream>>),
    Plain(TcpStream),
}

pub(super) struct Door {
    greeting: Greeting,
    tls: TlsAcceptor,
}

/// A server that knows TLS 1.1 at most chooses it in its greeting: a handshake record with a ServerHello of version 3.2.
const SERVER_HELLO_TLS11: [u8; 47] = {
    let mut bytes = [0; 47];
    let head = [22, 3, 2, 0, 42, 2, 0, 0, 38, 3, 2];
    let mut i = 0;
    while i < head.len() {
        bytes[i] = head[i];
        i += 1;
    }
    // The random is zeros; then no session, TLS_RSA_WITH_AES_128_CBC_SHA, no compression.
    bytes[45] = 0x2f;
    bytes
};

impl Door {
    pub(super) fn new(leaf: &Leaf, greeting: Greeting) -> Result<Self> {
        let versions: &[&rustls::SupportedProtocolVersion] = match greeting {
            Greeting::Tls12 => &[&TLS12],
            Greeting::Tls13 => &[&TLS13],
            _ => &[&TLS12, &TLS13],
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)?
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(leaf.cert.as_bytes())?],
                PrivateKeyDer::from_pem_slice(leaf.key.as_bytes())?,
            )?;
        Ok(Self {
            greeting,
            tls: TlsAcceptor::from(Arc::new(config)),
        })
    }

    /// Greets; nothing, if there is no one to talk to afterwards.
    pub(super) async fn enter(&self, mut stream: TcpStream) -> Option<Entered> {
        match self.greeting {
            Greeting::Tls | Greeting::Tls12 | Greeting::Tls13 => Some(Entered::Tls(Box::new(self.tls.accept(stream).await.ok()?))),
            Greeting::Plain => Some(Entered::Plain(stream)),
            Greeting::Mute => std::future::pending().await,
            Greeting::Tls11 => said(stream, &SERVER_HELLO_TLS11, true).await,
            Greeting::Ssh => said(stream, b"SSH-2.0-OpenSSH_9.2p1\r\n", false).await,
            Greeting::Hangup => {
                let mut hello = [0; 64];
                stream.read_exact(&mut hello).await.ok()?;
                None
            }
        }
    }
}

/// Says something, maybe after having heard something, and waits until the other side goes.
async fn said(mut stream: TcpStream, words: &[u8], listen: bool) -> Option<Entered> {
    let mut heard = [0; 4096];
    if listen {
        stream.read_exact(&mut heard[..64]).await.ok()?;
    }
    stream.write_all(words).await.ok()?;
    while stream.read(&mut heard).await.ok()? > 0 {}
    None
}
