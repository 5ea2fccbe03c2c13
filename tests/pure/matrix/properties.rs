// SPDX-License-Identifier: Apache-2.0
//! What holds of every choice.

use super::full_index;
use proptest::prelude::*;
use std::collections::BTreeMap;
use vdo_api::types::{DriverName, DriverVersion, KubernetesVersion, VcenterVersion};
use vdo_core::drivers::{CPI, CSI};
use vdo_core::matrix::{DriverRequest, Index, Query, UpdatePolicy, resolve};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn resolve_shuffled_input_gives_same_choice(
        order in Just((0..60).collect::<Vec<usize>>()).prop_shuffle(),
        vcenters in Just(vec!["6.7.0", "7.0.3", "8.0.3", "9.0.0.0"]).prop_shuffle(),
        kubernetes in prop_oneof![Just("v1.27.0"), Just("v1.32.1"), Just("v1.34.4"), Just("v1.36.0")],
        count in 0usize..5,
    ) {
        let mut chosen = vcenters;
        chosen.truncate(count);
        let question = |vcenters: &[&'static str]| {
            let kubernetes: KubernetesVersion = kubernetes.parse().unwrap();
            // names follow the version, so that the same set of vCenters is meant in either order
            let vcenters: Vec<_> = vcenters.iter().map(|v| (format!("vc-{v}"), v.parse::<VcenterVersion>().unwrap())).collect();
            let drivers: BTreeMap<DriverName, DriverRequest> = [CPI, CSI].map(|d| (d.to_owned(), DriverRequest::default())).into();
            move |index: &Index| resolve(index, &Query {
                kubernetes: &kubernetes, vcenters: &vcenters, drivers: &drivers, installed: &BTreeMap::new(), policy: UpdatePolicy::Latest,
            })
        };
        let index = full_index();
        let mut shuffled = index.clone();
        for driver in shuffled.drivers.values_mut() {
            let length = driver.versions.len();
            let entries = driver.versions.clone();
            driver.versions = order.iter().filter(|i| **i < length).map(|i| entries[*i].clone()).collect();
        }
        let mut sorted = chosen.clone();
        sorted.sort_unstable();
        prop_assert_eq!(question(&chosen)(&shuffled), question(&sorted)(&index));
    }

    #[test]
    fn resolve_random_platform_choice_fits(kubernetes in 25u64..40, vcenter in (6u64..10, 0u64..8), installed in proptest::option::of(0usize..3)) {
        let index = full_index();
        let kubernetes: KubernetesVersion = format!("v1.{kubernetes}.0").parse().unwrap();
        let vcenters = [("vc".to_owned(), format!("{}.0.{}", vcenter.0, vcenter.1).parse::<VcenterVersion>().unwrap())];
        let drivers: BTreeMap<DriverName, DriverRequest> = BTreeMap::from([(CSI.to_owned(), DriverRequest::default())]);
        let installed: BTreeMap<DriverName, DriverVersion> =
            installed.map(|i| (CSI.to_owned(), index.drivers[CSI].versions[i].version.clone())).into_iter().collect();
        let query = Query { kubernetes: &kubernetes, vcenters: &vcenters, drivers: &drivers, installed: &installed, policy: UpdatePolicy::Compatible };
        if let Ok(resolution) = resolve(&index, &query) {
            let entry = index.drivers[CSI].entry(&resolution.picks[CSI].version).unwrap();
            prop_assert!(entry.kubernetes.range.contains(kubernetes.numbers()));
            prop_assert!(entry.vsphere.range.contains(vcenters[0].1.numbers()));
        }
    }
}
