//! How a wait ends that does not come to its end.

use super::{Deploy, err};
use crate::common::NS;
use crate::fixture::BARE;
use crate::screen::Screen;
use anyhow::{Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// What is waited for is named at the end of the time, and a signal ends the wait and nothing else.
#[test]
fn deploy_past_timeout_names_what_it_waited_for_and_a_signal_ends_the_wait() -> Result<()> {
    BARE.run(async |bed| {
        let deploy = Deploy::to(bed)?;
        let late = deploy.run(bed, &["--timeout", "3s"])?;
        let said = err(&late);
        ensure!(late.status.code() == Some(7), "{:?} {said}", late.status);
        for words in [
            "not ready after 3 s: ",
            "the operator to look at VDOConfig",
            "Look at the operator's log",
            "The same command again goes on waiting",
        ] {
            ensure!(said.contains(words), "{words:?} is not in {said}");
        }
        for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
            let mut screen = Screen::start_controlled(&deploy.command(bed, &[]))?;
            screen.until("the operator to look at VDOConfig").await?;
            kill(Pid::from_raw(screen.pid()?), signal)?;
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
