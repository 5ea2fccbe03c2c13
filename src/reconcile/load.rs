// SPDX-License-Identifier: Apache-2.0
//! The phase load: opens the chart of each chosen version (effect).

use super::Ports;
use super::driver_run::{DriverRuns, Source};

/// Loads the chart of every driver that is not brought back to a revision. A driver whose chart cannot be loaded fails.
pub(super) async fn load(ports: &Ports, runs: &mut DriverRuns) {
    for run in runs.iter_mut().filter(|run| run.source.is_none()) {
        let Some(pick) = &run.pick else { continue };
        match ports.repository.chart(&pick.chart).await {
            Ok(chart) => run.source = Some(Source::Chart(chart)),
            Err(error) => run.fail(error.into()),
        }
    }
}
