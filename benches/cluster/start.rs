// SPDX-License-Identifier: Apache-2.0
//! How soon `vdoctl` answers: its help, and what a shell asks it for each word, beside kubectl and a process that does nothing.

use crate::report::{Report, median, seconds};
use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const PROCESSES: usize = 25;

pub fn measure(kubectl: &Path, report: &mut Report) -> Result<()> {
    let vdoctl = Path::new(vdo_testbed::vdoctl());
    let commands: [(&str, &Path, &[&str]); 5] = [
        ("vdoctl --help", vdoctl, &["--help"]),
        ("completion of a version", vdoctl, &["__complete", "matrix", "show", "csi", "3.7"]),
        ("completion of a reason", vdoctl, &["__complete", "explain", "Vol"]),
        ("kubectl version --client", kubectl, &["version", "--client"]),
        ("/bin/true", Path::new("/bin/true"), &[]),
    ];
    let mut times: [Vec<f64>; 5] = Default::default();
    // By turns, so that what else the machine does meets all alike.
    for _ in 0..PROCESSES {
        for (times, (what, program, arguments)) in times.iter_mut().zip(commands) {
            let before = Instant::now();
            let mut command = Command::new(program);
            let status = command
                .args(arguments)
                .env_clear()
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            ensure!(status.with_context(|| what.to_owned())?.success(), "{what} fails");
            times.push(before.elapsed().as_secs_f64());
        }
    }
    let [help, version, reason, kubectl, nothing] = times.map(median);
    report.section("Start of vdoctl");
    for ((what, ..), time) in commands.iter().zip([help, version, reason]) {
        report.row(
            what,
            seconds(time),
            format!("kubectl version --client {}, /bin/true {}", seconds(kubectl), seconds(nothing)),
            format!("kubectl/vdo {:.1}", kubectl / time),
        );
    }
    Ok(())
}
