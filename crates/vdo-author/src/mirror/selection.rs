// SPDX-License-Identifier: Apache-2.0
//! Selects the driver versions of a mirror, by Kubernetes and vCenter version and by patterns such as `vsphere-csi=3.7.*`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use vdo_api::types::{DriverName, DriverVersion, Remedy, VcenterVersion, VersionRange, count};
use vdo_core::matrix::{Entry, Index, State};

/// Versions by driver.
pub type Versions = BTreeMap<DriverName, BTreeSet<DriverVersion>>;

/// What is selected: every version that fits all that is named. A version that was withdrawn is taken only when it is named itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// Versions that support one of these minors of Kubernetes.
    pub kubernetes: Option<VersionRange>,
    /// Versions that support one of these vCenters.
    pub vcenters: Vec<VcenterVersion>,
    /// Versions that one of these patterns names.
    pub drivers: Vec<DriverPattern>,
    /// Exactly these, too: what a cluster runs and may come to run.
    pub exact: Versions,
    /// Everything that nothing else limits.
    pub all: bool,
}

/// Versions of a driver: `vsphere-csi=3.7.*`, `vsphere-csi=3.7.3`, `vsphere-csi=3.5.0..3.7.3`, or all of them as `vsphere-csi`.
#[derive(Debug, Clone, PartialEq)]
pub struct DriverPattern {
    /// The driver.
    pub driver: String,
    versions: Pattern,
    text: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Pattern {
    All,
    One(DriverVersion),
    /// `3.7.` or `3.`
    Prefix(String),
    Range(VersionRange),
}

/// The text names no versions of a driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} does not select versions of a driver; write for example csi=3.7.*, csi=3.7.3, csi=3.5.0..3.7.3 or csi")]
pub struct ParsePatternError(String);

impl FromStr for DriverPattern {
    type Err = ParsePatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParsePatternError(text.to_owned());
        let (driver, versions) = match text.split_once('=') {
            None => (text, Pattern::All),
            Some((driver, "*")) => (driver, Pattern::All),
            Some((driver, versions)) => (driver, pattern(versions).ok_or_else(wrong)?),
        };
        let is_name = !driver.is_empty() && driver.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        is_name
            .then(|| Self {
                driver: driver.to_owned(),
                versions,
                text: text.to_owned(),
            })
            .ok_or_else(wrong)
    }
}

fn pattern(text: &str) -> Option<Pattern> {
    if let Some((min, max)) = text.split_once("..") {
        let some = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned());
        let range = VersionRange::new(some(min).as_deref(), some(max).as_deref()).ok()?;
        return (!range.is_empty()).then_some(Pattern::Range(range));
    }
    if let Some(prefix) = text.strip_suffix('*') {
        let is_prefix = prefix.ends_with('.') && prefix.split_terminator('.').all(|part| part.parse::<u64>().is_ok());
        return is_prefix.then(|| Pattern::Prefix(prefix.to_owned()));
    }
    text.parse().ok().map(Pattern::One)
}

impl DriverPattern {
    fn matches(&self, driver: &DriverName, version: &DriverVersion) -> bool {
        *driver.as_str() == *self.driver
            && match &self.versions {
                Pattern::All => true,
                Pattern::One(one) => one == version,
                Pattern::Prefix(prefix) => version.to_string().starts_with(prefix),
                Pattern::Range(range) => range.contains(&version.numbers()),
            }
    }

    /// Whether it names this version and no other.
    fn is_only(&self, driver: &DriverName, version: &DriverVersion) -> bool {
        *driver.as_str() == *self.driver && matches!(&self.versions, Pattern::One(one) if one == version)
    }
}

impl fmt::Display for DriverPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Nothing can be mirrored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// Nothing was named.
    #[error("no driver version is selected")]
    Unsaid,
    /// A pattern fits no version.
    #[error("{pattern} selects no version of the matrix{}", nearest(known))]
    Unknown {
        /// The pattern.
        pattern: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Every version is excluded by something.
    #[error("none of the {} of the matrix matches all selectors", count(*versions, "version"))]
    Nothing {
        /// How many there are.
        versions: usize,
    },
}

