//! Signatures of a matrix in a registry: files beside the index, and what `cosign sign` attaches to the manifest.

use super::matrix::{files, library, look, publish};
use super::{Credentials, both, client, login, reference};
use crate::source::{Publisher, index};
use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::path::PathBuf;
use vdo::oci::{Descriptor, Manifest, media};
use vdo::registry::{Reference, Registry};
use vdo::signature::pre_authenticated;
use vdo::types::Digest;

const KIND: &str = "application/vnd.in-toto+json";
const PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";

/// A bundle as cosign 3 writes it for a manifest.
fn bundle(key: &Publisher, subject: &Digest, predicate: &str) -> Result<Value> {
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "", "digest": {"sha256": subject.hex()}}],
        "predicateType": predicate,
        "predicate": {},
    })
    .to_string();
    let signature = key.sign(&pre_authenticated(KIND, statement.as_bytes()))?;
    Ok(json!({
        "mediaType": media::BUNDLE,
        "verificationMaterial": {"publicKey": {"hint": ""}},
        "dsseEnvelope": {
            "payload": STANDARD.encode(statement),
            "payloadType": KIND,
            "signatures": [{"sig": signature.trim(), "keyid": ""}],
        },
    }))
}

/// Attaches it as cosign does.
async fn attach(registry: &Registry, at: &Reference, bundle: &Value) -> Result<()> {
    let subject = registry.manifest(at).await?.descriptor;
    let content = bundle.to_string().into_bytes();
    let layer = Descriptor::of(media::BUNDLE, &content);
    registry.put_blob(&at.repository, media::EMPTY_JSON.into()).await?;
    registry.put_blob(&at.repository, content.into()).await?;
    let manifest = Manifest::referrer(media::BUNDLE, layer, subject);
    let digest = Digest::of(&serde_json::to_vec(&manifest)?);
    registry.put_manifest(&at.at_digest(&digest), &manifest).await?;
    Ok(())
}

/// A file with public keys.
fn trusted(keys: &[&Publisher]) -> Result<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("keys.pem");
    std::fs::write(&path, keys.iter().map(|key| key.public()).collect::<String>())?;
    Ok((folder, path))
}

#[tokio::test]
async fn signed_file_in_the_artifact_is_trusted_and_another_is_not() -> Result<()> {
    for server in both().await? {
        let (registry, at) = (client(&server, login())?, reference(&server, "vdo/matrix:stable")?);
        let (key, other) = (Publisher::new()?, Publisher::new()?);
        let (_folder, path) = trusted(&[&key])?;
        let credentials = Credentials::of(&server)?;
        let library = library(&at, &credentials, Some(path))?;
        let mut all = files(7)?;
        all.insert("index.yaml.sig".into(), key.sign(index(7).as_bytes())?.into_bytes());
        publish(&registry, &at, &all).await?;
        assert_eq!(look(&library).await?, (7, None));
        let refused = async |said: &str| -> Result<()> {
            let (version, problem) = look(&library).await?;
            let (reason, message) = problem.with_context(|| format!("{said}: it was used"))?;
            assert_eq!((version, reason.as_str()), (7, "MatrixNotTrusted"), "{message}");
            assert!(message.contains(said), "{said}: {message}");
            Ok(())
        };
        // The signature of one publication with the index of another.
        let mut mixed = files(8)?;
        mixed.insert("index.yaml.sig".into(), all["index.yaml.sig"].clone());
        publish(&registry, &at, &mixed).await?;
        refused("trusted keys").await?;
        publish(&registry, &at, &files(8)?).await?;
        refused("not signed").await?;
        let mut stranger = files(8)?;
        stranger.insert("index.yaml.sig".into(), other.sign(index(8).as_bytes())?.into_bytes());
        publish(&registry, &at, &stranger).await?;
        refused("trusted keys").await?;
    }
    Ok(())
}

