// SPDX-License-Identifier: Apache-2.0
//! Two administrators at once: there is one account with one password, which is in the Secret; the other one gets the same result or a
//! sentence, and no password of the other one is lost.

use super::refused::endpoint;
use super::{command, done, ended, held, start, typed, users};
use crate::common::{Bed, NS, PATIENCE};
use crate::deploy::administrator;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vdo_testbed::{Act, Probe, Proxy, until};
use vdo_vsphere::vcenter::{Budget, Session};

pub async fn make_one_account(bed: &Bed) -> Result<()> {
    both_before_the_first_change(bed).await.context("both before the first change")?;
    one_before_the_secret(bed, "cpi", false)
        .await
        .context("the later password is stored first")?;
    one_before_the_secret(bed, "csi", true)
        .await
        .context("the later password is stored last")?;
    let listed: Value = serde_json::from_str(&done(bed, "list", &["-o", "json"])?)?;
    ensure!(listed["accounts"].as_array().map(Vec::len) == Some(3), "{listed}");
    done(bed, "delete", &["--yes"])?;
    let listed: Value = serde_json::from_str(&done(bed, "list", &["-o", "json"])?)?;
    ensure!(
        listed["accounts"] == serde_json::json!([]) && listed["roles"] == serde_json::json!([]),
        "{listed}"
    );
    for drivers in ["cpi-csi", "cpi", "csi"] {
        bed.delete("v1", "Secret", NS, &name(drivers)).await?;
    }
    Ok(())
}

fn name(drivers: &str) -> String {
    format!("vdo-{drivers}-credentials")
}

/// What the Secret holds is what the vCenter accepts.
async fn is_right(bed: &Bed, drivers: &str) -> Result<()> {
    let credentials = held(bed, &name(drivers)).await?.context("a Secret")?;
    ensure!(credentials.user.starts_with(&format!("vdo-{drivers}-")), "{}", credentials.user);
    Session::open(endpoint(bed), credentials, &Budget::default()).await?.close().await;
    Ok(())
}

/// Two that have planned the same account: one creates it and comes to its end, the other one fails with its first change.
pub async fn at_the_first_change(bed: &Bed, verb: &str, more: &[&str]) -> Result<()> {
    bed.vcenter.close_gate(0).await?;
    let mut both = Vec::new();
    for _ in 0..2 {
        both.push(start(bed, &mut command(bed, verb, more)?)?);
    }
    until("both to make their first change", PATIENCE, async || {
        for one in &mut both {
            ensure!(one.try_wait()?.is_none(), "one has ended");
        }
        let gate = bed.vcenter.gate().await?;
        Ok(Probe::when(gate.waiting == 2, format!("{gate:?}")))
    })
    .await?;
    bed.vcenter.open_gate().await?;
    let mut results = Vec::new();
    for one in both {
        results.push(ended(bed, one)?);
    }
    results.sort();
    ensure!(
        results[0].0 == 0 && results[1].0 == 6 && results[1].1.contains("Another user has created the object at the same time"),
        "{results:?}"
    );
    Ok(())
}

async fn both_before_the_first_change(bed: &Bed) -> Result<()> {
    let own = [typed(bed), ["--shared", "--yes"].map(str::to_owned).into()].concat();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    at_the_first_change(bed, "create", &own).await?;
    is_right(bed, "cpi-csi").await?;
    let text = done(bed, "create", &own)?;
    ensure!(text.contains("nothing to change"), "{text}");
    let text = done(bed, "verify", &own[..own.len() - 1])?;
    ensure!(text.contains("has exactly the needed privileges"), "{text}");
    Ok(())
}

/// A command that waits with its next write to the cluster.
struct Waiting {
    proxy: Proxy,
    child: Child,
}

impl Waiting {
    /// Starts `create`, which made the account or gave it a password, has logged in with it, and is held before it writes the Secret.
    async fn start(bed: &Bed, drivers: &str) -> Result<Self> {
        let (proxy, through) = administrator(bed).await?;
        let is_held = Arc::new(AtomicBool::new(false));
        let seen = is_held.clone();
        proxy.begin(move |call| match call.resource.as_str() {
            "leases" => {
                seen.store(true, Ordering::Relaxed);
                Act::Hold
            }
            _ => Act::Pass,
        });
        let own = [typed(bed), ["--for", drivers, "--yes"].map(str::to_owned).into()].concat();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let mut child = start(bed, command(bed, "create", &own)?.env("VDO_KUBECONFIG", through))?;
        until("the command to be about to write", PATIENCE, async || {
            ensure!(child.try_wait()?.is_none(), "it has ended");
            Ok(Probe::when(is_held.load(Ordering::Relaxed), "it has not"))
        })
        .await?;
        Ok(Self { proxy, child })
    }

    fn goes_on(self, bed: &Bed) -> Result<(i32, String)> {
        self.proxy.judge(|_| Act::Pass);
        self.proxy.pass_held();
        ended(bed, self.child)
    }
}

/// While one is about to write the Secret, another one gives the account another password. It is stored before the first one goes on, or
/// after that.
async fn one_before_the_secret(bed: &Bed, drivers: &str, later_is_last: bool) -> Result<()> {
    let first = Waiting::start(bed, drivers).await?;
    if later_is_last {
        let second = Waiting::start(bed, drivers).await?;
        for (who, one) in [("first", first), ("second", second)] {
            let (code, text) = one.goes_on(bed)?;
            ensure!(code == 0, "{who}: exit {code}\n{text}");
        }
    } else {
        let own = [typed(bed), ["--for", drivers, "--yes"].map(str::to_owned).into()].concat();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let (code, text) = users(bed, "create", &own)?;
        ensure!(code == 0, "second: exit {code}\n{text}");
        let (code, text) = first.goes_on(bed)?;
        ensure!(
            code == 4
                && text.contains("another administrator has just written vdo-")
                && text.contains("it continues with the current content"),
            "first: exit {code}\n{text}"
        );
    }
    is_right(bed, drivers).await
}
