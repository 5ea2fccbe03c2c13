// SPDX-License-Identifier: Apache-2.0
//! The folders of a pod's volumes, kept as a kubelet keeps them: tokens are renewed before they end, and changed configuration is
//! written again.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount, ServiceAccountTokenProjection, Volume};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};

use super::source::{Files, Source};

/// A token is renewed when a fifth of its life is left, or after a day.
const OLDEST: Duration = Duration::from_secs(24 * 3600);

/// The volumes of one pod.
#[derive(Debug)]
pub(super) struct Volumes {
    folder: PathBuf,
    tokens: BTreeMap<(String, String), Token>,
}

/// A token and its end.
#[derive(Clone, Debug)]
struct Token {
    text: String,
    issued: Timestamp,
    ends: Timestamp,
}

impl Token {
    /// Whether a kubelet would replace it.
    fn is_due(&self, now: Timestamp) -> bool {
        let (age, life) = (now.duration_since(self.issued), self.ends.duration_since(self.issued));
        age.as_secs() >= OLDEST.as_secs().cast_signed() || age.as_millis() * 5 >= life.as_millis() * 4
    }
}

impl Volumes {
    /// The volumes of a pod, as folders below `folder`.
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            tokens: BTreeMap::new(),
        }
    }

    pub(super) fn path(&self, volume: &str) -> PathBuf {
        self.folder.join(volume)
    }

    /// Writes what is new of all volumes.
    pub(super) async fn refresh(&mut self, client: &Client, pod: &Pod) -> Result<()> {
        let source = Source::new(client, pod);
        for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
            let place = self.path(&volume.name);
            let what = || format!("MountVolume.SetUp failed for volume {:?}", volume.name);
            let mut files = match source.files(volume).await.with_context(what)? {
                Some(files) => files,
                None if volume.empty_dir.is_some() => Files::new(),
                None => bail!("volume {} is of a kind that the test bed does not have", volume.name),
            };
            for projection in tokens(volume) {
                let text = self.token(client, pod, projection).await.with_context(what)?;
                files.insert(projection.path.clone(), text.into_bytes());
            }
            folder(&place)?;
            for (name, bytes) in files {
                write(&place.join(name), &bytes)?;
            }
        }
        Ok(())
    }

    async fn token(&mut self, client: &Client, pod: &Pod, projection: &ServiceAccountTokenProjection) -> Result<String> {
        let audience = projection.audience.clone().unwrap_or_default();
        let key = (audience.clone(), projection.path.clone());
        if let Some(token) = self.tokens.get(&key).filter(|token| !token.is_due(Timestamp::now())) {
            return Ok(token.text.clone());
        }
        let token = request(client, pod, &audience, projection.expiration_seconds).await?;
        let text = token.text.clone();
        self.tokens.insert(key, token);
        Ok(text)
    }
}

fn tokens(volume: &Volume) -> impl Iterator<Item = &ServiceAccountTokenProjection> {
    let sources = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
    sources.filter_map(|source| source.service_account_token.as_ref())
}

async fn request(client: &Client, pod: &Pod, audience: &str, seconds: Option<i64>) -> Result<Token> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let account = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.service_account_name.as_deref())
        .unwrap_or("default");
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: Some(audience)
                .filter(|one| !one.is_empty())
                .map(str::to_owned)
                .into_iter()
                .collect(),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".into()),
                kind: Some("Pod".into()),
                name: Some(pod.name_any()),
                uid: pod.uid(),
            }),
            expiration_seconds: seconds,
        },
        ..TokenRequest::default()
    };
    let issued = Timestamp::now();
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await?;
    let status = answer.status.context("the API server gave no token")?;
    Ok(Token {
        text: status.token,
        issued,
        ends: status.expiration_timestamp.0,
    })
}

/// Replaces a file as a whole, if it has another content.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        folder(parent)?;
    }
    let mut name = path.file_name().context("a file without a name")?.to_owned();
    name.push(".new");
    let fresh = path.with_file_name(name);
    crate::workdir::write_private(&fresh, bytes)?;
    std::fs::rename(&fresh, path).with_context(|| format!("file {}", path.display()))
}

/// A folder that every user can read, with those above it.
pub(super) fn folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("folder {}", path.display()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_near_its_end_or_a_day_old_is_due() {
        let at = |second: i64| Timestamp::from_second(second).expect("a time");
        let day = 24 * 3600;
        for (life, age, due) in [
            (3607, 0, false),
            (3607, 2800, false),
            (3607, 2886, true),
            (600, 479, false),
            (600, 480, true),
            (30 * day, day - 1, false),
            (30 * day, day, true),
        ] {
            let token = Token {
                text: String::new(),
                issued: at(0),
                ends: at(life),
            };
            assert_eq!(token.is_due(at(age)), due, "{age} of {life} seconds");
        }
    }
}
