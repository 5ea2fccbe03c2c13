// SPDX-License-Identifier: Apache-2.0
//! Parses logins in Docker's `config.json` or a Secret's `.dockerconfigjson`, and chooses the login for a repository.

use crate::web::AccessError;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde::Deserialize;
use std::collections::BTreeMap;
use vdo_api::types::{Secret, from_json};

/// As whom a registry is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Login {
    /// As anyone.
    #[default]
    Anonymous,
    /// With a name and a password.
    Basic {
        /// The name.
        user: String,
        /// The password.
        password: Secret,
    },
    /// With a token that the registry's own service exchanges for others.
    Identity(Secret),
    /// With a token for the registry itself.
    Token(Secret),
}

/// Logins by registry. Nothing of it is shown.
#[derive(Clone, Default)]
pub struct Keychain {
    logins: BTreeMap<String, Login>,
    /// Programs that keep logins, by registry.
    helpers: BTreeMap<String, String>,
    /// The program for all others.
    store: Option<String>,
}

impl std::fmt::Debug for Keychain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keychain({:?})", self.logins.keys())
    }
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
    #[serde(default, rename = "credHelpers")]
    helpers: BTreeMap<String, String>,
    #[serde(default, rename = "credsStore")]
    store: String,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default, rename = "identitytoken")]
    identity: String,
    #[serde(default, rename = "registrytoken")]
    token: String,
}

impl Keychain {
    /// Reads a configuration of Docker. `name` is what errors call it.
    ///
    /// # Errors
    /// When it is none. The text is not repeated.
    pub fn parse(name: &str, text: &Secret) -> Result<Self, AccessError> {
        // The error of the parser could repeat a password.
        let file: File = from_json(text.expose())
            .map_err(|error| AccessError::new(format!("{name} is not a valid Docker configuration (line {})", error.line())))?;
        let mut logins = BTreeMap::new();
        for (key, entry) in file.auths {
            if let Some(login) = entry.login(name, &key)? {
                logins.insert(plain(&key), login);
            }
        }
        Ok(Self {
            logins,
            helpers: file.helpers.into_iter().map(|(key, helper)| (plain(&key), helper)).collect(),
            store: Some(file.store).filter(|store| !store.is_empty()),
        })
    }

    /// The login for a repository of a registry: that of the longest path that leads to it, as Kubernetes chooses.
    #[must_use]
    pub fn login(&self, host: &str, repository: &str) -> Option<&Login> {
        let place = format!("{}/{repository}/", plain(host));
        let fits = self.logins.iter().filter(|(key, _)| place.starts_with(&format!("{key}/")));
        fits.max_by_key(|(key, _)| key.len()).map(|(_, login)| login)
    }

    /// The program that keeps the login for a registry, if there is one.
    #[must_use]
    pub fn helper(&self, host: &str) -> Option<&str> {
        self.helpers.get(&plain(host)).or(self.store.as_ref()).map(String::as_str)
    }
}

impl Entry {
    fn login(self, name: &str, key: &str) -> Result<Option<Login>, AccessError> {
        if !self.identity.is_empty() {
            return Ok(Some(Login::Identity(Secret::new(self.identity))));
        }
        if !self.token.is_empty() {
            return Ok(Some(Login::Token(Secret::new(self.token))));
        }
        if !self.auth.is_empty() {
            let wrong = || AccessError::new(format!("{name}: auth of {key} is not the base64 of NAME:PASSWORD"));
            let auth = self.auth.trim();
            let bytes = STANDARD
                .decode(auth)
                .or_else(|_| STANDARD_NO_PAD.decode(auth))
                .map_err(|_| wrong())?;
            let text = Secret::new(String::from_utf8(bytes).map_err(|_| wrong())?);
            let (user, password) = text.expose().split_once(':').ok_or_else(wrong)?;
            return Ok(Some(Login::Basic {
                user: user.to_owned(),
                password: Secret::new(password.trim_end_matches('\0')),
            }));
        }
        let is_empty = self.username.is_empty() && self.password.is_empty();
        Ok((!is_empty).then(|| Login::Basic {
            user: self.username,
            password: Secret::new(self.password),
        }))
    }
}

/// A registry without what different tools write around it.
fn plain(key: &str) -> String {
    let key = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let key = key.trim_end_matches('/');
    let key = key.strip_suffix("/v1").or_else(|| key.strip_suffix("/v2")).unwrap_or(key);
    match key {
        "index.docker.io" | "registry-1.docker.io" => "docker.io".into(),
        _ => key.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keychain(text: &str) -> Result<Keychain, AccessError> {
        Keychain::parse("config.json", &Secret::new(text))
    }

    #[test]
    fn keychain_longest_path_that_leads_to_a_repository_counts() {
        let keychain = keychain(
            r#"{"auths": {
                "r.example": {"auth": "YTpi"},
                "https://r.example/team/": {"username": "c", "password": "d:e"},
                "https://index.docker.io/v1/": {"identitytoken": "t"},
                "empty.example": {}
            }, "credHelpers": {"gcr.example": "gcloud"}, "credsStore": "pass"}"#,
        )
        .expect("a configuration");
        let basic = |user: &str, password: &str| Login::Basic {
            user: user.into(),
            password: Secret::new(password),
        };
        for (host, repository, expected) in [
            ("r.example", "x", Some(basic("a", "b"))),
            ("r.example", "team", Some(basic("c", "d:e"))),
            ("r.example", "team/x", Some(basic("c", "d:e"))),
            ("r.example", "teams/x", Some(basic("a", "b"))),
            ("r.example:5000", "x", None),
            ("other.example", "r.example", None),
            ("empty.example", "x", None),
            ("docker.io", "library/x", Some(Login::Identity(Secret::new("t")))),
        ] {
            assert_eq!(keychain.login(host, repository), expected.as_ref(), "{host}/{repository}");
        }
        assert_eq!(
            (keychain.helper("gcr.example"), keychain.helper("x")),
            (Some("gcloud"), Some("pass"))
        );
        assert!(!format!("{keychain:?}").contains("d:e"));
    }

    #[test]
    fn keychain_that_cannot_be_read_is_named_and_not_shown() {
        for (text, said) in [
            ("s3cret", "line 1"),
            (r#"{"auths": {"r.example": "s3cret"}}"#, "line 1"),
            (r#"{"auths": {"r.example": {"auth": "s3cret!"}}}"#, "auth of r.example"),
            (r#"{"auths": {"r.example": {"auth": "czNjcmV0"}}}"#, "auth of r.example"),
        ] {
            let error = keychain(text).expect_err(text).to_string();
            assert!(error.contains(said) && !error.contains("s3cret"), "{error}");
        }
    }
}
