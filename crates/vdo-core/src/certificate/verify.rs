// SPDX-License-Identifier: Apache-2.0
//! Verifies a webhook certificate and its key by the rules that the API server applies before it calls a webhook. The time is an argument.

use super::CertificateFacts;
use super::state::Pair;
use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, RootCertStore};
use std::sync::Arc;
use std::time::Duration;

/// The time in which a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The start.
    pub from: Timestamp,
    /// The end.
    pub until: Timestamp,
}

/// Verifies a serving certificate in PEM form for this name at this time against these certificate authorities.
///
/// # Errors
/// With the cause, as the end of "the certificate …".
pub fn verify(certificate: &str, authorities: &str, name: &str, now: Timestamp) -> Result<Validity, String> {
    let leaf = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|_| "is not a certificate in PEM form".to_owned())?;
    let facts = CertificateFacts::of(&leaf);
    let (Some(from), Some(until)) = (facts.not_before, facts.not_after) else {
        return Err("cannot be read".into());
    };
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities.as_bytes()).flatten() {
        let _ = roots.add(authority);
    }
    if roots.is_empty() {
        return Err("is not trusted by the API server: caBundle is empty or unusable".into());
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::new(ring::default_provider()))
        .build()
        .map_err(|error| format!("cannot be checked: {error}"))?;
    let name_of = ServerName::try_from(name.to_owned()).map_err(|_| format!("cannot be checked: {name:?} is not a host name"))?;
    let seconds = u64::try_from(now.as_second()).unwrap_or(0);
    let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    match verifier.verify_server_cert(&leaf, &[], &name_of, &[], at) {
        Ok(_) => Ok(Validity { from, until }),
        Err(Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. })) => {
            Err(format!("expired at {until}"))
        }
        Err(Error::InvalidCertificate(CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. })) => {
            Err(format!("is not valid before {from}"))
        }
        Err(Error::InvalidCertificate(CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. })) => {
            Err(format!("is not for {name} but for {}", facts.names.join(", ")))
        }
        Err(Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature)) => {
            Err("is not signed by an authority in caBundle".into())
        }
        Err(error) => Err(format!("is refused: {error}")),
    }
}

/// Verifies a pair: its certificate against its own authority, and its key against its certificate.
///
/// # Errors
/// With the cause, as the end of "the certificate …".
pub fn verify_pair(pair: &Pair, name: &str, now: Timestamp) -> Result<Validity, String> {
    let validity = verify(&pair.certificate, &pair.authority, name, now)?;
    let chain = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).map_err(|_| "cannot be read".to_owned())?;
    let key =
        PrivateKeyDer::from_pem_slice(pair.key.expose().as_bytes()).map_err(|_| "has a private key that cannot be read".to_owned())?;
    CertifiedKey::from_der(vec![chain], key, &ring::default_provider()).map_err(|_| "does not belong to its private key".to_owned())?;
    Ok(validity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::issue;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + day * 86_400).expect("a time")
    }

    #[test]
    fn certificate_with_key_of_another_is_rejected() {
        let pair = issue("service", "ns", at(0)).expect("a pair");
        let other = issue("other", "ns", at(0)).expect("a pair");
        let swapped = Pair {
            key: other.key.clone(),
            ..pair.clone()
        };
        assert_eq!(
            verify_pair(&swapped, "service.ns.svc", at(1)),
            Err("does not belong to its private key".into())
        );
        assert!(verify_pair(&pair, "service.ns.svc", at(1)).is_ok());
    }

    /// For 90 days, and from an hour before it is issued: clocks differ.
    #[test]
    fn certificate_is_valid_for_ninety_days() {
        let pair = issue("service", "ns", at(0)).expect("a pair");
        let second = |n: i64| Timestamp::from_second(at(0).as_second() + n).expect("a time");
        for (now, valid) in [
            (second(-3601), false),
            (second(-3600), true),
            (second(90 * 86_400), true),
            (second(90 * 86_400 + 1), false),
        ] {
            assert_eq!(verify_pair(&pair, "service.ns.svc", now).is_ok(), valid, "{now}");
        }
    }
}