#[tokio::test]
async fn signed_manifest_is_trusted_by_its_statement_alone() -> Result<()> {
    for server in both().await? {
        let (registry, at) = (client(&server, login())?, reference(&server, "vdo/matrix:stable")?);
        let (key, other) = (Publisher::new()?, Publisher::new()?);
        let (_folder, path) = trusted(&[&key])?;
        let credentials = Credentials::of(&server)?;
        let library = library(&at, &credentials, Some(path))?;
        let seven = publish(&registry, &at, &files(7)?).await?;
        attach(&registry, &at, &bundle(&other, &seven, PREDICATE)?).await?;
        attach(&registry, &at, &bundle(&key, &seven, PREDICATE)?).await?;
        assert_eq!(look(&library).await?, (7, None), "one of several keys is enough");
        assert_eq!(look(&library).await?, (7, None));

        let eight = publish(&registry, &at, &files(8)?).await?;
        let refused = async |said: &str| -> Result<()> {
            let (version, problem) = look(&library).await?;
            let (reason, message) = problem.with_context(|| format!("{said}: it was used"))?;
            assert_eq!((version, reason.as_str()), (7, "MatrixNotTrusted"), "{message}");
            assert!(message.contains(said), "{said}: {message}");
            Ok(())
        };
        refused("not signed").await?;
        attach(&registry, &at, &bundle(&other, &eight, PREDICATE)?).await?;
        refused("trusted keys").await?;
        // A statement about something else, and one that says something else.
        attach(&registry, &at, &bundle(&key, &seven, PREDICATE)?).await?;
        refused("of other bytes").await?;
        attach(&registry, &at, &bundle(&key, &eight, "https://slsa.dev/provenance/v1")?).await?;
        refused("of other bytes").await?;
        // A statement that was changed after it was signed.
        let mut changed = bundle(&key, &seven, PREDICATE)?;
        changed["dsseEnvelope"]["payload"] = bundle(&key, &eight, PREDICATE)?["dsseEnvelope"]["payload"].clone();
        attach(&registry, &at, &changed).await?;
        refused("of other bytes").await?;
        // Signed after it was published: it is looked for as long as it is not trusted.
        attach(&registry, &at, &bundle(&key, &eight, PREDICATE)?).await?;
        assert_eq!(look(&library).await?, (8, None));
    }
    Ok(())
}

/// The judge is cosign itself: what it attaches is trusted, by both ways in which it is stored.
#[tokio::test]
#[ignore = "needs cosign 3 on PATH, which signs what is in a registry"]
async fn signed_manifest_of_cosign_is_trusted() -> Result<()> {
    let cosign = std::path::Path::new("cosign");
    for server in both().await? {
        let (registry, at) = (client(&server, login())?, reference(&server, "vdo/matrix:stable")?);
        let (folder, ca) = (tempfile::tempdir()?, server.ca_file()?.display().to_string());
        let run = async |arguments: &[&str]| -> Result<String> {
            let mut command = tokio::process::Command::new(cosign);
            let output = command
                .args(arguments)
                .current_dir(folder.path())
                .env("COSIGN_PASSWORD", "")
                .output()
                .await?;
            anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Ok(String::from_utf8(output.stdout)?)
        };
        run(&["generate-key-pair", "--output-key-prefix", "ck"]).await?;
        let digest = publish(&registry, &at, &files(7)?).await?;
        let credentials = Credentials::of(&server)?;
        let library = library(&at, &credentials, Some(folder.path().join("ck.pub")))?;
        library.poll().await;
        assert!(
            library.index(&vdo::fetch::Records::default()).await.is_err(),
            "it is not signed yet"
        );
        let name = at.at_digest(&digest).to_string();
        let (user, password) = vdo_testbed::LOGIN;
        let access = [
            "--registry-cacert",
            &ca,
            "--registry-username",
            user,
            "--registry-password",
            password,
        ];
        let sign = [
            "sign",
            "--yes",
            "--key",
            "ck.key",
            "--tlog-upload=false",
            "--use-signing-config=false",
        ];
        run(&[&sign[..], &access, &[&name]].concat()).await?;
        assert_eq!(look(&library).await?, (7, None));
    }
    Ok(())
}
