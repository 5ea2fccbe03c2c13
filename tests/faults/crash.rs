//! Killed at every write in every mode: the end is that of the undisturbed run, and nothing was made or removed twice.

use crate::lab::{Lab, Scenario};
use crate::oracle::State;
use crate::points::{Dice, MODES, Point, all, wanted};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How many points of each of the other scenarios each lane takes when not all are wanted.
const SAMPLE: usize = 2;
/// Clusters side by side. A run waits most of its time.
const LANES: usize = 2;

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
    async fn learn(lab: &mut Lab, scenario: Scenario, lane: usize, dice: &Dice, whole: bool) -> Result<Self> {
        let run = lab.run(scenario, None).await?;
        ensure!(run.writes > 0, "{scenario:?} writes nothing");
        let mut points: Vec<Point> = all(run.writes).into_iter().skip(lane).step_by(LANES).collect();
        if !wanted(&format!("{scenario:?}"), whole) {
            // The first write there always is, where how many follow it is a matter of time.
            let what = format!("{scenario:?} {lane}");
            let (first, later): (Vec<Point>, Vec<Point>) = points.into_iter().partition(|point| point.write == 1);
            points = dice.some(&what, &first, 1);
            points.extend(dice.some(&what, &later, SAMPLE - points.len()));
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

/// Runs two scenarios by turns, of which each leads back to where the other begins.
async fn by_turns(lab: &mut Lab, lane: usize, dice: &Dice, [there, back]: [Scenario; 2], whole: bool) -> Result<[Case; 2]> {
    let mut cases = [
        Case::learn(lab, there, lane, dice, whole).await?,
        Case::learn(lab, back, lane, dice, false).await?,
    ];
    while cases.iter().any(|case| !case.points.is_empty()) {
        for case in &mut cases {
            case.next(lab).await?;
        }
    }
    let done = |case: &Case| format!("{:?} {} of {} points reached", case.scenario, case.reached, case.planned);
    println!("lane {lane}: {}", cases.each_ref().map(done).join(", "));
    Ok(cases)
}

/// One cluster's part of everything.
async fn lane(lane: usize, dice: &Dice) -> Result<Vec<Case>> {
    let mut lab = Lab::start().await?;
    // The nodes are initialised by a first installation, and stay so.
    lab.run(Scenario::Install, None).await?;
    lab.run(Scenario::Delete, None).await?;
    let mut cases = Vec::new();
    cases.extend(by_turns(&mut lab, lane, dice, [Scenario::Install, Scenario::Delete], true).await?);
    lab.run(Scenario::Install, None).await?;
    for pair in [
        [Scenario::Configure, Scenario::ConfigureBack],
        [Scenario::Narrow, Scenario::Widen],
        [Scenario::Join, Scenario::Leave],
        [Scenario::Downgrade, Scenario::Upgrade],
    ] {
        cases.extend(by_turns(&mut lab, lane, dice, pair, false).await?);
    }
    // From now on the drivers stay when their VDOConfig goes.
    lab.run(Scenario::Adopt, None).await?;
    let before = pods(&lab).await?;
    cases.extend(by_turns(&mut lab, lane, dice, [Scenario::Release, Scenario::Adopt], false).await?);
    ensure!(!before.is_empty() && before == pods(&lab).await?, "adoption replaced pods");
    Ok(cases)
}

/// The pods of the drivers, by UID.
async fn pods(lab: &Lab) -> Result<BTreeSet<String>> {
    let pods = lab.bed.list("v1", "Pod", "").await?;
    Ok(pods.iter().map(|pod| pod["metadata"]["uid"].to_string()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_it_ends_in_the_same_state() -> Result<()> {
    crate::bed::prepare();
    let (dice, begun) = (Dice::new(), Instant::now());
    println!("seed of the sample: VDO_FAULTS_SEED={}", dice.seed());
    let lanes = futures::future::try_join_all((0..LANES).map(|number| lane(number, &dice))).await?;
    let [first, ..] = lanes.as_slice() else {
        unreachable!("there are lanes")
    };
    let mut runs = 0;
    for at in 0..first.len() {
        let cases: Vec<&Case> = lanes.iter().map(|lane| &lane[at]).collect();
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
        runs += planned;
    }
    println!("{runs} disturbed runs in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}
