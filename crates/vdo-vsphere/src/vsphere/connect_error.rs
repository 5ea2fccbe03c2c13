// SPDX-License-Identifier: Apache-2.0
//! Why a vCenter cannot be reached before the login, by stage, with reason and remedy; `session_error.rs` has errors from the login on.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::time::Duration;
use vdo_api::api::{Class, Classify, Reason};
use vdo_api::types::{Remedy, Thumbprint};
use vdo_core::certificate::CertificateFacts;

/// The stages of a connection, in the order in which they are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeStage {
    /// The name has an address.
    Resolved,
    /// Something accepts connections there.
    Connected,
    /// Its certificate is the right one.
    Trusted,
    /// It is a vCenter.
    IsVcenter,
}

/// A vCenter could not be asked who it is.
///
/// The text says what happened at which address; [`Remedy::remedy`] says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The address is none.
    #[error("{server:?} is neither a host name nor an IP address")]
    NotAnAddress {
        /// What was given.
        server: String,
    },
    /// The name has no address.
    #[error("the name {server:?} does not resolve")]
    Unresolvable {
        /// The name.
        server: String,
        /// The resolver's words.
        #[source]
        source: Option<std::io::Error>,
    },
    /// The machine answers; nothing listens.
    #[error("{address} refuses connections")]
    Refused {
        /// Host and port.
        address: String,
    },
    /// No way there.
    #[error("{address} cannot be reached")]
    Unreachable {
        /// Host and port.
        address: String,
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
    /// The proxy of the environment did not let us through.
    #[error("the proxy {proxy} does not connect to {address}: {because}")]
    Proxy {
        /// Host and port.
        address: String,
        /// The proxy, without its credentials.
        proxy: String,
        /// What it did.
        because: String,
    },
    /// The deadline passed.
    #[error("{address} did not answer within {after:?} ({stage})", stage = waiting_for(*stage))]
    TimedOut {
        /// Host and port.
        address: String,
        /// The stage that was not reached.
        stage: ProbeStage,
        /// The deadline.
        after: Duration,
    },
    /// The trust given by the user cannot be used.
    #[error("the certificate of {address} cannot be checked: {because}")]
    BadTrust {
        /// Host and port.
        address: String,
        /// What is wrong with it.
        because: String,
    },
    /// Something listens that does not speak TLS.
    #[error("{address} does not speak TLS")]
    NotTls {
        /// Host and port.
        address: String,
    },
    /// No handshake.
    #[error("the TLS handshake with {address} failed")]
    Handshake {
        /// Host and port.
        address: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The certificate comes from an unknown authority.
    #[error(
        "the certificate of {address} is signed by an unknown authority, {issuer:?}; the thumbprints of the certificate are {prints}",
        issuer = presented.issuer,
        prints = prints(presented)
    )]
    UnknownIssuer {
        /// Host and port.
        address: String,
        /// The certificate.
        presented: Box<CertificateFacts>,
    },
    /// It was valid once.
    #[error("the certificate of {address} expired{}", when(presented.not_after.as_ref()))]
    Expired {
        /// Host and port.
        address: String,
        /// The certificate.
        presented: Box<CertificateFacts>,
    },
    /// It will be valid, or our clock is wrong.
    #[error("the certificate of {address} is not valid yet{}", begins(presented.not_before.as_ref()))]
    NotYetValid {
        /// Host and port.
        address: String,
        /// The certificate.
        presented: Box<CertificateFacts>,
    },
    /// It is someone else's.
    #[error("the certificate of {address} is not valid for this name; it is valid for {names}", names = names(presented))]
    WrongName {
        /// Host and port.
        address: String,
        /// The certificate.
        presented: Box<CertificateFacts>,
    },
    /// It is another certificate than the one that was named.
    #[error("the certificate of {address} does not have the thumbprint {expected}; its thumbprints are {prints}", prints = prints(presented))]
    ThumbprintMismatch {
        /// Host and port.
        address: String,
        /// What was asked for.
        expected: Thumbprint,
        /// The certificate.
        presented: Box<CertificateFacts>,
    },
    /// Anything else that is wrong with it.
    #[error("the certificate of {address} is not acceptable: {because}")]
    BadCertificate {
        /// Host and port.
        address: String,
        /// Why.
        because: String,
        /// The certificate.
        presented: Box<CertificateFacts>,
    },
    /// The connection broke.
    #[error("{address} closed the connection during its answer")]
    Broken {
        /// Host and port.
        address: String,
        /// How.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// An HTTP status that is not an answer.
    #[error("{address} answered with HTTP status {status}{}", fault.as_deref().map(|fault| format!(": {fault}")).unwrap_or_default())]
    Status {
        /// Host and port.
        address: String,
        /// The status.
        status: u16,
        /// The words of a SOAP fault, if there was one.
        fault: Option<String>,
    },
    /// Something else lives there.
    #[error("{address} is not a vCenter: {because}")]
    NotVcenter {
        /// Host and port.
        address: String,
        /// How that was seen.
        because: String,
    },
    /// An ESXi host speaks the same protocol.
    #[error("{address} is an ESXi host, not a vCenter: {full_name}")]
    EsxHost {
        /// Host and port.
        address: String,
        /// What it calls itself.
        full_name: String,
    },
    /// More than a vCenter would ever say.
    #[error("the answer of {address} is larger than {limit} bytes")]
    TooLarge {
        /// Host and port.
        address: String,
        /// The limit.
        limit: usize,
    },
    /// More than a whole inspection may be.
    #[error("{address} sent {excess}, and the rest was not read")]
    TooMuch {
        /// Host and port.
        address: String,
        /// Of what.
        excess: Excess,
    },
    /// Each answer came in time, and all together did not.
    #[error("{address} did not finish answering within {after:?}")]
    Unfinished {
        /// Host and port.
        address: String,
        /// The time for a whole inspection.
        after: Duration,
    },
    /// Not to be understood.
    #[error("the answer of {address} cannot be read: {because}")]
    Malformed {
        /// Host and port.
        address: String,
        /// Why.
        because: String,
    },
}

