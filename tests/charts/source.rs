// SPDX-License-Identifier: Apache-2.0
//! A matrix on a web server: what is asked, what is believed, and what is refused. The attacks are called as the specification of TUF
//! calls them (theupdateframework.github.io/specification, section 1.5.2).

mod attacks;

use anyhow::{Context as _, Result};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use vdo_api::types::{ChartRef, Digest, Remedy as _, Secret};
use vdo_source::fetch::{ChartRepository, LoadedIndex, Polled, Records, RepositoryError};
use vdo_source::signature::{Form, PrivateKey};
use vdo_testbed::{Validity, WebAnswer, WebServer};

const INDEX: &str = "/matrix/index.yaml";

/// An index with nothing but its version.
pub fn index(version: u64) -> String {
    format!(
        "{{\"apiVersion\": \"vdo.vmware.com/matrix/v1\", \"kind\": \"CompatibilityMatrix\", \"version\": {version}, \"drivers\": {{}}}}\n"
    )
}

/// A publisher's key.
pub struct Publisher(PrivateKey);

impl Publisher {
    pub fn new() -> Result<Self> {
        let pem = rcgen::KeyPair::generate()?.serialize_pem();
        Ok(Self(PrivateKey::parse(&Secret::new(pem))?))
    }

    pub fn sign(&self, text: &[u8]) -> Result<String> {
        Ok(self.0.sign(text, Form::Bare)?)
    }

    /// Its public key, PEM.
    pub fn public(&self) -> String {
        self.0.public().pem()
    }

    fn fingerprint(&self) -> String {
        self.0.public().fingerprint().to_string()
    }
}

/// A server with an index, and a client's files: credentials and keys.
pub struct Site {
    server: WebServer,
    folder: tempfile::TempDir,
}

impl Site {
    async fn start() -> Result<Self> {
        Self::with(WebServer::start().await?)
    }

    fn with(server: WebServer) -> Result<Self> {
        let site = Self {
            server,
            folder: tempfile::tempdir()?,
        };
        std::fs::create_dir(site.credentials())?;
        site.credential("ca.crt", &site.server.authority().pem())?;
        site.server.put(INDEX, index(7));
        Ok(site)
    }

    fn credentials(&self) -> PathBuf {
        self.folder.path().join("credentials")
    }

    fn credential(&self, key: &str, value: &str) -> Result<()> {
        Ok(std::fs::write(self.credentials().join(key), value)?)
    }

    /// Trusts these keys, and no other.
    fn trust(&self, keys: &[&Publisher]) -> Result<PathBuf> {
        let path = self.folder.path().join("keys.pem");
        std::fs::write(&path, keys.iter().map(|key| key.0.public().pem()).collect::<String>())?;
        Ok(path)
    }

    fn publish(&self, text: &str, key: &Publisher) -> Result<()> {
        self.server.put(INDEX, text.to_owned());
        self.server.put(&format!("{INDEX}.sig"), key.sign(text.as_bytes())?);
        Ok(())
    }

    /// Someone who has not asked yet, such as an operator that has just started.
    fn repository(&self, keys: Option<PathBuf>) -> ChartRepository {
        let source = self.server.url(INDEX).parse().expect("an address");
        ChartRepository::at(Some(source), keys, Some(self.credentials()))
    }

    /// Asks once, and says what is used then.
    async fn look(&self, repository: &ChartRepository) -> (Polled, Result<LoadedIndex, RepositoryError>) {
        let polled = repository.poll().await;
        (polled, repository.index(&Records::default()).await)
    }

    /// Asks once as someone who knows nothing; why nothing is used.
    async fn refusal(&self) -> Result<RepositoryError> {
        let (_, found) = self.look(&self.repository(None)).await;
        found.err().context("an index was used")
    }
}

