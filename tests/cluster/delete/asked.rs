// SPDX-License-Identifier: Apache-2.0
//! On a terminal a person is asked before anything is removed.

use super::{INSTALLED, ensure_nothing_was_removed, ensure_says};
use crate::screen::Screen;
use anyhow::{Result, ensure};
use std::process::Command;

/// Above the question stands the address of the cluster and what is removed from it; the question names the context. Enter says no.
#[test]
#[ignore = "long"]
fn delete_on_a_terminal_asks_with_cluster_and_context_and_enter_says_no() -> Result<()> {
    INSTALLED.run(async |bed| {
        let mark = bed.cluster.audit().mark().await?;
        for (args, what) in [
            (&[][..], "Remove all of this from cluster testbed?"),
            (&["--drivers-only"], "Remove the drivers from cluster testbed?"),
            (&["--keep-drivers"], "Remove the operator from cluster testbed?"),
        ] {
            let mut command = Command::new(vdo_testbed::vdoctl());
            command.arg("delete").args(args).env("VDO_KUBECONFIG", bed.cluster.kubeconfig());
            let mut screen = Screen::start(command)?;
            screen.until("[y/N]").await?;
            let address = format!("to be removed from cluster testbed ({}):", bed.cluster.server_url());
            ensure_says(&screen.shown(), &[what, &address])?;
            screen.types("\n")?;
            let (code, shown) = screen.ended().await?;
            ensure!(code == 4 && shown.contains("nothing was removed"), "{code}\n{shown}");
        }
        ensure_nothing_was_removed(bed, mark).await
    })
}