/// Why nothing more is read in an inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// More bytes than this.
    Bytes(usize),
    /// More elements than this.
    Elements(usize),
    /// More than there is memory for.
    Memory,
    /// It has taken longer than this.
    Time(Duration),
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(limit) => write!(f, "more than {} MiB", limit >> 20),
            Self::Elements(limit) => write!(f, "more than {limit} elements"),
            Self::Memory => write!(f, "more than fits into memory"),
            Self::Time(limit) => write!(f, "for longer than {limit:?}"),
        }
    }
}

impl ProbeError {
    /// The first stage that does not hold; those before it do.
    #[must_use]
    pub fn stage(&self) -> ProbeStage {
        match self {
            Self::NotAnAddress { .. } | Self::Unresolvable { .. } => ProbeStage::Resolved,
            Self::Refused { .. } | Self::Unreachable { .. } | Self::Proxy { .. } => ProbeStage::Connected,
            Self::BadTrust { .. }
            | Self::NotTls { .. }
            | Self::Handshake { .. }
            | Self::UnknownIssuer { .. }
            | Self::Expired { .. }
            | Self::NotYetValid { .. }
            | Self::WrongName { .. }
            | Self::ThumbprintMismatch { .. }
            | Self::BadCertificate { .. } => ProbeStage::Trusted,
            Self::Broken { .. }
            | Self::Status { .. }
            | Self::NotVcenter { .. }
            | Self::EsxHost { .. }
            | Self::TooLarge { .. }
            | Self::TooMuch { .. }
            | Self::Unfinished { .. }
            | Self::Malformed { .. } => ProbeStage::IsVcenter,
            Self::TimedOut { stage, .. } => *stage,
        }
    }

    /// The certificate that was presented, where the error is about it.
    #[must_use]
    pub fn presented(&self) -> Option<&CertificateFacts> {
        match self {
            Self::UnknownIssuer { presented, .. }
            | Self::Expired { presented, .. }
            | Self::NotYetValid { presented, .. }
            | Self::WrongName { presented, .. }
            | Self::ThumbprintMismatch { presented, .. }
            | Self::BadCertificate { presented, .. } => Some(presented),
            _ => None,
        }
    }
}

impl Remedy for ProbeError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Self::NotAnAddress { .. } => "Write the vCenter's host name or IP address alone, without scheme, port, brackets or path.",
            Self::Unresolvable { .. } => {
                "Check the spelling, and that the DNS servers of the cluster know the name; an IP address works too."
            }
            Self::Refused { .. } => "Check the port (443 unless it was changed) and that the vCenter is up.",
            Self::Unreachable { .. } => "Check routes and firewalls between the cluster and the vCenter.",
            Self::Proxy { .. } => "Add the vCenter to NO_PROXY, or allow the proxy to connect to the vCenter.",
            Self::TimedOut {
                stage: ProbeStage::Resolved,
                ..
            } => "The DNS servers of the cluster do not answer: check them.",
            Self::TimedOut {
                stage: ProbeStage::Connected,
                ..
            } => "Check firewalls between the cluster and the vCenter: packets are dropped without an answer.",
            Self::TimedOut { .. } => {
                "The vCenter accepts connections but does not answer: check that its services are running and not overloaded."
            }
            Self::BadTrust { .. } => "Correct the CA bundle, or leave it out to use the certificate authorities of the system.",
            Self::NotTls { .. } => "Check the port: vCenter answers HTTPS, normally on 443.",
            Self::Handshake { .. } => {
                "Check that TLS 1.2 or later is enabled on the vCenter and that no network device in between breaks TLS connections."
            }
            Self::UnknownIssuer { .. } => {
                "Give the vCenter's CA certificate as the CA bundle (https://<vcenter>/certs/download.zip), or \
                 compare the thumbprint with the thumbprint that vCenter shows, and set the thumbprint."
            }
            Self::Expired { .. } => "Renew the certificate of the vCenter; the drivers do not accept an expired certificate either.",
            Self::NotYetValid { .. } => "Check the clocks of the cluster's nodes and of the vCenter.",
            Self::WrongName { .. } => {
                "Use one of the names in the certificate, renew the certificate with this name, or set the thumbprint of the certificate."
            }
            Self::ThumbprintMismatch { .. } => {
                "If the certificate was renewed, compare the presented thumbprint with the thumbprint that vCenter shows, and set the \
                 thumbprint; if the certificate was not renewed, the connection may be intercepted."
            }
            Self::BadCertificate { .. } => {
                "Install a certificate that can be checked on the vCenter, or set the thumbprint of the certificate."
            }
            Self::Broken { .. } => {
                "Check that the vCenter is up and that no network device in between closes connections; the check is repeated automatically."
            }
            Self::Status { status: 503, .. } => {
                "The vCenter is starting, or its vpxd service is down: check the service in the appliance's management page."
            }
            Self::Status { .. } => "Check the health of the vCenter and that no network device in between answers in its place.",
            Self::NotVcenter { .. } => "Check the address and the port of the vCenter.",
            Self::EsxHost { .. } => {
                "Give the address of the vCenter that manages this host; the drivers do not work with an ESXi host directly."
            }
            Self::TooMuch { .. } => {
                "Check that the address belongs to a vCenter and that no network device in between answers instead. If the vCenter is \
                 that large, \
                 give the account rights on the datacenters of this cluster only: objects that the account cannot see are not sent. The check is \
                 repeated automatically."
            }
            Self::Unfinished { .. } => {
                "Check the health and the load of the vCenter. If the vCenter is large, give the account rights on the datacenters of this \
                 cluster only: objects that the account cannot see are not sent. The check is repeated automatically."
            }
            Self::TooLarge { .. } | Self::Malformed { .. } => {
                "Check that the address belongs to a vCenter and that no network device in between answers instead."
            }
        };
        Some(remedy.into())
    }
}

