use std::process::ExitCode;

/// Every exit code there is. docs/cli.md lists them for users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done. Also when the reader of the output went away.
    Ok = 0,
    /// There are differences, or a check failed.
    Differences = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// What was named does not exist, or nothing is deployed.
    NotFound = 3,
    /// Refused: by a guard, or because a right is missing.
    Refused = 4,
    /// The cluster cannot be reached.
    Cluster = 5,
    /// The vCenter cannot be reached, or nothing is known of it.
    Vcenter = 6,
    /// What was waited for did not come in time.
    TimedOut = 7,
    /// SIGINT.
    Interrupted = 130,
    /// SIGTERM.
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
