// SPDX-License-Identifier: Apache-2.0
//! One look at a large vCenter: 5,000 machines in 50 datacenters, each in a folder of its own. What it costs in requests, time and
//! memory, against what it may cost. The look runs in a process of its own, so that nothing else is measured.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench")]

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::Instant;
use vdo_api::facts::Credentials;
use vdo_api::types::{Secret, Trust};
use vdo_testbed::soap::{SoapOptions, SoapProxy};
use vdo_testbed::{Vcenter, VcenterOptions};
use vdo_vsphere::vcenter::{Budget, Endpoint, Session};

const DATACENTERS: usize = 50;
const EACH: usize = 100;
const LOOK: &str = "VDO_BENCH_LOOK";

#[expect(clippy::disallowed_methods, reason = "the bench starts itself once more, marked by a variable")]
fn main() -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    match std::env::var(LOOK) {
        Ok(input) => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(look(&serde_json::from_str(&input)?)),
        Err(_) => tokio::runtime::Runtime::new()?.block_on(measure()),
    }
}

async fn measure() -> Result<()> {
    let vcenter = Vcenter::start(VcenterOptions {
        large: Some((DATACENTERS, EACH)),
        ..VcenterOptions::default()
    })
    .await?;
    let proxy = SoapProxy::start(&vcenter, SoapOptions::default()).await?;
    let input = json!({
        "port": proxy.port(), "ca": proxy.ca_pem(), "user": vcenter.user(), "password": vcenter.password(),
    });
    let output = tokio::process::Command::new(std::env::current_exe()?)
        .env(LOOK, input.to_string())
        .output()
        .await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout)?;
    let number = |key: &str| found[key].as_f64().context("a number");
    let calls = proxy.calls();
    let requests: u64 = calls.values().sum();
    let (seconds, mib) = (number("seconds")?, number("mib")?);
    println!(
        "a vCenter of {} machines in {DATACENTERS} datacenters, one look from login to logout:",
        found["machines"]
    );
    let within = |right: bool| if right { "" } else { "   MISSED" };
    println!("  {requests:>6} requests     (at most 12){}   {calls:?}", within(requests <= 12));
    println!("  {seconds:>6.2} s            (at most 3){}", within(seconds <= 3.0));
    println!("  {mib:>6.1} MiB more     (at most 20){}", within(mib <= 20.0));
    ensure!(
        found["machines"] == DATACENTERS * EACH && found["datacenters"] == DATACENTERS,
        "{found}"
    );
    Ok(())
}

/// The process that looks: prints what it took.
async fn look(input: &Value) -> Result<()> {
    let text = |key: &str| input[key].as_str().unwrap_or_default().to_owned();
    let endpoint = Endpoint {
        server: "127.0.0.1".into(),
        port: u16::try_from(input["port"].as_u64().context("a port")?)?,
        trust: Trust::CaBundle(text("ca")),
    };
    let credentials = Credentials {
        user: text("user"),
        password: Secret::new(text("password")),
    };
    let (before, started) = (peak()?, Instant::now());
    let budget = Budget::default();
    let session = Session::open(endpoint, credentials, &budget).await?;
    let inventory = session.inventory(&budget).await?;
    session.close().await;
    let (seconds, after) = (started.elapsed().as_secs_f64(), peak()?);
    println!(
        "{}",
        json!({
            "machines": inventory.machines.len(), "datacenters": inventory.datacenters.len(), "seconds": seconds, "mib": (after - before) / 1024.0,
        })
    );
    Ok(())
}

/// The most memory that this process has ever had, in KiB.
fn peak() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("VmHWM")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}
