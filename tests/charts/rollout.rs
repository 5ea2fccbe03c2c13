// SPDX-License-Identifier: Apache-2.0
//! What a change of a workload may take away before its successor works, as every release says it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::{Value, json};
use vdo_core::chart::{self, Context};
use vdo_source::fetch::embedded;

/// How many pods of a Deployment may be missing in a rollout, as Kubernetes counts: of a percentage rounded down, and at least one where
/// no pod may be added.
fn missing(strategy: &Value, replicas: i64) -> i64 {
    let of = |key: &str, up: bool| {
        let value = strategy.pointer(&format!("/rollingUpdate/{key}")).cloned().unwrap_or(json!("25%"));
        let percent = value.as_str().map(|text| text.trim_end_matches('%').parse::<i64>().unwrap());
        percent.map_or_else(
            || value.as_i64().unwrap(),
            |percent| (replicas * percent + if up { 99 } else { 0 }) / 100,
        )
    };
    let (unavailable, surge) = (of("maxUnavailable", false), of("maxSurge", true));
    if unavailable == 0 && surge == 0 { 1 } else { unavailable }
}

/// Two of Antrea's controller would write the same objects, so its own manifest stops the old one first; the agents work on without it.
const ONE_AT_A_TIME: [(&str, &str); 1] = [("antrea", "antrea-controller")];

/// All versions of all drivers, with everything on: a rollout takes one pod away at a time and none that is the last of several, on no
/// node two, and nothing is deleted before its successor is created.
#[test]
fn rollout_of_every_release_keeps_all_pods_but_one_until_successors_are_ready() {
    let mut seen = 0;
    for (driver, source) in embedded::sources() {
        for version in source.versions() {
            let chart = chart::open(&chart::package(&source, &version).expect("a package")).expect("a chart");
            let everything = chart::everything(&chart);
            // As the driver ships it, and with everything on.
            for values in [Value::Null, everything] {
                let objects = chart::render(&chart, &values, &Context::default()).expect("objects");
                for object in &objects {
                    let spec = &object["spec"];
                    let at = format!("{driver} {version}: {} {}", object["kind"], object["metadata"]["name"]);
                    let name = object["metadata"]["name"].as_str().unwrap_or_default();
                    match object["kind"].as_str() {
                        Some("Deployment") if ONE_AT_A_TIME.contains(&(driver.as_str(), name)) => {
                            assert_eq!(
                                (&spec["strategy"]["type"], &spec["replicas"]),
                                (&json!("Recreate"), &json!(1)),
                                "{at}"
                            );
                        }
                        Some("Deployment") => {
                            let (strategy, replicas) = (&spec["strategy"], spec["replicas"].as_i64().unwrap_or(1));
                            assert!(
                                matches!(strategy["type"].as_str(), None | Some("RollingUpdate")),
                                "{at}: {strategy}"
                            );
                            let missing = missing(strategy, replicas);
                            assert!(
                                missing <= 1 && (missing < replicas || replicas == 1),
                                "{at}: {missing} of {replicas}"
                            );
                        }
                        Some("DaemonSet") => {
                            let strategy = &spec["updateStrategy"];
                            assert!(
                                matches!(strategy["type"].as_str(), None | Some("RollingUpdate")),
                                "{at}: {strategy}"
                            );
                            let most = strategy.pointer("/rollingUpdate/maxUnavailable").cloned().unwrap_or(json!(1));
                            assert_eq!(most, json!(1), "{at}");
                        }
                        Some("StatefulSet" | "ReplicaSet" | "Pod" | "Job" | "CronJob") => panic!("{at}: which rule is for it?"),
                        _ => continue,
                    }
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 4 * 52 / 2, "only {seen} workloads");
}
