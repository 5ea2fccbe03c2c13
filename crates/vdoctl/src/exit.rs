// SPDX-License-Identifier: Apache-2.0
//! The exit codes of `vdoctl`, each with its meaning and remedy.

use std::process::ExitCode;

/// Every exit code of `vdoctl`. docs/cli.md lists the codes for users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Success. Also if the program that reads the output has ended.
    Ok = 0,
    /// There are differences, or a check failed.
    Differences = 1,
    /// The command line is not valid.
    Usage = 2,
    /// A named object does not exist, or VDO is not deployed.
    NotFound = 3,
    /// The command was refused: by a check, or because a right is missing.
    Refused = 4,
    /// The cluster cannot be reached.
    Cluster = 5,
    /// The vCenter cannot be reached, or its state is unknown.
    Vcenter = 6,
    /// The wait timed out, or it cannot end until a user acts.
    TimedOut = 7,
    /// SIGINT.
    Interrupted = 130,
    /// SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// Every exit code, in the order of the numbers.
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

    /// The exit code with this number.
    #[must_use]
    pub fn of(code: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|exit| *exit as u8 == code)
    }

    /// The meaning of the exit code, as one sentence.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "Success; also if the program that reads the output closes the pipe.",
            Self::Differences => "There are differences, failed checks or other problems; the output names them.",
            Self::Usage => "The command line is not valid; `--help` shows the correct usage.",
            Self::NotFound => "The named object does not exist, or VDO is not deployed.",
            Self::Refused => "A check refused the command, or a right is missing (yours or the operator's).",
            Self::Cluster => "The cluster cannot be reached; check --kubeconfig and --context.",
            Self::Vcenter => "The vCenter cannot be reached or refuses a request, or its state is unknown.",
            Self::TimedOut => "The wait timed out, or it cannot end until a user acts; the output shows the cause.",
            Self::Interrupted => "Interrupted (SIGINT).",
            Self::Terminated => "Terminated (SIGTERM).",
        }
    }

    /// The remedy; none if the user has to do nothing.
    #[must_use]
    pub fn remedy(self) -> Option<&'static str> {
        Some(match self {
            Self::Ok => return None,
            Self::Differences => "The output names the problem. `vdoctl status` shows the problem again, with the command that fixes it.",
            Self::Usage => "The error names the wrong argument. `vdoctl COMMAND --help` shows the arguments of the command, with examples.",
            Self::NotFound => "`vdoctl status` shows the deployed versions; `vdoctl deploy` deploys VDO if it is missing.",
            Self::Refused => {
                "The error names the check or the right. `vdoctl rights --missing` prints the rights that the operator lacks. If you lack a right \
                 yourself, ask an administrator of the cluster."
            }
            Self::Cluster => {
                "Try `kubectl get --raw /readyz` with the same kubeconfig. If the cluster answers, name the kubeconfig with \
                 --kubeconfig, or its context with --context."
            }
            Self::Vcenter => {
                "`vdoctl doctor` shows which check of a vCenter fails, for example the check of the certificate or the login, and how to \
                 fix the problem."
            }
            Self::TimedOut => "`vdoctl status` shows which parts are not ready, and how to fix the problem. To wait longer, set --timeout.",
            Self::Interrupted | Self::Terminated => "Run the same command again: the command continues where it stopped.",
        })
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
