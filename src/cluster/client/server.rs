// SPDX-License-Identifier: Apache-2.0
//! Parses the API server's address in a kubeconfig: adds a missing scheme as kubectl does, and refuses a password in the address.

use hyper::Uri;
use kube::config::{AuthInfo, Cluster};

/// The address with its scheme, or nothing where it is none of an API server. kube does not survive an address without a scheme, and what is kept is
/// shown in messages: a password or a token in the address is refused.
pub(super) fn address(written: &str, cluster: &Cluster, user: Option<&AuthInfo>) -> Option<String> {
    let written = written.trim();
    let whole = match written.contains("://") {
        true => written.to_owned(),
        false if is_tls(cluster, user) => format!("https://{written}"),
        false => format!("http://{written}"),
    };
    let uri: Uri = whole.parse().ok()?;
    let authority = uri.authority()?.as_str();
    let fits = matches!(uri.scheme_str(), Some("http" | "https"))
        && uri.host().is_some_and(|host| !host.is_empty())
        && !authority.contains('@')
        && uri.query().is_none();
    fits.then_some(whole)
}

/// Whether an address without a scheme is one of TLS.
fn is_tls(cluster: &Cluster, user: Option<&AuthInfo>) -> bool {
    let certificate = user.is_some_and(|user| user.client_certificate.is_some() || user.client_certificate_data.is_some());
    certificate
        || cluster.certificate_authority.is_some()
        || cluster.certificate_authority_data.is_some()
        || cluster.insecure_skip_tls_verify == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_has_a_scheme_and_no_secret() {
        let plain = Cluster::default;
        let trusted = || Cluster {
            certificate_authority_data: Some("Y2E=".into()),
            ..plain()
        };
        let unchecked = || Cluster {
            insecure_skip_tls_verify: Some(true),
            ..plain()
        };
        for (written, cluster, expected) in [
            ("https://a.test:6443", plain(), Some("https://a.test:6443")),
            ("http://127.0.0.1:8001", plain(), Some("http://127.0.0.1:8001")),
            (
                "https://rancher.test/k8s/clusters/c-1",
                plain(),
                Some("https://rancher.test/k8s/clusters/c-1"),
            ),
            ("https://[::1]:6443", plain(), Some("https://[::1]:6443")),
            ("a.test:6443", plain(), Some("http://a.test:6443")),
            ("a.test:6443", trusted(), Some("https://a.test:6443")),
            (" a.test ", unchecked(), Some("https://a.test")),
            ("ftp://a.test", plain(), None),
            ("https://me:hunter2@a.test", plain(), None),
            ("me:hunter2@a.test", trusted(), None),
            ("https://a.test/?token=hunter2", plain(), None),
            ("https://", plain(), None),
            ("https://a b", plain(), None),
            ("", trusted(), None),
        ] {
            assert_eq!(address(written, &cluster, None).as_deref(), expected, "{written:?}");
        }
        let user = AuthInfo {
            client_certificate: Some("cert".into()),
            ..AuthInfo::default()
        };
        assert_eq!(address("a.test", &plain(), Some(&user)).as_deref(), Some("https://a.test"));
    }
}
