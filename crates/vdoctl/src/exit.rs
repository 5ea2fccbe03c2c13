// SPDX-License-Identifier: Apache-2.0
//! The exit codes of `vdoctl`, each with its meaning and remedy.

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
            Self::Ok => "Success; also when the reader of the output closes the pipe.",
            Self::Differences => "There are differences, a check failed, or there is a problem; the output names it.",
            Self::Usage => "The command line is not valid; `--help` shows the correct usage.",
            Self::NotFound => "The named object does not exist, or VDO is not deployed.",
            Self::Refused => "A check refused the command, or a right is missing.",
            Self::Cluster => "The cluster cannot be reached; check --kubeconfig and --context.",
            Self::Vcenter => "The vCenter cannot be reached, refuses a request, or its state is unknown.",
            Self::TimedOut => "The wait timed out, or cannot end before a person acts; the output shows which.",
            Self::Interrupted => "Interrupted (SIGINT).",
            Self::Terminated => "Terminated (SIGTERM).",
        }
    }

    /// What to do about it; none where there is nothing to do.
    #[must_use]
    pub fn remedy(self) -> Option<&'static str> {
        Some(match self {
            Self::Ok => return None,
            Self::Differences => "The output names what is wrong. `vdoctl status` shows it again, with the command that fixes it.",
            Self::Usage => "The error names the argument. `--help` after the verb shows its arguments, with examples.",
            Self::NotFound => "`vdoctl status` shows what is deployed; `vdoctl deploy` deploys VDO if it is missing.",
            Self::Refused => {
                "The error names the check or the right. `vdoctl rights --missing` prints the rights that the operator lacks. If you lack a right \
                 yourself, ask an administrator of the cluster."
            }
            Self::Cluster => {
                "Try `kubectl get --raw /readyz` with the same kubeconfig. If it answers, name that kubeconfig with --kubeconfig or its context \
                 with --context."
            }
            Self::Vcenter => {
                "`vdoctl doctor` shows which stage of a vCenter fails, such as its address, its certificate or the login, and what to do."
            }
            Self::TimedOut => "`vdoctl status` shows what is not ready, and what to do. Wait longer with --timeout.",
            Self::Interrupted | Self::Terminated => "Run the same command again: it continues from what was done.",
        })
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
