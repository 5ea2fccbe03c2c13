// SPDX-License-Identifier: Apache-2.0
//! The verbs and flags of `vdoctl users` with their help: create, list, verify, shrink, rotate, delete.

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
    /// Creates the accounts with only the privileges that the features in use require, and creates the Secret of the connection
    ///
    /// The command shows every change and asks for confirmation. After an interruption, run the command again: the command continues where
    /// it stopped. If there is nothing to change, the command only checks the accounts.
    Create(UsersCreate),
    /// Shows the accounts, roles and permissions that vdoctl created
    List(UsersVcenter),
    /// Checks the accounts for missing and surplus privileges, including inherited privileges and privileges of groups
    ///
    /// The command changes nothing. The exit code is 1 when a privilege is missing or surplus.
    Verify(UsersAccount),
    /// Removes surplus privileges from the accounts, for example after a feature was switched off
    Shrink(UsersChange),
    /// Gives a connection a new account, and deletes the old account once the drivers use the new account
    ///
    /// The vCenter accepts both accounts until the old account is deleted, so no driver loses access if this command is interrupted. After
    /// an interruption, run the command again: the command continues where it stopped.
    Rotate(UsersChange),
    /// Deletes accounts with their permissions, and the roles that are then unused
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
    /// The vSphere connection; default: the only connection
    #[arg(long, value_name = "NAME", conflicts_with = "vcenter")]
    pub connection: Option<String>,
    /// If there is no connection yet: the host name or address of the vCenter, with the port if it is not 443
    #[arg(long, value_name = "HOST[:PORT]", group = "reached")]
    pub vcenter: Option<String>,
    /// How that vCenter is trusted.
    #[command(flatten)]
    pub trust: TypedTrust,
    /// The administrator, for example administrator@vsphere.local; used only for this command and not stored
    #[arg(long, value_name = "NAME")]
    pub user: String,
    /// A file or file descriptor with the administrator's password; - means stdin; default: a prompt on the terminal
    #[arg(long, env = "VDO_PASSWORD_FILE", value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// The single sign-on domain in which the vCenter stores its own users
    #[arg(long, value_name = "NAME", default_value = crate::users::DOMAIN)]
    pub domain: String,
    /// The output format: table, json or yaml
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
    /// If there is no connection yet: the drivers that get an account (cpi, csi or both); with both, each driver gets its own account
    #[arg(long = "for", value_enum, hide_possible_values = true, value_name = "DRIVERS")]
    pub drivers: Option<For>,
    /// With --vcenter: both drivers share one account
    #[arg(long, requires = "vcenter")]
    pub shared: bool,
    /// The features that the drivers use in the vCenter (cloud-provider, block, file, topology, encryption), instead of the features in the
    /// VDOConfig
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::parse::feature)]
    pub features: Vec<vdo_vsphere::vsphere::Feature>,
    /// A datastore for volumes, by name, path or URL; may be repeated; default: every datastore that all nodes can reach
    #[arg(long, value_name = "NAME")]
    pub datastore: Vec<String>,
    /// The name of a storage policy; the datastores that comply with this policy are used in addition to the datastores in --datastore; may
    /// be repeated
    #[arg(long, value_name = "NAME")]
    pub storage_policy: Vec<String>,
    /// An existing user of any identity source, for example k8s@corp.example.com; vdoctl gives this user roles and permissions, and creates
    /// no account
    #[arg(long, value_name = "USER")]
    pub existing: Option<String>,
    /// The name in --existing is a group
    #[arg(long, requires = "existing")]
    pub group: bool,
    /// The name of the account; default: a generated name with the drivers and the cluster
    #[arg(long, value_name = "NAME", conflicts_with = "existing")]
    pub name: Option<String>,
}

/// Arguments of `users create`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct UsersCreate {
    /// The account, and how far the command goes.
    #[command(flatten)]
    pub change: UsersChange,
    /// With --existing: a file with the password of this user; vdoctl checks the password and writes it into the Secret
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
    /// Shows the changes and makes none of them
    #[arg(long, help_heading = None)]
    pub dry_run: bool,
    /// Prints the changes as commands for govc or powercli, and changes nothing
    #[arg(help_heading = None, long, value_enum, hide_possible_values = true, value_name = "TOOL")]
    pub emit: Option<Commands>,
    /// Does not ask for confirmation; required if there is no terminal
    #[arg(help_heading = None, long, short = 'y')]
    pub yes: bool,
}
