// SPDX-License-Identifier: Apache-2.0
//! Twenty hostile servers at once, and a sound one: what the process takes, and how long the sound one waits.
//!
//! The inspections run in a process of their own, so that nothing else is measured.

use super::attacks::Attack;
use super::evil::Evil;
use super::inspection::inspect;
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::process::Command;
use vdo_vsphere::vcenter::{Inspections, Limits, Pool};

const HOSTILE: usize = 20;
/// The variables that configure the process.
pub(crate) const INPUT: &str = "VDO_TEST_INSPECTIONS";

/// Shorter than in life, where a slow server has a minute.
pub(crate) const WHOLE: Duration = Duration::from_secs(6);
/// How long a slow server takes for an answer.
pub(crate) const SLOW: Duration = Duration::from_secs(2);

/// What an attack has cost.
#[derive(Debug)]
pub(crate) struct Cost {
    /// MiB above those of before the attack.
    pub(crate) memory: f64,
    /// Seconds until all inspections had ended.
    pub(crate) all: f64,
    /// Seconds that the longest inspection of the sound server took meanwhile.
    pub(crate) sound: f64,
    /// What one of the hostile servers was answered.
    pub(crate) error: String,
}

/// Starts the servers, and this command as the process that inspects them.
pub(crate) async fn cost((_, bad): &Attack, mut command: Command) -> Cost {
    let mut hostile = vec![];
    for _ in 0..HOSTILE {
        hostile.push(Evil::start(bad.clone()).await);
    }
    let healthy = Evil::start([]).await;
    let ports: Vec<u16> = hostile.iter().map(|server| server.port).collect();
    let input = json!({"hostile": ports, "healthy": healthy.port});
    let output = command
        .env(INPUT, input.to_string())
        // The allocator of glibc would keep up to 32 MiB of freed memory, where that of musl, in the image, keeps little.
        .env("MALLOC_TRIM_THRESHOLD_", "131072")
        .stderr(Stdio::inherit())
        .output()
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("measured: "));
    let measured: Value = serde_json::from_str(line.unwrap_or_else(|| panic!("{}: {text}", output.status))).unwrap();
    let number = |key: &str| measured[key].as_f64().unwrap();
    Cost {
        memory: number("mib"),
        all: number("seconds"),
        sound: number("healthy"),
        error: measured["error"].to_string(),
    }
}

/// The process that inspects.
pub(crate) fn inspect_all(input: &str) {
    let input: Value = serde_json::from_str(input).unwrap();
    let port = |value: &Value| u16::try_from(value.as_u64().unwrap()).unwrap();
    let ports: Vec<u16> = input["hostile"].as_array().unwrap().iter().map(port).collect();
    let healthy = port(&input["healthy"]);
    // As many threads as the operator has.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let measured = runtime.block_on(async move {
        let limits = Limits {
            whole: WHOLE,
            ..Limits::default()
        };
        let inspections = Arc::new(Inspections::new(limits, Pool::default()));
        let one = |port: u16| {
            let inspections = inspections.clone();
            async move {
                let budget = inspections.begin(&format!("127.0.0.1:{port}")).await;
                inspect(port, &budget).await.map(|seen| seen.inventory.machines.len())
            }
        };
        // What everyone needs once is there before.
        one(healthy).await.unwrap();
        let before = peak();
        let started = Instant::now();
        let all: Vec<_> = ports.into_iter().map(|port| tokio::spawn(one(port))).collect();
        // It comes when the others are in the middle of theirs.
        let mut longest = Duration::ZERO;
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let begun = Instant::now();
            assert_eq!(one(healthy).await.unwrap(), 20, "the sound one is read");
            longest = longest.max(begun.elapsed());
        }
        let mut error = String::new();
        for ended in all {
            match ended.await.unwrap() {
                Ok(_) => error = "read".into(),
                Err(reported) => error = reported.to_string(),
            }
        }
        json!({
            "mib": (peak() - before) / 1024.0, "seconds": started.elapsed().as_secs_f64(), "healthy": longest.as_secs_f64(),
            "error": error,
        })
    });
    println!("\nmeasured: {measured}");
}

/// The most memory that this process has ever had, in KiB.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}