fn nearest(known: &[String]) -> String {
    match known {
        [] => String::new(),
        known => format!("; the matrix has {}", known.join(", ")),
    }
}

impl Remedy for SelectionError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Self::Unsaid => "Select versions with --kubernetes 1.33..1.35, --driver csi=3.7.*, --for-cluster or --all.",
            Self::Unknown { .. } => "See the versions of the matrix: vdoctl matrix list.",
            Self::Nothing { .. } => "Use fewer selectors, or see the versions of the matrix: vdoctl matrix list.",
        }))
    }
}

impl Selection {
    /// The versions that are selected.
    ///
    /// # Errors
    /// When nothing is, or a pattern fits nothing.
    pub fn choose(&self, index: &Index) -> Result<Versions, SelectionError> {
        let limits = self.kubernetes.is_some() || !self.vcenters.is_empty() || !self.drivers.is_empty();
        if !self.all && !limits && self.exact.is_empty() {
            return Err(SelectionError::Unsaid);
        }
        let entries = || {
            index
                .drivers
                .iter()
                .flat_map(|(name, driver)| driver.versions.iter().map(move |entry| (name, entry)))
        };
        if let Some(pattern) = self
            .drivers
            .iter()
            .find(|pattern| !entries().any(|(name, entry)| pattern.matches(name, &entry.version)))
        {
            let known = match index.drivers.get(pattern.driver.as_str()) {
                Some(driver) => driver.versions.iter().map(|entry| entry.version.to_string()).collect(),
                None => index.drivers.keys().map(ToString::to_string).collect(),
            };
            return Err(SelectionError::Unknown {
                pattern: pattern.to_string(),
                known,
            });
        }
        let mut chosen = Versions::new();
        for (name, entry) in entries() {
            let exact = self.exact.get(name).is_some_and(|versions| versions.contains(&entry.version));
            if exact || ((self.all || limits) && self.fits(name, entry)) {
                chosen.entry(name.clone()).or_default().insert(entry.version.clone());
            }
        }
        match chosen.is_empty() {
            true => Err(SelectionError::Nothing {
                versions: entries().count(),
            }),
            false => Ok(chosen),
        }
    }

