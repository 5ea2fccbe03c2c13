// SPDX-License-Identifier: Apache-2.0
//! Killed at every write in every mode: the end is that of the undisturbed run, and nothing was made or removed twice.

use crate::common::sample;
use crate::lab::{Lab, Scenario};
use crate::oracle::State;
use crate::points::{MODES, Point, all, wanted};
use crate::shared::{lanes, run_in_all};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::time::Duration;

/// How many points of a scenario each lane takes when not all are wanted.
const SAMPLE: usize = 2;
/// How many of an installation, which writes most.
const OF_INSTALLATION: usize = 12;

/// A scenario, how it ends undisturbed, and what came of its points.
struct Case {
    scenario: Scenario,
    end: State,
    writes: usize,
    planned: usize,
    points: Vec<Point>,
    reached: usize,
    took: Duration,
}

impl Case {
    /// Runs the scenario undisturbed, and takes the lane's part of its points: all, or a few.
    async fn learn(lab: &mut Lab, scenario: Scenario, lane: usize) -> Result<Self> {
        lab.restart().await?;
        let run = lab.run(scenario, None).await?;
        ensure!(run.writes > 0, "{scenario:?} writes nothing");
        let mut points: Vec<Point> = all(run.writes).into_iter().skip(lane).step_by(lanes()).collect();
        if !wanted(&format!("{scenario:?}")) {
            // The first write there always is, where how many follow it is a matter of time.
            let what = format!("{scenario:?} {lane}");
            let (first, later): (Vec<Point>, Vec<Point>) = points.into_iter().partition(|point| point.write == 1);
            let count = if scenario == Scenario::Install { OF_INSTALLATION } else { SAMPLE };
            points = if lane == 0 { sample::some(&what, &first, 1) } else { Vec::new() };
            points.extend(sample::some(&what, &later, count - points.len()));
        }
        Ok(Self {
            scenario,
            end: run.state,
            writes: run.writes,
            planned: points.len(),
            points,
            reached: 0,
            took: Duration::ZERO,
        })
    }

    /// Runs it with the disturbance that is next, or without one when all are done.
    async fn next(&mut self, lab: &mut Lab) -> Result<()> {
        let point = self.points.pop();
        if point.is_some() {
            lab.restart().await?;
        }
        let run = lab.run(self.scenario, point).await?;
        self.end
            .same(&run.state)
            .with_context(|| format!("{:?} {point:?}:\n{}", self.scenario, lab.trail()))?;
        if point.is_some() {
            self.reached += usize::from(run.reached);
            self.took += run.took;
        }
        Ok(())
    }
}

/// Runs two scenarios by turns, of which each leads back to where the other begins, in all clusters.
fn by_turns(installed: bool, [there, back]: [Scenario; 2]) -> Result<()> {
    let lanes = run_in_all(installed, installed, async |lab, lane| turns(lab, lane, [there, back]).await)?;
    report_both(&lanes)
}

/// The part of one cluster.
async fn turns(lab: &mut Lab, lane: usize, [there, back]: [Scenario; 2]) -> Result<[Case; 2]> {
    let mut cases = [Case::learn(lab, there, lane).await?, Case::learn(lab, back, lane).await?];
    while cases.iter().any(|case| !case.points.is_empty()) {
        for case in &mut cases {
            case.next(lab).await?;
        }
    }
    Ok(cases)
}

fn report_both(lanes: &[[Case; 2]]) -> Result<()> {
    for at in 0..2 {
        report(&lanes.iter().map(|cases| &cases[at]).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// What came of a scenario in all clusters.
fn report(cases: &[&Case]) -> Result<()> {
    let sum = |of: fn(&Case) -> usize| cases.iter().map(|case| of(case)).sum::<usize>();
    let (planned, reached) = (sum(|case| case.planned), sum(|case| case.reached));
    let seconds = cases.iter().map(|case| case.took.as_secs_f64()).sum::<f64>() / planned.max(1) as f64;
    println!(
        "{:13} {:2} writes: {planned:3} of {:3} points, {reached:3} reached, same end of {:2} objects, nothing twice, {seconds:.1} s each",
        format!("{:?}", cases[0].scenario),
        cases[0].writes,
        cases[0].writes * MODES.len(),
        cases[0].end.len(),
    );
    // A point beyond the end of a run shows nothing. How often the status is written depends on what happens side by side,
    // and where little else is written, that is much.
    let enough = if planned > 20 { planned * 9 / 10 } else { 1 };
    ensure!(reached >= enough, "only {reached} of {planned} points were reached");
    Ok(())
}

#[test]
fn crash_during_install_or_uninstall_ends_in_same_state() -> Result<()> {
    by_turns(false, [Scenario::Install, Scenario::Delete])
}

#[test]
fn crash_during_change_of_values_ends_in_same_state() -> Result<()> {
    by_turns(true, [Scenario::Configure, Scenario::ConfigureBack])
}

#[test]
fn crash_during_removal_of_one_driver_ends_in_same_state() -> Result<()> {
    by_turns(true, [Scenario::Narrow, Scenario::Widen])
}

#[test]
fn crash_while_node_joins_or_leaves_ends_in_same_state() -> Result<()> {
    by_turns(true, [Scenario::Join, Scenario::Leave])
}

#[test]
fn crash_during_upgrade_or_downgrade_ends_in_same_state() -> Result<()> {
    let lanes = run_in_all(true, true, async |lab, lane| {
        let cases = turns(lab, lane, [Scenario::Downgrade, Scenario::Upgrade]).await?;
        // Without a pin the installed version stays, which is the newest again.
        lab.run(Scenario::ConfigureBack, None).await?;
        Ok(cases)
    })?;
    report_both(&lanes)
}

/// The drivers stay when their VDOConfig goes, and the next VDOConfig adopts them without replacing a pod.
#[test]
fn crash_during_adoption_ends_in_same_state_and_keeps_pods() -> Result<()> {
    let lanes = run_in_all(true, true, async |lab, lane| {
        // Another test may have the cluster before and after, but not meanwhile.
        lab.run(Scenario::Adopt, None).await?;
        let before = pods(lab).await?;
        let cases = turns(lab, lane, [Scenario::Release, Scenario::Adopt]).await?;
        let after = pods(lab).await?;
        ensure!(!before.is_empty() && before == after, "adoption replaced pods");
        // From now on the drivers go with their VDOConfig again.
        lab.run(Scenario::ConfigureBack, None).await?;
        Ok(cases)
    })?;
    report_both(&lanes)
}

/// The pods of the drivers, by UID.
async fn pods(lab: &Lab) -> Result<BTreeSet<String>> {
    let pods = lab.bed.list("v1", "Pod", "").await?;
    Ok(pods.iter().map(|pod| pod["metadata"]["uid"].to_string()).collect())
}
