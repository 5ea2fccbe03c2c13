//! Killed at every write in every mode: the end is that of the undisturbed run, and nothing was made or removed twice.

use crate::lab::{Lab, Scenario};
use crate::oracle::State;
use crate::points::{Dice, MODES, Point, all, everything};
use anyhow::{Context, Result, ensure};
use std::time::Duration;

/// How many points of each of the other scenarios are taken when not all are wanted.
const SAMPLE: usize = 3;

/// A scenario, how it ends undisturbed, and what came of its points.
struct Case {
    scenario: Scenario,
    end: State,
    writes: usize,
    points: Vec<Point>,
    reached: usize,
    took: Duration,
}

impl Case {
    /// Runs the scenario undisturbed.
    async fn learn(lab: &mut Lab, scenario: Scenario) -> Result<Self> {
        let run = lab.run(scenario, None).await?;
        ensure!(run.writes > 0, "{scenario:?} writes nothing");
        Ok(Self {
            scenario,
            end: run.state,
            writes: run.writes,
            points: Vec::new(),
            reached: 0,
            took: Duration::ZERO,
        })
    }

    /// Runs it with the disturbance that is next, or without one when all are done.
    async fn next(&mut self, lab: &mut Lab) -> Result<()> {
        let point = self.points.pop();
        let run = lab.run(self.scenario, point).await?;
        println!("{:?} {point:?} {} writes reached {} {:?}", self.scenario, run.writes, run.reached, run.took);
        self.end
            .same(&run.state)
            .with_context(|| format!("{:?} {point:?}:\n{}", self.scenario, lab.trail()))?;
        if point.is_some() {
            self.reached += usize::from(run.reached);
            self.took += run.took;
        }
        Ok(())
    }

    fn summary(&self, planned: usize) -> String {
        let each = self.took.as_secs_f64() / planned.max(1) as f64;
        format!(
            "{:?}: {} writes; {planned} of {} points, {} reached; same end state of {} objects each time, {each:.1} s each",
            self.scenario,
            self.writes,
            self.writes * MODES.len(),
            self.reached,
            self.end.len()
        )
    }
}

/// Runs two scenarios by turns, of which each leads back to where the other begins.
async fn by_turns(lab: &mut Lab, there: Scenario, back: Scenario, dice: &Dice, whole: bool) -> Result<()> {
    let mut cases = [Case::learn(lab, there).await?, Case::learn(lab, back).await?];
    for (case, whole) in cases.iter_mut().zip([whole, false]) {
        let points = all(case.writes);
        case.points = if whole || everything() {
            points
        } else {
            dice.some(&format!("{:?}", case.scenario), &points, SAMPLE)
        };
    }
    let planned = [cases[0].points.len(), cases[1].points.len()];
    while cases.iter().any(|case| !case.points.is_empty()) {
        for case in &mut cases {
            case.next(lab).await?;
        }
    }
    for (case, planned) in cases.iter().zip(planned) {
        println!("{}", case.summary(planned));
        // A point that is beyond the end of a run shows nothing. The last writes are events, of which there may be one less.
        ensure!(case.reached * 10 >= planned * 9, "only {} of {planned} points were reached", case.reached);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_it_ends_in_the_same_state() -> Result<()> {
    crate::bed::prepare();
    let dice = Dice::new();
    println!("seed of the sample: VDO_FAULTS_SEED={}", dice.seed());
    let mut lab = Lab::start().await?;
    // The nodes are initialised by a first installation, and stay so.
    lab.run(Scenario::Install, None).await?;
    lab.run(Scenario::Delete, None).await?;
    by_turns(&mut lab, Scenario::Install, Scenario::Delete, &dice, true).await?;
    lab.run(Scenario::Install, None).await?;
    for (there, back) in [
        (Scenario::Configure, Scenario::ConfigureBack),
        (Scenario::Join, Scenario::Leave),
        (Scenario::Downgrade, Scenario::Upgrade),
    ] {
        by_turns(&mut lab, there, back, &dice, false).await?;
    }
    Ok(())
}
