// SPDX-License-Identifier: Apache-2.0
//! A matrix in a registry: published, polled, and everything that can be wrong with it.

use super::{Credentials, both, chain, client, login, reference};
use crate::follow::Page;
use crate::source::{index, package};
use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use vdo_api::types::{ChartRef, Digest, Remedy as _};
use vdo_oci::oci::media;
use vdo_oci::registry::{Fault, Reference, Registry, pull_matrix, push_matrix};
use vdo_source::fetch::{ChartRepository, Records};
use vdo_testbed::{RegistryAuth, RegistryKind, RegistryServer, WebAnswer, WebServer, oras, run};

pub fn repository(at: &Reference, credentials: &Credentials, keys: Option<PathBuf>) -> Result<ChartRepository> {
    let source = format!("oci://{at}").parse().map_err(anyhow::Error::msg)?;
    Ok(ChartRepository::at(Some(source), keys, Some(credentials.path())))
}

/// The files of a matrix with this version and one chart.
pub fn files(version: u64) -> Result<BTreeMap<String, Vec<u8>>> {
    Ok(BTreeMap::from([
        ("charts/other.tgz".to_owned(), package()?),
        ("index.yaml".to_owned(), index(version).into_bytes()),
    ]))
}

/// Publishes on top of what is there.
pub async fn publish(registry: &Registry, at: &Reference, files: &BTreeMap<String, Vec<u8>>) -> Result<Digest> {
    let before = pull_matrix(registry, at).await?.map(|(digest, _)| digest);
    Ok(push_matrix(registry, at, files, before.as_ref()).await?)
}

/// Publishes, whatever is there.
async fn publish_over(registry: &Registry, at: &Reference, files: &BTreeMap<String, Vec<u8>>) -> Result<Digest> {
    let before = registry.manifest(at).await?.descriptor.digest;
    Ok(push_matrix(registry, at, files, Some(&before)).await?)
}

/// Asks, and says which version is used, and why not the newest.
pub async fn look(repository: &ChartRepository) -> Result<(u64, Option<(String, String)>)> {
    repository.poll().await;
    let loaded = repository.index(&Records::default()).await?;
    let problem = loaded.problem.map(|problem| (problem.reason.to_string(), problem.message));
    Ok((loaded.index.version, problem))
}

#[tokio::test]
async fn matrix_in_a_registry_is_published_polled_and_fetched() -> Result<()> {
    for server in both().await? {
        let (registry, at) = (client(&server, login())?, reference(&server, "vdo/matrix:stable")?);
        let credentials = Credentials::of(&server)?;
        let repository = repository(&at, &credentials, None)?;
        assert!(
            repository
                .poll()
                .await
                .problem
                .is_some_and(|problem| problem.reason.as_str() == "MatrixUnreachable")
        );
        assert_eq!(pull_matrix(&registry, &at).await?, None);
        let seven = publish(&registry, &at, &files(7)?).await?;
        assert_eq!(look(&repository).await?, (7, None));
        let read = pull_matrix(&registry, &at).await?.context("nothing is there")?;
        assert_eq!(read, (seven.clone(), files(7)?));
        // The same files are the same artifact.
        assert_eq!(publish(&registry, &at, &files(7)?).await?, seven);

        let bytes = package()?;
        let chart = |url: &str| ChartRef {
            urls: vec![url.to_owned()],
            digest: Digest::of(&bytes),
        };
        publish(&registry, &at, &files(8)?).await?;
        // The tag leads elsewhere by now; the chart of the index in use is found by its digest.
        repository.chart(&chart("charts/other.tgz")).await?;
        assert_eq!(look(&repository).await?, (8, None));
        // A digest is followed to nothing else.
        let pinned = self::repository(&at.at_digest(&seven), &credentials, None)?;
        assert_eq!(look(&pinned).await?, (7, None));
        assert_eq!(look(&pinned).await?, (7, None));
        // A chart of Helm in another repository, from a source of any kind.
        registry.put_blob("charts/other", bytes.clone().into()).await?;
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("index.yaml"), index(1))?;
        let here = vdo_source::fetch::MatrixSource::Local(folder.path().to_owned());
        let docker = format!(
            r#"{{"auths": {{"{}": {{"username": "{}", "password": "{}"}}}}}}"#,
            server.host(),
            vdo_testbed::LOGIN.0,
            vdo_testbed::LOGIN.1
        );
        let docker = Credentials::new(&[("ca.crt", &server.ca()), (".dockerconfigjson", &docker)])?;
        let here = ChartRepository::at(Some(here), None, Some(docker.path()));
        here.chart(&chart(&format!("oci://{}/charts/other:1.0.0", server.host()))).await?;
    }
    Ok(())
}

