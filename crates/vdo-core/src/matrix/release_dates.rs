// SPDX-License-Identifier: Apache-2.0
//! The release dates of driver versions and Kubernetes minors, and the newest Kubernetes minor that an index knows (pure).

use super::index::Index;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vdo_api::types::{DriverVersion, KubernetesVersion};

/// The name under which the minors of Kubernetes are listed, beside the names of drivers.
pub const KUBERNETES: &str = "kubernetes";

/// The day of each release: of drivers by name and version, of Kubernetes by minor. What is not listed is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Released(BTreeMap<String, BTreeMap<String, Date>>);

impl Released {
    /// The day on which the first version of a minor of Kubernetes was released.
    #[must_use]
    pub fn kubernetes(&self, version: &KubernetesVersion) -> Option<Date> {
        self.0.get(KUBERNETES)?.get(&version.minor()).copied()
    }

    /// The day on which a version of a driver was released.
    #[must_use]
    pub fn driver(&self, name: &str, version: &DriverVersion) -> Option<Date> {
        self.0.get(name)?.get(&version.to_string()).copied()
    }
}

/// The newest minor of Kubernetes that an index speaks of, whether or not a driver supports it, and the day of its release.
#[must_use]
pub fn known_up_to(index: &Index) -> Option<(KubernetesVersion, Option<Date>)> {
    let listed = index.released.0.get(KUBERNETES).into_iter().flat_map(BTreeMap::keys);
    let listed = listed.filter_map(|minor| minor.parse::<KubernetesVersion>().ok());
    let entries = index.drivers.values().flat_map(|driver| &driver.versions);
    let bounds = entries.filter_map(|entry| entry.kubernetes.range.max()?.parse::<KubernetesVersion>().ok());
    let newest = listed.chain(bounds).max_by(|a, b| a.numbers().cmp(b.numbers()))?;
    let released = index.released.kubernetes(&newest);
    Some((newest, released))
}

/// The newest Kubernetes that an index knows, in words: `Kubernetes up to 1.37, released on 2026-08-26`.
#[must_use]
pub fn knowledge(index: &Index) -> Option<String> {
    let (newest, released) = known_up_to(index)?;
    let day = released.map(|day| format!(", released on {day}")).unwrap_or_default();
    Some(format!("Kubernetes up to {}{day}", newest.minor()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(released: &str) -> Index {
        let text = format!(
            "apiVersion: vdo.vmware.com/matrix/v1\nkind: CompatibilityMatrix\nversion: 1\n{released}drivers:\n  toy:\n    role: other\n    versions:\n    - version: 1.0.0\n      chart: {{urls: [a.tgz], sha256: {}}}\n      kubernetes: {{min: '1.33', max: '1.36', confidence: unverified}}\n      vsphere: {{min: null, max: null, confidence: unverified}}\n",
            "a".repeat(64)
        );
        Index::parse(text.as_bytes()).expect("an index")
    }

    /// A minor that no driver supports yet is known, too, with the day of its release.
    #[test]
    fn released_newest_kubernetes_is_that_of_the_list_or_of_a_range() {
        for (released, expected) in [
            ("", "Kubernetes up to 1.36"),
            (
                "released: {kubernetes: {'1.36': '2026-04-22'}}\n",
                "Kubernetes up to 1.36, released on 2026-04-22",
            ),
            (
                "released: {kubernetes: {'1.9': '2017-12-15', '1.37': '2026-08-26'}}\n",
                "Kubernetes up to 1.37, released on 2026-08-26",
            ),
        ] {
            assert_eq!(knowledge(&index(released)).as_deref(), Some(expected));
        }
        let dated = index("released: {toy: {1.0.0: '2026-01-02'}}\n");
        let version = |text: &str| text.parse::<DriverVersion>().expect("a version");
        assert_eq!(
            dated
                .released
                .driver("toy", &version("1.0.0"))
                .map(|day| day.to_string())
                .as_deref(),
            Some("2026-01-02")
        );
        assert_eq!(dated.released.driver("toy", &version("1.0.1")), None);
    }
}
