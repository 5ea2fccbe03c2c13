// SPDX-License-Identifier: Apache-2.0
//! The protocol, against both registries.

use super::{both, chain, client, login, noise, reference};
use anyhow::{Context as _, Result};
use std::io::Write as _;
use vdo_api::types::Digest;
use vdo_oci::oci::{Descriptor, Manifest, media};
use vdo_oci::registry::{Options, Registry};
use vdo_oci::web::Access;
use vdo_testbed::{Authority, RegistryKind, RegistryServer, oras, run};

const TYPE: &str = "application/vnd.example.thing.v1";

/// An artifact with one blob; its manifest.
async fn published(registry: &Registry, at: &vdo_oci::registry::Reference, content: &[u8]) -> Result<Descriptor> {
    registry.put_blob(&at.repository, media::EMPTY_JSON.into()).await?;
    registry.put_blob(&at.repository, content.to_vec().into()).await?;
    let layer = Descriptor::of("text/plain", content);
    let manifest = Manifest {
        artifact_type: Some(TYPE.into()),
        ..Manifest::image(Descriptor::of(media::EMPTY, media::EMPTY_JSON), vec![layer])
    };
    Ok(registry.put_manifest(at, &manifest).await?)
}

#[tokio::test]
async fn registry_manifest_and_blobs_are_written_and_read_by_tag_and_digest() -> Result<()> {
    for server in both().await? {
        let registry = client(&server, login())?;
        let at = reference(&server, "team/thing:v1")?;
        assert_eq!(registry.head(&at).await?, None);
        assert!(registry.manifest(&at).await.is_err_and(|error| error.is_missing()));
        let written = published(&registry, &at, b"content").await?;
        let by_tag = registry.manifest(&at).await?;
        assert_eq!(by_tag.descriptor.digest, written.digest);
        assert_eq!(registry.manifest(&at.at_digest(&written.digest)).await?.bytes, by_tag.bytes);
        assert_eq!(registry.head(&at).await?.and_then(|seen| seen.digest), Some(written.digest));
        let layer = by_tag.manifest()?.layers.remove(0);
        assert_eq!(registry.blob_bytes("team/thing", &layer, 100).await?, b"content");
        assert_eq!(registry.blob_by_digest("team/thing", &layer.digest, 100).await?, b"content");
        assert!(chain(&registry.blob_bytes("team/thing", &layer, 6).await.err().context("too large")?).contains("larger than 6 bytes"));
    }
    Ok(())
}

#[tokio::test]
async fn registry_blob_in_pieces_is_written_goes_on_and_is_read_again() -> Result<()> {
    for server in both().await? {
        let registry = client(&server, login())?;
        let content = noise(3 << 20);
        let digest = Digest::of(&content);
        let mut upload = registry.upload("team/large").await?;
        upload.write(content.slice(..1 << 20)).await?;
        upload.write(content.slice(1 << 20..(1 << 20) + 1)).await?;
        upload.write(content.slice((1 << 20) + 1..)).await?;
        upload.finish(&digest).await?;
        assert!(registry.has_blob("team/large", &digest).await?);
        let descriptor = Descriptor::new("text/plain", digest.clone(), content.len() as u64);
        assert_eq!(registry.blob_bytes("team/large", &descriptor, 4 << 20).await?, content);
        // Larger than what is sent at once.
        let large = noise((17 << 20) + 5);
        let digest = registry.put_blob("team/large", large.clone()).await?;
        let descriptor = Descriptor::new("text/plain", digest, large.len() as u64);
        assert_eq!(registry.blob_bytes("team/large", &descriptor, 32 << 20).await?.len(), large.len());
        // What is not what was promised is not stored.
        let mut upload = registry.upload("team/large").await?;
        upload.write(content.slice(..10)).await?;
        let wrong = Digest::of(b"something else");
        let error = upload.finish(&wrong).await.err().context("it was stored")?;
        assert!(chain(&error).contains("HTTP status 400"), "{}", chain(&error));
        assert!(!registry.has_blob("team/large", &wrong).await?);
    }
    Ok(())
}

#[tokio::test]
async fn registry_blob_is_mounted_from_another_repository() -> Result<()> {
    for server in both().await? {
        let registry = client(&server, login())?;
        let digest = registry.put_blob("team/one", noise(1000)).await?;
        assert!(!registry.has_blob("team/two", &digest).await?);
        assert!(
            registry.mount("team/two", &digest, "team/one").await?.is_none(),
            "it begins an upload instead"
        );
        assert!(registry.has_blob("team/two", &digest).await?);
        // Where there is nothing to take over, an upload is begun.
        let content = noise(500);
        let upload = registry.mount("team/two", &Digest::of(&content), "team/one").await?;
        let mut upload = upload.context("it says that it has what it cannot have")?;
        upload.write(content.clone()).await?;
        upload.finish(&Digest::of(&content)).await?;
        assert!(registry.has_blob("team/two", &Digest::of(&content)).await?);
    }
    Ok(())
}

