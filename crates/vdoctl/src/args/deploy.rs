// SPDX-License-Identifier: Apache-2.0
//! The flags of `vdoctl deploy` with their help: vCenter, account, images, `--values`, `--gitops`, `--toleration`; the type of `--dry-run`.

use super::{MatrixFile, TypedTrust};
use clap::{ArgGroup, Args, ValueEnum};
use std::path::PathBuf;
use vdo_api::api::UpdatePolicy;
use vdo_core::install::Toleration;

/// Arguments of `deploy`.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Deploy {
    /// The vCenter.
    #[command(flatten)]
    pub vcenter: DeployVcenter,
    /// A manifest file with the whole configuration (Secrets, ConfigMaps, VsphereCloudConfigs and a VDOConfig), used instead of the vCenter
    /// and account flags; - means stdin
    #[arg(help_heading = "Drivers", long, value_name = "FILE", conflicts_with_all = ["vcenter", "user"])]
    pub values: Option<PathBuf>,
    /// The image of the operator; default: the released image
    #[arg(help_heading = "Images", long, value_name = "REFERENCE")]
    pub image: Option<String>,
    /// A registry, with or without a path, that replaces the registry of every image of the operator and the drivers
    #[arg(help_heading = "Images", long, value_name = "REGISTRY")]
    pub image_registry: Option<String>,
    /// The image of the cloud provider; default: the image in its chart
    #[arg(
        hide_short_help = true,
        help_heading = "Images",
        long,
        value_name = "REFERENCE",
        conflicts_with = "values"
    )]
    pub cpi_image: Option<String>,
    /// The image of the CSI driver; default: the image in its chart
    #[arg(
        hide_short_help = true,
        help_heading = "Images",
        long,
        value_name = "REFERENCE",
        conflicts_with = "values"
    )]
    pub csi_image: Option<String>,
    /// When the operator updates installed drivers automatically: Compatible (only if a version no longer fits), Latest or Disabled
    #[arg(help_heading = "Drivers", long, value_name = "POLICY", value_parser = policy, conflicts_with = "values")]
    pub update_policy: Option<UpdatePolicy>,
    /// The name of the vSphere storage policy for the default StorageClass; default in a new installation: a default StorageClass without a
    /// policy
    #[arg(help_heading = "Drivers", long, value_name = "NAME", conflicts_with = "values")]
    pub storage_policy: Option<String>,
    /// Where the operator takes its matrix from. A file or a folder is copied into ConfigMaps; keys and credentials are mounted into the operator
    #[command(flatten, next_help_heading = "Matrix")]
    pub matrix: MatrixFile,
    /// Writes nothing. --dry-run=client lists the objects that would be applied; --dry-run=server, or --dry-run without a value, tries the
    /// objects in the API server
    #[arg(
        help_heading = "Writing",
        long,
        value_enum,
        value_name = "WHERE",
        hide_possible_values = true,
        num_args = 0..=1,
        default_missing_value = "server",
        default_value = "none"
    )]
    pub dry_run: DryRun,
    /// A folder for a GitOps tool.
    #[command(flatten)]
    pub gitops: DeployGitops,
    /// The format of the progress output: table or json; yaml writes nothing to the cluster and prints all objects for kubectl apply
    #[arg(
        help_heading = "Writing",
        long,
        short = 'o',
        env = "VDO_OUTPUT",
        value_enum,
        value_name = "FORMAT",
        hide_possible_values = true
    )]
    pub output: Option<super::Format>,
    /// Runs the operator in the host network of its node; default: only if no control-plane node has a pod network
    #[arg(hide_short_help = true, help_heading = "Operator", long)]
    pub host_network: bool,
    /// An additional taint of control-plane nodes that the operator's pod tolerates, in the notation of kubectl taint; may be repeated
    #[arg(hide_short_help = true, help_heading = "Operator", long, value_name = "KEY[=VALUE][:EFFECT]")]
    pub toleration: Vec<Toleration>,
    /// Exits when all objects are applied, without waiting for the drivers
    #[arg(help_heading = "Writing", long)]
    pub no_wait: bool,
    /// Answers every question with yes; an unknown certificate still requires --thumbprint or --ca-file
    #[arg(help_heading = "Writing", long, short = 'y')]
    pub yes: bool,
    /// Applies the objects even if checks fail, or if the vCenter cannot be reached from this machine
    #[arg(help_heading = "Writing", long)]
    pub ignore_checks: bool,
    /// Replaces an operator that is newer than this vdoctl
    #[arg(hide_short_help = true, help_heading = "Operator", long)]
    pub allow_downgrade: bool,
}

