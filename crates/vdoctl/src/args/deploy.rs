// SPDX-License-Identifier: Apache-2.0
//! `vdoctl deploy` as it is typed.

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
    /// A file with the whole configuration instead: Secrets, ConfigMaps, VsphereCloudConfigs and a VDOConfig as kubectl takes them; - is stdin
    #[arg(help_heading = "Drivers", long, value_name = "FILE", conflicts_with_all = ["vcenter", "user"])]
    pub values: Option<PathBuf>,
    /// The image of the operator, instead of the released one
    #[arg(help_heading = "Images", long, value_name = "REFERENCE")]
    pub image: Option<String>,
    /// A registry, with or without a path, that replaces the one of every image: of the operator and of the drivers
    #[arg(help_heading = "Images", long, value_name = "REGISTRY")]
    pub image_registry: Option<String>,
    /// The image of the cloud provider, instead of the one in its chart
    #[arg(help_heading = "Images", long, value_name = "REFERENCE", conflicts_with = "values")]
    pub cpi_image: Option<String>,
    /// The image of the CSI driver, instead of the one in its chart
    #[arg(help_heading = "Images", long, value_name = "REFERENCE", conflicts_with = "values")]
    pub csi_image: Option<String>,
    /// When installed drivers change by themselves: Compatible, Latest or Disabled
    #[arg(help_heading = "Drivers", long, value_name = "POLICY", value_parser = policy, conflicts_with = "values")]
    pub update_policy: Option<UpdatePolicy>,
    /// The vSphere storage policy of the default StorageClass, by name; default in a new installation: a default class without a policy
    #[arg(help_heading = "Drivers", long, value_name = "NAME", conflicts_with = "values")]
    pub storage_policy: Option<String>,
    /// Where the operator takes its matrix from. A file or a folder is copied into ConfigMaps; keys and credentials are mounted into the operator
    #[command(flatten, next_help_heading = "Matrix")]
    pub matrix: MatrixFile,
    /// Writes nothing: client shows what would be applied, server, which --dry-run alone means, has the API server try it
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
    /// How the progress is written: table or json; yaml writes nothing to the cluster and prints all objects for kubectl apply
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
    /// Runs the operator in the network of its node; without the flag that is done where no control-plane node has a pod network
    #[arg(help_heading = "Operator", long)]
    pub host_network: bool,
    /// A taint of control-plane nodes that the operator's pod tolerates besides the usual ones, as kubectl taint writes it; may be repeated
    #[arg(help_heading = "Operator", long, value_name = "KEY[=VALUE][:EFFECT]")]
    pub toleration: Vec<Toleration>,
    /// Ends when everything is applied, without waiting for the drivers
    #[arg(help_heading = "Writing", long)]
    pub no_wait: bool,
    /// Answers every question with yes; a certificate still needs --thumbprint or --ca-file
    #[arg(help_heading = "Writing", long, short = 'y')]
    pub yes: bool,
    /// Applies although checks fail, or the vCenter cannot be reached from here
    #[arg(help_heading = "Writing", long)]
    pub ignore_checks: bool,
    /// Replaces an operator that is newer than this vdoctl
    #[arg(help_heading = "Operator", long)]
    pub allow_downgrade: bool,
}

/// What is written into a folder instead of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct DeployGitops {
    /// Writes nothing to a cluster, and all objects into a folder that a GitOps tool applies, ready to commit. Secrets are left out and listed in
    /// its README.md, or encrypted with sops where that is installed and the folder has a file .sops.yaml
    #[arg(
        help_heading = "Writing",
        long = "gitops",
        value_name = "FOLDER",
        conflicts_with_all = ["dry_run", "create_account", "credentials_from_openshift", "no_wait", "ignore_checks", "allow_downgrade"]
    )]
    pub folder: Option<PathBuf>,
    /// With --gitops: encrypts Secrets with sops, with the rules that it finds from the folder upwards, or the keys that its environment names
    #[arg(help_heading = "Writing", long, requires = "folder")]
    pub sops: bool,
}

/// A vCenter and the account that the drivers use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "vCenter", group = ArgGroup::new("reached").multiple(true))]
pub struct DeployVcenter {
    /// The host name or address of the vCenter, and its port if it is not 443; with --user, --credentials-secret or --create-account; default: on
    /// OpenShift, what its object Infrastructure says
    #[arg(long, value_name = "HOST[:PORT]", group = "reached")]
    pub vcenter: Option<String>,
    /// The user that the drivers log in as, for example k8s@vsphere.local
    #[arg(help_heading = "Account", long, value_name = "NAME", group = "reached")]
    pub user: Option<String>,
    /// A file with the password, readable by no one else; - is stdin, /dev/fd/3 a descriptor; default: it is asked for on the terminal
    #[arg(help_heading = "Account", long, env = "VDO_PASSWORD_FILE", value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// A Secret in the operator's namespace with the user and the password, as vdoctl users create makes it; cpi=NAME and csi=NAME where each
    /// driver has its own
    #[arg(
        help_heading = "Account",
        long,
        value_name = "[DRIVER=]NAME",
        value_delimiter = ',',
        group = "reached",
        conflicts_with_all = ["user", "password_file", "create_account"]
    )]
    pub credentials_secret: Vec<super::parse::CredentialsSecret>,
    /// On OpenShift: takes user and password of each vCenter from OpenShift's own Secret kube-system/vsphere-creds
    #[arg(help_heading = "Account", long, group = "reached", conflicts_with_all = ["user", "password_file", "credentials_secret", "create_account", "values"])]
    pub credentials_from_openshift: bool,
    /// Makes the account of the drivers first, as vdoctl users create --shared does; --password-file is then the administrator's
    #[arg(help_heading = "Account", long, requires_all = ["vcenter", "admin"], conflicts_with = "user")]
    pub create_account: bool,
    /// The administrator for --create-account, for example administrator@vsphere.local; stored nowhere
    #[arg(help_heading = "Account", long, value_name = "NAME")]
    pub admin: Option<String>,
    /// The domain in which --create-account makes the user; default: vsphere.local
    #[arg(help_heading = "Account", long, value_name = "NAME")]
    pub domain: Option<String>,
    /// A datacenter to look in, by name or inventory path; may be repeated; default: all
    #[arg(help_heading = "vCenter", long, value_name = "NAME", requires = "vcenter")]
    pub datacenter: Vec<String>,
    /// How it is trusted.
    #[command(flatten)]
    pub trust: TypedTrust,
}

/// Where a dry run is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// It is not a dry run
    #[default]
    None,
    /// Here
    Client,
    /// In the API server
    Server,
}

fn policy(text: &str) -> Result<UpdatePolicy, String> {
    let all = [UpdatePolicy::Compatible, UpdatePolicy::Latest, UpdatePolicy::Disabled];
    let named = |policy: &UpdatePolicy| format!("{policy:?}").eq_ignore_ascii_case(text);
    all.into_iter()
        .find(named)
        .ok_or_else(|| "there are Compatible, Latest and Disabled".into())
}
