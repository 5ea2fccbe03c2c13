// SPDX-License-Identifier: Apache-2.0
//! What a VDOConfig says of itself in every situation, and that docs/errors.md explains every reason.

mod failures;
mod parts;
mod properties;
mod ready;
mod situations;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use std::path::Path;
use std::sync::Arc;
use vdo_api::api::{Class, MatrixStatus, Reason, VDOConfigStatus};
use vdo_api::facts::{Cluster, Connection, Credentials, Node};
use vdo_api::types::{Secret, Trust};
use vdo_core::drivers::{CPI, CSI};
use vdo_core::health::{DriverHealth, NodesFound, Pods};
use vdo_core::plan::Wait;
use vdo_core::status::{DriverReport, Failure, Report, fold};

fn at(second: i64) -> Time {
    Time(jiff::Timestamp::from_second(1_800_000_000 + second).expect("a time"))
}

fn node(name: &str, initialized: bool) -> Arc<Node> {
    let provider_id = if initialized { format!("vsphere://{name}") } else { String::new() };
    Arc::new(Node {
        name: name.into(),
        control_plane: name == "cp-1",
        provider_id,
        uninitialized: !initialized,
        linux: true,
        csi_registered: initialized,
        ..Node::default()
    })
}

fn cluster(initialized: usize) -> Cluster {
    let nodes = ["cp-1", "w-1", "w-2", "w-3"]
        .iter()
        .enumerate()
        .map(|(i, name)| node(name, i < initialized))
        .collect();
    Cluster {
        version: "v1.34.4".parse().expect("a version"),
        uid: "0c4e".into(),
        nodes,
    }
}

fn connection(ready: Option<bool>, message: &str) -> Connection {
    Connection {
        name: "vc1".into(),
        server: "vcenter.example.com".into(),
        port: 443,
        datacenters: Vec::new(),
        trust: Trust::SystemRoots,
        version: Some("8.0.3".parse().expect("a version")),
        build: Some("24022515".into()),
        ready,
        message: message.into(),
        credentials: Credentials {
            user: "k8s@vsphere.local".into(),
            password: Secret::new("never shown"),
        },
        blocked: None,
        drivers: Vec::new(),
        sha1: None,
        lacking_privileges: Vec::new(),
        machines_twice: None,
        tag_categories: Some(std::collections::BTreeMap::new()),
    }
}

fn health(ready: bool, reason: Reason, message: &str, pods: (i64, i64)) -> Option<DriverHealth> {
    Some(DriverHealth {
        ready,
        reason,
        message: message.into(),
        pods: Pods {
            ready: pods.0,
            wanted: pods.1,
            updated: pods.1,
        },
        failure: None,
        unmade: None,
        nodes: NodesFound::default(),
    })
}

fn driver(name: &str, health: Option<DriverHealth>) -> DriverReport {
    let (version, because) = if name == CPI {
        ("1.34.0", "the minor version must equal Kubernetes 1.34")
    } else {
        ("3.7.3", "newest that fits")
    };
    DriverReport {
        name: name.into(),
        version: version.into(),
        installed: health.is_some().then(|| version.into()),
        revision: None,
        available: version.into(),
        chart: "sha256:4f".into(),
        because: because.into(),
        objects: 7,
        health,
    }
}

fn wait(driver: &str, reason: Reason, message: &str) -> Wait {
    Wait {
        driver: driver.into(),
        reason,
        message: message.into(),
    }
}

fn failure(class: Class, reason: Reason, message: &str) -> Failure {
    Failure::new(reason, class, message)
}

fn healthy() -> Report {
    Report {
        generation: Some(3),
        cluster: Some(cluster(4)),
        connections: vec![connection(Some(true), "ok")],
        matrix: Some(MatrixStatus {
            source: "embedded".into(),
            version: 1,
            digest: "sha256:aa".into(),
            ..MatrixStatus::default()
        }),
        upgradeable: Some(vdo_core::status::Upgradeable {
            fits: false,
            reason: Reason::NoCompatibleVersion,
            message: "Kubernetes 1.36 does not fit: no CSI version fits it".into(),
        }),
        drivers: vec![
            driver(CPI, health(true, Reason::Healthy, "1 of 1 pods are ready", (1, 1))),
            driver(CSI, health(true, Reason::Healthy, "7 of 7 pods are ready", (7, 7))),
        ],
        inventory: Some(("vdo-inventory".into(), 31)),
        cluster_id: Some("0c4e".into()),
        ..Report::default()
    }
}

fn installing() -> Report {
    Report {
        cluster: Some(cluster(0)),
        drivers: vec![driver(CPI, None), driver(CSI, None)],
        waiting: vec![wait(CSI, Reason::WaitingForNodes, "CSI waits for initialised nodes: 0 of 4 are")],
        ..healthy()
    }
}

fn new() -> VDOConfigStatus {
    VDOConfigStatus::default()
}

/// The status after a healthy report at second 0.
fn settled() -> VDOConfigStatus {
    fold(&new(), &healthy(), &at(0))
}

/// The conditions as one line each, without the times.
fn lines(status: &VDOConfigStatus) -> Vec<String> {
    let line = |c: &Condition| format!("{} {} {}: {}", c.type_, c.status, c.reason, c.message);
    std::iter::once(format!("{:?}", status.health))
        .chain(status.conditions.iter().map(line))
        .collect()
}

#[test]
fn errors_page_every_reason_is_explained() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/errors.md");
    let text = std::fs::read_to_string(path).expect("docs/errors.md");
    let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(
        headings, reasons,
        "docs/errors.md has one heading for each reason, in the order of crates/vdo-api/src/api/reason.rs"
    );
    for entry in text.split("\n### ").skip(1) {
        for part in ["**Cause.**", "**Shown in.**", "**Remedy.**"] {
            assert!(
                entry.contains(part),
                "{}: {part} is missing",
                entry.lines().next().unwrap_or_default()
            );
        }
    }
}
