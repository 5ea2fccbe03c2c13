// SPDX-License-Identifier: Apache-2.0
//! Decides which matrix a reconcile uses: the one of its source, or after a restart without source the installed part of the built-in one.

use super::error::ReconcileError;
use kube::ResourceExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use vdo_api::api::{ACCEPT_MATRIX_VERSION, DriverStatus, VDOConfig};
use vdo_api::types::{Digest, DriverName, DriverVersion};
use vdo_core::matrix::{DriverRequest, Index};
use vdo_core::plan::Inventory;
use vdo_source::fetch::{ChartRepository, Floor, LoadedIndex, MatrixSource, Problem, Records, RepositoryError, Signed, embedded};

/// A matrix to decide with.
pub(super) struct Basis {
    /// It.
    pub loaded: LoadedIndex,
    /// It has nothing but what runs, so what is not in it says nothing.
    pub narrowed: bool,
}

/// Finds it.
///
/// # Errors
/// When the matrix cannot be used, and what runs is not known to be in the binary.
pub(super) async fn usable(
    repository: &ChartRepository,
    config: &VDOConfig,
    inventory: &Inventory,
    installed: &BTreeMap<DriverName, DriverVersion>,
    asked: &BTreeMap<DriverName, DriverRequest>,
) -> Result<Basis, ReconcileError> {
    let error = match repository.index(&records(config, inventory)).await {
        Ok(loaded) => {
            return Ok(Basis { loaded, narrowed: false });
        }
        Err(error) => error,
    };
    let reported = config.status.as_ref().map(|status| status.drivers.as_slice()).unwrap_or_default();
    match what_runs(
        Index::parse(embedded::index()).map_err(RepositoryError::from)?,
        reported,
        installed,
        asked,
    ) {
        Some(index) => Ok(Basis {
            loaded: LoadedIndex {
                source: MatrixSource::Embedded.to_string(),
                signed: Arc::new(Signed {
                    index: embedded::index().to_vec(),
                    signature: None,
                    lock: None,
                }),
                digest: Digest::of(embedded::index()),
                index: Arc::new(index),
                signer: None,
                lock: None,
                problem: Some(Problem::from(&error)),
            },
            narrowed: true,
        }),
        None => Err(error.into()),
    }
}

/// What is known of earlier looks at the source: by the inventory, and by the status should that be lost.
fn records(config: &VDOConfig, inventory: &Inventory) -> Records {
    let reported = config.status.as_ref().and_then(|status| status.matrix.as_ref());
    let reported = reported.map(|matrix| Floor {
        source: matrix.source.clone(),
        version: u64::try_from(matrix.version).unwrap_or_default(),
        signer: matrix.signer.clone(),
    });
    let kept = inventory.matrix.as_ref();
    let stored = kept.map(|kept| Floor {
        source: kept.source.clone(),
        version: kept.version,
        signer: kept.signer.clone(),
    });
    let floors = kept.into_iter().flat_map(|kept| &kept.floors);
    let of_keys = floors.map(|(signer, version)| Floor {
        source: String::new(),
        version: *version,
        signer: Some(signer.clone()),
    });
    Records {
        floors: reported.into_iter().chain(stored).chain(of_keys).collect(),
        kept: kept.cloned(),
        pardoned: config
            .annotations()
            .get(ACCEPT_MATRIX_VERSION)
            .and_then(|version| version.trim().parse().ok()),
    }
}

/// The versions that are installed, where the status says that they came from the very charts that this index names; `None` when one
/// that is asked for is missing.
fn what_runs(
    mut index: Index,
    reported: &[DriverStatus],
    installed: &BTreeMap<DriverName, DriverVersion>,
    asked: &BTreeMap<DriverName, DriverRequest>,
) -> Option<Index> {
    for (name, driver) in &mut index.drivers {
        let chart = reported
            .iter()
            .find(|driver| driver.name == *name)
            .map(|driver| driver.chart.as_str());
        driver
            .versions
            .retain(|entry| installed.get(name) == Some(&entry.version) && chart == Some(entry.chart.digest.to_string().as_str()));
    }
    index.drivers.retain(|_, driver| !driver.versions.is_empty());
    asked.keys().all(|name| index.drivers.contains_key(name)).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_core::drivers::{CPI, CSI};

    #[test]
    fn matrix_fallback_uses_only_running_versions() {
        let index = Index::parse(embedded::index()).expect("an index");
        let entry = |driver: &str, version: &str| {
            let version: DriverVersion = version.parse().expect("a version");
            index.drivers[driver].entry(&version).expect("in the matrix").clone()
        };
        let (cpi, csi, other) = (entry(CPI, "1.34.0"), entry(CSI, "3.7.3"), entry(CSI, "3.6.3"));
        let reported = |name: &str, chart: String| DriverStatus {
            name: name.into(),
            chart,
            ..DriverStatus::default()
        };
        let chart = |entry: &vdo_core::matrix::Entry| entry.chart.digest.to_string();
        for (asks, runs, charts, expected) in [
            (
                &[CPI, CSI][..],
                &[(CPI, &cpi), (CSI, &csi)][..],
                [chart(&cpi), chart(&csi)],
                Some(2),
            ),
            (&[CPI], &[(CPI, &cpi), (CSI, &csi)], [chart(&cpi), chart(&csi)], Some(2)),
            // Its chart came from the matrix that is broken now.
            (&[CPI, CSI], &[(CPI, &cpi), (CSI, &csi)], [chart(&cpi), "sha256:0".into()], None),
            (&[CPI], &[(CPI, &cpi), (CSI, &csi)], [chart(&cpi), "sha256:0".into()], Some(1)),
            // Another version was on its way in.
            (&[CPI, CSI], &[(CPI, &cpi), (CSI, &other)], [chart(&cpi), chart(&csi)], None),
            // What does not run is not chosen.
            (&[CPI, CSI], &[(CPI, &cpi)], [chart(&cpi), chart(&csi)], None),
            (&[CPI, CSI], &[], [String::new(), String::new()], None),
        ] {
            let installed = runs
                .iter()
                .map(|(name, entry)| ((*name).to_owned(), entry.version.clone()))
                .collect();
            let asked = asks.iter().map(|name| ((*name).to_owned(), Default::default())).collect();
            let [one, two] = charts;
            let status = [reported(CPI, one), reported(CSI, two)];
            let found = what_runs(index.clone(), &status, &installed, &asked);
            assert_eq!(
                found.as_ref().map(|index| index.drivers.len()),
                expected,
                "{asks:?} {installed:?} {status:?}"
            );
            for (name, driver) in found.iter().flat_map(|index| &index.drivers) {
                let versions: Vec<_> = driver.versions.iter().map(|entry| &entry.version).collect();
                assert_eq!(versions, [&installed[name]]);
            }
        }
    }
}
