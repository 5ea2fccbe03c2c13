// SPDX-License-Identifier: Apache-2.0
//! Builds the Secrets, ConfigMaps and mounts for the source of the operator's matrix: `--matrix`, `--matrix-keys`, `--matrix-credentials`.

use super::super::args::MatrixFile;
use super::super::context::Context;
use super::super::matrix::config_maps::{files, objects};
use super::super::password_file::private;
use super::super::{CliError, Exit};
use serde_json::{Value, json};
use std::path::Path;
use vdo::cluster::get;
use vdo_api::types::ObjectId;
use vdo_core::install::{MATRIX_CREDENTIALS, MATRIX_FILES, MATRIX_KEYS, Mounts, companion, companion_secret, matrix_source};
use vdo_core::manifest::{ManifestError, Object};
use vdo_source::fetch::{ConfigMaps, KeyStore, MatrixSource, credentials};
use vdo_source::signature::PublicKeys;

/// The file with the public keys, in their Secret.
const KEYS: &str = "keys.pem";

/// What was asked for.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    /// What is mounted into the operator.
    pub(crate) mounts: Mounts,
    /// In the order in which they are applied; the name of the source is the last.
    pub(crate) objects: Vec<Object>,
    /// The list and the ConfigMaps of a folder, of which those of an earlier one are deleted.
    pub(crate) place: Option<ConfigMaps>,
    /// What a person should know of it.
    pub(crate) notes: Vec<String>,
}

impl Matrix {
    /// What the flags ask for. Where they name no source, everything stays as the operator has it: a deployment that forgets a flag must not
    /// make it believe without keys.
    pub(crate) async fn of(args: &MatrixFile, namespace: &str, operator: Option<&Object>) -> Result<Self, CliError> {
        let Some(source) = &args.matrix else {
            if args.matrix_keys.is_some() || args.matrix_credentials.is_some() {
                return Err(CliError::new(
                    Exit::Usage,
                    "--matrix-keys and --matrix-credentials need the source of a matrix, and the command names none",
                    "Name the source with --matrix.",
                ));
            }
            return Ok(Self {
                mounts: operator.map(Mounts::of).unwrap_or_default(),
                ..Self::default()
            });
        };
        let mut matrix = Self::default();
        if let Some(keys) = &args.matrix_keys {
            matrix.mounts.keys = true;
            matrix.add(companion_secret(namespace, MATRIX_KEYS, &[(KEYS, &public(keys)?)]))?;
        } else if *source != MatrixSource::Embedded {
            matrix
                .notes
                .push("the operator accepts this matrix without a signature; --matrix-keys names the keys of its publishers".into());
        }
        if let Some(folder) = &args.matrix_credentials {
            matrix.mounts.credentials = true;
            let data = json!({"type": "Opaque", "data": secret(folder)?});
            matrix.add(companion(namespace, "Secret", MATRIX_CREDENTIALS, data))?;
        }
        let source = match source {
            // The operator sees no folder of this machine.
            MatrixSource::Local(folder) => {
                let place = ConfigMaps {
                    namespace: namespace.into(),
                    name: MATRIX_FILES.into(),
                };
                matrix.objects.extend(objects(&place, &files(folder).await?)?);
                let source = place.to_string();
                matrix
                    .notes
                    .push(format!("the matrix in {} is copied to {source}", folder.display()));
                matrix.place = Some(place);
                source
            }
            MatrixSource::ConfigMaps(place) if place.namespace != namespace => {
                let error = place.elsewhere(namespace);
                return Err(CliError::of(Exit::Usage, &error));
            }
            source => source.to_string(),
        };
        matrix.add(matrix_source(namespace, &source))?;
        Ok(matrix)
    }

    /// Takes the keys that the operator trusts along, where a former version mounted them from a ConfigMap: into a Secret. Who deploys sees
    /// which they are, because anyone who may write ConfigMaps may have changed them.
    pub(crate) async fn move_keys(&mut self, context: &Context, operator: Option<&Object>) -> Result<(), CliError> {
        let kept = self.mounts.keys && !self.objects.iter().any(|object| object.name() == MATRIX_KEYS);
        let Some(name) = operator.and_then(Mounts::former_keys).filter(|_| kept) else {
            return Ok(());
        };
        let namespace = context.namespace();
        let id = ObjectId::new("", "ConfigMap", namespace, name);
        let map = get(&context.ports.client, "v1", &id).await?;
        let texts = map.as_ref().and_then(|map| map.value()["data"].as_object());
        let text: String = texts
            .into_iter()
            .flatten()
            .filter_map(|(_, text)| text.as_str())
            .collect::<Vec<_>>()
            .join("\n");
        let keys = PublicKeys::parse(text.as_bytes()).map_err(|error| CliError::of(Exit::Refused, &error))?;
        let pem: String = keys.iter().map(|key| key.pem()).collect();
        self.add(companion_secret(namespace, MATRIX_KEYS, &[(KEYS, &pem)]))?;
        let fingerprints: Vec<String> = keys.fingerprints().map(|key| key.to_string()).collect();
        self.notes.push(format!(
            "the trusted keys move from ConfigMap {name} to Secret {MATRIX_KEYS}; compare these keys with the keys of the publisher: \
             {}",
            fingerprints.join(", ")
        ));
        Ok(())
    }

