// SPDX-License-Identifier: Apache-2.0
//! The remedy for a Kubernetes minor that is newer than every version of a driver: the newest supported minor, and whether to wait (pure).

use super::index::{Driver, Index, State};
use jiff::civil::Date;
use vdo_api::types::{DriverRole, DriverVersion, KubernetesVersion};

/// That every version of a driver ends below a minor of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotYet {
    /// The driver.
    pub driver: String,
    /// What it does for the cluster, which is what is at risk.
    pub role: DriverRole,
    /// The minor, for example `1.37`.
    pub kubernetes: String,
    /// The day on which it was released, where that is known.
    pub since: Option<Date>,
    /// The newest version of the driver that may be chosen.
    pub newest: DriverVersion,
    /// The day on which that was released, where that is known.
    pub released: Option<Date>,
    /// The newest Kubernetes that it supports.
    pub up_to: String,
}

impl NotYet {
    /// Of a driver and a Kubernetes; `None` when some version reaches that far.
    #[must_use]
    pub fn of(index: &Index, name: &str, driver: &Driver, kubernetes: &KubernetesVersion) -> Option<Self> {
        let usable = |state: &State| !matches!(state, State::Withdrawn(_));
        let mut usable = driver
            .versions
            .iter()
            .filter(|entry| usable(&entry.state) && !entry.version.is_prerelease() && !entry.chart.urls.is_empty())
            .peekable();
        usable.peek()?;
        let mut best: Option<(KubernetesVersion, &DriverVersion)> = None;
        for entry in usable {
            let max: KubernetesVersion = entry.kubernetes.range.max()?.parse().ok()?;
            if entry.kubernetes.range.contains(kubernetes.numbers()) || max.numbers() >= kubernetes.numbers() {
                return None;
            }
            if best.as_ref().is_none_or(|(_, version)| entry.version > **version) {
                best = Some((max, &entry.version));
            }
        }
        let (max, newest) = best?;
        Some(Self {
            driver: name.to_owned(),
            role: driver.role,
            kubernetes: kubernetes.minor(),
            since: index.released.kubernetes(kubernetes),
            newest: newest.clone(),
            released: index.released.driver(name, newest),
            up_to: max.minor(),
        })
    }

    /// What there is, as a part of a sentence: `the newest, 3.8.0, supports Kubernetes up to 1.36`.
    #[must_use]
    pub fn newest(&self) -> String {
        format!("the newest, {}, supports Kubernetes up to {}", self.newest, self.up_to)
    }

    /// What would have to come and what it risks not to wait, in sentences without the last full stop.
    #[must_use]
    pub fn advice(&self) -> String {
        let Self {
            driver,
            kubernetes,
            newest,
            up_to,
            ..
        } = self;
        let since = match self.since {
            Some(day) => format!("Kubernetes {kubernetes} was released on {day}, and no version of {driver} supports it yet"),
            None => format!("No version of {driver} supports Kubernetes {kubernetes} yet"),
        };
        let risk = match self.role {
            DriverRole::CloudProvider => "new nodes may stay without their addresses and provider IDs",
            DriverRole::Storage => "pods with volumes may fail to start",
            DriverRole::Network | DriverRole::Other => "its pods may fail",
        };
        let released = self.released.map_or(",".to_owned(), |day| format!(", released on {day},"));
        format!(
            "{since}: the newest, {newest}{released} supports Kubernetes up to {up_to}. A version of {driver} that supports {kubernetes} must be released, and a newer matrix must list it. Until then {newest} can be pinned with allowIncompatible, at your own risk: it was not tested with Kubernetes {kubernetes}, so {risk}, and the operator cannot detect this"
        )
    }
}
