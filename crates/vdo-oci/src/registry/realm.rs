// SPDX-License-Identifier: Apache-2.0
//! Decides which token services may receive the credentials of a registry: same domain, known pair, or allowed by `tokenRealms` (pure).
//!
//! A registry names the service in a header, and may name any host.

use crate::web::{Access, AccessError, is_loopback};
use reqwest::Url;

/// The key of the credentials with the hosts, one a line, that may see them although they are far from the registry.
pub const TOKEN_REALMS: &str = "tokenRealms";

/// Registries whose publisher documents a service for tokens in another domain.
const KNOWN: [(&str, &str); 2] = [("nvcr.io", "authn.nvidia.com"), ("registry.redhat.io", "sso.redhat.com")];

/// Domains below which anyone may have a host. Two hosts belong together there only with one more label in common.
const SHARED: [&str; 13] = [
    "aliyuncs.com",
    "amazonaws.com",
    "azurecr.io",
    "cloudapp.net",
    "cloudfront.net",
    "cluster.local",
    "github.io",
    "jfrog.io",
    "ocir.io",
    "pkg.dev",
    "run.app",
    "svc",
    "svc.cluster.local",
];

/// The hosts that the credentials name.
///
/// # Errors
/// When one of them is not the name of a host.
pub(super) fn allowed(access: &Access) -> Result<Vec<String>, AccessError> {
    let text = access.line(TOKEN_REALMS).unwrap_or_default();
    let hosts = text.lines().map(str::trim).filter(|line| !line.is_empty());
    hosts.map(host).collect()
}

/// The name of a host as addresses have it, without scheme, port and path.
///
/// # Errors
/// When it is something else.
pub fn host(text: &str) -> Result<String, AccessError> {
    let url = Url::parse(&format!("https://{text}/")).ok();
    let named = url
        .as_ref()
        .filter(|url| url.path() == "/" && url.port().is_none() && url.username().is_empty());
    let named = named
        .and_then(Url::host_str)
        .filter(|_| !text.contains(['/', '@', ':', '?', '#', '*']));
    named
        .map(str::to_owned)
        .ok_or_else(|| AccessError::new(format!("{text:?} is not a host name; write for example auth.example.com")))
}

/// Whether a service may see the credentials for a registry: on the same host, in the same domain, known to belong to it, or `allowed`.
pub(super) fn may_see(registry: &Url, realm: &Url, allowed: &[String]) -> bool {
    let (Some(own), Some(other)) = (registry.host_str(), realm.host_str()) else {
        return false;
    };
    own == other
        || is_loopback(registry) && is_loopback(realm)
        || KNOWN.contains(&(own, other))
        || allowed.iter().any(|host| host == other)
        || site(own).is_some_and(|own| site(other) == Some(own))
}

/// The domain that one owner has: two labels, or three where the last two are a domain below which anyone may have a host. `None` for an
/// address and for a name without a domain.
fn site(host: &str) -> Option<&str> {
    let is_address = host.starts_with('[')
        || host
            .rsplit('.')
            .next()
            .is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    if is_address {
        return None;
    }
    let host = host.trim_end_matches('.');
    let from_end = |labels: usize| {
        let dots = host.rmatch_indices('.').map(|(at, _)| at);
        let mut starts = dots.skip(labels.saturating_sub(1));
        match starts.next() {
            Some(at) => host.get(at.saturating_add(1)..),
            None => (host.split('.').count() == labels).then_some(host),
        }
    };
    let shared = SHARED
        .iter()
        .filter(|shared| host.strip_suffix(**shared).is_some_and(|rest| rest.ends_with('.')))
        .map(|shared| shared.split('.').count())
        .max();
    if let Some(labels) = shared {
        return from_end(labels.saturating_add(1));
    }
    let domain = from_end(2)?;
    // co.uk, com.au, ac.jp: such domains belong to no one.
    let (second, top) = domain.split_once('.')?;
    match second.len() <= 3 && top.len() == 2 {
        true => from_end(3),
        false => Some(domain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn realm_sees_credentials_only_in_the_domain_of_the_registry_or_where_allowed() {
        for (registry, realm, allowed, expected) in [
            ("registry-1.docker.io", "auth.docker.io", "", true),
            ("ghcr.io", "ghcr.io", "", true),
            ("quay.io", "quay.io", "", true),
            ("harbor.example.com:8443", "harbor.example.com", "", true),
            ("registry.gitlab.com", "gitlab.com", "", true),
            ("registry.example.com", "gitlab.example.com", "", true),
            ("registry.cn-hangzhou.aliyuncs.com", "dockerauth.cn-hangzhou.aliyuncs.com", "", true),
            ("registry.example.co.uk", "gitlab.example.co.uk", "", true),
            ("nvcr.io", "authn.nvidia.com", "", true),
            ("registry.redhat.io", "sso.redhat.com", "", true),
            ("127.0.0.1:5000", "localhost:5001", "", true),
            ("registry.shop.svc", "tokens.shop.svc", "", true),
            ("registry.example.com", "auth.other.example", "auth.other.example", true),
            ("10.0.0.1", "auth.other.example", "sso.example.com\nauth.other.example", true),
            // Others.
            ("registry.example.com", "auth.other.example", "", false),
            ("registry.example.com", "auth.other.example", "other.example", false),
            ("registry.example.com", "example.com.other.example", "", false),
            ("registry.example.com", "notexample.com", "", false),
            ("registry.example.co.uk", "other.co.uk", "", false),
            ("registry.com.au", "other.com.au", "", false),
            ("one.jfrog.io", "other.jfrog.io", "", false),
            ("registry.shop.svc", "tokens.other.svc", "", false),
            ("registry.shop.svc.cluster.local", "tokens.other.svc.cluster.local", "", false),
            ("10.0.0.1", "10.0.0.2", "", false),
            ("10.0.0.1", "1.10.0.0.1.example.com", "", false),
            ("[fd00::1]", "[fd00::2]", "", false),
            ("registry", "other", "", false),
            ("docker.io.other.example", "auth.docker.io", "", false),
            ("registry.example.com", "127.0.0.1", "", false),
        ] {
            let url = |host: &str| Url::parse(&format!("https://{host}/v2/")).expect("an address");
            let hosts = super::allowed(&Access::new([(TOKEN_REALMS.to_owned(), allowed.to_owned())])).expect("hosts");
            assert_eq!(
                may_see(&url(registry), &url(realm), &hosts),
                expected,
                "{registry} {realm} {allowed:?}"
            );
        }
    }

    #[test]
    fn realm_that_is_not_a_host_is_refused() {
        for text in [
            "https://a.test",
            "a.test/token",
            "a.test:443",
            "u@a.test",
            "*",
            "*.a.test",
            "a b",
            "a.test?x",
            "a.test#x",
        ] {
            let named = allowed(&Access::new([(TOKEN_REALMS.to_owned(), text.to_owned())]));
            let error = named.expect_err(text).to_string();
            assert!(error.contains("is not a host name"), "{error}");
        }
        assert_eq!(
            allowed(&Access::new([(TOKEN_REALMS.to_owned(), " A.test \n\n".to_owned())])),
            Ok(vec!["a.test".to_owned()])
        );
    }
}
