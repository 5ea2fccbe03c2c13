// SPDX-License-Identifier: Apache-2.0
//! The rights to see what is there are taken away: exactly the rule that is missing is named, nothing is touched, and all goes on when the
//! right is back.

use crate::common::condition;
use crate::fixture::INSTALLED;
use crate::rights::granted::{Right, Roles};
use crate::rights::in_log::reason_not_to_try;
use crate::rights::lab::{Lab, TELLING};
use crate::rights::rules::rules;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::time::Instant;
use vdo_testbed::{Cut, Probe, Proxy, until};

/// That these cannot be seen is said in the log alone: see `in_log`.
pub const OWN_OBJECTS: [&str; 2] = ["vdoconfigs", "vspherecloudconfigs"];

/// The rights with this verb that the operator needs to see what is there.
pub fn to_see(roles: &Roles, verb: &str) -> BTreeSet<Right> {
    let mut all = roles.all();
    all.retain(|right| reason_not_to_try(right).is_none());
    let ours = all.iter().filter(|right| right.verb == verb && right.is_for_watching(&all));
    // What everywhere allows is allowed in each namespace too.
    let ours = ours.filter(|right| !all.iter().any(|other| other != *right && other.covers(right)));
    ours.filter(|right| !OWN_OBJECTS.contains(&right.resource.as_str()))
        .cloned()
        .collect()
}

/// The operator starts without a right to list or to watch, each in turn.
#[test]
#[ignore = "long"]
fn start_without_a_right_to_see_names_its_rule_and_touches_nothing() -> Result<()> {
    const COUNT: usize = 1;
    INSTALLED.run(async |bed| {
        let mut lab = Lab::new(bed)?;
        lab.install_everything().await?;
        let before = lab.owned().await?;
        let mut planned = Vec::new();
        for verb in ["list", "watch"] {
            let begun = Instant::now();
            // Where Ready is not touched, the condition that is stays until there is another look.
            let mut all: Vec<Right> = to_see(&lab.roles, verb).into_iter().collect();
            all.sort_by_key(Right::is_of_snapshots);
            let rights = super::some(verb, &all, COUNT);
            for right in &rights {
                // No operator runs in between that could see neither of two rights missing.
                lab.bed.kill_operator();
                lab.lack(&BTreeSet::from([right.clone()])).await?;
                lab.bed.start_operator().await?;
                let named = lab.named(right).await;
                lab.note("start", right, named);
                lab.untouched(&before, &format!("at a start without the right to {right}")).await?;
            }
            lab.take(None).await?;
            lab.well_again(Instant::now())
                .await
                .with_context(|| format!("when it may {verb} all again"))?;
            lab.count(verb, begun, rights.len());
            planned.extend(rights);
        }
        lab.finish(&planned)
    })
}

/// The operator loses all rights to watch while it runs, which it learns when its watches end. A list that was read is not asked for
/// again as long as it runs.
#[test]
#[ignore = "long"]
fn watches_lost_while_running_name_a_rule_and_touch_nothing() -> Result<()> {
    INSTALLED.run(async |bed| {
        let proxy = Proxy::start(&bed.cluster).await?;
        bed.kill_operator();
        bed.lead_through(&proxy)?;
        bed.start_operator().await?;
        let mut lab = Lab::new(bed)?;
        let rights = to_see(&lab.roles, "watch");
        until("the operator to watch what it reads", TELLING, async || {
            let watches =
                ["nodes", "daemonsets", "deployments", "configmaps"].map(|resource| proxy.watches(|call| call.resource == resource));
            Ok(Probe::when(!watches.contains(&0), format!("{watches:?}")))
        })
        .await?;
        let (before, begun) = (lab.owned().await?, Instant::now());
        lab.lack(&rights).await?;
        ensure!(proxy.cut(Cut::Reset, |_| true) > 0, "the operator watched nothing");
        until("a condition that names one rule that is missing", TELLING, async || {
            let ready = condition(&lab.config().await?, "Ready");
            let named = rules(ready["message"].as_str().unwrap_or_default());
            let one = matches!(named.as_slice(), [rule] if rights.iter().any(|right| right.is_in(rule)));
            Ok(Probe::when(one && ready["reason"] == "Forbidden", ready))
        })
        .await?;
        lab.untouched(&before, "without any right to watch").await?;
        lab.lack(&BTreeSet::new()).await?;
        lab.well_again(Instant::now()).await.context("when it may watch all again")?;
        lab.untouched(&before, "when it may watch all again").await?;
        lab.count("watch, running", begun, rights.len());
        lab.finish(&rights.into_iter().collect::<Vec<_>>())
    })
}
