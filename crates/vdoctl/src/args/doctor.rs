// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor` as it is typed, with the flags of its fixes.

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
    /// Looks before anything is installed: at the vCenter of --vcenter and, where there is a kubeconfig, at the cluster
    #[arg(long, global = true, requires = "vcenter", requires = "user")]
    pub pre: bool,
    /// Shows what it found when this support bundle was made; needs no cluster
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
        help = "How the answer is written: table, wide, json, yaml or name"
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
    /// Fixes what a command can fix in the vCenter, as the administrator --user: disk.EnableUUID of machines that are powered off, and tags of zones and regions. Asks before each fix
    #[arg(
        long,
        global = true,
        requires = "user",
        conflicts_with_all = ["undo", "from"]
    )]
    pub fix: bool,
    /// Takes back what --fix has recorded, as far as no one else has changed or uses it
    #[arg(long, global = true, requires = "user", conflicts_with = "from")]
    pub undo: bool,
    /// With --fix: a change that cannot be undone is made, too: hardware-version
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
    /// With --fix and --undo: the file in which changes are recorded; default: vdo-fixes-CLUSTER.json in this folder
    #[arg(long, value_name = "FILE", global = true)]
    pub record: Option<PathBuf>,
    /// With --fix and --undo: shows what would be changed and changes nothing
    #[arg(long, global = true)]
    pub dry_run: bool,
    /// With --fix and --undo: does not ask about what can be undone; needed where there is no terminal
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
    /// Shows for each node its virtual machine and what is wrong with it
    Nodes,
    /// Shows for each node the labels of zones and regions, the tags that they come from, and what does not fit
    Topology,
    /// Shows why claims wait, volumes do not attach and snapshots fail, each with its cause and what to do
    Volumes,
    /// Shows every stage of the check of one vSphere connection
    Connection {
        /// The vSphere connection
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Shows what the accounts lack of the privileges that the features in use need, with the entity and the role
    Privileges {
        /// Shows what they have and do not need, too
        #[arg(long)]
        surplus: bool,
        /// Shows the roles that the configuration needs, object by object, whether the account has them or not
        #[arg(long, conflicts_with = "surplus")]
        required: bool,
        /// Prints the required roles as commands for a tool: govc or powercli
        #[arg(long, value_name = "TOOL", value_enum, hide_possible_values = true, requires = "required")]
        commands: Option<Commands>,
    },
}

/// A vCenter and an account there, as they are typed. The password is read from a file, from stdin, or from the terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "vCenter")]
pub struct DoctorVcenter {
    /// With --pre: the host name or address of the vCenter, and its port if it is not 443
    #[arg(long, value_name = "HOST[:PORT]", global = true, requires = "pre")]
    pub vcenter: Option<String>,
    /// With --pre: the user, for example k8s@vsphere.local. With --fix and --undo: an administrator; used for this command only and stored nowhere
    #[arg(long, value_name = "NAME", global = true)]
    pub user: Option<String>,
    /// A file with the password, - is stdin; default with --pre: it is asked for on the terminal. Without --pre it is tried instead of the one in the connection's Secret
    #[arg(long, env = "VDO_PASSWORD_FILE", value_name = "FILE", global = true)]
    pub password_file: Option<PathBuf>,
    /// With --pre: a datacenter to look in, by name or inventory path; may be repeated; default: all
    #[arg(long, value_name = "NAME", global = true, requires = "pre")]
    pub datacenter: Vec<String>,
    /// With --pre: the SHA-256 or SHA-1 thumbprint of the vCenter's certificate
    #[arg(long, value_name = "DIGITS", global = true, requires = "pre", conflicts_with_all = ["ca_file", "insecure"])]
    pub thumbprint: Option<Thumbprint>,
    /// With --pre: a file with the certificate authorities that sign it; default: those of this machine
    #[arg(long, value_name = "FILE", global = true, requires = "pre", conflicts_with = "insecure")]
    pub ca_file: Option<PathBuf>,
    /// With --pre: sends the password to any server, without a check of its certificate
    #[arg(long, global = true, requires = "pre")]
    pub insecure: bool,
}
