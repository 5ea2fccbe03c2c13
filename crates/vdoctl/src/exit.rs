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
    /// What was waited for did not come in time, or cannot come before a person acts.
    TimedOut = 7,
    /// SIGINT.
    Interrupted = 130,
    /// SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// Every one, in order.
    pub const ALL: &'static [Self] = &[
        Self::Ok,
        Self::Differences,
        Self::Usage,
        Self::NotFound,
        Self::Refused,
        Self::Cluster,
        Self::Vcenter,
        Self::TimedOut,
        Self::Interrupted,
        Self::Terminated,
    ];

    /// The one with this number.
    #[must_use]
    pub fn of(code: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|exit| *exit as u8 == code)
    }

    /// One sentence on what it means.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "Done; also when the reader of the output went away.",
            Self::Differences => "There are differences, a check failed, or something is wrong; the output says what.",
            Self::Usage => "The command line makes no sense; `--help` shows how it is meant.",
            Self::NotFound => "What was named does not exist, or VDO is not deployed.",
            Self::Refused => "Refused: by a check, or because a right is missing.",
            Self::Cluster => "The cluster cannot be reached; look at --kubeconfig and --context.",
            Self::Vcenter => "The vCenter cannot be reached, refuses, or nothing is known of it.",
            Self::TimedOut => "What was waited for did not come in time, or cannot come before a person acts; the output says which.",
            Self::Interrupted => "Interrupted (SIGINT).",
            Self::Terminated => "Terminated (SIGTERM).",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
