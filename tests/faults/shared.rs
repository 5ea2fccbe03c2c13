// SPDX-License-Identifier: Apache-2.0
//! The clusters for the tests of this binary, each with the operator behind a proxy. When whole scenarios are wanted, kills run in two, half
//! of the points in each.
//!
//! A test begins with or without the drivers installed, whatever the one before left. After a test that failed its cluster is not used again.

use crate::common::sample::setting;
use crate::lab::{Lab, Run, Scenario};
use anyhow::{Context, Result};
use std::sync::LazyLock;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

/// The most clusters that are used side by side.
const LANES: usize = 2;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    crate::common::prepare();
    Runtime::new().expect("a runtime")
});
static LABS: [Mutex<Option<Shared>>; LANES] = [const { Mutex::const_new(None) }; LANES];

/// Clusters side by side: a run waits for about half of its time. For a few points, a second cluster would cost more than it saves.
pub fn lanes() -> usize {
    if setting("VDO_FAULTS").is_some() { LANES } else { 1 }
}

/// A cluster, and what an undisturbed installation leads to there.
pub struct Shared {
    pub lab: Lab,
    pub fresh: Run,
    pub installed: bool,
}

impl Shared {
    /// The nodes are initialised by a first installation, and stay so.
    async fn start() -> Result<Self> {
        let mut lab = Lab::start().await?;
        lab.run(Scenario::Install, None).await?;
        lab.run(Scenario::Delete, None).await?;
        let fresh = lab.run(Scenario::Install, None).await?;
        Ok(Self {
            lab,
            fresh,
            installed: true,
        })
    }

    /// Installs or uninstalls the drivers.
    pub async fn bring(&mut self, installed: bool) -> Result<()> {
        if self.installed != installed {
            let scenario = if installed { Scenario::Install } else { Scenario::Delete };
            self.lab.run(scenario, None).await.context("the cluster for this test")?;
            self.installed = installed;
        }
        Ok(())
    }
}

/// Runs a test in one of the clusters, with or without the drivers installed, and says how it left them.
pub fn run(installed: bool, leaves: bool, test: impl AsyncFnOnce(&mut Lab, &Run) -> Result<()>) -> Result<()> {
    RUNTIME.block_on(lane(0, installed, leaves, test))
}

/// Runs the same in each cluster at once, each with its number.
pub fn run_in_all<T>(installed: bool, leaves: bool, test: impl AsyncFn(&mut Lab, usize) -> Result<T>) -> Result<Vec<T>> {
    let test = &test;
    let lanes = (0..lanes()).map(|number| lane(number, installed, leaves, async move |lab, _| test(lab, number).await));
    RUNTIME.block_on(futures::future::try_join_all(lanes))
}

async fn lane<T>(number: usize, installed: bool, leaves: bool, test: impl AsyncFnOnce(&mut Lab, &Run) -> Result<T>) -> Result<T> {
    let mut slot = LABS[number].lock().await;
    let mut shared = match slot.take() {
        Some(shared) => shared,
        None => Shared::start().await?,
    };
    shared.bring(installed).await?;
    let Shared { lab, fresh, .. } = &mut shared;
    match test(lab, fresh).await {
        Ok(value) => {
            shared.installed = leaves;
            *slot = Some(shared);
            Ok(value)
        }
        Err(error) => {
            shared.lab.bed.cluster.keep_dir();
            Err(error)
        }
    }
}
