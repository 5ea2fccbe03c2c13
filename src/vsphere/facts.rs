use crate::api::{AboutStatus, CertificateStatus};
use crate::types::{Thumbprint, VcenterVersion};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sha1::{Digest as _, Sha1};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// More names than this are not worth a message.
const MAX_NAMES: usize = 16;

/// What a vCenter reports about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VcenterFacts {
    /// `about.version`, for example 8.0.3.
    pub version: VcenterVersion,
    /// `about.build`.
    pub build: String,
    /// `about.apiType`: always `VirtualCenter` here.
    pub api_type: String,
    /// `about.apiVersion`.
    pub api_version: String,
    /// `about.instanceUuid`: tells two names of one vCenter from two vCenters.
    pub instance_uuid: String,
    /// `about.fullName`.
    pub full_name: String,
    /// The certificate it presented.
    pub certificate: CertificateFacts,
}

impl VcenterFacts {
    /// As the status of a connection shows it.
    #[must_use]
    pub fn about(&self) -> AboutStatus {
        AboutStatus {
            version: self.version.raw().to_owned(),
            build: self.build.clone(),
            api_type: self.api_type.clone(),
            instance_uuid: self.instance_uuid.clone(),
        }
    }
}

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

/// The server's words go into events and onto screens: one line, and not a long one.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(256).collect()
}