/// Everything that a person reads of an error.
fn reported(error: &RepositoryError) -> String {
    format!(
        "{} {} {}",
        error.reason(),
        vdo_api::api::chain(error),
        error.remedy().unwrap_or_default()
    )
}

#[tokio::test]
async fn web_index_without_news_costs_one_request() -> Result<()> {
    let site = Site::start().await?;
    let repository = site.repository(None);
    let (first, loaded) = site.look(&repository).await;
    assert!(first.news && first.problem.is_none(), "{first:?}");
    assert_eq!(loaded?.index.version, 7);
    site.server.forget();
    let (second, loaded) = site.look(&repository).await;
    assert!(!second.news && second.problem.is_none(), "{second:?}");
    assert_eq!(loaded?.index.version, 7);
    let asked = site.server.asked();
    assert_eq!(asked.iter().map(|asked| asked.status).collect::<Vec<_>>(), [304], "{asked:?}");

    site.server.put(INDEX, index(8));
    let (third, loaded) = site.look(&repository).await;
    assert!(third.news);
    assert_eq!(loaded?.index.version, 8);
    Ok(())
}

#[tokio::test]
async fn web_server_that_knows_indexes_by_their_dates_is_asked_with_them() -> Result<()> {
    const DATE: &str = "Fri, 20 Nov 2026 10:00:00 GMT";
    let site = Site::start().await?;
    let repository = site.repository(None);
    site.server.answer(|asked| match asked.if_modified_since.as_deref() {
        Some(DATE) => WebAnswer::Status(304, vec![], String::new()),
        _ => WebAnswer::Status(200, vec![("last-modified", DATE.to_owned())], index(7)),
    });
    assert_eq!(site.look(&repository).await.1?.index.version, 7);
    site.server.forget();
    let (polled, loaded) = site.look(&repository).await;
    assert!(!polled.news && polled.problem.is_none(), "{polled:?}");
    assert_eq!(loaded?.index.version, 7);
    assert_eq!(site.server.asked().iter().map(|asked| asked.status).collect::<Vec<_>>(), [304]);
    Ok(())
}

#[tokio::test]
async fn web_index_is_not_asked_for_by_a_look_at_it() -> Result<()> {
    let site = Site::start().await?;
    let repository = site.repository(None);
    let error = repository.index(&Records::default()).await.err().context("nothing was asked yet")?;
    assert!(reported(&error).starts_with("MatrixUnreachable"), "{}", reported(&error));
    assert!(site.server.asked().is_empty(), "a reconcile does not wait for a server");
    Ok(())
}

#[tokio::test]
async fn web_index_compressed_is_read() -> Result<()> {
    let site = Site::start().await?;
    site.server.answer(|asked| match asked.path.ends_with(".yaml") {
        true => WebAnswer::Gzip,
        false => WebAnswer::File,
    });
    let (_, loaded) = site.look(&site.repository(None)).await;
    assert_eq!(loaded?.index.version, 7);
    Ok(())
}

