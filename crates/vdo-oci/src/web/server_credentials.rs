// SPDX-License-Identifier: Apache-2.0
//! Credentials, CA certificates and proxy of a server, from a Secret with the keys of Flux such as `username`, `bearerToken`, `ca.crt`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Proxy, Url};
use rustls::client::WantsClientCert;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use std::collections::BTreeMap;
use std::sync::Arc;
use vdo_api::types::Secret;

/// Credentials and authorities, by the keys of the Secret: `username` and `password`, `bearerToken`, `tls.crt` and `tls.key`, `ca.crt`, and
/// for registries `.dockerconfigjson` or `config.json`, and `tokenRealms`. Printing it shows no value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access(BTreeMap<String, Secret>);

/// The keys that mean something.
const FILES: [&str; 10] = [
    "username",
    "password",
    "bearerToken",
    "tls.crt",
    "tls.key",
    "ca.crt",
    ".dockerconfigjson",
    "config.json",
    "proxy",
    "tokenRealms",
];

/// Credentials that cannot be used. No value is shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AccessError(String);

impl AccessError {
    /// Which key or file is wrong, and how.
    #[must_use]
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

fn wrong(why: impl Into<String>) -> AccessError {
    AccessError::new(why)
}

impl Access {
    /// What has these keys.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(values.into_iter().map(|(key, value)| (key, Secret::new(value))).collect())
    }

    /// The authorities and the proxy alone, for a server that the credentials are not for.
    #[must_use]
    pub fn authorities(&self) -> Self {
        let kept = ["ca.crt", "proxy"].into_iter().filter_map(|key| self.0.get_key_value(key));
        Self(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    /// The proxy for every request, if one is named: `http://HOST:PORT`, perhaps with `USER:PASSWORD@` before it.
    ///
    /// # Errors
    /// When it is not an address of a proxy.
    pub fn proxy(&self) -> Result<Option<Proxy>, AccessError> {
        let Some(text) = self.line("proxy") else { return Ok(None) };
        let url = Url::parse(text)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some());
        let proxy = url.and_then(|url| Proxy::all(url).ok());
        proxy
            .map(Some)
            .ok_or_else(|| wrong("proxy is not an address of a proxy; write http://HOST:PORT, or http://USER:PASSWORD@HOST:PORT"))
    }

    /// The value of a key as it is.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&Secret> {
        self.0.get(key)
    }

    /// The value of a key without the line end that editors add.
    #[must_use]
    pub fn line(&self, key: &str) -> Option<&str> {
        Some(self.0.get(key)?.expose().trim_end_matches(['\r', '\n']))
    }

    /// The files as a Secret has them, each as base64, without those that mean nothing here.
    ///
    /// # Errors
    /// When they cannot be used, or there is none.
    pub fn data(&self) -> Result<BTreeMap<String, String>, AccessError> {
        self.authorization()?;
        self.proxy()?;
        if self.0.contains_key("ca.crt") {
            self.tls(true)?;
        }
        let known = self.0.iter().filter(|(key, _)| FILES.contains(&key.as_str()));
        // It is going to be a Secret in the cluster.
        let data: BTreeMap<String, String> = known.map(|(key, value)| (key.clone(), STANDARD.encode(value.expose()))).collect();
        match data.is_empty() {
            true => Err(wrong(format!("none of the files {} exists", FILES.join(", ")))),
            false => Ok(data),
        }
    }

