// SPDX-License-Identifier: Apache-2.0
//! Asking a vCenter who it is, against real sockets with real certificates that are right or wrong in one way each.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

pub(crate) mod server;
mod system_trust;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use server::{Answer, Authority, Identity, http, serve, soap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use vdo_api::types::Remedy as _;
use vdo_api::types::{Thumbprint, Trust};
use vdo_vsphere::vcenter::{Budget, Endpoint, Limits, MAX_ANSWER, Pool, facts};
use vdo_vsphere::vsphere::{ProbeError, ProbeStage, VcenterFacts};

async fn ask(server: &str, port: u16, trust: Trust) -> Result<VcenterFacts, ProbeError> {
    facts(
        &Endpoint {
            server: server.into(),
            port,
            trust,
        },
        &Budget::default(),
    )
    .await
}

/// The error texts, from the outside in, and the remedy.
fn reported(error: &ProbeError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    assert!(
        error.remedy().is_some_and(|remedy| remedy.ends_with('.')),
        "{error:?} has no remedy"
    );
    text
}

#[tokio::test]
async fn probe_known_authority_returns_vcenter_facts() {
    let authority = Authority::new("right");
    let identity = authority.sign(&["localhost", "127.0.0.1"], |params| params.not_after = date_time_ymd(2090, 1, 2));
    let server = serve(Some(&identity), soap("VirtualCenter", "8.0.3")).await;
    for name in ["localhost", "127.0.0.1"] {
        let found = ask(name, server.port, Trust::CaBundle(authority.pem.clone())).await.unwrap();
        assert_eq!(
            (found.version.raw(), found.build.as_str(), found.api_type.as_str()),
            ("8.0.3", "24022515", "VirtualCenter")
        );
        assert_eq!((found.api_version.as_str(), found.instance_uuid.as_str()), ("8.0.3.0", "u-u-i-d"));
        assert_eq!(found.full_name, "VMware vCenter & Server 8.0.3");
        assert_eq!(found.certificate.sha256, Thumbprint::sha256(&identity.certificate));
        assert_eq!(found.certificate.not_after.unwrap().to_string(), "2090-01-02T00:00:00Z");
        assert_eq!(found.certificate.issuer, "CN=right");
        assert_eq!(found.certificate.names, ["localhost", "127.0.0.1"]);
    }
}

#[tokio::test]
async fn probe_unknown_authority_is_rejected_before_request() {
    let identity = Authority::new("someone else").sign(&["localhost"], |_| {});
    let server = serve(Some(&identity), soap("VirtualCenter", "8.0.3")).await;
    for trust in [Trust::CaBundle(Authority::new("right").pem), Trust::SystemRoots] {
        let error = ask("localhost", server.port, trust).await.unwrap_err();
        if let ProbeError::BadTrust { because, .. } = &error {
            assert!(because.contains("No CA certificates"), "{because}"); // a machine without roots
            continue;
        }
        assert!(matches!(error, ProbeError::UnknownIssuer { .. }), "{error:?}");
        assert!(reported(&error).contains("someone else"), "{error}");
        assert_eq!(error.stage(), ProbeStage::Trusted);
        assert_eq!(error.presented().unwrap().sha256, Thumbprint::sha256(&identity.certificate));
    }
    assert_eq!(
        server.requests.load(Ordering::SeqCst),
        0,
        "something was sent before the certificate was accepted"
    );
    assert!(ask("localhost", server.port, Trust::Insecure).await.is_ok());
}

#[tokio::test]
async fn probe_thumbprint_any_spelling_is_accepted() {
    // Neither the name nor the dates count when the certificate itself is known.
    let identity = Authority::new("any").sign(&["other.example.com"], |params| params.not_after = date_time_ymd(2001, 1, 1));
    let server = serve(Some(&identity), soap("VirtualCenter", "7.0.3")).await;
    let known = ask("localhost", server.port, Trust::Insecure).await.unwrap().certificate;
    for print in [known.sha1.to_string(), known.sha256.to_string()] {
        for spelling in [
            print.clone(),
            print.to_lowercase(),
            print.replace(':', ""),
            print.replace(':', "").to_lowercase(),
        ] {
            let found = ask("localhost", server.port, Trust::Thumbprint(spelling.parse().unwrap())).await;
            assert_eq!(found.unwrap().version.raw(), "7.0.3");
        }
    }
}

#[tokio::test]
async fn probe_thumbprint_mismatch_shows_every_thumbprint() {
    let identity = Authority::new("any").sign(&["other.example.com"], |params| params.not_after = date_time_ymd(2001, 1, 1));
    let server = serve(Some(&identity), soap("VirtualCenter", "7.0.3")).await;
    let known = ask("localhost", server.port, Trust::Insecure).await.unwrap().certificate;
    let wrong = Thumbprint::sha256(b"another certificate");
    let error = ask("localhost", server.port, Trust::Thumbprint(wrong.clone())).await.unwrap_err();
    assert!(matches!(error, ProbeError::ThumbprintMismatch { .. }), "{error:?}");
    for print in [&wrong, &known.sha1, &known.sha256] {
        assert!(error.to_string().contains(&print.to_string()), "{error} does not show {print}");
    }
}

/// A thumbprint that differs in one byte is another one, wherever the byte is.
#[tokio::test]
async fn probe_thumbprint_with_one_other_byte_is_rejected() {
    let identity = Authority::new("any").sign(&["localhost"], |_| {});
    let server = serve(Some(&identity), soap("VirtualCenter", "7.0.3")).await;
    let known = ask("localhost", server.port, Trust::Insecure).await.unwrap().certificate;
    for print in [&known.sha1, &known.sha256] {
        let bytes: Vec<String> = print.to_string().split(':').map(str::to_owned).collect();
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] = if bytes[at] == "00" { "01" } else { "00" }.to_owned();
            let other: Thumbprint = other.join(":").parse().unwrap();
            let error = ask("localhost", server.port, Trust::Thumbprint(other)).await.unwrap_err();
            assert!(
                matches!(error, ProbeError::ThumbprintMismatch { .. }),
                "byte {at} of {print}: {error:?}"
            );
        }
    }
}

