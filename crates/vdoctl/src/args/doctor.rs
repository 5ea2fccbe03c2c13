// SPDX-License-Identifier: Apache-2.0
//! The verbs and flags of `vdoctl doctor` with their help: `--pre`, `--fix`, `--undo`, `--allow`, `--from`, and the vCenter's flags.

use super::{MatrixFile, Output};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use vdo_admin::accounts::Language;
use vdo_api::types::Thumbprint;

/// Arguments of `doctor`.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Doctor {
    /// What to look at; without it, everything.
    #[command(subcommand)]
    pub what: Option<DoctorVerb>,
    /// Runs the checks before an installation: in the vCenter of --vcenter and, if there is a kubeconfig, in the cluster
    #[arg(long, global = true, requires = "vcenter", requires = "user")]
    pub pre: bool,
    /// Shows the results that are stored in this support bundle; needs no cluster
    #[arg(long = "from", value_name = "FILE", global = true, conflicts_with = "pre")]
    pub from: Option<PathBuf>,
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// The format.
    #[arg(
        long = "output",
        short = 'o',
        env = "VDO_OUTPUT",
        value_enum,
        hide_possible_values = true,
        value_name = "FORMAT",
        global = true,
        help = "The output format: table, wide, json, yaml or name"
    )]
    pub format: Option<super::Format>,
    /// The vCenter.
    #[command(flatten)]
    pub vcenter: DoctorVcenter,
    /// What is changed.
    #[command(flatten)]
    pub fixing: DoctorFixing,
}

/// A change that cannot be undone, and is made only where it is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Allow {
    /// The hardware version of machines
    HardwareVersion,
}

/// What `doctor` changes in a vCenter, with the credentials of an administrator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Fixing")]
pub struct DoctorFixing {
    /// Fixes problems in the vCenter: sets disk.EnableUUID of powered-off virtual machines, and creates and attaches missing tags of zones
    /// and regions. Logs in as the administrator that --user names, and asks before each fix
    #[arg(
        long,
        global = true,
        requires = "user",
        conflicts_with_all = ["undo", "from"]
    )]
    pub fix: bool,
    /// Reverts the recorded changes of --fix; does not revert values that another user has changed after --fix, and deletes no tags in use
    #[arg(long, global = true, requires = "user", conflicts_with = "from")]
    pub undo: bool,
    /// With --fix: also makes a change that cannot be undone; the value hardware-version allows upgrades of the hardware version of machines
    #[arg(
        long,
        value_name = "CHANGE",
        value_enum,
        hide_possible_values = true,
        value_delimiter = ',',
        global = true,
        requires = "fix"
    )]
    pub allow: Vec<Allow>,
    /// With --fix and --undo: the file that records the changes; default: vdo-fixes-CLUSTER.json in the current folder
    #[arg(long, value_name = "FILE", global = true)]
    pub record: Option<PathBuf>,
    /// With --fix and --undo: shows the changes and makes none of them
    #[arg(long, global = true)]
    pub dry_run: bool,
    /// With --fix and --undo: does not ask before changes that can be undone; required if there is no terminal
    #[arg(long, short = 'y', global = true)]
    pub yes: bool,
}

impl Doctor {
    /// The format.
    #[must_use]
    pub fn output(&self) -> Output {
        Output { format: self.format }
    }

    /// Whether privileges that no driver needs are listed.
    #[must_use]
    pub fn surplus(&self) -> bool {
        matches!(self.what, Some(DoctorVerb::Privileges { surplus: true, .. }))
    }
}

/// A tool that makes roles in a vCenter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Commands {
    /// govc
    Govc,
    /// PowerCLI
    Powercli,
}

impl From<Commands> for Language {
    fn from(tool: Commands) -> Self {
        match tool {
            Commands::Govc => Self::Govc,
            Commands::Powercli => Self::PowerCli,
        }
    }
}

/// A part of what `doctor` looks at.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum DoctorVerb {
    /// Shows the virtual machine of each node, and the problems of this virtual machine
    Nodes,
    /// Shows the zone and region labels of each node, the vCenter tags for these labels, and mismatches between labels and tags
    Topology,
    /// Shows pending claims, volumes that do not attach and failed snapshots, each with its cause and a remedy
    Volumes,
    /// Shows the result of each check stage for one vSphere connection
    Connection {
        /// The vSphere connection
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Shows the privileges that the features in use need and the accounts lack, each with its vCenter object and role
    Privileges {
        /// Also shows the privileges that the accounts have but do not need
        #[arg(long)]
        surplus: bool,
        /// Shows the roles that the configuration requires on each vCenter object, including roles that the account already has
        #[arg(long, conflicts_with = "surplus")]
        required: bool,
        /// Prints the required roles as commands for govc or powercli
        #[arg(long, value_name = "TOOL", value_enum, hide_possible_values = true, requires = "required")]
        commands: Option<Commands>,
    },
}

/// A vCenter and an account there, as they are typed. The password is read from a file, from stdin, or from the terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "vCenter")]
pub struct DoctorVcenter {
    /// With --pre: the host name or address of the vCenter, with the port if it is not 443
    #[arg(long, value_name = "HOST[:PORT]", global = true, requires = "pre")]
    pub vcenter: Option<String>,
    /// With --pre: the user of the drivers, for example k8s@vsphere.local. With --fix and --undo: an administrator, used only for this
    /// command and not stored
    #[arg(long, value_name = "NAME", global = true)]
    pub user: Option<String>,
    /// A file with the password; - means stdin; default with --pre: a prompt on the terminal. Without --pre, vdoctl uses this password
    /// instead of the password in the connection's Secret
    #[arg(long, env = "VDO_PASSWORD_FILE", value_name = "FILE", global = true)]
    pub password_file: Option<PathBuf>,
    /// With --pre: a datacenter in which to search for virtual machines, by name or inventory path; may be repeated; default: all
    /// datacenters
    #[arg(long, value_name = "NAME", global = true, requires = "pre")]
    pub datacenter: Vec<String>,
    /// With --pre: the SHA-256 or SHA-1 thumbprint of the vCenter's certificate
    #[arg(long, value_name = "DIGITS", global = true, requires = "pre", conflicts_with_all = ["ca_file", "insecure"])]
    pub thumbprint: Option<Thumbprint>,
    /// With --pre: a file with the certificate authorities that signed the vCenter's certificate; default: the authorities of this machine
    #[arg(long, value_name = "FILE", global = true, requires = "pre", conflicts_with = "insecure")]
    pub ca_file: Option<PathBuf>,
    /// With --pre: does not check the vCenter's certificate: the password is sent to any server that answers
    #[arg(long, global = true, requires = "pre")]
    pub insecure: bool,
}
