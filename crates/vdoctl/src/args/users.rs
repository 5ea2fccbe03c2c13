// SPDX-License-Identifier: Apache-2.0
//! `vdoctl users` as it is typed.

use super::{Commands, Format, TypedTrust};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Arguments of `users`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Users {
    /// What to do.
    #[command(subcommand)]
    pub verb: UsersVerb,
}

/// What can be done with the accounts of the drivers.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum UsersVerb {
    /// Creates the accounts with exactly the privileges that the features in use need, and the Secret of the connection
    ///
    /// Shows every change and asks. Run again it goes on where it stopped; without anything to change it only checks.
    Create(UsersCreate),
    /// Shows the accounts, roles and permissions that vdoctl made
    List(UsersVcenter),
    /// Checks what the accounts lack and what they have beyond their needs, inherited or through groups
    ///
    /// Changes nothing. Ends with 1 when something is missing or surplus.
    Verify(UsersAccount),
    /// Takes from the accounts what they have and do not need, for example after a feature was switched off
    Shrink(UsersChange),
    /// Gives a connection a new account and deletes the one before once the drivers use the new one
    ///
    /// Both work until then, so nothing is locked out, wherever it is stopped. Run again it goes on.
    Rotate(UsersChange),
    /// Deletes accounts with their permissions, and the roles that no one uses then
    ///
    /// The command refuses to delete an account that a connection or a driver uses.
    Delete(UsersChange),
}

/// The drivers of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum For {
    /// The cloud provider
    Cpi,
    /// The CSI driver
    Csi,
    /// Both of them
    Both,
}

/// A vCenter, and an administrator of it.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "vCenter")]
pub struct UsersVcenter {
    /// The vSphere connection; default: the only one
    #[arg(long, value_name = "NAME", conflicts_with = "vcenter")]
    pub connection: Option<String>,
    /// Where there is no connection yet: the host name or address of the vCenter, and its port if it is not 443
    #[arg(long, value_name = "HOST[:PORT]", group = "reached")]
    pub vcenter: Option<String>,
    /// How that vCenter is trusted.
    #[command(flatten)]
    pub trust: TypedTrust,
    /// The administrator, for example administrator@vsphere.local; used for this command only and stored nowhere
    #[arg(long, value_name = "NAME")]
    pub user: String,
    /// A file or descriptor with the administrator's password, - is stdin; default: it is asked for on the terminal
    #[arg(long, env = "VDO_PASSWORD_FILE", value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// The domain in which vCenter keeps users of its own
    #[arg(long, value_name = "NAME", default_value = crate::users::DOMAIN)]
    pub domain: String,
    /// How the answer is written: table, json or yaml
    #[arg(
        help_heading = None,
        long,
        short = 'o',
        env = "VDO_OUTPUT",
        value_enum,
        hide_possible_values = true,
        value_name = "FORMAT"
    )]
    pub output: Option<Format>,
}

/// Which account, and what it is for.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Account")]
pub struct UsersAccount {
    /// The vCenter.
    #[command(flatten)]
    pub vcenter: UsersVcenter,
    /// Where there is no connection yet: the drivers that get an account: cpi, csi or both, which get one each
    #[arg(long = "for", value_enum, hide_possible_values = true, value_name = "DRIVERS")]
    pub drivers: Option<For>,
    /// With --vcenter: one account for both drivers
    #[arg(long, requires = "vcenter")]
    pub shared: bool,
    /// What the drivers do there, instead of what the VDOConfig requests: cloud-provider, block, file, topology, encryption
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::parse::feature)]
    pub features: Vec<vdo_vsphere::vsphere::Feature>,
    /// A datastore for volumes, by name, path or URL; may be repeated; default: every one that all nodes reach
    #[arg(long, value_name = "NAME")]
    pub datastore: Vec<String>,
    /// The datastores that meet a storage policy, by its name; may be repeated, and with --datastore they add up
    #[arg(long, value_name = "NAME")]
    pub storage_policy: Vec<String>,
    /// A user of any identity source that exists already, for example k8s@corp.example.com: it only gets roles and permissions
    #[arg(long, value_name = "USER")]
    pub existing: Option<String>,
    /// --existing names a group
    #[arg(long, requires = "existing")]
    pub group: bool,
    /// The name of the account; default: one with the drivers and the cluster
    #[arg(long, value_name = "NAME", conflicts_with = "existing")]
    pub name: Option<String>,
}

/// Arguments of `users create`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct UsersCreate {
    /// The account, and how far the command goes.
    #[command(flatten)]
    pub change: UsersChange,
    /// With --existing: a file with that user's password, which then is checked and written into the Secret
    #[arg(
        long,
        env = "VDO_ACCOUNT_PASSWORD_FILE",
        value_name = "FILE",
        requires = "existing",
        conflicts_with = "group"
    )]
    pub account_password_file: Option<PathBuf>,
    /// Prints the new password once, at the end
    #[arg(long, help_heading = None)]
    pub show_once: bool,
}

/// Arguments of the verbs that change accounts.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct UsersChange {
    /// The account.
    #[command(flatten)]
    pub account: UsersAccount,
    /// Shows what would be changed and changes nothing
    #[arg(long, help_heading = None)]
    pub dry_run: bool,
    /// Prints the changes as commands of another tool, govc or powercli, and changes nothing
    #[arg(help_heading = None, long, value_enum, hide_possible_values = true, value_name = "TOOL")]
    pub emit: Option<Commands>,
    /// Does not ask; needed where there is no terminal
    #[arg(help_heading = None, long, short = 'y')]
    pub yes: bool,
}
