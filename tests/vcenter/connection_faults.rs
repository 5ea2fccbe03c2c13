// SPDX-License-Identifier: Apache-2.0
//! Every way in which a connection can be wrong has one name: each fault, injected alone, gives exactly its reason at its stage, through
//! the look that the operator and `vdoctl` take. The table is printed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod faults;
mod inside;
mod world;

use anyhow::{Result, ensure};
use futures::StreamExt as _;
use futures::stream;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::{ConditionType, Reason};
use world::{Seen, World};

/// A fault has been recognised when the first condition that does not hold is the right one, for the right reason.
#[tokio::test(flavor = "multi_thread")]
async fn connection_each_fault_has_exactly_its_reason() -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let world = World::start().await?;
    let cases = faults::all();
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name).collect();
    ensure!(names.len() == cases.len(), "two faults have one name");
    ensure!(cases.len() >= 40, "{} faults are too few", cases.len());

    let found: Vec<Result<Seen>> = stream::iter(&cases)
        .map(|case| async { world.look(case).await })
        .buffered(16)
        .collect()
        .await;

    let mut wrong = Vec::new();
    let mut hits: BTreeMap<(ConditionType, Reason), usize> = BTreeMap::new();
    println!("{:<52} {:<20} {:<26} FOUND", "FAULT", "STAGE", "REASON");
    for (case, seen) in cases.iter().zip(found) {
        let seen = seen?;
        let found = seen.first();
        let right = found == Some((case.stage, case.reason));
        *hits.entry((case.stage, case.reason)).or_default() += usize::from(right);
        let reported = match (right, found) {
            (true, _) => "as it should be".to_owned(),
            (false, Some((stage, reason))) => format!("{stage} {reason}"),
            (false, None) => "nothing".to_owned(),
        };
        println!(
            "{:<52} {:<20} {:<26} {reported}",
            case.name,
            case.stage.as_str(),
            case.reason.as_str()
        );
        if let Err(error) = seen.check(case) {
            wrong.push(format!("{}: {error}\n{seen}", case.name));
        }
    }
    let right: usize = hits.values().sum();
    println!("{right} of {} faults on the diagonal, of {} kinds", cases.len(), hits.len());
    ensure!(wrong.is_empty() && right == cases.len(), "{}", wrong.join("\n\n"));
    Ok(())
}

/// Without a fault nothing is found: the table above could not be right by always finding something.
#[tokio::test(flavor = "multi_thread")]
async fn connection_without_fault_has_no_failure() -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let world = World::start().await?;
    for case in faults::none() {
        let seen = world.look(&case).await?;
        ensure!(seen.first().is_none(), "{}: {seen}", case.name);
    }
    Ok(())
}
