// SPDX-License-Identifier: Apache-2.0
//! Signatures of a matrix in a registry: files beside the index, and what `cosign sign` attaches to the manifest.

use super::matrix::{files, look, publish, repository};
use super::{Credentials, both, client, login, reference};
use crate::source::{Publisher, index};
use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo_api::types::Digest;
use vdo_oci::oci::{Descriptor, Manifest, media};
use vdo_oci::registry::{Reference, Registry};
use vdo_source::fetch::ChartRepository;
use vdo_source::signature::pre_authenticated;
use vdo_testbed::{Binaries, Part, RegistryServer};

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

/// A place in a registry, and a client that trusts one of two keys.
struct Client {
    registry: Registry,
    at: Reference,
    key: Publisher,
    other: Publisher,
    repository: ChartRepository,
    _files: (tempfile::TempDir, Credentials),
}

impl Client {
    fn of(server: &RegistryServer) -> Result<Self> {
        let (registry, at) = (client(server, login())?, reference(server, "vdo/matrix:stable")?);
        let (key, other) = (Publisher::new()?, Publisher::new()?);
        let (folder, credentials) = (tempfile::tempdir()?, Credentials::of(server)?);
        let path = folder.path().join("keys.pem");
        std::fs::write(&path, key.public())?;
        Ok(Self {
            repository: repository(&at, &credentials, Some(path))?,
            registry,
            at,
            key,
            other,
            _files: (folder, credentials),
        })
    }

    async fn publish(&self, files: &BTreeMap<String, Vec<u8>>) -> Result<Digest> {
        publish(&self.registry, &self.at, files).await
    }

    async fn attach(&self, bundle: &Value) -> Result<()> {
        attach(&self.registry, &self.at, bundle).await
    }

    /// Asks, and uses this version.
    async fn uses(&self, version: u64) -> Result<()> {
        assert_eq!(look(&self.repository).await?, (version, None));
        Ok(())
    }

    /// Asks, and stays with version 7, with these words.
    async fn refuses(&self, said: &str) -> Result<()> {
        let (version, problem) = look(&self.repository).await?;
        let (reason, message) = problem.with_context(|| format!("{said}: it was used"))?;
        assert_eq!((version, reason.as_str()), (7, "MatrixNotTrusted"), "{message}");
        assert!(message.contains(said), "{said}: {message}");
        Ok(())
    }
}

#[tokio::test]
async fn signed_file_in_the_artifact_is_trusted_and_another_is_not() -> Result<()> {
    for server in both().await? {
        let client = Client::of(&server)?;
        let mut all = files(7)?;
        all.insert("index.yaml.sig".into(), client.key.sign(index(7).as_bytes())?.into_bytes());
        client.publish(&all).await?;
        client.uses(7).await?;
        // The signature of one publication with the index of another.
        let mut mixed = files(8)?;
        mixed.insert("index.yaml.sig".into(), all["index.yaml.sig"].clone());
        client.publish(&mixed).await?;
        client.refuses("trusted keys").await?;
        client.publish(&files(8)?).await?;
        client.refuses("not signed").await?;
        let mut stranger = files(8)?;
        stranger.insert("index.yaml.sig".into(), client.other.sign(index(8).as_bytes())?.into_bytes());
        client.publish(&stranger).await?;
        client.refuses("trusted keys").await?;
    }
    Ok(())
}

#[tokio::test]
async fn signed_manifest_is_trusted_by_its_statement_alone() -> Result<()> {
    for server in both().await? {
        let client = Client::of(&server)?;
        let (key, other) = (&client.key, &client.other);
        let seven = client.publish(&files(7)?).await?;
        client.attach(&bundle(other, &seven, PREDICATE)?).await?;
        client.attach(&bundle(key, &seven, PREDICATE)?).await?;
        // One of several keys is enough.
        client.uses(7).await?;
        client.uses(7).await?;

        let eight = client.publish(&files(8)?).await?;
        client.refuses("not signed").await?;
        client.attach(&bundle(other, &eight, PREDICATE)?).await?;
        client.refuses("trusted keys").await?;
        // A statement about something else, and one that says something else.
        client.attach(&bundle(key, &seven, PREDICATE)?).await?;
        client.refuses("signature does not match").await?;
        client.attach(&bundle(key, &eight, "https://slsa.dev/provenance/v1")?).await?;
        client.refuses("signature does not match").await?;
        // A statement that was changed after it was signed.
        let mut changed = bundle(key, &seven, PREDICATE)?;
        changed["dsseEnvelope"]["payload"] = bundle(key, &eight, PREDICATE)?["dsseEnvelope"]["payload"].clone();
        client.attach(&changed).await?;
        client.refuses("signature does not match").await?;
        // Signed after it was published: it is looked for as long as it is not trusted.
        client.attach(&bundle(key, &eight, PREDICATE)?).await?;
        client.uses(8).await?;
    }
    Ok(())
}

/// The judge is cosign itself: what it attaches is trusted, by both ways in which it is stored.
#[tokio::test]
#[ignore = "needs cosign, whose build takes minutes (VDO_COSIGN=build)"]
async fn signed_manifest_of_cosign_is_trusted() -> Result<()> {
    let cosign = &tokio::task::spawn_blocking(|| Binaries::ensure(&[Part::Cosign]))
        .await??
        .path(Part::Cosign);
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
        let repository = repository(&at, &credentials, Some(folder.path().join("ck.pub")))?;
        repository.poll().await;
        assert!(
            repository.index(&vdo_source::fetch::Records::default()).await.is_err(),
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
        assert_eq!(look(&repository).await?, (7, None));
    }
    Ok(())
}
