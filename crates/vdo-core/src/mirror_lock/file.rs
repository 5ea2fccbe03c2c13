// SPDX-License-Identifier: Apache-2.0
//! Reads and writes `mirror.yaml`: the versions, images and digests of a mirror; removes other versions from the index.

use crate::matrix::Index;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::{Digest, DriverName, DriverVersion, Remedy};
use vdo_api::yaml;

/// The name of the file.
pub const FILE: &str = "mirror.yaml";
const API_VERSION: &str = "vdo.vmware.com/mirror/v1";
const KIND: &str = "MirrorLock";

/// What a mirror holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lock {
    api_version: String,
    kind: String,
    /// When it was pulled.
    pub pulled: Timestamp,
    /// Where the index came from.
    pub source: String,
    /// The SHA-256 of the index.
    pub index: Digest,
    /// The platforms whose images are inside, as `linux/amd64`; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<String>,
    /// The versions of drivers whose charts and images are inside.
    pub versions: BTreeMap<DriverName, BTreeSet<DriverVersion>>,
    /// The images, by reference.
    pub images: Vec<Image>,
}

/// An image of a mirror.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// As charts name it.
    pub reference: String,
    /// What that led to when it was pulled; of a part of the platforms, the digest of that part.
    pub digest: Digest,
    /// The digest of all platforms, where only a part of them is inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Digest>,
    /// Where it was pulled from, when that is elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// A tag that leads to something else than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// As charts name it.
    pub reference: String,
    /// What it led to.
    pub before: Digest,
    /// What it leads to now.
    pub now: Digest,
}

/// The file is not a lock, or belongs to something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// It cannot be read.
    #[error("{FILE} cannot be read: {0}")]
    Text(String),
    /// It is of another kind, or of a newer version.
    #[error("{FILE} is of the kind {found}, but this vdoctl reads {API_VERSION} {KIND}")]
    Kind {
        /// What it says.
        found: String,
    },
    /// It was written for another index.
    #[error("{FILE} was written for the index {expected}, but the index next to it is {found}")]
    Index {
        /// What it says.
        expected: Digest,
        /// The index beside it.
        found: Digest,
    },
}

impl Remedy for LockError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Self::Text(_) | Self::Index { .. } => "Copy the whole mirror again: vdoctl mirror push.",
            Self::Kind { .. } => "Use the vdoctl that wrote the mirror, or a newer one.",
        }))
    }
}

impl Lock {
    /// A lock for an index, with nothing in it yet.
    #[must_use]
    pub fn of(source: String, index: Digest, pulled: Timestamp) -> Self {
        Self {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            pulled,
            source,
            index,
            platforms: Vec::new(),
            versions: BTreeMap::new(),
            images: Vec::new(),
        }
    }