    fn add(&mut self, object: Result<Object, ManifestError>) -> Result<(), CliError> {
        self.objects.push(object.map_err(|error| CliError::internal(&error))?);
        Ok(())
    }
}

/// The public keys as PEM, and nothing else of the files: a private key in one of them must not be published.
fn public(keys: &Path) -> Result<String, CliError> {
    let keys = KeyStore(keys.to_owned()).keys();
    let keys = keys.map_err(|error| CliError::of(Exit::Usage, &error))?;
    Ok(keys.iter().map(|key| key.pem()).collect())
}

/// The files as a Secret has them.
fn secret(folder: &Path) -> Result<Value, CliError> {
    for secret in ["password", "bearerToken", "tls.key", ".dockerconfigjson", "config.json"] {
        private(&folder.join(secret))?;
    }
    let data = credentials(folder).and_then(|access| Ok(access.data()?));
    Ok(json!(data.map_err(|error| CliError::of(Exit::Usage, &error))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use std::os::unix::fs::PermissionsExt as _;

    fn file(folder: &Path, name: &str, text: &str, mode: u32) {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }

    fn args(matrix: &str, folder: &Path) -> MatrixFile {
        MatrixFile {
            matrix: Some(matrix.parse().expect("a source")),
            matrix_keys: Some(folder.join("keys")),
            matrix_credentials: Some(folder.join("credentials")),
        }
    }

    #[tokio::test]
    async fn matrix_of_a_server_is_named_with_keys_and_credentials() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let (keys, credentials) = (folder.path().join("keys"), folder.path().join("credentials"));
        std::fs::create_dir(&keys)?;
        std::fs::create_dir(&credentials)?;
        let pair = rcgen::KeyPair::generate()?;
        file(&keys, "a.pem", &pair.public_key_pem(), 0o644);
        file(&credentials, "username", "reader", 0o644);
        file(&credentials, "password", "r3ad-it", 0o600);
        file(&credentials, "notes.txt", "other", 0o644);
        let args = args("https://vdo.test/index.yaml", folder.path());
        let matrix = Matrix::of(&args, "vdo", None).await?;
        let names: Vec<String> = matrix.objects.iter().map(ToString::to_string).collect();
        assert_eq!(
            names,
            [
                "Secret vdo/vdo-matrix-keys",
                "Secret vdo/vdo-matrix-credentials",
                "Secret vdo/vdo-matrix"
            ]
        );
        let data = matrix.objects[1].value()["data"].as_object().expect("data");
        assert_eq!(
            data.keys().collect::<Vec<_>>(),
            ["password", "username"],
            "nothing else of the folder"
        );
        assert_eq!(
            matrix.objects[2].text("/data/source"),
            STANDARD.encode("https://vdo.test/index.yaml")
        );
        assert!(matrix.mounts.keys && matrix.mounts.credentials && matrix.notes.is_empty());

        // What must not reach a cluster, or be left where others read it.
        file(&keys, "b.pem", &pair.serialize_pem(), 0o600);
        let error = Matrix::of(&args, "vdo", None).await.expect_err("a private key");
        assert!(error.what.contains("PRIVATE KEY"), "{error}");
        std::fs::remove_file(keys.join("b.pem"))?;
        file(&credentials, "password", "r3ad-it", 0o644);
        let error = Matrix::of(&args, "vdo", None).await.expect_err("a readable password");
        assert!(error.what.contains("other users of this machine can read"), "{error}");
        Ok(())
    }

    #[tokio::test]
    async fn matrix_that_is_not_named_leaves_what_the_operator_has() {
        let has = Mounts {
            keys: true,
            credentials: false,
        };
        let settings = vdo_core::install::Settings {
            matrix: has,
            ..vdo_core::install::Settings::default()
        };
        let all = vdo_core::install::objects(&settings).expect("tested");
        let operator = all.iter().find(|object| object.kind() == "Deployment");
        let matrix = Matrix::of(&MatrixFile::default(), "vdo", operator).await.expect("nothing to do");
        assert_eq!(matrix.mounts, has);
        assert!(matrix.objects.is_empty());
        let bare = MatrixFile {
            matrix: Some(MatrixSource::Embedded),
            ..MatrixFile::default()
        };
        let matrix = Matrix::of(&bare, "vdo", operator).await.expect("a source");
        assert_eq!(matrix.mounts, Mounts::default(), "a source that is named replaces all of it");
    }
}