/// What is written into a folder instead of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct DeployGitops {
    /// Writes all objects into a folder for a GitOps tool, ready to commit, and nothing to a cluster. Secrets are encrypted if sops is
    /// installed and the folder has a .sops.yaml; otherwise the Secrets are left out and listed in the folder's README.md
    #[arg(
        help_heading = "Writing",
        long = "gitops",
        value_name = "FOLDER",
        conflicts_with_all = ["dry_run", "create_account", "credentials_from_openshift", "no_wait", "ignore_checks", "allow_downgrade"]
    )]
    pub folder: Option<PathBuf>,
    /// With --gitops: encrypts Secrets with sops. sops takes the rules from .sops.yaml in the folder or a parent folder, or the keys from
    /// its environment variables
    #[arg(hide_short_help = true, help_heading = "Writing", long, requires = "folder")]
    pub sops: bool,
}

/// A vCenter and the account that the drivers use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "vCenter", group = ArgGroup::new("reached").multiple(true))]
pub struct DeployVcenter {
    /// The host name or address of the vCenter, with the port if it is not 443; use together with --user, --credentials-secret or
    /// --create-account. Default on OpenShift: the vCenter in OpenShift's Infrastructure object
    #[arg(long, value_name = "HOST[:PORT]", group = "reached")]
    pub vcenter: Option<String>,
    /// The user that the drivers log in as, for example k8s@vsphere.local
    #[arg(help_heading = "Account", long, value_name = "NAME", group = "reached")]
    pub user: Option<String>,
    /// A file with the password, readable only by you; - means stdin, /dev/fd/3 means file descriptor 3; default: a prompt on the terminal
    #[arg(help_heading = "Account", long, env = "VDO_PASSWORD_FILE", value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// A Secret with the user and the password, for example from vdoctl users create; it must be in the operator's namespace. Use cpi=NAME
    /// and csi=NAME if each driver has its own Secret
    #[arg(
        help_heading = "Account",
        long,
        value_name = "[DRIVER=]NAME",
        value_delimiter = ',',
        group = "reached",
        conflicts_with_all = ["user", "password_file", "create_account"]
    )]
    pub credentials_secret: Vec<super::parse::CredentialsSecret>,
    /// On OpenShift: takes the user and the password of each vCenter from OpenShift's Secret kube-system/vsphere-creds
    #[arg(hide_short_help = true, help_heading = "Account", long, group = "reached", conflicts_with_all = ["user", "password_file", "credentials_secret", "create_account", "values"])]
    pub credentials_from_openshift: bool,
    /// First creates an account for the drivers, as vdoctl users create --shared does; --password-file then contains the administrator's
    /// password
    #[arg(help_heading = "Account", long, requires_all = ["vcenter", "admin"], conflicts_with = "user")]
    pub create_account: bool,
    /// The administrator for --create-account, for example administrator@vsphere.local; the name is not stored
    #[arg(help_heading = "Account", long, value_name = "NAME")]
    pub admin: Option<String>,
    /// The domain in which --create-account creates the user; default: vsphere.local
    #[arg(hide_short_help = true, help_heading = "Account", long, value_name = "NAME")]
    pub domain: Option<String>,
    /// A datacenter in which to search for virtual machines, by name or inventory path; may be repeated; default: all datacenters
    #[arg(help_heading = "vCenter", long, value_name = "NAME", requires = "vcenter")]
    pub datacenter: Vec<String>,
    /// How it is trusted.
    #[command(flatten)]
    pub trust: TypedTrust,
}

/// Where a dry run is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// No dry run
    #[default]
    None,
    /// In vdoctl, without the API server
    Client,
    /// In the API server
    Server,
}

fn policy(text: &str) -> Result<UpdatePolicy, String> {
    let all = [UpdatePolicy::Compatible, UpdatePolicy::Latest, UpdatePolicy::Disabled];
    let named = |policy: &UpdatePolicy| format!("{policy:?}").eq_ignore_ascii_case(text);
    all.into_iter()
        .find(named)
        .ok_or_else(|| "write Compatible, Latest or Disabled".into())
}