#[tokio::test]
async fn registry_lost_or_changed_blob_is_refused() -> Result<()> {
    for server in both().await? {
        let registry = client(&server, login())?;
        let at = reference(&server, "team/thing:v1")?;
        published(&registry, &at, b"content").await?;
        let layer = registry.manifest(&at).await?.manifest()?.layers.remove(0);
        let file = server.blob("team/thing", &layer.digest.hex())?;
        for (content, said) in [
            (&b"c0ntent"[..], "was changed"),
            (b"content and more", "instead of 7"),
            (b"cont", "instead of 7"),
        ] {
            std::fs::File::create(&file)?.write_all(content)?;
            let error = registry.blob_bytes("team/thing", &layer, 1000).await.err().context("it was read")?;
            assert!(chain(&error).contains(said), "{}", chain(&error));
        }
        std::fs::remove_file(&file)?;
        let error = registry.blob_bytes("team/thing", &layer, 1000).await.err().context("it was read")?;
        assert!(error.is_missing(), "{}", chain(&error));
        let digest = registry.manifest(&at).await?.descriptor.digest;
        let file = server.blob("team/thing", &digest.hex())?;
        let changed = String::from_utf8(std::fs::read(&file)?)?.replace("text/plain", "text/plane");
        std::fs::write(&file, changed)?;
        let error = registry.manifest(&at.at_digest(&digest)).await.err().context("it was read")?;
        assert!(
            chain(&error).contains("was changed") || chain(&error).contains("HTTP status"),
            "{}",
            chain(&error)
        );
    }
    Ok(())
}

/// By the list of the registry, or by the tag that clients keep: oras sees what we attached, and we see what oras attached.
#[tokio::test]
async fn registry_referrers_are_listed_and_found_by_oras() -> Result<()> {
    let oras = oras().await?;
    for server in both().await? {
        let registry = client(&server, login())?;
        let at = reference(&server, "team/thing:v1")?;
        let subject = published(&registry, &at, b"content").await?;
        assert_eq!(registry.referrers(&at, &subject.digest, TYPE).await?, []);
        registry.put_blob("team/thing", noise(10)).await?;
        let blob = Descriptor::of("text/plain", &noise(10));
        for kind in [TYPE, "application/vnd.example.other.v1"] {
            let manifest = Manifest::referrer(kind, blob.clone(), subject.clone());
            let bytes = serde_json::to_vec(&manifest)?;
            registry.put_manifest(&at.at_digest(&Digest::of(&bytes)), &manifest).await?;
        }
        let found = registry.referrers(&at, &subject.digest, TYPE).await?;
        assert_eq!(found.len(), 1, "{found:?}");
        let read = registry.manifest(&at.at_digest(&found[0].digest)).await?.manifest()?;
        assert_eq!(read.subject.map(|subject| subject.digest), Some(subject.digest.clone()));

        let (folder, ca) = (tempfile::tempdir()?, server.ca_file()?.display().to_string());
        let (user, password) = vdo_testbed::LOGIN;
        let access = ["--ca-file", &ca, "--username", user, "--password", password];
        let name = at.to_string();
        let shown = run(
            &oras,
            folder.path(),
            &[&["discover", &name, "--format", "json"][..], &access].concat(),
        )
        .await?;
        assert!(shown.contains(&found[0].digest.to_string()), "{shown}");
        std::fs::write(folder.path().join("note.txt"), "a note")?;
        let attach = [
            "attach",
            &name,
            "--artifact-type",
            "application/vnd.example.note.v1",
            "note.txt:text/plain",
        ];
        run(&oras, folder.path(), &[&attach[..], &access].concat()).await?;
        let notes = registry.referrers(&at, &subject.digest, "application/vnd.example.note.v1").await?;
        assert_eq!(notes.len(), 1, "{notes:?}");
    }
    Ok(())
}

#[tokio::test]
async fn registry_without_tls_is_asked_only_when_that_is_asked_for() -> Result<()> {
    let server = RegistryServer::start_plain(RegistryKind::Olareg).await?;
    let at = reference(&server, "team/thing:v1")?;
    let access = Access::new([("ca.crt".to_owned(), Authority::new("of another")?.pem())]);
    let options = |plain_http| Options {
        access: access.clone(),
        plain_http,
        ..Options::default()
    };
    let error = Registry::new(&server.host(), options(false))?
        .head(&at)
        .await
        .err()
        .context("it was asked without TLS")?;
    assert!(chain(&error).contains("cannot be reached"), "{}", chain(&error));
    let registry = Registry::new(&server.host(), options(true))?;
    let written = published(&registry, &at, b"content").await?;
    assert_eq!(registry.manifest(&at).await?.descriptor.digest, written.digest);
    Ok(())
}
