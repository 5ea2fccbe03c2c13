// SPDX-License-Identifier: Apache-2.0
//! What holds of every status, whatever happened before.

use super::{at, cluster, connection, driver, failure, new, wait};
use proptest::prelude::*;
use vdo_api::api::{Class, ConditionType, Conditions, Health, Reason};
use vdo_core::drivers::{CPI, CSI};
use vdo_core::health::{DriverHealth, NodesFound, Pods};
use vdo_core::status::{Failure, Report, fold};

pub fn any_reason() -> impl Strategy<Value = Reason> {
    prop::sample::select(Reason::ALL)
}

pub fn any_health() -> impl Strategy<Value = Option<DriverHealth>> {
    prop::option::of((any::<bool>(), any_reason()).prop_map(|(ready, reason)| DriverHealth {
        ready,
        reason,
        message: "m".into(),
        pods: Pods {
            ready: 1,
            wanted: 1,
            updated: 1,
        },
        failure: None,
        unmade: None,
        nodes: NodesFound::default(),
    }))
}

pub fn any_failure() -> impl Strategy<Value = Failure> {
    (any_reason(), prop::sample::select(vec![Class::Wait, Class::Retry, Class::Terminal]))
        .prop_map(|(reason, class)| failure(class, reason, "t"))
}

prop_compose! {
    fn any_report()(
        initialized in prop::option::of(0..5usize),
        connections in prop::collection::vec(prop::option::of(any::<bool>()), 0..3),
        drivers in prop::collection::vec(any_health(), 0..3),
        failures in prop::collection::vec(any_failure(), 0..3),
        waiting in prop::collection::vec((prop::sample::select(vec![CPI, CSI]), any_reason()), 0..3),
        deleting in any::<bool>(),
        generation in 1..9i64,
    ) -> Report {
        Report {
            generation: Some(generation),
            cluster: initialized.map(cluster),
            connections: connections.into_iter().map(|ready| connection(ready, "")).collect(),
            drivers: [CPI, CSI].iter().zip(drivers).map(|(name, health)| driver(name, health)).collect(),
            failures,
            waiting: waiting.into_iter().map(|(driver, reason)| wait(driver, reason, "w")).collect(),
            deleting,
            ..Report::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn status_random_reports_give_complete_stable_conditions(reports in prop::collection::vec(any_report(), 1..5)) {
        let mut old = new();
        for (i, report) in reports.iter().enumerate() {
            let now = at(i64::try_from(i).expect("small"));
            let status = fold(&old, report, &now);
            prop_assert_eq!(status.observed_generation, report.generation);
            let mut seen = Vec::new();
            for c in &status.conditions {
                prop_assert!(!seen.contains(&&c.type_), "{} twice", c.type_);
                seen.push(&c.type_);
                prop_assert!(c.observed_generation.is_some(), "{:?}", c);
                prop_assert!(!c.message.is_empty(), "{:?}", c);
                prop_assert!(Reason::ALL.iter().any(|reason| reason.as_str() == c.reason), "{:?}", c);
                prop_assert!(["True", "False", "Unknown"].contains(&c.status.as_str()));
                let before = old.conditions.iter().find(|b| b.type_ == c.type_);
                let since = before.filter(|b| b.status == c.status).map_or(&now, |b| &b.last_transition_time);
                prop_assert_eq!(&c.last_transition_time, since, "{:?}", c);
            }
            let is = |kind| Conditions::is_true(&status.conditions, kind);
            prop_assert!(!(is(ConditionType::Ready) && (is(ConditionType::Reconciling) || is(ConditionType::Stalled))));
            prop_assert!(!(is(ConditionType::Reconciling) && is(ConditionType::Stalled)));
            prop_assert!(!is(ConditionType::Ready) || (report.failures.is_empty() && !report.deleting));
            prop_assert_eq!(is(ConditionType::Ready), status.health == Some(Health::Healthy));
            prop_assert_eq!(fold(&status, report, &at(99)), status.clone(), "the same report once more");
            old = status;
        }
    }
}