#[tokio::test]
async fn web_server_that_cannot_be_used_is_named_and_last_good_index_stays() -> Result<()> {
    let site = Site::start().await?;
    let repository = site.repository(None);
    site.look(&repository).await.1?;
    let page = || "<html><body>Please log in</body></html>".to_owned();
    let to = |address: &str| vec![("location", address.to_owned())];
    for (status, headers, body, said, wait) in [
        (
            401,
            vec![],
            "who are you?".to_owned(),
            "HTTP status 401 Unauthorized and says \"who are you?\"",
            None,
        ),
        (403, vec![], page(), "HTTP status 403 Forbidden", None),
        (404, vec![], String::new(), "HTTP status 404 Not Found", None),
        (
            429,
            vec![("retry-after", "120".to_owned())],
            String::new(),
            "HTTP status 429",
            Some(120),
        ),
        (500, vec![], "x".repeat(100_000), "HTTP status 500", None),
        (
            302,
            to("http://localhost/index.yaml"),
            String::new(),
            "redirects to http://localhost/index.yaml, which is not https",
            None,
        ),
        (302, to("file:///etc/passwd"), String::new(), "which is not https", None),
        (302, to(INDEX), String::new(), "more than 5 times", None),
        (204, vec![], String::new(), "HTTP status 204", None),
    ] {
        site.server
            .answer(move |_| WebAnswer::Status(status, headers.clone(), body.clone()));
        let (polled, loaded) = site.look(&repository).await;
        let loaded = loaded.with_context(|| format!("{status}"))?;
        assert_eq!(loaded.index.version, 7, "{status}");
        let problem = loaded.problem.with_context(|| format!("{status} is not a problem"))?;
        assert_eq!(problem.reason.as_str(), "MatrixUnreachable");
        assert!(
            problem.message.contains(said) && problem.message.contains(&site.server.url(INDEX)),
            "{}",
            problem.message
        );
        assert_eq!(polled.wait, wait.map(Duration::from_secs), "{status}");
        assert_eq!(polled.problem, Some(problem));
    }
    site.server.answer(|_| WebAnswer::File);
    let (polled, loaded) = site.look(&repository).await;
    assert_eq!((polled.problem, loaded?.problem), (None, None), "it is used again");
    Ok(())
}

#[tokio::test]
async fn web_answer_that_is_no_index_is_invalid_and_last_good_index_stays() -> Result<()> {
    let site = Site::start().await?;
    let repository = site.repository(None);
    site.look(&repository).await.1?;
    for (content, said) in [
        ("<!doctype html><title>Log in</title>".as_bytes().to_vec(), "web page"),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00".to_vec(), "archive"),
        (b"PK\x03\x04abc".to_vec(), "archive"),
        (index(8).replace("/v1", "/v9").into_bytes(), "vdo.vmware.com/matrix/v9"),
        (b"drivers: [".to_vec(), "line 1"),
        (Vec::new(), ""),
    ] {
        site.server.put(INDEX, content.clone());
        let (_, loaded) = site.look(&repository).await;
        let loaded = loaded?;
        assert_eq!(loaded.index.version, 7);
        let problem = loaded.problem.context("it is used")?;
        assert_eq!(problem.reason.as_str(), "MatrixInvalid", "{}", problem.message);
        assert!(problem.message.contains(said), "{said}: {}", problem.message);
    }
    Ok(())
}