    /// The value of the header `Authorization`, if there is to be one.
    ///
    /// # Errors
    /// When the credentials contradict each other, or cannot be sent.
    pub fn authorization(&self) -> Result<Option<Secret>, AccessError> {
        let value = match (self.line("username"), self.line("password"), self.line("bearerToken")) {
            (None, None, None) => return Ok(None),
            (Some(user), Some(password), None) => {
                if user.contains(':') {
                    return Err(wrong("username has a colon, which basic authentication cannot send"));
                }
                format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
            }
            (None, None, Some(token)) => format!("Bearer {token}"),
            (Some(_), None, None) => return Err(wrong("there is a username, but no password")),
            (None, Some(_), None) => return Err(wrong("there is a password, but no username")),
            (_, _, Some(_)) => {
                return Err(wrong(
                    "there are a bearerToken and a username or password; only one of them can be sent",
                ));
            }
        };
        match value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            true => Ok(Some(Secret::new(value))),
            false => Err(wrong("bearerToken has characters that no HTTP header can have")),
        }
    }

    /// How connections are secured: with the authorities in `ca.crt`, or those of the machine. With `own` the client certificate is shown to every
    /// server that asks for one; [`super::Client`] keeps such a connection at its own server.
    ///
    /// # Errors
    /// When certificates or the key cannot be read.
    pub fn tls(&self, own: bool) -> Result<ClientConfig, AccessError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?;
        let builder: ConfigBuilder<ClientConfig, WantsClientCert> = match self.0.get("ca.crt") {
            Some(authorities) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates("ca.crt", authorities.expose())? {
                    let added = roots.add(certificate);
                    added.map_err(|error| wrong(format!("ca.crt contains an invalid certificate: {error}")))?;
                }
                builder.with_root_certificates(roots)
            }
            None => {
                let verifier = rustls_platform_verifier::Verifier::new(provider).map_err(|error| {
                    wrong(format!(
                        "this machine has no certificate authorities ({error}), and ca.crt names none"
                    ))
                })?;
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
            }
        };
        match (self.0.get("tls.crt"), self.0.get("tls.key")) {
            _ if !own => Ok(builder.with_no_client_auth()),
            (None, None) => Ok(builder.with_no_client_auth()),
            (Some(chain), Some(key)) => {
                let key = PrivateKeyDer::from_pem_slice(key.expose().as_bytes())
                    .map_err(|_| wrong("tls.key is not a private key in PEM form"))?;
                let identity = builder.with_client_auth_cert(certificates("tls.crt", chain.expose())?, key);
                identity.map_err(|error| wrong(format!("tls.crt and tls.key cannot be used: {error}")))
            }
            (Some(_), None) => Err(wrong("there is a tls.crt, but no tls.key")),
            (None, Some(_)) => Err(wrong("there is a tls.key, but no tls.crt")),
        }
    }
}

fn certificates(key: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, AccessError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let all = all.map_err(|_| wrong(format!("{key} is not PEM")))?;
    match all.is_empty() {
        true => Err(wrong(format!("{key} holds no certificate in PEM form"))),
        false => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(values: &[(&str, &str)]) -> Access {
        Access::new(values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn authorization_is_basic_or_bearer_or_refused() {
        let both = [("username", "u"), ("password", "p4ss-W0rd\n")];
        for (values, expected) in [
            (&[][..], Ok(None)),
            (&both, Ok(Some("Basic dTpwNHNzLVcwcmQ="))),
            (&[("bearerToken", "t0ken\r\n")], Ok(Some("Bearer t0ken"))),
            (&[("username", "u")], Err("no password")),
            (&[("password", "p4ss")], Err("no username")),
            (&[("username", "a:b"), ("password", "p4ss")], Err("colon")),
            (&[("bearerToken", "t0\nken")], Err("HTTP header")),
            (
                &[("username", "u"), ("password", "p4ss"), ("bearerToken", "t0ken")],
                Err("only one"),
            ),
        ] {
            match (access(values).authorization(), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.as_ref().map(Secret::expose), expected),
                (Err(error), Err(said)) => {
                    let text = error.to_string();
                    assert!(text.contains(said) && !text.contains("p4ss") && !text.contains("t0ken"), "{text}");
                }
                (found, expected) => panic!("{found:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn tls_files_that_cannot_be_used_are_named() {
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a pair");
        let (cert, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
        let other = rcgen::KeyPair::generate().expect("a key").serialize_pem();
        for (values, said) in [
            (&[("ca.crt", "nothing")][..], "ca.crt holds no certificate"),
            (&[("ca.crt", &*cert), ("tls.crt", &cert)], "no tls.key"),
            (&[("ca.crt", &*cert), ("tls.key", &key)], "no tls.crt"),
            (
                &[("ca.crt", &*cert), ("tls.crt", &cert), ("tls.key", "nothing")],
                "tls.key is not a private key",
            ),
            (&[("ca.crt", &*cert), ("tls.crt", &cert), ("tls.key", &other)], "cannot be used"),
        ] {
            let error = access(values).tls(true).expect_err(said).to_string();
            assert!(error.contains(said), "{error}");
        }
        access(&[("ca.crt", &cert), ("tls.crt", &cert), ("tls.key", &key)])
            .tls(true)
            .expect("all of it");
    }

    #[test]
    fn access_printed_shows_no_value() {
        let text = format!("{:?}", access(&[("password", "p4ss-W0rd")]));
        assert!(text.contains("password") && !text.contains("p4ss"), "{text}");
    }
}
