//! The operator's rights: narrow as written, all used in a whole life, and sufficient for it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

#[path = "../bed/mod.rs"]
mod bed;
mod blind;
mod deployed;
mod granted;
mod lab;
mod life;
mod missing;
mod rules;
mod unheard;

use anyhow::{Result, ensure};

/// One cluster for all: what one right less does to an installation, a repair, the sight of what is there, and a removal.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_is_told_with_its_rule() -> Result<()> {
    bed::prepare();
    let mut lab = lab::Lab::start().await?;
    lab.installation().await?;
    lab.drift().await?;
    lab.sight().await?;
    lab.unheard().await?;
    lab.removal().await?;
    let untried: Vec<String> = lab
        .untried()
        .iter()
        .filter(|right| unheard::reason_not_to_try(right).is_none())
        .map(ToString::to_string)
        .collect();
    ensure!(lab.problems.is_empty(), "{:#?}", lab.problems);
    ensure!(untried.is_empty(), "never taken away: {untried:#?}");
    Ok(())
}
