// SPDX-License-Identifier: Apache-2.0
//! Reads a server's certificate (DER): thumbprints, dates, subject, issuer and names, for the status of a vCenter connection.
//! `verify.rs` decides whether a certificate is valid.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sha1::{Digest as _, Sha1};
use vdo_api::api::CertificateStatus;
use vdo_api::types::{Thumbprint, plain};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// More names than this are not worth a message.
const MAX_NAMES: usize = 16;

/// A certificate as it was presented. The texts are the server's own words: show them, do not trust them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// Its SHA-1 thumbprint, the one older vCenter screens show.
    pub sha1: Thumbprint,
    /// Its SHA-256 thumbprint.
    pub sha256: Thumbprint,
    /// The start of its validity; `None` when the certificate could not be read.
    pub not_before: Option<Timestamp>,
    /// The end of its validity; `None` when the certificate could not be read.
    pub not_after: Option<Timestamp>,
    /// Whom it was issued to.
    pub subject: String,
    /// Who issued it.
    pub issuer: String,
    /// The host names and addresses it is valid for, the first sixteen.
    pub names: Vec<String>,
}

impl CertificateFacts {
    /// As the status of a connection shows it.
    #[must_use]
    pub fn status(&self) -> CertificateStatus {
        CertificateStatus {
            sha256: self.sha256.to_string(),
            sha1: Some(self.sha1.to_string()),
            not_before: self.not_before.map(Time),
            not_after: self.not_after.map(Time),
        }
    }

    /// Reads a certificate in DER form. One that cannot be read still has its thumbprints.
    #[must_use]
    pub fn of(der: &[u8]) -> Self {
        let mut facts = Self {
            sha1: Thumbprint::from_sha1(Sha1::digest(der).into()),
            sha256: Thumbprint::sha256(der),
            not_before: None,
            not_after: None,
            subject: String::new(),
            issuer: String::new(),
            names: vec![],
        };
        if let Ok((_, certificate)) = X509Certificate::from_der(der) {
            let time = |seconds| Timestamp::from_second(seconds).ok();
            facts.not_before = time(certificate.validity().not_before.timestamp());
            facts.not_after = time(certificate.validity().not_after.timestamp());
            facts.subject = plain(&certificate.subject().to_string());
            facts.issuer = plain(&certificate.issuer().to_string());
            if let Ok(Some(names)) = certificate.subject_alternative_name() {
                facts.names = names.value.general_names.iter().filter_map(name).take(MAX_NAMES).collect();
            }
        }
        facts
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(plain(name)),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes)
                .ok()
                .map(|bytes| std::net::Ipv4Addr::from(bytes).to_string()),
            16 => <[u8; 16]>::try_from(*bytes)
                .ok()
                .map(|bytes| std::net::Ipv6Addr::from(bytes).to_string()),
            _ => None,
        },
        _ => None,
    }
}