/// A public certificate is not enough: the key must belong to it.
#[tokio::test]
async fn probe_certificate_without_its_key_is_rejected() {
    let authority = Authority::new("any");
    let original = authority.sign(&["localhost"], |_| {});
    let thief = Identity {
        certificate: original.certificate.clone(),
        key: authority.sign(&["localhost"], |_| {}).key,
    };
    let provider = rustls::crypto::ring::default_provider();
    let key = provider
        .key_provider
        .load_private_key(PrivateKeyDer::try_from(thief.key.clone()).unwrap())
        .unwrap();
    #[derive(Debug)]
    struct Always(Arc<rustls::sign::CertifiedKey>);
    impl rustls::server::ResolvesServerCert for Always {
        fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
            Some(self.0.clone())
        }
    }
    let resolver = Arc::new(Always(Arc::new(rustls::sign::CertifiedKey::new(
        vec![thief.certificate.clone()],
        key,
    ))));
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = acceptor.accept(stream).await;
        }
    });
    let pinned = Trust::Thumbprint(Thumbprint::sha256(&original.certificate));
    for trust in [pinned, Trust::Insecure] {
        let error = ask("localhost", port, trust).await.unwrap_err();
        assert!(matches!(error, ProbeError::BadCertificate { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn probe_certificate_expired_early_or_misnamed_is_rejected() {
    let authority = Authority::new("right");
    let trust = Trust::CaBundle(authority.pem.clone());
    let expired = authority.sign(&["localhost"], |params| params.not_after = date_time_ymd(2020, 2, 3));
    let early = authority.sign(&["localhost"], |params| {
        params.not_before = date_time_ymd(2090, 2, 3);
        params.not_after = date_time_ymd(2091, 2, 3);
    });
    let named = authority.sign(&["vcenter.example.com", "10.0.0.1"], |_| {});
    for (identity, expected) in [
        (&expired, "expired on 2020-02-03T00:00:00Z"),
        (&early, "is not valid yet; it becomes valid on 2090-02-03T00:00:00Z"),
        (&named, "it is valid for vcenter.example.com, 10.0.0.1"),
    ] {
        let server = serve(Some(identity), soap("VirtualCenter", "8.0.3")).await;
        let error = ask("localhost", server.port, trust.clone()).await.unwrap_err();
        assert!(reported(&error).contains(expected), "{error} does not say {expected:?}");
        assert_eq!(error.stage(), ProbeStage::Trusted);
        assert!(error.presented().is_some());
    }
}

/// Go accepts a self-signed certificate that is itself in the pool, so the drivers do; vcsim's own certificate is one.
#[tokio::test]
async fn probe_self_signed_certificate_in_bundle_is_accepted() {
    for (names, not_after, accepted) in [
        (["localhost"], 2090, true),
        (["localhost"], 2001, false),
        (["other.example.com"], 2090, false),
    ] {
        for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
            let mut params = CertificateParams::new(names.map(String::from).to_vec()).unwrap();
            params.is_ca = is_ca;
            params.not_after = date_time_ymd(not_after, 1, 1);
            let key = KeyPair::generate().unwrap();
            let certificate = params.self_signed(&key).unwrap();
            let identity = Identity {
                certificate: certificate.der().clone(),
                key: key.serialize_der(),
            };
            let server = serve(Some(&identity), soap("VirtualCenter", "8.0.3")).await;
            let found = ask("localhost", server.port, Trust::CaBundle(certificate.pem())).await;
            assert_eq!(found.is_ok(), accepted, "{found:?}");
            assert!(
                ask("localhost", server.port, Trust::CaBundle(Authority::new("x").pem))
                    .await
                    .is_err()
            );
        }
    }
}

#[tokio::test]
async fn probe_invalid_ca_bundle_is_rejected() {
    let identity = Authority::new("any").sign(&["localhost"], |_| {});
    let server = serve(Some(&identity), soap("VirtualCenter", "8.0.3")).await;
    let begin = "-----BEGIN CERTIFICATE-----\n";
    for pem in [
        String::new(),
        "hello".into(),
        format!("{begin}AAAA\n-----END CERTIFICATE-----\n"),
        format!("{begin}*\n-----END CERTIFICATE-----\n"),
    ] {
        let error = ask("localhost", server.port, Trust::CaBundle(pem)).await.unwrap_err();
        assert!(matches!(error, ProbeError::BadTrust { .. }), "{error:?}");
        reported(&error);
    }
}

#[tokio::test]
async fn probe_answer_not_of_vcenter_is_rejected() {
    let authority = Authority::new("right");
    let identity = authority.sign(&["localhost"], |_| {});
    let envelope = |body: &str| {
        let body = format!(r#"<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>{body}</e:Body></e:Envelope>"#);
        http("200 OK", &body)
    };
    let fault = r#"<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><e:Fault><faultstring>vpxd&#10;is down</faultstring></e:Fault></e:Body></e:Envelope>"#;
    let bomb = r#"<!DOCTYPE e [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><e>&b;</e>"#;
    let truncated = "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n<e:Envelope";
    let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", "<a>x</a>".repeat(MAX_ANSWER / 4));
    for (answer, expected) in [
        (
            soap("HostAgent", "8.0.3"),
            "is an ESXi host, not a vCenter: VMware vCenter & Server 8.0.3",
        ),
        (soap("Embedded", "8.0.3"), "is not a vCenter: it calls itself \"Embedded\""),
        (
            soap("Embedded\u{7}", "8.0.3"),
            "it contains the character U+0007, which XML forbids",
        ),
        (
            soap("Embedded&#27;]0;title&#7;", "8.0.3"),
            "it contains the character U+001B, which XML forbids",
        ),
        (soap("VirtualCenter", "eight"), "cannot be read: \"eight\" is not a vCenter version"),
        (
            http("200 OK", "<!doctype html><p>hello"),
            "is not a vCenter: it answers with a web page",
        ),
        (http("200 OK", "<ok/>"), "is not a vCenter: its answer is not SOAP"),
        (http("200 OK", "{}"), "it has text outside of any element"),
        (envelope("<x/>"), "says nothing about a vSphere service"),
        (http("200 OK", bomb), "DOCTYPE"),
        (http("200 OK", &"<a>".repeat(1000)), "nested deeper than 64"),
        (http("200 OK", "<a>"), "it is incomplete"),
        (http("302 Found", ""), "redirects /sdk"),
        (http("404 Not Found", ""), "no service at /sdk"),
        (http("503 Service Unavailable", "starting"), "HTTP status 503"),
        (http("500 Internal Server Error", fault), "HTTP status 500: vpxd is down"),
        (Answer::Bytes(truncated.into()), "closed the connection during"),
        (Answer::Bytes(b"hello\r\n\r\n".to_vec()), "closed the connection during"),
        (Answer::Bytes(endless.into_bytes()), "larger than 1048576 bytes"),
        (
            Answer::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xfe".to_vec()),
            "not UTF-8",
        ),
    ] {
        let server = serve(Some(&identity), answer).await;
        let error = ask("localhost", server.port, Trust::CaBundle(authority.pem.clone()))
            .await
            .unwrap_err();
        assert!(
            reported(&error).contains(expected),
            "{} does not say {expected:?}",
            reported(&error)
        );
        assert_eq!(error.stage(), ProbeStage::IsVcenter);
    }
}

#[tokio::test]
async fn probe_server_without_tls_is_rejected() {
    let plain = serve(None, soap("VirtualCenter", "8.0.3")).await;
    let error = ask("127.0.0.1", plain.port, Trust::Insecure).await.unwrap_err();
    assert!(matches!(error, ProbeError::NotTls { .. }), "{error:?}");
    assert_eq!(plain.requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn probe_closed_port_is_refused() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let error = ask("127.0.0.1", closed, Trust::Insecure).await.unwrap_err();
    assert!(matches!(error, ProbeError::Refused { .. }), "{error:?}");
    assert_eq!(error.stage(), ProbeStage::Connected);
}

#[tokio::test]
async fn probe_unknown_host_name_is_not_resolved() {
    let error = ask("does-not-exist.invalid", 443, Trust::Insecure).await.unwrap_err();
    assert!(matches!(error, ProbeError::Unresolvable { .. }), "{error:?}");
    assert_eq!(error.stage(), ProbeStage::Resolved);
}

#[tokio::test]
async fn probe_malformed_address_is_rejected() {
    for server in ["", "https://vc", "vc.example.com/sdk", "a b", "vc\r\nHost: x"] {
        let error = ask(server, 443, Trust::Insecure).await.unwrap_err();
        assert!(matches!(error, ProbeError::NotAnAddress { .. }), "{error:?}");
        reported(&error);
    }
}

#[tokio::test]
async fn probe_silent_server_hits_timeout() {
    let identity = Authority::new("any").sign(&["localhost"], |_| {});
    let silent = serve(Some(&identity), Answer::Silence).await;
    // Accepts by the kernel's queue, and never greets.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    for (port, stage) in [
        (silent.port, ProbeStage::IsVcenter),
        (mute.local_addr().unwrap().port(), ProbeStage::Trusted),
    ] {
        let started = Instant::now();
        let endpoint = Endpoint {
            server: "127.0.0.1".into(),
            port,
            trust: Trust::Insecure,
        };
        let limits = Limits {
            call: Duration::from_millis(300),
            ..Limits::default()
        };
        let error = facts(&endpoint, &Budget::new(limits, &Pool::default())).await.unwrap_err();
        assert!(
            matches!(&error, ProbeError::TimedOut { stage: at, .. } if *at == stage),
            "{error:?}"
        );
        assert!(reported(&error).contains("within 300ms"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}
