// SPDX-License-Identifier: Apache-2.0
//! Changes, drift, faults, outages, restarts and new matrices for an hour. `make soak` runs it, and `VDO_SOAK` is the minutes.
#![allow(clippy::disallowed_methods, reason = "a test has no arguments of its own")]

mod figures;
mod site;

use crate::api_server::refusing;
use crate::common::{NS, PATIENCE, condition};
use crate::lab::{Lab, Scenario};
use anyhow::{Context, Result, ensure};
use figures::{Figures, Quarter};
use serde_json::{Value, json};
use site::Site;
use std::time::{Duration, Instant};
use vdo_testbed::{Act, Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";

/// What is done in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    /// The administrator changes something, or a node comes or goes.
    Change(Scenario),
    /// The same while the API server refuses three in ten requests.
    Refused(Scenario),
    /// Another user deletes an object of a driver.
    Drift(&'static str, &'static str, &'static str),
    /// The source of the matrix has a newer one.
    Matrix,
    /// The vCenter ends while the password is looked at, and comes back.
    Vcenter,
    /// The API server ends and comes back.
    ApiServer,
    /// The operator is killed and starts again.
    Operator,
}

/// Every quarter of the hour repeats these in this order.
const ROUNDS: [Deed; 12] = [
    Deed::Change(Scenario::Configure),
    Deed::Change(Scenario::ConfigureBack),
    Deed::Matrix,
    Deed::Refused(Scenario::Configure),
    Deed::Refused(Scenario::ConfigureBack),
    Deed::Change(Scenario::Join),
    Deed::Matrix,
    Deed::Change(Scenario::Leave),
    Deed::Change(Scenario::Downgrade),
    Deed::Matrix,
    Deed::Change(Scenario::Upgrade),
    Deed::Change(Scenario::ConfigureBack),
];

/// After so many passes through the rounds come an outage and a drift. An object that is deleted three times in ten minutes is left alone by
/// the operator, so each is deleted seldom.
const RARE: usize = 4;
const OUTAGES: [Deed; 2] = [Deed::Vcenter, Deed::ApiServer];
const DRIFTS: [Deed; 8] = [
    Deed::Drift("v1", "Service", "vsphere-csi-controller"),
    Deed::Drift("v1", "ServiceAccount", "vsphere-csi-node"),
    Deed::Drift("apps/v1", "Deployment", "vsphere-csi-controller"),
    Deed::Drift("v1", "ConfigMap", "internal-feature-states.csi.vsphere.vmware.com"),
    Deed::Drift("v1", "ServiceAccount", "vsphere-csi-controller"),
    Deed::Drift("apps/v1", "DaemonSet", "vsphere-csi-node"),
    Deed::Drift("v1", "Secret", "vsphere-config-secret"),
    Deed::Drift("apps/v1", "DaemonSet", "vsphere-csi-node-windows"),
];

struct Soak {
    lab: Lab,
    site: Site,
    /// How often an administrator has written something that has no other meaning.
    notes: u64,
    /// Passes through the rounds so far.
    passes: usize,
}

impl Soak {
    async fn start() -> Result<Self> {
        let mut lab = Lab::start().await?;
        lab.run(Scenario::Install, None).await?;
        let site = Site::start().await?;
        lab.bed.flags.extend(site.flags());
        lab.restart().await?;
        Ok(Self {
            lab,
            site,
            notes: 0,
            passes: 0,
        })
    }

    async fn act(&mut self, deed: Deed) -> Result<()> {
        self.lab.proxy.judge(|_| Act::Pass);
        match deed {
            Deed::Change(scenario) => self.change(scenario).await,
            Deed::Refused(scenario) => {
                self.lab.proxy.judge(refusing);
                self.change(scenario).await
            }
            Deed::Drift(api_version, kind, name) => self.drift(api_version, kind, name).await,
            Deed::Matrix => {
                let version = self.site.publish()?;
                until("the newer matrix to be in use", PATIENCE, async || {
                    let matrix = &self.lab.bed.status().await?["matrix"];
                    Ok(Probe::when(matrix["version"] == version, matrix))
                })
                .await
            }
            Deed::Vcenter => self.vcenter().await,
            Deed::ApiServer => {
                self.lab.bed.cluster.stop_apiserver();
                self.lab.bed.cluster.start_apiserver().await?;
                self.lab.done(Scenario::Install).await
            }
            Deed::Operator => {
                self.lab.bed.kill_operator();
                self.lab.bed.start_operator().await?;
                self.lab.done(Scenario::Install).await
            }
        }
        .with_context(|| format!("{deed:?}"))
    }

    async fn change(&self, scenario: Scenario) -> Result<()> {
        self.lab.act(scenario).await?;
        self.lab.done(scenario).await
    }

    async fn drift(&self, api_version: &str, kind: &str, name: &str) -> Result<()> {
        let bed = &self.lab.bed;
        let uid = async || -> Result<Value> { Ok(bed.get(api_version, kind, "vmware-system-csi", name).await?["metadata"]["uid"].clone()) };
        let before = uid().await?;
        bed.delete(api_version, kind, "vmware-system-csi", name).await?;
        until("what was deleted to be there again", PATIENCE, async || {
            let now = uid().await?;
            Ok(Probe::when(now.is_string() && now != before, now))
        })
        .await?;
        self.lab.done(Scenario::Install).await
    }

    /// Another version of the Secret has the operator log in, which fails while the vCenter is away.
    async fn vcenter(&mut self) -> Result<()> {
        let bed = &mut self.lab.bed;
        bed.vcenter.stop();
        self.notes += 1;
        let mut secret = bed.secret(bed.vcenter.password());
        secret["stringData"]["note"] = self.notes.to_string().into();
        bed.apply(&secret).await?;
        let connection = async |lab: &Lab| lab.bed.get(VDO, "VsphereCloudConfig", NS, "vc1").await;
        until("the connection not to be ready", PATIENCE, async || {
            let found = connection(&self.lab).await?;
            let ready = condition(&found, "Ready");
            Ok(Probe::when(ready["status"] != "True", ready))
        })
        .await?;
        self.lab.bed.vcenter.resume().await?;
        self.lab
            .bed
            .merge(
                VDO,
                "VsphereCloudConfig",
                NS,
                "vc1",
                json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": self.notes.to_string()}}}),
            )
            .await?;
        until("the connection to be ready again", PATIENCE, async || {
            let found = connection(&self.lab).await?;
            let ready = condition(&found, "Ready");
            Ok(Probe::when(ready["status"] == "True", ready))
        })
        .await?;
        self.lab.done(Scenario::Install).await
    }

    /// Repeats all rounds until the time is over.
    async fn quarter(&mut self, lasts: Duration, kills: bool) -> Result<Quarter> {
        let begun = Instant::now();
        let mut quarter = Quarter::begin(Figures::of(&self.lab).await?);
        while begun.elapsed() < lasts || quarter.rounds == 0 {
            self.lab.proxy.begin(|_| Act::Pass);
            for deed in ROUNDS {
                self.act(deed).await?;
                quarter.rounds += 1;
            }
            self.passes += 1;
            if self.passes.is_multiple_of(RARE) {
                let rare = self.passes / RARE;
                self.act(OUTAGES[rare % OUTAGES.len()]).await?;
                self.act(DRIFTS[rare % DRIFTS.len()]).await?;
                quarter.rounds += 1;
                quarter.outages += 1;
            }
            quarter.add(Figures::of(&self.lab).await?, self.lab.proxy.handled().len());
            if kills {
                self.act(Deed::Operator).await?;
            }
        }
        quarter.took = begun.elapsed();
        Ok(quarter)
    }
}

/// The first quarter kills the operator after every pass; one process lives through the other three.
#[test]
#[ignore = "takes an hour: make soak"]
fn operator_stays_as_it_is_over_changes_faults_restarts_and_outages() -> Result<()> {
    let minutes: u64 = std::env::var("VDO_SOAK")
        .unwrap_or_else(|_| "60".into())
        .parse()
        .context("VDO_SOAK")?;
    ensure!(minutes > 0, "VDO_SOAK is not a number of minutes");
    crate::common::prepare();
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut soak = Soak::start().await?;
        let outcome = soak.hour(Duration::from_secs(minutes * 60) / 4).await;
        if outcome.is_err() {
            soak.lab.bed.cluster.keep_dir();
        }
        outcome
    })
}

impl Soak {
    async fn hour(&mut self, quarter: Duration) -> Result<()> {
        let mut all = Vec::new();
        for number in 0..4 {
            all.push(self.quarter(quarter, number == 0).await?);
            println!("{}", figures::table(&all));
        }
        self.lab.quiet().await?;
        let at_rest = self.at_rest().await?;
        println!("requests in a minute at rest, watches and the Lease left out: {at_rest}");
        ensure!(at_rest == 0, "the operator asks at rest: {}", self.lab.trail());
        figures::flat(&all[1], &all[3])
    }

    /// The requests of a minute in which nothing happens.
    async fn at_rest(&self) -> Result<usize> {
        self.lab.proxy.begin(|_| Act::Pass);
        let until = Instant::now() + Duration::from_secs(60);
        tokio::time::sleep_until(until.into()).await;
        let handled = self.lab.proxy.handled();
        let asks = |line: &str| !line.contains("leases") && !line.contains("watch=");
        Ok(handled
            .iter()
            .filter(|one| one.call.verb != "watch" && asks(&one.call.line()))
            .count())
    }
}