    fn fits(&self, name: &DriverName, entry: &Entry) -> bool {
        let named = || self.drivers.iter().any(|pattern| pattern.is_only(name, &entry.version));
        let offered = !matches!(entry.state, State::Withdrawn(_)) || named();
        let kubernetes = self.kubernetes.as_ref().is_none_or(|range| range.overlaps(&entry.kubernetes.range));
        let supports = |vcenter: &VcenterVersion| entry.vsphere.range.contains(vcenter.numbers());
        let vcenter = self.vcenters.is_empty() || self.vcenters.iter().any(supports);
        let driver = self.drivers.is_empty() || self.drivers.iter().any(|pattern| pattern.matches(name, &entry.version));
        offered && kubernetes && vcenter && driver && !entry.chart.urls.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "
apiVersion: vdo.vmware.com/matrix/v1
kind: CompatibilityMatrix
version: 1
drivers:
  vsphere-csi:
    role: storage
    versions:
    - {version: 3.7.3, chart: CHART, kubernetes: {min: '1.33', max: '1.35', confidence: unverified}, vsphere: {min: '8.0', confidence: unverified}}
    - {version: 3.7.0, chart: CHART, kubernetes: {min: '1.33', max: '1.35', confidence: unverified}, vsphere: {min: '7.0', confidence: unverified}, state: {kind: withdrawn, reason: bad}}
    - {version: 3.6.0, chart: CHART, kubernetes: {min: '1.31', max: '1.33', confidence: unverified}, vsphere: {min: '7.0', confidence: unverified}}
  vsphere-cpi:
    role: cloud-provider
    versions:
    - {version: 1.34.0, chart: CHART, kubernetes: {min: '1.34', max: '1.34', confidence: unverified}, vsphere: {min: '7.0', confidence: unverified}}
    - {version: 1.32.0, chart: CHART, kubernetes: {min: '1.32', max: '1.32', confidence: unverified}, vsphere: {min: '7.0', confidence: unverified}}
";

    fn index() -> Index {
        let chart = format!("{{urls: [a.tgz], sha256: '{}'}}", "0".repeat(64));
        Index::parse(INDEX.replace("CHART", &chart).as_bytes()).expect("an index")
    }

    fn chosen(selection: &Selection) -> Result<String, SelectionError> {
        let chosen = selection.choose(&index())?;
        let text = |(name, versions): (&DriverName, &BTreeSet<DriverVersion>)| {
            let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
            format!("{name} {}", versions.join(" "))
        };
        Ok(chosen.iter().map(text).collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn selection_takes_what_fits_everything_that_is_named() {
        let range = |min, max| VersionRange::new(min, max).expect("a range");
        let patterns = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| text.parse().expect("a pattern"))
                .collect::<Vec<DriverPattern>>()
        };
        let vcenters = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| text.parse().expect("a version"))
                .collect::<Vec<VcenterVersion>>()
        };
        for (selection, expected) in [
            (
                Selection {
                    all: true,
                    ..Selection::default()
                },
                "vsphere-cpi 1.32.0 1.34.0; vsphere-csi 3.6.0 3.7.3",
            ),
            (
                Selection {
                    kubernetes: Some(range(Some("1.34"), Some("1.36"))),
                    ..Selection::default()
                },
                "vsphere-cpi 1.34.0; vsphere-csi 3.7.3",
            ),
            (
                Selection {
                    kubernetes: Some(range(Some("1.33"), Some("1.33"))),
                    vcenters: vcenters(&["7.0.3"]),
                    ..Selection::default()
                },
                "vsphere-csi 3.6.0",
            ),
            (
                Selection {
                    drivers: patterns(&["vsphere-csi=3.7.*"]),
                    ..Selection::default()
                },
                "vsphere-csi 3.7.3",
            ),
            (
                Selection {
                    drivers: patterns(&["vsphere-csi=3.7.0", "vsphere-cpi"]),
                    ..Selection::default()
                },
                "vsphere-cpi 1.32.0 1.34.0; vsphere-csi 3.7.0",
            ),
            (
                Selection {
                    drivers: patterns(&["vsphere-csi=3.6.0..3.7.3"]),
                    ..Selection::default()
                },
                "vsphere-csi 3.6.0 3.7.3",
            ),
            (
                Selection {
                    exact: Versions::from([("vsphere-csi".into(), BTreeSet::from(["3.7.0".parse().expect("a version")]))]),
                    ..Selection::default()
                },
                "vsphere-csi 3.7.0",
            ),
        ] {
            assert_eq!(chosen(&selection).as_deref(), Ok(expected), "{selection:?}");
        }
    }

    #[test]
    fn selection_of_nothing_says_what_there_is() {
        let with = |pattern: &str| Selection {
            drivers: vec![pattern.parse().expect("a pattern")],
            ..Selection::default()
        };
        let said = |selection: &Selection| chosen(selection).expect_err("no driver version is selected").to_string();
        assert_eq!(chosen(&Selection::default()), Err(SelectionError::Unsaid));
        assert!(said(&with("vsphere-csi=3.9.0")).ends_with("the matrix has 3.7.3, 3.7.0, 3.6.0"));
        assert!(said(&with("antrea")).ends_with("the matrix has vsphere-cpi, vsphere-csi"));
        let mut nothing = with("vsphere-csi");
        nothing.vcenters = vec!["6.7".parse().expect("a version")];
        assert_eq!(chosen(&nothing), Err(SelectionError::Nothing { versions: 5 }));
    }

    #[test]
    fn selection_pattern_that_names_no_versions_is_rejected() {
        for text in ["", "=1", "csi=", "csi=3.7.x", "csi=*.1", "csi=3.7.3..3.6", "CSI=3.7.3", "csi=.*"] {
            assert!(text.parse::<DriverPattern>().is_err(), "{text:?} was accepted");
        }
    }
}
