// SPDX-License-Identifier: Apache-2.0
//! The operator's rights: narrow as written, all used in a whole life, and sufficient for it; and what a missing one does to an
//! installation, a repair, the sight of what is there, and an uninstall.
//!
//! `VDO_RIGHTS=all` takes each right away in turn. Otherwise each test takes a few, chosen by a seed that is printed and can be
//! given with `VDO_SEED`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod attack;
mod blind;
mod brought;
mod deployed;
pub mod granted;
mod in_log;
mod judged;
mod lab;
mod life;
mod missing;
mod rules;

use crate::common::sample::{self, setting};
use anyhow::{Result, ensure};
use granted::{Right, Roles};
use std::collections::BTreeSet;

/// All of `from` with `VDO_RIGHTS=all`, or `count` of them for `what`.
fn some<T: Clone>(what: &str, from: &[T], count: usize) -> Vec<T> {
    match setting("VDO_RIGHTS").is_some_and(|value| value == "all") {
        true => from.to_vec(),
        false => sample::some(what, from, count),
    }
}

/// The tests of this folder leave no right of the operator out but those for which there is a reason.
#[test]
fn rights_of_the_operator_are_each_taken_away_by_some_test() -> Result<()> {
    let roles = Roles::read()?;
    let mut taken: BTreeSet<Right> = missing::to_install(&roles).into_iter().collect();
    taken.extend(missing::to_repair(&roles)?);
    let (first, late) = missing::to_uninstall(&roles);
    taken.extend(first.into_iter().chain(late));
    for verb in ["list", "watch"] {
        taken.extend(blind::to_see(&roles, verb));
    }
    for case in in_log::CASES {
        let rights = case.rights(&roles);
        ensure!(!rights.is_empty(), "there are no such rights: {case:?}");
        taken.extend(rights);
    }
    let own = roles.all();
    // What another one of them gives as well is not missing.
    let implied = |right: &Right| own.iter().any(|other| other != right && other.covers(right));
    let untried: Vec<String> = own
        .iter()
        .filter(|right| !taken.contains(right) && !implied(right) && in_log::reason_not_to_try(right).is_none())
        .map(ToString::to_string)
        .collect();
    ensure!(untried.is_empty(), "never taken away: {untried:#?}");
    Ok(())
}
