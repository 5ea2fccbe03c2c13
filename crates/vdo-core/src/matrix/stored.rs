// SPDX-License-Identifier: Apache-2.0
//! Packs the index and charts in use, and the newest index version of each signing key, as the operator stores them in the cluster (pure).

use super::parse::INDEX_LIMIT;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use vdo_api::types::{Digest, from_json};

/// The source of an index that is in a binary, as statuses and flags have it.
pub const EMBEDDED: &str = "embedded";

/// What is kept of an index: enough to decide and to render without its source.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredMatrix {
    /// Where it came from.
    pub source: String,
    /// Its version.
    pub version: u64,
    /// Of its bytes.
    pub digest: Digest,
    /// The fingerprint of the key that had signed it.
    pub signer: Option<String>,
    /// The versions that were used last of what each key has signed, by its fingerprint: an older one is not used again, wherever it comes from.
    pub floors: BTreeMap<String, u64>,
    /// The signature.
    pub signature: Option<Vec<u8>>,
    /// What a mirror has of it, where it came from one.
    pub lock: Option<Vec<u8>>,
    /// The index, compressed; `None` for one that is too large to be kept.
    packed: Option<Vec<u8>>,
    /// Packed charts, by their digest.
    pub charts: BTreeMap<Digest, Vec<u8>>,
}

impl std::fmt::Debug for StoredMatrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "StoredMatrix({} {} {}, {} charts)",
            self.source,
            self.version,
            self.digest,
            self.charts.len()
        )
    }
}

/// Bytes of a compressed index: one with 500 versions has 80 KiB. It shares 1 MiB with the inventory and the history.
const PACKED: usize = 300 * 1024;
/// Bytes of all charts together.
const CHARTS: usize = 200 * 1024;

/// Of how many keys of before the version is kept.
const SIGNERS: usize = 16;

/// As it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    source: String,
    version: u64,
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signer: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    floors: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lock: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    charts: BTreeMap<String, String>,
}

impl StoredMatrix {
    /// Of an index that came from there. Charts for which there is no room are left out.
    #[must_use]
    pub fn of(
        (source, version, signer): (String, u64, Option<String>),
        (index, signature, lock): (&[u8], Option<&[u8]>, Option<&[u8]>),
        charts: BTreeMap<Digest, Vec<u8>>,
    ) -> Self {
        let packed = pack(index);
        let mut room = CHARTS;
        let fits = |(_, bytes): &(Digest, Vec<u8>)| {
            let fits = bytes.len() <= room;
            room -= if fits { bytes.len() } else { 0 };
            fits
        };
        Self {
            source,
            version,
            digest: Digest::of(index),
            floors: signer.iter().map(|signer| (signer.clone(), version)).collect(),
            signer,
            signature: signature.map(<[u8]>::to_vec),
            lock: lock.map(<[u8]>::to_vec),
            packed: Some(packed).filter(|packed| packed.len() <= PACKED),
            charts: charts.into_iter().filter(fits).collect(),
        }
    }

    /// With what is known of other keys from before.
    #[must_use]
    pub fn after(mut self, before: Option<&Self>) -> Self {
        for (signer, version) in before.iter().flat_map(|before| &before.floors).take(SIGNERS) {
            self.floors.entry(signer.clone()).or_insert(*version);
        }
        self
    }

    /// The bytes of the index, if they are kept and are what was used.
    #[must_use]
    pub fn index(&self) -> Option<Vec<u8>> {
        let index = unpack(self.packed.as_deref()?)?;
        (Digest::of(&index) == self.digest).then_some(index)
    }

    /// As text.
    #[must_use]
    pub fn stored(&self) -> String {
        let text = |bytes: &Vec<u8>| STANDARD.encode(bytes);
        let stored = Stored {
            source: self.source.clone(),
            version: self.version,
            digest: self.digest.to_string(),
            signer: self.signer.clone(),
            floors: self.floors.clone(),
            signature: self.signature.as_ref().map(text),
            lock: self.lock.as_ref().map(|lock| text(&pack(lock))),
            index: self.packed.as_ref().map(text),
            charts: self
                .charts
                .iter()
                .map(|(digest, bytes)| (digest.to_string(), text(bytes)))
                .collect(),
        };
        serde_json::to_string(&stored).unwrap_or_default()
    }