/// What oras publishes is a source, and what oras pulls is a folder that is one.
#[tokio::test]
async fn matrix_in_a_registry_and_in_a_folder_are_the_same_to_oras() -> Result<()> {
    let oras = oras().await?;
    for server in both().await? {
        let (registry, at) = (client(&server, login())?, reference(&server, "vdo/matrix:stable")?);
        publish(&registry, &at, &files(7)?).await?;
        let ca = server.ca_file()?.display().to_string();
        let other = reference(&server, "vdo/copied:1")?;
        let mut page = Page::open("matrix.md")?.with(&oras)?.set("PLACE", &other).set("SSL_CERT_FILE", &ca);
        let (user, password) = vdo_testbed::LOGIN;
        let known = serde_json::json!({"auths": {server.host(): {"auth": STANDARD.encode(format!("{user}:{password}"))}}});
        page.file(".docker/config.json", &known.to_string())?;
        page.file("index.yaml.sig", "")?;
        let access = ["--ca-file", &ca, "--username", user, "--password", password];
        let name = at.to_string();
        run(&oras, page.folder(), &[&["pull", &name, "-o", "."][..], &access].concat()).await?;
        for (path, content) in files(7)? {
            assert_eq!(std::fs::read(page.folder().join(&path))?, content, "{path}");
        }
        page.run("oras push")?;
        let credentials = Credentials::of(&server)?;
        let repository = repository(&other, &credentials, None)?;
        assert_eq!(look(&repository).await?, (7, None));
        repository
            .chart(&ChartRef {
                urls: vec!["charts/other.tgz".into()],
                digest: Digest::of(&package()?),
            })
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn matrix_of_another_publisher_in_between_is_not_overwritten() -> Result<()> {
    for server in both().await? {
        let (registry, at) = (client(&server, login())?, reference(&server, "vdo/matrix:stable")?);
        let seven = publish(&registry, &at, &files(7)?).await?;
        let eight = publish(&registry, &at, &files(8)?).await?;
        for (before, said) in [
            (
                Some(&seven),
                format!("the tag now points to {eight}, and pointed to {seven} before"),
            ),
            (None, format!("the tag now points to {eight}, and did not exist before")),
        ] {
            let error = push_matrix(&registry, &at, &files(9)?, before)
                .await
                .err()
                .context("it was overwritten")?;
            assert!(
                matches!(error.fault(), Fault::Moved { .. }) && chain(&error).contains(&said),
                "{}",
                chain(&error)
            );
            assert!(error.remedy().is_some_and(|remedy| remedy.contains("publish again")));
        }
        let elsewhere = reference(&server, "vdo/other:stable")?;
        let error = push_matrix(&registry, &elsewhere, &files(9)?, Some(&eight))
            .await
            .err()
            .context("it was published")?;
        assert!(chain(&error).contains("the tag no longer exists"), "{}", chain(&error));
        assert_eq!(pull_matrix(&registry, &at).await?.map(|(digest, _)| digest), Some(eight));
    }
    Ok(())
}

#[tokio::test]
async fn matrix_that_is_damaged_rolled_back_or_none_is_refused_and_the_last_good_one_stays() -> Result<()> {
    for server in both().await? {
        let (registry, at) = (client(&server, login())?, reference(&server, "vdo/matrix:stable")?);
        publish(&registry, &at, &files(7)?).await?;
        let credentials = Credentials::of(&server)?;
        let repository = repository(&at, &credentials, None)?;
        assert_eq!(look(&repository).await?, (7, None));
        let refused = async |reason: &str, said: &str| -> Result<()> {
            let (version, problem) = look(&repository).await?;
            let (found, message) = problem.with_context(|| format!("{said}: no problem"))?;
            assert_eq!((version, found.as_str()), (7, reason), "{message}");
            assert!(message.contains(said), "{said}: {message}");
            Ok(())
        };
        let restore = async || -> Result<()> {
            publish_over(&registry, &at, &files(7)?).await?;
            assert_eq!(look(&repository).await?, (7, None));
            Ok(())
        };
        publish(&registry, &at, &files(6)?).await?;
        refused("MatrixRolledBack", "the version 6 of the index is lower than the version 7").await?;
        restore().await?;
        let mut none = files(8)?;
        let content = none.remove("index.yaml").context("an index")?;
        publish(&registry, &at, &none).await?;
        refused("MatrixInvalid", "an artifact without the file index.yaml").await?;
        restore().await?;
        let mut page = files(8)?;
        page.insert("index.yaml".into(), b"<!doctype html><title>Log in</title>".to_vec());
        publish(&registry, &at, &page).await?;
        refused("MatrixInvalid", "web page").await?;
        restore().await?;
        // A chart is not a matrix.
        let artifact = vdo_oci::registry::Artifact {
            artifact_type: media::HELM_CONFIG.into(),
            files: vec![],
        };
        let before = registry.manifest(&at).await?.descriptor.digest;
        vdo_oci::registry::push_files(&registry, &at, &artifact, Some(&before)).await?;
        refused("MatrixInvalid", "application/vnd.cncf.helm.config.v1+json").await?;
        restore().await?;
        // The index is lost, then changed, behind the registry's back.
        publish(&registry, &at, &files(8)?).await?;
        let blob = server.blob("vdo/matrix", &Digest::of(&content).hex())?;
        std::fs::write(&blob, index(9))?;
        refused("MatrixInvalid", "was changed").await?;
        std::fs::remove_file(&blob)?;
        refused("MatrixUnreachable", "404").await?;
        std::fs::write(&blob, &content)?;
        assert_eq!(look(&repository).await?, (8, None));
    }
    Ok(())
}

#[tokio::test]
async fn matrix_registry_that_is_gone_or_refuses_is_named_and_comes_back() -> Result<()> {
    let mut server = RegistryServer::start(RegistryKind::Distribution, RegistryAuth::Basic).await?;
    let (registry, at) = (client(&server, login())?, reference(&server, "vdo/matrix:stable")?);
    publish(&registry, &at, &files(7)?).await?;
    let credentials = Credentials::of(&server)?;
    let repository = repository(&at, &credentials, None)?;
    assert_eq!(look(&repository).await?, (7, None));
    std::fs::write(credentials.path().join("password"), "s3cret")?;
    let (_, problem) = look(&repository).await?;
    let (reason, message) = problem.context("the login succeeded")?;
    assert!(
        reason == "MatrixUnreachable" && message.contains("401") && !message.contains("s3cret"),
        "{message}"
    );
    std::fs::write(credentials.path().join("password"), vdo_testbed::LOGIN.1)?;
    assert_eq!(look(&repository).await?, (7, None));
    server.stop();
    let (version, problem) = look(&repository).await?;
    let (reason, message) = problem.context("it answers")?;
    assert!(
        version == 7 && reason == "MatrixUnreachable" && message.contains("cannot be reached"),
        "{message}"
    );
    server.restart().await?;
    assert_eq!(look(&repository).await?, (7, None));
    Ok(())
}

/// What real registries never do.
#[tokio::test]
async fn matrix_registry_that_misbehaves_is_broken_off() -> Result<()> {
    let server = WebServer::start().await?;
    let credentials = Credentials::new(&[("ca.crt", &server.authority().pem())])?;
    let host = server.url("").trim_start_matches("https://").to_owned();
    let at: Reference = format!("{host}/vdo/matrix:stable").parse()?;
    let repository = repository(&at, &credentials, None)?;
    let page = "<html><body>Please log in</body></html>";
    for (answer, reason, said, wait) in [
        (WebAnswer::Status(403, vec![], String::new()), "MatrixUnreachable", "403", None),
        (WebAnswer::Status(404, vec![], String::new()), "MatrixUnreachable", "404", None),
        (
            WebAnswer::Status(429, vec![("retry-after", "120".into())], String::new()),
            "MatrixUnreachable",
            "429",
            Some(120),
        ),
        (
            WebAnswer::Status(503, vec![], r#"{"errors": [{"code": "UNAVAILABLE", "message": "later"}]}"#.into()),
            "MatrixUnreachable",
            "says \"UNAVAILABLE: later\"",
            None,
        ),
        (WebAnswer::Status(200, vec![], page.into()), "MatrixInvalid", "web page", None),
        (WebAnswer::Status(200, vec![], "{}".into()), "MatrixInvalid", "no manifest", None),
        (
            WebAnswer::Status(302, vec![("location", "http://localhost/x".into())], String::new()),
            "MatrixUnreachable",
            "which is not https",
            None,
        ),
        (WebAnswer::Endless, "MatrixUnreachable", "larger than 4194304 bytes", None),
        (WebAnswer::Silence, "MatrixUnreachable", "too slowly", None),
    ] {
        server.answer(move |_| answer.clone());
        let polled = repository.poll().await;
        let problem = polled.problem.with_context(|| said.to_owned())?;
        assert_eq!(problem.reason.as_str(), reason, "{}", problem.message);
        assert!(problem.message.contains(said), "{said}: {}", problem.message);
        assert_eq!(polled.wait, wait.map(Duration::from_secs), "{said}");
    }
    Ok(())
}

/// Another registry could not do worse than answer with what is its own: the manifest of one publication, the blobs of another.
#[tokio::test]
async fn matrix_poll_without_news_asks_once_and_mixed_answers_are_refused() -> Result<()> {
    let server = WebServer::start().await?;
    let host = server.url("").trim_start_matches("https://").to_owned();
    let at: Reference = format!("{host}/vdo/matrix:stable").parse()?;
    // What a real registry stores, served as files.
    let real = RegistryServer::start(RegistryKind::Olareg, RegistryAuth::None).await?;
    let (registry, there) = (client(&real, login())?, reference(&real, "vdo/matrix:stable")?);
    publish(&registry, &there, &files(7)?).await?;
    let manifest = registry.manifest(&there).await?;
    server.put("/v2/vdo/matrix/manifests/stable", manifest.bytes.clone());
    let blob = format!("/v2/vdo/matrix/blobs/{}", Digest::of(index(7).as_bytes()));
    server.put(&blob, index(7));
    let digest = manifest.descriptor.digest.to_string();
    let judge = {
        let (digest, body) = (digest.clone(), String::from_utf8(manifest.bytes)?);
        move |asked: &vdo_testbed::Asked| match asked.path.contains("/manifests/") {
            true => WebAnswer::Status(200, vec![("docker-content-digest", digest.clone())], body.clone()),
            false => WebAnswer::File,
        }
    };
    server.answer(judge);
    let credentials = Credentials::new(&[("ca.crt", &server.authority().pem())])?;
    let repository = repository(&at, &credentials, None)?;
    assert_eq!(look(&repository).await?, (7, None));
    server.forget();
    assert_eq!(look(&repository).await?, (7, None));
    assert_eq!(server.asked().len(), 1, "{:?}", server.asked());
    // The blob of another publication under the name of this one.
    server.put(&blob, index(8));
    let again = self::repository(&at, &credentials, None)?;
    let problem = again.poll().await.problem.context("it was used")?;
    assert!(
        problem.reason.as_str() == "MatrixInvalid" && problem.message.contains("was changed"),
        "{}",
        problem.message
    );
    Ok(())
}
