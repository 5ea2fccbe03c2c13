// SPDX-License-Identifier: Apache-2.0
//! Refuses a matrix index with a lower version than one that the cluster used before, unless a user accepts that version (pure).

use std::sync::Arc;
use vdo_core::matrix::StoredMatrix;

/// An index of this version was used. A lower one is an old one that someone has put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Floor {
    /// Where the index came from.
    pub source: String,
    /// Its version.
    pub version: u64,
    /// The fingerprint of the key that had signed it.
    pub signer: Option<String>,
}

/// Everything that is known of earlier looks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Records {
    /// What was used.
    pub floors: Vec<Floor>,
    /// What was used last, for a restart while the source cannot be reached.
    pub kept: Option<Arc<StoredMatrix>>,
    /// A version that a person accepts although it is lower.
    pub pardoned: Option<u64>,
}

/// The index is older than one that was used before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the version {found} of the index is lower than the version {seen}, which was used before: an old index was restored")]
pub struct RolledBack {
    /// Its version.
    pub found: u64,
    /// The highest one that was used.
    pub seen: u64,
}

impl Records {
    /// Whether an index of this version may be used. What was used before counts if the same key had signed it, wherever it came from, so that
    /// another spelling of a source is not another source; and without keys, if it came from there. What a key has signed that is not trusted any
    /// more does not count: a thief of it may have signed any number.
    ///
    /// # Errors
    /// When a higher one was used before.
    pub(super) fn judge(
        &self,
        (source, signer): (&str, Option<&str>),
        version: u64,
        is_trusted: impl Fn(&str) -> bool,
    ) -> Result<(), RolledBack> {
        let same = |floor: &Floor| floor.source == source || (signer.is_some() && floor.signer.as_deref() == signer);
        let counts = |floor: &&Floor| same(floor) && floor.signer.as_deref().is_none_or(&is_trusted);
        let seen = self.floors.iter().filter(counts).map(|floor| floor.version).max();
        match seen.filter(|seen| version < *seen && self.pardoned != Some(version)) {
            Some(seen) => Err(RolledBack { found: version, seen }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_version_than_ever_used_is_refused_unless_its_key_is_gone_or_a_person_accepts_it() {
        let floor = |source: &str, version, signer: Option<&str>| Floor {
            source: source.into(),
            version,
            signer: signer.map(Into::into),
        };
        for (floors, version, pardoned, expected) in [
            (vec![], 0, None, None),
            (vec![floor("s", 7, None)], 7, None, None),
            (vec![floor("s", 7, None)], 6, None, Some(7)),
            (vec![floor("s", 7, None), floor("s", 9, None)], 8, None, Some(9)),
            (vec![floor("other", 9, None)], 6, None, None),
            (vec![floor("s", 9, Some("trusted"))], 6, None, Some(9)),
            (
                vec![floor("s", u64::MAX, Some("revoked")), floor("s", 5, Some("trusted"))],
                6,
                None,
                None,
            ),
            (vec![floor("s", 9, None)], 6, Some(6), None),
            (vec![floor("s", 9, None)], 5, Some(6), Some(9)),
        ] {
            let records = Records {
                floors,
                pardoned,
                ..Records::default()
            };
            let refused = records.judge(("s", None), version, |key| key == "trusted").err();
            assert_eq!(refused.map(|refused| refused.seen), expected, "{records:?}");
        }
    }

    #[test]
    fn lower_version_of_the_same_key_is_refused_from_wherever_it_comes() {
        let records = |signer: &str| Records {
            floors: vec![Floor {
                source: "https://vdo.test/index.yaml".into(),
                version: 9,
                signer: Some(signer.into()),
            }],
            ..Records::default()
        };
        for (before, now, trusted, expected) in [
            ("a", Some("a"), true, Some(9)),
            ("a", Some("b"), true, None),
            ("a", Some("a"), false, None),
            ("a", None, true, None),
        ] {
            for source in ["https://VDO.test/index.yaml", "https://vdo.test:443/index.yaml", "/a/folder"] {
                let refused = records(before).judge((source, now), 8, |_| trusted).err();
                assert_eq!(refused.map(|refused| refused.seen), expected, "{before} {now:?} {trusted} {source}");
                assert_eq!(records(before).judge((source, now), 9, |_| trusted), Ok(()), "{source}");
            }
        }
    }
}
