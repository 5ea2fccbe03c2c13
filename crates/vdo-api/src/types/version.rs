// SPDX-License-Identifier: Apache-2.0
//! Versions of Kubernetes, vCenter and drivers: parsing, order, and ranges of versions.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The text is not a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {what}; write for example {example}")]
pub struct ParseVersionError {
    text: String,
    what: &'static str,
    example: &'static str,
}

/// The numbers of a version in order: `[1, 34, 4]`. Missing numbers count as zero.
fn numbers(text: &str) -> Option<Vec<u64>> {
    let core = text.trim().strip_prefix(['v', 'V']).unwrap_or(text.trim());
    let core = core.split(['-', '+', ' ', '_']).next()?;
    let parts = core.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()?;
    (parts.len() <= 5).then_some(parts)
}

/// The numbers of a vCenter version, also as its release notes and its download page write it: `8.0U3e`, `8.0 Update 3e` and `8.0.3` are one.
fn vcenter_numbers(text: &str) -> Option<Vec<u64>> {
    update_numbers(&text.trim().to_ascii_lowercase()).or_else(|| numbers(text))
}

fn update_numbers(text: &str) -> Option<Vec<u64>> {
    let (release, update) = text.split_once('u')?;
    let update = update.strip_prefix("pdate").unwrap_or(update).trim_start();
    let digits = update.len() - update.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, patch) = update.split_at(digits);
    // The letter of a patch is not part of the version; the build tells patches apart.
    let patch = patch.split([' ', '-', '_']).next().unwrap_or_default();
    if patch.len() > 1 || !patch.chars().all(|c| c.is_ascii_lowercase()) {
        return None;
    }
    let mut parts = numbers(release.trim_end()).filter(|parts| parts.len() == 2)?;
    parts.push(number.parse().ok()?);
    Some(parts)
}

fn compare(left: &[u64], right: &[u64]) -> Ordering {
    let at = |parts: &[u64], i: usize| parts.get(i).copied().unwrap_or(0);
    (0..left.len().max(right.len()))
        .map(|i| at(left, i).cmp(&at(right, i)))
        .find(|o| o.is_ne())
        .unwrap_or(Ordering::Equal)
}

macro_rules! platform_version {
    ($(#[$doc:meta])* $name:ident, $what:literal, $example:literal, $numbers:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash)]
        pub struct $name {
            parts: Vec<u64>,
            raw: String,
        }

        impl $name {
            /// The numbers of the version, most significant first; at least one.
            #[must_use]
            pub fn numbers(&self) -> &[u64] {
                &self.parts
            }

            /// The text as it was reported.
            #[must_use]
            pub fn raw(&self) -> &str {
                &self.raw
            }
        }

        impl FromStr for $name {
            type Err = ParseVersionError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let parts = $numbers(text)
                    .ok_or_else(|| ParseVersionError { text: text.to_owned(), what: $what, example: $example })?;
                Ok(Self { parts, raw: text.trim().to_owned() })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.raw)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.raw)
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                compare(&self.parts, &other.parts).then_with(|| self.raw.cmp(&other.raw))
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.raw)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

platform_version!(
    /// A Kubernetes version as the API server reports it (`v1.34.4`, `v1.33.1+rke2r1`, `v1.34.4-eks-1234567`).
    /// Suffixes are kept for people and ignored in comparisons.
    KubernetesVersion, "a Kubernetes version", "v1.34.4", numbers
);
platform_version!(
    /// A vCenter version as `about.version` reports it (`8.0.3`, `9.0.0.0`), or as people know it (`8.0U3e`).
    VcenterVersion, "a vCenter version", "8.0.3", vcenter_numbers
);

impl KubernetesVersion {
    /// Major and minor: the part that decides which drivers fit, for example `1.34`.
    #[must_use]
    pub fn minor(&self) -> String {
        format!("{}.{}", self.parts[0], self.parts.get(1).copied().unwrap_or(0))
    }
}

/// A driver's own version. A leading `v` is accepted and dropped; otherwise semantic versioning.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriverVersion(semver::Version);

impl DriverVersion {
    /// Whether this is a pre-release such as `3.8.0-rc.1`.
    #[must_use]
    pub fn is_prerelease(&self) -> bool {
        !self.0.pre.is_empty()
    }

    /// Major, minor and patch, as ranges compare them.
    #[must_use]
    pub fn numbers(&self) -> [u64; 3] {
        [self.0.major, self.0.minor, self.0.patch]
    }

    /// Major and minor, for example `3.7`.
    #[must_use]
    pub fn minor(&self) -> String {
        format!("{}.{}", self.0.major, self.0.minor)
    }
}

impl FromStr for DriverVersion {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let core = text.trim().strip_prefix('v').unwrap_or(text.trim());
        semver::Version::parse(core).map(Self).map_err(|_| ParseVersionError {
            text: text.to_owned(),
            what: "a driver version",
            example: "3.7.3",
        })
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Serialize for DriverVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for DriverVersion {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A range of platform versions, both ends inclusive, either end open.
///
/// A bound compares only as many numbers as it has: `max: "8.0"` includes 8.0.3, and `min: "1.33"` includes
/// 1.33.0-rc.1. That is how support tables are written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct VersionRange {
    min: Option<Bound>,
    max: Option<Bound>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Bound {
    parts: Vec<u64>,
    raw: String,
}

impl Bound {
    fn parse(text: &str) -> Result<Self, ParseVersionError> {
        let parts = numbers(text).ok_or_else(|| ParseVersionError {
            text: text.to_owned(),
            what: "a bound of a version range",
            example: "1.34",
        })?;
        Ok(Self {
            parts,
            raw: text.to_owned(),
        })
    }

    fn compare(&self, version: &[u64]) -> Ordering {
        let cut = version.len().min(self.parts.len());
        compare(&version[..cut], &self.parts)
    }
}

impl VersionRange {
    /// A range from its bounds; `None` leaves that end open.
    ///
    /// # Errors
    /// When a bound is not a version.
    pub fn new(min: Option<&str>, max: Option<&str>) -> Result<Self, ParseVersionError> {
        Ok(Self {
            min: min.map(Bound::parse).transpose()?,
            max: max.map(Bound::parse).transpose()?,
        })
    }

    /// Whether a version with these numbers lies inside.
    #[must_use]
    pub fn contains(&self, version: &[u64]) -> bool {
        self.min.as_ref().is_none_or(|min| min.compare(version).is_ge()) && self.max.as_ref().is_none_or(|max| max.compare(version).is_le())
    }

    /// Whether no version can lie inside, because the lower bound is above the upper one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!((&self.min, &self.max), (Some(min), Some(max)) if max.compare(&min.parts).is_gt())
    }

    /// Whether a version can lie inside of both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let between = |min: &Option<Bound>, max: &Option<Bound>| Self {
            min: min.clone(),
            max: max.clone(),
        };
        let ranges = [
            self.clone(),
            other.clone(),
            between(&self.min, &other.max),
            between(&other.min, &self.max),
        ];
        !ranges.iter().any(Self::is_empty)
    }

    /// The lower bound as written.
    #[must_use]
    pub fn min(&self) -> Option<&str> {
        self.min.as_ref().map(|bound| bound.raw.as_str())
    }

    /// The upper bound as written.
    #[must_use]
    pub fn max(&self) -> Option<&str> {
        self.max.as_ref().map(|bound| bound.raw.as_str())
    }
}

