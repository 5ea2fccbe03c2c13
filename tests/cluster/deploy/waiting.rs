// SPDX-License-Identifier: Apache-2.0
//! How a wait ends that does not come to its end.

use super::{Deploy, administrator, err, out};
use crate::common::NS;
use crate::fixture::BARE;
use crate::screen::Screen;
use anyhow::{Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use vdo_testbed::Act;

/// What is waited for is named at the end of the time, and a signal ends the wait and nothing else.
#[test]
#[ignore = "long"]
fn deploy_past_timeout_names_what_it_waited_for_and_a_signal_ends_the_wait() -> Result<()> {
    BARE.run(async |bed| {
        let deploy = Deploy::to(bed)?;
        let late = deploy.run(bed, &["--timeout", "3s"])?;
        let said = err(&late);
        ensure!(late.status.code() == Some(7), "{:?} {said}", late.status);
        for words in [
            "not ready after 3 s: ",
            "the operator has not checked VDOConfig",
            "Check the operator's log",
            "Run the same command again to continue waiting",
        ] {
            ensure!(said.contains(words), "{words:?} is not in {said}");
        }
        for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
            let mut screen = Screen::start_controlled(&deploy.command(bed, &[]))?;
            screen.until("the operator has not checked VDOConfig").await?;
            kill(Pid::from_raw(screen.pid()?), signal)?;
            screen.until("interrupted: everything is written").await?;
            let ended = screen.code().await?;
            ensure!(ended == code && screen.echoes()?, "{signal}: {ended}\n{}", screen.shown());
        }
        ensure!(
            bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await? != Value::Null,
            "it is not there"
        );
        Ok(())
    })
}

/// A dry run and a write that the API server does not answer in time are repeated; the result of an apply stays the same.
#[test]
#[ignore = "long"]
fn deploy_repeats_a_dry_run_and_a_write_that_are_answered_late() -> Result<()> {
    BARE.run(async |bed| {
        let (proxy, through) = administrator(bed).await?;
        let deploy = Deploy::to(bed)?;
        let tried = AtomicBool::new(false);
        // Longer than the deadline of a request, and than a Lease. The second time the call has another number.
        proxy.begin(move |call| match call.write {
            None if call.dry_run && !tried.swap(true, Ordering::Relaxed) => Act::Late(Duration::from_secs(60)),
            Some(1) => Act::Late(Duration::from_secs(60)),
            _ => Act::Pass,
        });
        let deployed = deploy.run(bed, &["--no-wait", "--kubeconfig", &through])?;
        ensure!(deployed.status.success(), "{}{}", out(&deployed), err(&deployed));
        let late = proxy.handled().into_iter().filter(|handled| matches!(handled.act, Act::Late(_)));
        ensure!(late.count() == 2, "{:?}", proxy.handled());
        Ok(())
    })
}
