// SPDX-License-Identifier: Apache-2.0
//! Two clusters for the tests of this binary, each with the operator behind a proxy. A kill runs in both, half of its points in each.
//!
//! A test begins with or without the drivers installed, whatever the one before left. After a test that failed its cluster is not used again.

use crate::lab::{Lab, Run, Scenario};
use anyhow::{Context, Result};
use std::sync::LazyLock;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

/// Clusters side by side. A run waits most of its time.
pub const LANES: usize = 2;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    crate::common::prepare();
    Runtime::new().expect("a runtime")
});
static LABS: [Mutex<Option<Shared>>; LANES] = [const { Mutex::const_new(None) }; LANES];

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

/// Runs the same in all clusters at once, each with its number.
pub fn run_in_all<T>(installed: bool, leaves: bool, test: impl AsyncFn(&mut Lab, usize) -> Result<T>) -> Result<Vec<T>> {
    let test = &test;
    let lanes = (0..LANES).map(|number| lane(number, installed, leaves, async move |lab, _| test(lab, number).await));
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