impl fmt::Display for VersionRange {
    /// `1.33 to 1.35`, `7.0 and newer`, `up to 8.0`, `1.34 only` or `any`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min(), self.max()) {
            (Some(min), Some(max)) if min == max => write!(f, "{min} only"),
            (Some(min), Some(max)) => write!(f, "{min} to {max}"),
            (Some(min), None) => write!(f, "{min} and newer"),
            (None, Some(max)) => write!(f, "up to {max}"),
            (None, None) => f.write_str("any"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_version_real_strings_parse() {
        for (text, minor) in [
            ("v1.34.4", "1.34"),
            ("v1.34.4-eks-1a2b3c4", "1.34"),
            ("v1.33.1+rke2r1", "1.33"),
            ("v1.36.0-rc.0", "1.36"),
            ("1.35", "1.35"),
            ("1.2.3.4.5", "1.2"),
        ] {
            assert_eq!(text.parse::<KubernetesVersion>().expect(text).minor(), minor);
        }
    }

    #[test]
    fn kubernetes_version_malformed_text_is_rejected() {
        for text in ["", "v", "latest", "1..2", "1.x", "one", "1.2.3.4.5.6"] {
            assert!(text.parse::<KubernetesVersion>().is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn version_range_compares_only_given_numbers() {
        let range = |min, max| VersionRange::new(min, max).expect("a range");
        for (range, version, inside) in [
            (range(Some("1.33"), Some("1.35")), "v1.33.0-rc.1", true),
            (range(Some("1.33"), Some("1.35")), "v1.35.9", true),
            (range(Some("1.33"), Some("1.35")), "v1.36.0", false),
            (range(Some("1.33"), Some("1.35")), "v1.32.13", false),
            (range(Some("7.0"), None), "9.0.0.0", true),
            (range(Some("7.0.3"), None), "7.0.2", false),
            (range(Some("7.0.3"), None), "7.0", false),
            (range(None, Some("8.0")), "8.0.3", true),
            (range(None, Some("8.0.2")), "8.0.3", false),
            (range(None, None), "6.7.0", true),
        ] {
            let numbers = version.parse::<VcenterVersion>().expect("a version");
            assert_eq!(range.contains(numbers.numbers()), inside, "{version} in {range}");
        }
    }

    #[test]
    fn version_range_reversed_bounds_is_empty() {
        assert!(VersionRange::new(Some("1.35"), Some("1.34")).expect("bounds").is_empty());
        assert!(!VersionRange::new(Some("1.34.2"), Some("1.34")).expect("bounds").is_empty());
    }

    #[test]
    fn driver_version_order_follows_semver() {
        let mut all: Vec<DriverVersion> = ["3.8.0-rc.1", "v3.7.10", "3.8.0", "3.7.9"].map(|v| v.parse().expect(v)).into();
        all.sort();
        assert_eq!(format!("{all:?}"), "[3.7.9, 3.7.10, 3.8.0-rc.1, 3.8.0]");
        assert!(all[2].is_prerelease());
    }

    #[test]
    fn vcenter_version_is_read_as_people_write_it() {
        for (text, expected) in [
            ("8.0U3e", Some(&[8, 0, 3][..])),
            ("8.0 U3", Some(&[8, 0, 3])),
            ("8.0 Update 3e", Some(&[8, 0, 3])),
            ("8.0u3", Some(&[8, 0, 3])),
            ("7.0U3w build 24026615", Some(&[7, 0, 3])),
            ("8.0.3 build-24022515", Some(&[8, 0, 3])),
            ("8.0.3.00500", Some(&[8, 0, 3, 500])),
            ("9.0", Some(&[9, 0])),
            ("8.0U", None),
            ("8.0.3U1", None),
            ("8.0U3ee", None),
            ("U3", None),
            ("vSphere", None),
        ] {
            let found = text.parse::<VcenterVersion>().ok();
            assert_eq!(found.as_ref().map(VcenterVersion::numbers), expected, "{text}");
        }
        assert!("1.34u3".parse::<KubernetesVersion>().is_err());
    }
}