    /// Reads the file beside an index.
    ///
    /// # Errors
    /// When it is none, or belongs to another index.
    pub fn parse(bytes: &[u8], index: &Digest) -> Result<Self, LockError> {
        let text = std::str::from_utf8(bytes).map_err(|error| LockError::Text(error.to_string()))?;
        let value = yaml::load_value(text).map_err(|error| LockError::Text(error.to_string()))?;
        let field = |name: &str| value.get(name).and_then(|value| value.as_str()).unwrap_or("none");
        if (field("apiVersion"), field("kind")) != (API_VERSION, KIND) {
            return Err(LockError::Kind {
                found: format!("{} {}", field("apiVersion"), field("kind")),
            });
        }
        let lock: Self = serde_json::from_value(value).map_err(|error| LockError::Text(error.to_string()))?;
        match lock.index == *index {
            true => Ok(lock),
            false => Err(LockError::Index {
                expected: lock.index,
                found: index.clone(),
            }),
        }
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// When a field has no form in YAML.
    pub fn text(&self) -> Result<String, LockError> {
        yaml::dump(self).map_err(|error| LockError::Text(error.to_string()))
    }

    /// The index, of which a version is chosen only if it is in the mirror.
    #[must_use]
    pub fn narrow(&self, index: &Index) -> Index {
        index.mirrored(|driver, version| self.holds(driver, version))
    }

    /// The lock beside a signed index, which itself is not signed: what it says of versions stays, as that can only take away, and an image has
    /// the digest that the index gives it, or none. Where only a part of the platforms is inside, the digest of the whole would not be found, and
    /// nothing vouches for that of the part.
    #[must_use]
    pub fn vouched(mut self, index: &Index) -> Self {
        let entries = index.drivers.values().flat_map(|driver| &driver.versions);
        let signed: BTreeMap<&str, &Digest> = entries
            .flat_map(|entry| &entry.images)
            .filter_map(|image| Some((image.reference.as_str(), image.digest.as_ref()?)))
            .collect();
        self.images.retain_mut(|image| {
            let Some(digest) = signed.get(image.reference.as_str()) else {
                return false;
            };
            if image.whole.as_ref() == Some(*digest) && image.digest != **digest {
                return false;
            }
            image.digest = (*digest).clone();
            image.whole = None;
            true
        });
        self
    }

    /// Whether a version is in the mirror.
    #[must_use]
    pub fn holds(&self, driver: &DriverName, version: &DriverVersion) -> bool {
        self.versions.get(driver).is_some_and(|versions| versions.contains(version))
    }

    /// The image of a reference.
    #[must_use]
    pub fn image(&self, reference: &str) -> Option<&Image> {
        self.images.iter().find(|image| image.reference == reference)
    }

    /// The tags that lead to something else than in an earlier pull.
    #[must_use]
    pub fn moved_since(&self, before: &Self) -> Vec<Moved> {
        let moved = |now: &Image| {
            let old = before.image(&now.reference)?;
            let (before, now_is) = (old.whole.as_ref().unwrap_or(&old.digest), now.whole.as_ref().unwrap_or(&now.digest));
            (before != now_is).then(|| Moved {
                reference: now.reference.clone(),
                before: before.clone(),
                now: now_is.clone(),
            })
        };
        self.images.iter().filter_map(moved).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lock {
        let mut lock = Lock::of("embedded".into(), Digest::of(b"index"), Timestamp::UNIX_EPOCH);
        lock.versions = BTreeMap::from([("vsphere-csi".into(), BTreeSet::from(["3.7.3".parse().expect("a version")]))]);
        lock.images.push(Image {
            reference: "registry.k8s.io/csi-vsphere/driver:v3.7.3".into(),
            digest: Digest::of(b"driver"),
            whole: None,
            from: Some("mirror.example/driver:v3.7.3".into()),
        });
        lock
    }

    #[test]
    fn lock_written_then_read_is_equal() {
        let text = lock().text().expect("YAML");
        assert!(
            text.starts_with("apiVersion: vdo.vmware.com/mirror/v1\nkind: MirrorLock\n"),
            "{text}"
        );
        assert_eq!(Lock::parse(text.as_bytes(), &Digest::of(b"index")), Ok(lock()));
    }

    #[test]
    fn lock_of_another_index_or_kind_or_damaged_is_rejected() {
        let text = lock().text().expect("YAML");
        let index = Digest::of(b"index");
        let other = Lock::parse(text.as_bytes(), &Digest::of(b"other"));
        assert!(matches!(other, Err(LockError::Index { .. })), "{other:?}");
        for (from, to, said) in [
            ("mirror/v1", "mirror/v2", "mirror/v2"),
            ("MirrorLock", "Else", "Else"),
            ("digest: sha256:", "digest: md5:", "cannot be read"),
            ("kind:", "kind", "cannot be read"),
        ] {
            let error = Lock::parse(text.replacen(from, to, 1).as_bytes(), &index).expect_err(to);
            assert!(error.to_string().contains(said), "{error}");
        }
        assert!(matches!(Lock::parse(&[0xff], &index), Err(LockError::Text(_))));
    }

    #[test]
    fn lock_beside_a_signed_index_gives_no_digest_of_its_own() {
        let reference = "registry.k8s.io/csi-vsphere/driver:v3.7.3";
        let text = format!(
            "{{apiVersion: vdo.vmware.com/matrix/v1, kind: CompatibilityMatrix, version: 1, drivers: {{vsphere-csi: {{role: storage, versions: [{{version: 3.7.3, \
             chart: {{urls: [a.tgz], sha256: {}}}, images: [{{name: driver, ref: '{reference}', digest: null}}], kubernetes: {{min: '1.30', max: null, \
             confidence: primary}}, vsphere: {{min: '7.0', max: null, confidence: primary}}}}]}}}}}}",
            Digest::of(b"chart").hex()
        );
        let parsed = || Index::parse(text.as_bytes()).expect("an index");
        let (evil, good) = (Digest::of(b"evil"), Digest::of(b"driver"));
        for (signed, digest, whole, expected) in [
            (None, &evil, None, None),
            (Some(&good), &evil, None, Some(&good)),
            (Some(&good), &good, None, Some(&good)),
            (Some(&good), &evil, Some(&good), None),
            (Some(&good), &evil, Some(&evil), Some(&good)),
        ] {
            let mut index = parsed();
            let images = index
                .drivers
                .values_mut()
                .flat_map(|driver| &mut driver.versions)
                .flat_map(|entry| &mut entry.images);
            images
                .filter(|image| image.reference == reference)
                .for_each(|image| image.digest = signed.cloned());
            let mut lock = lock();
            lock.images[0].digest = digest.clone();
            lock.images[0].whole = whole.cloned();
            let lock = lock.vouched(&index);
            assert_eq!(
                lock.image(reference).map(|image| &image.digest),
                expected,
                "{signed:?} {digest} {whole:?}"
            );
            assert!(
                lock.holds(&"vsphere-csi".into(), &"3.7.3".parse().expect("a version")),
                "versions stay"
            );
        }
    }

    #[test]
    fn lock_tag_that_leads_elsewhere_is_named_with_both_digests() {
        let (before, mut now) = (lock(), lock());
        assert_eq!(now.moved_since(&before), []);
        now.images[0].digest = Digest::of(b"moved");
        let moved = now.moved_since(&before);
        assert_eq!(
            (moved.len(), &moved[0].before, &moved[0].now),
            (1, &Digest::of(b"driver"), &Digest::of(b"moved"))
        );
        // Other platforms of the same image are no other image.
        now.images[0].whole = Some(Digest::of(b"driver"));
        assert_eq!(now.moved_since(&before), []);
    }
}
