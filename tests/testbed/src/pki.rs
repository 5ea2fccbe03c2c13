// SPDX-License-Identifier: Apache-2.0
//! Certificates: an authority of our own, and leaves below it.

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use sha1::Digest;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A certificate authority that lives only here.
#[derive(Clone)]
pub struct Authority {
    issuer: Arc<CertifiedIssuer<'static, KeyPair>>,
}

/// A certificate and its private key.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The certificate, PEM.
    pub cert: String,
    /// The private key, PEM.
    pub key: String,
    der: Vec<u8>,
}

/// When a leaf is valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validity {
    /// Now.
    #[default]
    Good,
    /// For ten more days.
    EndsSoon,
    /// Until the end of 2020.
    Expired,
    /// From 2070 on.
    NotYet,
}

impl Authority {
    /// Makes one.
    pub fn new(name: &str) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        Ok(Self {
            issuer: Arc::new(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?),
        })
    }

    /// The authority's certificate.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A server's leaf for these names or addresses.
    pub fn server(&self, names: &[&str], validity: Validity) -> Result<Leaf> {
        self.leaf(server(names, validity)?)
    }

    /// A server's leaf that no one but itself has signed.
    pub fn self_signed(names: &[&str], validity: Validity) -> Result<Leaf> {
        let (params, key) = (server(names, validity)?, KeyPair::generate()?);
        Ok(Leaf::new(&params.self_signed(&key)?, &key))
    }

    /// A client's leaf: a Kubernetes user and, maybe, a group.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Leaf> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.leaf(params)
    }

    fn leaf(&self, mut params: CertificateParams) -> Result<Leaf> {
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        Ok(Leaf::new(&params.signed_by(&key, &self.issuer)?, &key))
    }
}

fn server(names: &[&str], validity: Validity) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>())?;
    params
        .distinguished_name
        .push(DnType::CommonName, names.first().copied().unwrap_or("server"));
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    match validity {
        Validity::Good => {}
        Validity::EndsSoon => {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
            params.not_after = date_time_ymd(1970, 1, 1) + now + Duration::from_secs(10 * 24 * 3600);
        }
        Validity::Expired => (params.not_before, params.not_after) = (date_time_ymd(2019, 1, 1), date_time_ymd(2020, 12, 31)),
        Validity::NotYet => (params.not_before, params.not_after) = (date_time_ymd(2070, 1, 1), date_time_ymd(2071, 1, 1)),
    }
    Ok(params)
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Leaf {
    fn new(cert: &rcgen::Certificate, key: &KeyPair) -> Self {
        Self {
            cert: cert.pem(),
            key: key.serialize_pem(),
            der: cert.der().to_vec(),
        }
    }

    /// SHA-1 of the certificate, `AA:BB:…`, the form vSphere calls its thumbprint.
    pub fn sha1(&self) -> String {
        colons(&sha1::Sha1::digest(&self.der))
    }

    /// SHA-256 of the certificate, `AA:BB:…`.
    pub fn sha256(&self) -> String {
        colons(&sha2::Sha256::digest(&self.der))
    }
}

fn colons(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect::<Vec<_>>().join(":")
}

/// A key pair for service account tokens: private and public PEM.
pub(crate) fn signing_key() -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}