    /// Reads what was stored; `None` when it is something else. Charts that are not what their digest says are left out.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let stored: Stored = from_json(text).ok()?;
        let bytes = |text: String| STANDARD.decode(text).ok();
        let charts = stored
            .charts
            .into_iter()
            .filter_map(|(digest, text)| Some((digest.parse::<Digest>().ok()?, bytes(text)?)));
        Some(Self {
            source: stored.source,
            version: stored.version,
            digest: stored.digest.parse().ok()?,
            floors: match &stored.signer {
                // As operators stored it that knew one.
                Some(signer) if stored.floors.is_empty() => BTreeMap::from([(signer.clone(), stored.version)]),
                _ => stored.floors,
            },
            signer: stored.signer,
            signature: stored.signature.and_then(bytes),
            lock: stored.lock.and_then(bytes).and_then(|lock| unpack(&lock)),
            packed: stored.index.and_then(bytes),
            charts: charts.filter(|(digest, bytes)| Digest::of(bytes) == *digest).collect(),
        })
    }
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    // Writing into memory does not fail.
    packer.write_all(bytes).and_then(|()| packer.finish()).unwrap_or_default()
}

/// Whatever it is, it is not larger than an index.
fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).take(INDEX_LIMIT as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(index: &[u8], charts: &[Vec<u8>]) -> StoredMatrix {
        let charts = charts.iter().map(|bytes| (Digest::of(bytes), bytes.clone())).collect();
        StoredMatrix::of(
            ("https://a.test/index.yaml".into(), 7, Some("sha256:0".into())),
            (index, Some(b"signature"), Some(b"lock")),
            charts,
        )
    }

    #[test]
    fn stored_matrix_stored_then_parsed_is_equal_and_has_its_bytes() {
        let one = kept(b"drivers: {}", &[vec![1; 500], vec![2; 500]]);
        let read = StoredMatrix::parse(&one.stored()).expect("it was stored");
        assert_eq!(read, one);
        assert_eq!(read.index().as_deref(), Some(&b"drivers: {}"[..]));
        assert_eq!(read.charts.len(), 2);
    }

    #[test]
    fn stored_matrix_with_changed_bytes_has_none() {
        let (one, other) = (kept(b"drivers: {}", &[vec![1; 9]]), kept(b"drivers: []", &[vec![2; 9]]));
        let mixed = one.stored().replace(&one.digest.to_string(), &other.digest.to_string());
        assert_eq!(
            StoredMatrix::parse(&mixed).expect("readable").index(),
            None,
            "another index under this digest"
        );
        let chart = |kept: &StoredMatrix| kept.charts.keys().next().expect("a chart").to_string();
        let mixed = one.stored().replace(&chart(&one), &chart(&other));
        assert!(
            StoredMatrix::parse(&mixed).expect("readable").charts.is_empty(),
            "another chart under this digest"
        );
        assert_eq!(StoredMatrix::parse("nothing"), None);
    }

    #[test]
    fn stored_matrix_leaves_out_what_has_no_room() {
        // Bytes that cannot be compressed.
        let mut next = 1_u64;
        let mut noise = |count: usize| -> Vec<u8> {
            (0..count)
                .map(|_| {
                    next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (next >> 56) as u8
                })
                .collect()
        };
        let large = kept(&noise(PACKED + 1000), &[noise(CHARTS), noise(2000)]);
        assert_eq!((large.index(), large.version), (None, 7), "its version is known nevertheless");
        assert_eq!(large.charts.len(), 1);
        let (full, stored) = (kept(&noise(PACKED - 1000), &[noise(CHARTS)]), 500 * 1024 * 4 / 3);
        assert!(full.index().is_some());
        assert!(
            (stored - 2000..stored + 2000).contains(&full.stored().len()),
            "{} bytes of the 1 MiB that it shares",
            full.stored().len()
        );
        assert!(large.stored().len() < 2 * CHARTS);
    }
}