#[tokio::test]
async fn web_server_without_trusted_certificate_is_refused() -> Result<()> {
    let expired = Site::with(WebServer::start_with(Validity::Expired, false).await?)?;
    let error = reported(&expired.refusal().await?);
    assert!(error.contains("expired") && error.contains("ca.crt"), "{error}");
    let site = Site::start().await?;
    site.credential("ca.crt", &expired.server.authority().pem())?;
    let error = reported(&site.refusal().await?);
    assert!(error.contains("its certificate is not signed by a trusted authority"), "{error}");
    assert!(site.server.asked().is_empty());
    // The file is read again before the next request.
    site.credential("ca.crt", &site.server.authority().pem())?;
    site.look(&site.repository(None)).await.1?;
    site.credential("ca.crt", "no certificate")?;
    let error = reported(&site.refusal().await?);
    assert!(
        error.contains("ca.crt holds no certificate") && error.contains("--matrix-credentials"),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn web_credentials_reach_their_server_and_no_other() -> Result<()> {
    let (site, other) = (Site::start().await?, Site::start().await?);
    site.credential("ca.crt", &(site.server.authority().pem() + &other.server.authority().pem()))?;
    site.credential("username", "reader\n")?;
    site.credential("password", "s3cret-Passw0rd\n")?;
    site.server.answer(|asked| match asked.authorization.as_deref() {
        Some("Basic cmVhZGVyOnMzY3JldC1QYXNzdzByZA==") => WebAnswer::File,
        _ => WebAnswer::Status(401, vec![], "no".into()),
    });
    let repository = site.repository(None);
    site.look(&repository).await.1?;
    let chart = ChartRef {
        urls: vec![other.server.url("/toy-1.0.0.tgz")],
        digest: Digest::of(b"none"),
    };
    let error = repository.chart(&chart).await.err().context("there is no chart")?;
    assert!(reported(&error).contains("404"), "{}", reported(&error));
    let asked = other.server.asked();
    assert!(asked.len() == 1 && asked[0].authorization.is_none(), "{asked:?}");
    // Nor is it led elsewhere with them.
    let elsewhere = other.server.url(INDEX);
    site.server
        .answer(move |_| WebAnswer::Status(307, vec![("location", elsewhere.clone())], String::new()));
    other.server.forget();
    site.look(&repository).await.1?;
    let asked = other.server.asked();
    assert!(
        !asked.is_empty() && asked.iter().all(|asked| asked.authorization.is_none()),
        "{asked:?}"
    );

    site.server.answer(|_| WebAnswer::Status(401, vec![], "no".into()));
    let error = reported(&site.refusal().await?);
    assert!(error.contains("--matrix-credentials") && !error.contains("s3cret"), "{error}");
    Ok(())
}

#[tokio::test]
async fn web_bearer_token_and_client_certificate_are_sent() -> Result<()> {
    let site = Site::with(WebServer::start_with(Validity::Good, true).await?)?;
    assert!(site.refusal().await.is_ok(), "without a certificate it does not answer");
    let leaf = site.server.authority().client("operator", None)?;
    site.credential("tls.crt", &leaf.cert)?;
    site.credential("tls.key", &leaf.key)?;
    site.credential("bearerToken", "t0ken")?;
    site.look(&site.repository(None)).await.1?;
    let asked = site.server.asked();
    assert!(
        asked.iter().all(|asked| asked.authorization.as_deref() == Some("Bearer t0ken")),
        "{asked:?}"
    );
    Ok(())
}

/// The certificate is for the server of the index; another one that asks for it does not see it.
#[tokio::test]
async fn web_client_certificate_does_not_follow_a_redirect() -> Result<()> {
    let site = Site::with(WebServer::start_with(Validity::Good, true).await?)?;
    let leaf = site.server.authority().client("operator", None)?;
    for (key, value) in [("tls.crt", leaf.cert.as_str()), ("tls.key", &leaf.key), ("bearerToken", "t0ken")] {
        site.credential(key, value)?;
    }
    let other = WebServer::start_asking_for_certificates(site.server.authority()).await?;
    other.put(INDEX, index(7));
    for code in [301, 302, 303, 307, 308] {
        let elsewhere = other.url(INDEX);
        site.server
            .answer(move |_| WebAnswer::Status(code, vec![("location", elsewhere.clone())], String::new()));
        other.forget();
        site.look(&site.repository(None)).await.1?;
        let asked = other.asked();
        assert!(!asked.is_empty(), "{code}: it was not followed");
        let shown = asked.iter().filter(|asked| asked.certificate || asked.authorization.is_some());
        assert_eq!(shown.count(), 0, "{code}: {asked:?}");
    }
    // On the way through its own server the certificate goes along.
    let (own, elsewhere) = (site.server.url("/second"), other.url(INDEX));
    site.server.answer(move |asked| {
        let to = if asked.path == "/second" { &elsewhere } else { &own };
        WebAnswer::Status(302, vec![("location", to.clone())], String::new())
    });
    site.server.forget();
    other.forget();
    site.look(&site.repository(None)).await.1?;
    assert!(
        site.server.asked().iter().all(|asked| asked.certificate),
        "{:?}",
        site.server.asked()
    );
    assert!(
        other.asked().iter().all(|asked| !asked.certificate) && !other.asked().is_empty(),
        "{:?}",
        other.asked()
    );
    // Nowhere else either, and not for ever.
    let plain = || vec![("location", "http://localhost/index.yaml".to_owned())];
    site.server.answer(move |_| WebAnswer::Status(302, plain(), String::new()));
    let error = reported(&site.refusal().await?);
    assert!(error.contains("which is not https"), "{error}");
    Ok(())
}

/// A proxy that lets in who has this password, and counts whom.
async fn proxy(authorization: &'static str) -> Result<(u16, Arc<AtomicUsize>)> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let (port, count) = (listener.local_addr()?.port(), Arc::new(AtomicUsize::new(0)));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let counted = counted.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await?);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
                let Some(target) = target.filter(|_| head.to_lowercase().contains(&authorization.to_lowercase())) else {
                    return client
                        .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
                        .await;
                };
                counted.fetch_add(1, Ordering::SeqCst);
                let mut server = tokio::net::TcpStream::connect(target).await?;
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
            });
        }
    });
    Ok((port, count))
}

