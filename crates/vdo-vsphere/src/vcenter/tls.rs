// SPDX-License-Identifier: Apache-2.0
//! The TLS handshake with a vCenter: accepts or refuses its certificate by CA certificates, thumbprint or insecure trust.

use super::Endpoint;
use super::connect::{Deadline, Stream};
use crate::vsphere::{ProbeError, ProbeStage};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::{Arc, OnceLock};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use vdo_api::types::{Thumbprint, Trust, in_words, plain};
use vdo_core::certificate::CertificateFacts;

/// A client configuration for one handshake, and what that handshake will have seen.
pub(super) struct Config {
    client: Arc<ClientConfig>,
    name: ServerName<'static>,
    judge: Arc<CertVerifier>,
}

impl Config {
    /// A configuration for this endpoint. TLS 1.2 at least; HTTP/1.1 only, which is all vCenter's SOAP speaks.
    pub(super) fn new(endpoint: &Endpoint) -> Result<Self, ProbeError> {
        let bad_trust = |because: String| ProbeError::BadTrust {
            address: endpoint.address(),
            because,
        };
        let name = ServerName::try_from(endpoint.server.clone()).map_err(|_| ProbeError::NotAnAddress {
            server: endpoint.server.clone(),
        })?;
        let provider = Arc::new(ring::default_provider());
        let rule = Rule::new(&endpoint.trust, &provider).map_err(bad_trust)?;
        let judge = Arc::new(CertVerifier {
            rule,
            provider: provider.clone(),
            presented: OnceLock::new(),
        });
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| bad_trust(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(judge.clone())
            .with_no_client_auth();
        client.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            client: Arc::new(client),
            name,
            judge,
        })
    }
}

/// Performs the handshake; the certificate was accepted when this succeeds.
pub(super) async fn handshake(
    endpoint: &Endpoint,
    clock: &Deadline<'_>,
    config: Config,
    stream: Stream,
) -> Result<(TlsStream<Stream>, CertificateFacts), ProbeError> {
    let Config { client, name, judge } = config;
    let outcome = clock
        .within(ProbeStage::Trusted, TlsConnector::from(client).connect(name, stream))
        .await?;
    let presented = judge.presented.get().map(|der| CertificateFacts::of(der));
    match (outcome, presented) {
        (Ok(stream), Some(presented)) => Ok((stream, presented)),
        // A handshake without a certificate does not exist with this verifier; refuse rather than assume.
        (Ok(_), None) => Err(ProbeError::NotTls {
            address: endpoint.address(),
        }),
        (Err(error), presented) => Err(refusal(endpoint, error, presented)),
    }
}

fn refusal(endpoint: &Endpoint, error: std::io::Error, presented: Option<CertificateFacts>) -> ProbeError {
    let address = endpoint.address();
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match (tls, presented.map(Box::new)) {
        (Some(Error::InvalidCertificate(reason)), Some(presented)) => match reason {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => ProbeError::Expired { address, presented },
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => ProbeError::NotYetValid { address, presented },
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                ProbeError::WrongName { address, presented }
            }
            CertificateError::UnknownIssuer => ProbeError::UnknownIssuer { address, presented },
            other => match (&endpoint.trust, other) {
                (Trust::Thumbprint(expected), CertificateError::ApplicationVerificationFailure) => ProbeError::ThumbprintMismatch {
                    address,
                    expected: expected.clone(),
                    presented,
                },
                _ => ProbeError::BadCertificate {
                    address,
                    because: plain(&in_words(&Error::InvalidCertificate(other.clone()).to_string())),
                    presented,
                },
            },
        },
        (Some(Error::InvalidMessage(_)), _) => ProbeError::NotTls { address },
        _ => ProbeError::Handshake { address, source: error },
    }
}

#[derive(Debug)]
enum Rule {
    /// A chain to a root. The certificates of a bundle may also be presented themselves, as Go allows and therefore the
    /// drivers do: a self-signed certificate is its own authority.
    Chain(Arc<dyn ServerCertVerifier>, Vec<CertificateDer<'static>>),
    Pin(Thumbprint),
    Anything,
}

impl Rule {
    fn new(trust: &Trust, provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        Ok(match trust {
            Trust::SystemRoots => {
                let verifier = rustls_platform_verifier::Verifier::new(provider.clone()).map_err(|error| error.to_string())?;
                Self::Chain(Arc::new(verifier), vec![])
            }
            Trust::CaBundle(pem) => {
                let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
                    .collect::<Result<_, _>>()
                    .map_err(|error| format!("the CA bundle is not PEM: {error}"))?;
                let mut roots = RootCertStore::empty();
                for certificate in &certificates {
                    roots
                        .add(certificate.clone())
                        .map_err(|error| format!("the CA bundle contains something that is not a certificate: {error}"))?;
                }
                if roots.is_empty() {
                    return Err("the CA bundle contains no certificate".to_owned());
                }
                let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                    .build()
                    .map_err(|error| error.to_string())?;
                Self::Chain(verifier, certificates)
            }
            Trust::Thumbprint(print) => Self::Pin(print.clone()),
            Trust::Insecure => Self::Anything,
        })
    }
}

/// Judges the certificate by the rule and keeps it. The signature of the handshake is verified under every rule: a
/// thumbprint alone would only prove that someone has a copy of the certificate, which is public.
#[derive(Debug)]
struct CertVerifier {
    rule: Rule,
    provider: Arc<CryptoProvider>,
    presented: OnceLock<CertificateDer<'static>>,
}

impl ServerCertVerifier for CertVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let leaf = self.presented.get_or_init(|| leaf.clone().into_owned());
        match &self.rule {
            Rule::Chain(verifier, bundle) => match verifier.verify_server_cert(leaf, intermediates, name, ocsp, now) {
                Err(Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::Other(_))) if bundle.contains(leaf) => {
                    own_authority(leaf, name, now)
                }
                verdict => verdict,
            },
            Rule::Pin(expected) => {
                let facts = CertificateFacts::of(leaf);
                if facts.sha256 == *expected || facts.sha1 == *expected {
                    Ok(ServerCertVerified::assertion())
                } else {
                    Err(CertificateError::ApplicationVerificationFailure.into())
                }
            }
            Rule::Anything => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, leaf, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, leaf, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A certificate that the user put into the bundle needs no issuer; name and time still count. rustls-webpki looks
/// at the dates before the issuer, so an expired one does not come here today; that order is not promised.
fn own_authority(leaf: &CertificateDer<'_>, name: &ServerName<'_>, now: UnixTime) -> Result<ServerCertVerified, Error> {
    let facts = CertificateFacts::of(leaf);
    let (Some(from), Some(to)) = (facts.not_before, facts.not_after) else {
        return Err(CertificateError::BadEncoding.into());
    };
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < from.as_second() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > to.as_second() {
        return Err(CertificateError::Expired.into());
    }
    rustls::client::verify_server_name(&rustls::server::ParsedCertificate::try_from(leaf)?, name)?;
    Ok(ServerCertVerified::assertion())
}
