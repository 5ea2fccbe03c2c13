//! The rights to see what is there are taken away: exactly the rule that is missing is named, nothing is touched, and all goes on when the
//! right is back.

use crate::bed::condition;
use crate::granted::Right;
use crate::lab::{Lab, TELLING};
use crate::rules::rules;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use vdo_testbed::{Probe, until};

/// That these cannot be seen is told in the log alone: see `unheard`.
pub const OWN_OBJECTS: [&str; 2] = ["vdoconfigs", "vspherecloudconfigs"];

impl Lab {
    /// The operator starts without a right to list or to watch, each in turn; and it loses all rights to watch while it runs, which it
    /// learns when its watches end. A list that was read is not asked for again as long as it runs.
    pub async fn sight(&mut self) -> Result<()> {
        let all = self.all("vdo-operator");
        let seen = |verb: &str| -> BTreeSet<Right> {
            let ours = all.iter().filter(|right| right.verb == verb && right.is_for_watching(&all));
            // What everywhere allows is allowed in each namespace too.
            let ours = ours.filter(|right| !all.iter().any(|other| other != *right && other.covers(right)));
            ours.filter(|right| !OWN_OBJECTS.contains(&right.resource.as_str()))
                .cloned()
                .collect()
        };
        let before = self.owned().await?;
        for (what, verb) in [("list", "list"), ("watch", "watch")] {
            let begun = Instant::now();
            // Where Ready is not touched, the condition that is stays until there is another look.
            let mut rights: Vec<Right> = seen(verb).into_iter().collect();
            rights.sort_by_key(|right| right.resource.starts_with("customresourcedefinitions"));
            for right in &rights {
                self.bed.kill_operator();
                self.take(Some(right)).await?;
                self.bed.start_operator().await?;
                let told = self.named(right).await;
                self.note("start", right, told);
                self.untouched(&before, &format!("at a start without the right to {right}")).await?;
            }
            self.take(None).await?;
            self.well_again(Instant::now())
                .await
                .with_context(|| format!("when it may {verb} all again"))?;
            self.count(what, begun, rights.len());
        }
        self.lose_sight(seen("watch"), &before).await
    }

    async fn lose_sight(&mut self, rights: BTreeSet<Right>, before: &BTreeMap<String, String>) -> Result<()> {
        let begun = Instant::now();
        self.lack(&rights).await?;
        self.bed.cluster.stop_apiserver();
        self.bed.cluster.start_apiserver().await?;
        until("a condition that names one rule that is missing", TELLING, async || {
            let ready = condition(&self.config().await?, "Ready");
            let told = rules(ready["message"].as_str().unwrap_or_default());
            let one = matches!(told.as_slice(), [rule] if rights.iter().any(|right| right.is_in(rule)));
            Ok(Probe::when(one && ready["reason"] == "Forbidden", ready))
        })
        .await?;
        self.untouched(before, "without any right to watch").await?;
        self.lack(&BTreeSet::new()).await?;
        self.well_again(Instant::now()).await.context("when it may watch all again")?;
        self.untouched(before, "when it may watch all again").await?;
        self.count("watch, running", begun, rights.len());
        Ok(())
    }
}