#[tokio::test]
async fn web_proxy_of_the_credentials_is_used_and_never_shown() -> Result<()> {
    let site = Site::start().await?;
    // u:s3cret
    let (port, through) = proxy("Proxy-Authorization: Basic dTpzM2NyZXQ=").await?;
    site.credential("proxy", &format!("http://u:s3cret@127.0.0.1:{port}\n"))?;
    let repository = site.repository(None);
    assert_eq!(site.look(&repository).await.1?.index.version, 7);
    assert!(through.load(Ordering::SeqCst) > 0, "the proxy was passed by");

    site.credential("proxy", &format!("http://u:wr0ng@127.0.0.1:{port}"))?;
    let refused = reported(&site.refusal().await?);
    assert!(
        refused.starts_with("MatrixUnreachable") && refused.contains("proxy") && !refused.contains("wr0ng"),
        "{refused}"
    );
    site.credential("proxy", "pr0xy of ours")?;
    let refused = reported(&site.refusal().await?);
    assert!(
        refused.contains("proxy is not an address of a proxy") && !refused.contains("pr0xy"),
        "{refused}"
    );
    Ok(())
}

#[tokio::test]
async fn web_server_says_how_long_its_answer_is_good() -> Result<()> {
    let site = Site::start().await?;
    let repository = site.repository(None);
    for (control, expected) in [("max-age=7200", Some(7200)), ("no-cache", None)] {
        let content = index(7);
        site.server
            .answer(move |_| WebAnswer::Status(200, vec![("cache-control", control.into())], content.clone()));
        let (polled, _) = site.look(&repository).await;
        assert_eq!(polled.wait, expected.map(Duration::from_secs));
    }
    Ok(())
}

#[tokio::test]
async fn web_chart_beside_the_index_is_verified_and_read() -> Result<()> {
    let site = Site::start().await?;
    let repository = site.repository(None);
    let bytes = package()?;
    site.server.put("/matrix/charts/other.tgz", bytes.clone());
    let chart = |url: &str| ChartRef {
        urls: vec!["charts/missing.tgz".into(), url.to_owned()],
        digest: Digest::of(&bytes),
    };
    let opened = repository.chart(&chart("charts/other.tgz")).await?;
    assert!(
        Arc::ptr_eq(&opened, &repository.chart(&chart("charts/other.tgz")).await?),
        "it is fetched once"
    );
    assert_eq!(repository.packed(&Digest::of(&bytes)), Some(bytes));
    Ok(())
}

/// A chart of the CPI that is in no binary, packed.
pub fn package() -> Result<Vec<u8>> {
    let mut source = vdo_source::fetch::embedded::sources()
        .remove(vdo_core::drivers::CPI)
        .context("a source")?;
    let values = source.files.get_mut("values.yaml").context("values.yaml")?;
    values.extend(b"# changed\n");
    let version = source.versions().last().context("a version")?.clone();
    Ok(vdo_core::chart::package(&source, &version)?)
}