impl Classify for ProbeError {
    fn reason(&self) -> Reason {
        match self {
            Self::NotAnAddress { .. } => Reason::InvalidSpec,
            Self::Unresolvable { .. } => Reason::NameNotResolved,
            Self::Refused { .. } | Self::Unreachable { .. } | Self::Proxy { .. } => Reason::Unreachable,
            Self::TimedOut { .. } | Self::Unfinished { .. } => Reason::TimedOut,
            Self::UnknownIssuer { .. } | Self::BadCertificate { .. } => Reason::CertificateUntrusted,
            Self::Expired { .. } | Self::NotYetValid { .. } => Reason::CertificateExpired,
            Self::WrongName { .. } => Reason::CertificateNameMismatch,
            Self::ThumbprintMismatch { .. } => Reason::ThumbprintMismatch,
            Self::BadTrust { .. } => Reason::CaBundleInvalid,
            Self::Handshake { .. } => Reason::TlsFailed,
            // A vCenter that is starting or overloaded answers 5xx; what does not know the address or wants a login first is none.
            Self::NotTls { .. } | Self::NotVcenter { .. } | Self::EsxHost { .. } | Self::Status { status: 400..=499, .. } => {
                Reason::NotAVcenter
            }
            Self::Broken { .. } | Self::Status { .. } | Self::TooLarge { .. } | Self::TooMuch { .. } | Self::Malformed { .. } => {
                Reason::BadAnswer
            }
        }
    }

    fn class(&self) -> Class {
        match self.reason() {
            Reason::NameNotResolved | Reason::Unreachable | Reason::TimedOut | Reason::TlsFailed | Reason::BadAnswer => Class::Retry,
            _ => Class::Terminal,
        }
    }
}

fn waiting_for(stage: ProbeStage) -> &'static str {
    match stage {
        ProbeStage::Resolved => "while its name was looked up",
        ProbeStage::Connected => "while a connection was opened",
        ProbeStage::Trusted => "during the TLS handshake",
        ProbeStage::IsVcenter => "after the request for its product information",
    }
}

fn prints(certificate: &CertificateFacts) -> String {
    format!("SHA-256 {} and SHA-1 {}", certificate.sha256, certificate.sha1)
}

fn names(certificate: &CertificateFacts) -> String {
    if certificate.names.is_empty() {
        format!("no name at all (subject {:?})", certificate.subject)
    } else {
        certificate.names.join(", ")
    }
}

fn begins(time: Option<&jiff::Timestamp>) -> String {
    time.map(|time| format!("; it becomes valid on {time}")).unwrap_or_default()
}

fn when(time: Option<&jiff::Timestamp>) -> String {
    time.map(|time| format!(" on {time}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was too much or took too long may have been an accident: it is tried again.
    #[test]
    fn probe_over_budget_is_retried_under_its_reason() {
        let address = || "vc:443".to_owned();
        let excess = Excess::Bytes(256 << 20);
        let after = Duration::from_secs(60);
        for (error, expected) in [
            (
                ProbeError::TooMuch {
                    address: address(),
                    excess,
                },
                (Reason::BadAnswer, Class::Retry),
            ),
            (
                ProbeError::Unfinished { address: address(), after },
                (Reason::TimedOut, Class::Retry),
            ),
        ] {
            assert_eq!((error.reason(), error.class()), expected, "{error}");
        }
    }
}
