//! Each right taken away by itself: the real authorizer refuses, one condition names the rule, and the right given back is enough.

use crate::bed::{Bed, NS, PATIENCE, condition};
use crate::granted::{Right, rights, roles, without};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::Instant;
use vdo_testbed::{Probe, until};

/// How many rights are taken away when not all are wanted.
const SAMPLE: usize = 3;

/// Where the lack of a right is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// In the condition Ready of the VDOConfig.
    Condition,
    /// In the log only: without it there is no VDOConfig to tell it in, or nothing that could be written to.
    Log,
}

fn told(right: &Right) -> Told {
    match (right.resource.as_str(), right.verb.as_str()) {
        ("vdoconfigs/status" | "vspherecloudconfigs/status" | "events" | "leases", _) | ("vdoconfigs", "list" | "watch") => Told::Log,
        _ => Told::Condition,
    }
}

/// The steps of a life, each of which makes use of other rights.
#[derive(Clone, Copy, Debug)]
enum Step {
    Install,
    Change,
    Delete,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_is_one_condition_that_names_the_rule() -> Result<()> {
    crate::bed::prepare();
    let mut bed = Bed::start().await?;
    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    bed.apply(&bed.connection("vc1")).await?;
    // The nodes are initialised once and stay so.
    bed.start_operator().await?;
    act(&bed, Step::Install).await?;
    act(&bed, Step::Delete).await?;
    bed.kill_operator();

    let mut all = Vec::new();
    for role in roles("vdo-operator")? {
        all.extend(rights(&role)?.into_iter().map(|right| (role.clone(), right)));
    }
    let dice = crate::points::Dice::new();
    let chosen = if crate::points::everything() {
        all.clone()
    } else {
        dice.some("rights", &all, SAMPLE)
    };
    println!("{} of {} rights, VDO_FAULTS_SEED={}", chosen.len(), all.len(), dice.seed());
    let mut failures = Vec::new();
    for (role, right) in &chosen {
        let begun = Instant::now();
        let outcome = missing(&mut bed, role, right).await;
        println!(
            "{right}: {} ({:.1} s)",
            outcome.as_deref().unwrap_or("NOT TOLD"),
            begun.elapsed().as_secs_f64()
        );
        if let Err(error) = outcome {
            failures.push(format!("{right}: {error:#}"));
        }
        bed.apply(role).await?;
    }
    ensure!(failures.is_empty(), "{failures:#?}");
    Ok(())
}

/// Lives a life without one right, until somebody says so; then with it, to the end. Gives what was said.
async fn missing(bed: &mut Bed, role: &Value, right: &Right) -> Result<String> {
    bed.apply(&without(role, right)?).await?;
    bed.operator = Some(bed.launch_operator("vdo-operator-0")?);
    let mut said = None;
    for step in [Step::Install, Step::Change, Step::Delete] {
        begin(bed, step).await?;
        let outcome = until("the step to end or the rule to be named", PATIENCE, async || {
            if let Some(text) = named(bed, right).await? {
                return Ok(Probe::Ready(Some(text)));
            }
            Ok(match ended(bed, step).await? {
                None => Probe::Ready(None),
                Some(missing) => Probe::not_yet(missing),
            })
        })
        .await?;
        if outcome.is_some() && said.is_none() {
            said = outcome;
            bed.apply(role).await?;
        }
        until("the step to end", PATIENCE, async || {
            Ok(ended(bed, step).await?.map_or(Probe::Ready(()), Probe::NotYet))
        })
        .await
        .with_context(|| format!("after {said:?}"))?;
    }
    bed.kill_operator();
    said.context("nobody said that the right is missing")
}

/// Where the rule is named, if it is.
async fn named(bed: &Bed, right: &Right) -> Result<Option<String>> {
    let plural = right.resource.split('/').next().unwrap_or_default();
    let words = [format!("resources: [{plural}"), format!("verbs: [{}]", right.verb)];
    let names = |text: &str| words.iter().all(|word| text.contains(word));
    if told(right) == Told::Log {
        let log = std::fs::read_to_string(bed.operator_log())?;
        let refused = |line: &&str| line.contains("cannot") && line.contains(&format!("cannot {}", right.verb)) && line.contains(plural);
        return Ok(log.lines().find(refused).map(|_| "in the log".to_owned()));
    }
    let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
    let ready = condition(&config, "Ready");
    let found = ready["reason"] == "Forbidden" && names(ready["message"].as_str().unwrap_or_default());
    Ok(found.then(|| "in the condition".to_owned()))
}

async fn act(bed: &Bed, step: Step) -> Result<()> {
    begin(bed, step).await?;
    until("the step to end", PATIENCE, async || {
        Ok(ended(bed, step).await?.map_or(Probe::Ready(()), Probe::NotYet))
    })
    .await
}

async fn begin(bed: &Bed, step: Step) -> Result<()> {
    match step {
        Step::Install => bed.apply(&bed.config(crate::life::everything("3.6.3"))).await,
        Step::Change => bed.apply(&bed.config(crate::life::everything("3.7.3"))).await,
        Step::Delete => bed.delete("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await,
    }
}

/// What is missing until a step is through.
async fn ended(bed: &Bed, step: Step) -> Result<Option<String>> {
    let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
    let ready = condition(&config, "Ready");
    let current = config["status"]["observedGeneration"] == config["metadata"]["generation"];
    let through = match step {
        Step::Delete => config == Value::Null,
        Step::Install | Step::Change => current && ready["status"] == "True",
    };
    Ok((!through).then(|| ready.to_string()))
}
