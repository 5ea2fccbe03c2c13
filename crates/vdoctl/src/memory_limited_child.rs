// SPDX-License-Identifier: Apache-2.0
//! Runs `chart lint` and `matrix lint` in a child process with limited memory.
//! The templates come from other authors and can need more memory than the machine has; then only the child process ends.

use super::{Answer, CliError, Exit};
use std::io;
use std::path::Path;
use std::process::Output;

/// Bytes that the child may have. The largest matrix and the largest chart that are accepted need less than 100 MiB.
const MOST: u64 = 512 << 20;

/// What the allocator says before it ends a process.
const NO_MEMORY: &str = "memory allocation of";

/// Runs this command line once more in a child with a limit, and gives what it ends with; its answer is on stdout already. Nothing, where there
/// is a limit: this is the child, and does the work. Nothing on a system that cannot limit a process, either.
pub(super) async fn in_child(verb: &str, path: &Path) -> Result<Option<Answer>, CliError> {
    let failed = |error: io::Error| CliError::new(Exit::Refused, format!("{verb} cannot start a child process: {error}"), "");
    let Some(child) = vdo_system::again_with_memory(MOST).map_err(failed)? else {
        return Ok(None);
    };
    ended(&child.wait_with_output().await.map_err(failed)?, verb, path).map(Some)
}

/// What a child ended with. Its failure is repeated as our own.
fn ended(output: &Output, verb: &str, path: &Path) -> Result<Answer, CliError> {
    let talk = anstream::adapter::strip_str(&String::from_utf8_lossy(&output.stderr)).to_string();
    if vdo_system::was_aborted(output.status) && talk.contains(NO_MEMORY) {
        return Err(CliError::new(
            Exit::Differences,
            format!("{verb} needed more than {} MiB of memory for {}", MOST >> 20, path.display()),
            "A template of the chart is broken or malicious. Do not use the chart.",
        ));
    }
    let code = output.status.code();
    let exit = Exit::ALL.iter().copied().find(|exit| Some(*exit as i32) == code);
    match (exit, talk.strip_prefix("error: ")) {
        (Some(exit), Some(failure)) => {
            let (what, remedy) = failure.trim_end().split_once('\n').unwrap_or((failure.trim_end(), ""));
            Err(CliError::new(exit, what, remedy.replace("\n  ", "\n").trim_start()))
        }
        (Some(exit), None) => Ok(talk.lines().fold(Answer::text(""), Answer::note).exit(exit)),
        (None, _) => {
            let error = io::Error::other(format!("the process of {verb} ended with {}: {}", output.status, talk.trim_end()));
            Err(CliError::internal(&error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    fn of(status: i32, talk: &str) -> Result<Answer, CliError> {
        let output = Output {
            status: ExitStatus::from_raw(status),
            stdout: Vec::new(),
            stderr: talk.into(),
        };
        ended(&output, "chart lint", Path::new("charts/toy"))
    }

    #[test]
    fn child_that_ends_is_reported_as_what_it_is() {
        assert_eq!(of(1 << 8, "").map(|answer| answer.exit), Ok(Exit::Differences));
        let error = of(6, "memory allocation of 1073741824 bytes failed\n").unwrap_err();
        assert_eq!(
            (error.exit, error.what.as_str()),
            (Exit::Differences, "chart lint needed more than 512 MiB of memory for charts/toy")
        );
        let error = of(3 << 8, "\u{1b}[31merror:\u{1b}[0m no chart\n  Name one.\n  Or two.\n").unwrap_err();
        assert_eq!(error, CliError::new(Exit::NotFound, "no chart", "Name one.\nOr two."));
        let error = of(6, "thread 'verb' panicked at lint.rs:1\n").unwrap_err();
        assert!(
            error.what.contains("panicked at lint.rs:1") && error.remedy.contains("defect"),
            "{error:?}"
        );
    }
}
