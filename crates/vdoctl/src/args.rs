// SPDX-License-Identifier: Apache-2.0
//! The verbs of `vdoctl`, `-o`, and the layout of `--help` (clap); also the flags of plan, approve, diff, render, version and completion.
//!
//! The other verbs have their flags in a file of this folder. Global flags, and flags for passwords, keys, logins and the matrix, also have
//! an environment variable; the flag has priority. A name means the same with every verb (decision 125).

mod adopt;
mod chart;
mod configure;
mod contexts;
mod delete;
mod deploy;
mod doctor;
mod events;
mod examples;
mod explain;
mod global;
mod groups;
mod history;
mod logs;
mod matrix;
mod mirror;
mod parse;
mod pause;
mod preview;
mod publish;
mod registry;
mod release;
mod report;
mod rights;
mod rollback;
mod secrets;
mod selftest;
mod status;
mod summary;
mod support;
mod trust;
mod unknown_verb_or_flag;
mod upgrade;
mod users;
mod wait;

use super::completion::Shell;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};

pub use adopt::Adopt;
pub use chart::{
    Chart, ChartAddRelease, ChartCompare, ChartImport, ChartLint, ChartName, ChartPackage, ChartPull, ChartPush, ChartRender, ChartSources,
    ChartVerb, ChartWith,
};
pub use configure::{Configure, ConfigureConnection, ConfigureDrivers, ConfigureMatrix, ConfigureVerb, Writing};
pub use contexts::Contexts;
pub use delete::Delete;
pub use deploy::{Deploy, DeployVcenter, DryRun};
pub use doctor::{Allow, Commands, Doctor, DoctorFixing, DoctorVcenter, DoctorVerb};
pub use events::Events;
pub use examples::of as examples;
pub use explain::ExplainReason;
use global::GLOBAL_OPTIONS;
pub use global::{ClusterFlag, Global};
pub(super) use groups::GROUPS;
pub use history::History;
pub use logs::Logs;
pub use matrix::{
    Explain, Lint, List, Matrix, MatrixFile, MatrixLoad, MatrixSourceArgs, MatrixVerb, Platform, Resolve, Show, Sign, Verify, WhyNot,
};
pub use mirror::{Mirror, MirrorCopy, MirrorPrune, MirrorPull, MirrorPush, MirrorVerb, MirrorVerify, Resolving, Selecting, Taking};
pub use parse::{CredentialsSecret, DriverArg, Setting, Vcenter};
pub use pause::Manage;
pub use preview::Preview;
pub use publish::{Init, Mark, MatrixDiff, Publish, Publishing};
pub use registry::{Registries, RegistryArgs};
pub use release::{NewOwner, Release};
pub use report::Report;
pub use rights::Rights;
pub use rollback::Rollback;
pub use secrets::{Secrets, SecretsList, SecretsSet, SecretsVerb};
pub use selftest::{AccessMode, Selftest, SelftestFormat};
pub use status::Status;
pub use support::SupportBundle;
pub use trust::TypedTrust;
pub(super) use unknown_verb_or_flag::with_tip;
pub use upgrade::{Upgrade, UpgradeApply, UpgradePlan, UpgradeVerb};
pub use users::{For, Users, UsersAccount, UsersChange, UsersCreate, UsersVcenter, UsersVerb};
pub use wait::Wait;

/// Installs, upgrades, checks and removes the vSphere drivers of a Kubernetes cluster.
///
/// vdoctl uses the same code as the operator for decisions and reports. It writes results to stdout and messages to stderr.
#[derive(Debug, Clone, PartialEq, Parser)]
#[command(name = "vdoctl", version, max_term_width = 100, after_help = AFTER)]
pub struct Cli {
    /// What applies to every verb.
    #[command(flatten)]
    pub global: Global,
    /// The verb; without one the next steps are shown.
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

const AFTER: &str = "To list the global options of every command: vdoctl options\n\nExit codes: 0 success, 1 differences or a failed check, \
2 wrong usage, 3 not found or not deployed, 4 refused, 5 cluster unreachable, 6 vCenter error, 7 timeout, 130 and 143 signals.";

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// For people with a wide screen
    Wide,
    /// For programs, with a stable schema
    Json,
    /// The same data as json, in YAML
    Yaml,
    /// The names of the objects, one per line
    Name,
}

/// The choice of a format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct Output {
    /// The output format: table, wide, json, yaml or name
    #[arg(
        long = "output",
        short = 'o',
        env = "VDO_OUTPUT",
        value_enum,
        hide_possible_values = true,
        value_name = "FORMAT"
    )]
    pub format: Option<Format>,
}

impl Output {
    /// The format for answers that are meant for people.
    #[must_use]
    pub fn or_table(self) -> Format {
        self.format.unwrap_or(Format::Table)
    }

    /// The format for answers that are objects.
    #[must_use]
    pub fn or_yaml(self) -> Format {
        self.format.unwrap_or(Format::Yaml)
    }
}

/// The verbs.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Verb {
    /// Installs or upgrades the operator and the vSphere drivers
    ///
    /// Writes the operator and its configuration to the cluster, and waits until the drivers are healthy. A new installation needs three
    /// inputs: the vCenter, the user and the password. Before vdoctl writes anything, it makes every check and tries every object in a dry
    /// run of the API server. After an interruption, run the same command again: the command continues where it stopped. Without --vcenter,
    /// the command upgrades the operator and keeps the existing configuration.
    Deploy(Deploy),
    /// Adopts vSphere drivers that another tool installed
    ///
    /// Reads the settings of the installed drivers and converts these settings into VDO objects. Prints each setting with the place where
    /// it was found. Lists in a separate part the settings that no field of a VDO object can express; if this part lists any setting, the
    /// exit code is 1. Changes nothing without --write or --move. Prints the values of Secrets only with --show-secrets.
    Adopt(Adopt),
    /// Shows versions, health, problems and the next steps
    ///
    /// The command also works where VDO is not deployed. The exit code is 1 when there is a problem, and 3 when VDO is not deployed. For
    /// several clusters, the command prints one line per cluster, and clusters with problems come first. The exit code is then the exit
    /// code of the first cluster.
    Status(Status),
    /// Shows the operator's planned steps in order, with the reasons
    ///
    /// The API server tries all steps in a dry run, and nothing is changed. The exit code is 0 when there is nothing to do, 1 when there
    /// are steps to do, and more than 1 after an error. -o wide also lists the objects that are in sync.
    ///
    /// With -f or --set, the command shows the plan for a change that is not made yet.
    ///
    /// Use this command when you want to know the next steps, their order and their reasons. vdoctl diff shows only the fields that differ;
    /// vdoctl render shows whole objects.
    Plan(Plan),
    /// Approves a planned change that waits for approval
    ///
    /// Use this command when vdoctl status shows a plan that waits for approval. The operator then carries out this plan and no other plan.
    /// vdoctl reconcile and vdoctl resume do not approve a plan.
    Approve(Approve),
    /// Shows the applied revisions of the drivers
    History(History),
    /// Rolls a driver back and pins it to an earlier revision
    ///
    /// The driver stays at this revision until you run the command with --lift. vdoctl only sets the annotation
    /// revision.vdo.vmware.com/DRIVER of the VDOConfig. The operator then applies the revision, with the same checks as for any other
    /// change. The operator needs neither the matrix nor the chart of that revision.
    Rollback(Rollback),
    /// Plans and applies upgrades of the drivers
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Upgrade(Upgrade),
    /// Configures vSphere connections, drivers and the matrix
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Configure(Configure),
    /// Lists and sets vSphere credentials; never shows a password
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Secrets(Secrets),
    /// Pauses management: the operator only reports the state
    ///
    /// Use this command when you want to change objects of the drivers by hand. Without a pause, the operator reverts such changes. If only
    /// changes of versions and settings must wait for your approval, set spec.approval to Manual instead.
    Pause(Manage),
    /// Resumes management after a pause
    ///
    /// Use this command when the pause is over. The operator then repairs objects that were changed by hand. A plan that waits for approval
    /// continues to wait until you run vdoctl approve.
    Resume(Manage),
    /// Makes the operator reconcile and check its matrix source now
    ///
    /// Use this command when you have fixed a problem outside of the cluster, in the vCenter or in the matrix, and the operator should
    /// notice the fix at once. The command does not end a pause and approves no plan.
    Reconcile,
    /// Waits until the drivers are healthy or a condition is met
    ///
    /// With --for=deleted, the command waits until the VDOConfig is deleted. If the wait takes longer than --timeout (15 minutes by
    /// default), the command reports the state that it waited for, and the exit code is 7.
    Wait(Wait),
    /// Compares the live drivers with the desired state, by field
    ///
    /// The exit code is 0 when there is no difference, 1 when there is a difference, and more than 1 after an error. The command changes
    /// nothing. With -f or --set, the command compares the live drivers with the desired state after a change that is not made yet.
    ///
    /// Use this command when you want to know which fields differ now. vdoctl plan shows the order of the steps, their reasons and the pod
    /// restarts.
    Diff(Diff),
    /// Prints all objects that the operator would apply
    ///
    /// Use this command when you want whole objects, for a review or for another tool. vdoctl plan and vdoctl diff show only the changes.
    Render(Render),
    /// Exports the drivers, so that kubectl or Helm can manage them
    ///
    /// Writes the objects of the drivers into files, and prints the commands that hand the drivers over to kubectl or Helm. vdoctl itself
    /// changes nothing in the cluster. During the handover, the drivers keep running with the same pods.
    Release(Release),
    /// Prints the namespaces, roles and bindings that VDO requires
    ///
    /// The operator does not create these objects; an administrator applies them. The output covers all driver versions of the matrix, or
    /// only the drivers and versions that --driver names. The command needs a cluster only for --missing.
    Rights(Rights),
    /// Queries, checks and publishes compatibility matrices
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Matrix(Matrix),
    /// Copies matrix and images for sites without internet access
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Mirror(Mirror),
    /// Renders, checks and publishes charts; needs no cluster
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Chart(Chart),
    /// Runs every check now, and shows how to fix each problem
    ///
    /// With --pre, the checks run before an installation. Without --fix and --undo, the command changes nothing. If a vCenter has refused a
    /// password, vdoctl does not send this password again until the Secret changes. The exit code is 1 when a check fails, and 6 when a
    /// vCenter cannot be reached or refuses the login.
    Doctor(Doctor),
    /// Tests storage with a real volume and pods, and cleans up
    ///
    /// All test objects are in a separate namespace, which is deleted at the end. The test binds a claim, writes and reads data in a pod,
    /// expands the volume, restores a snapshot, and reads the data in a pod on another node. A step that the cluster does not support is
    /// skipped, and the reason is shown. For a failed step, the command shows the causes that vdoctl doctor volumes finds. If you interrupt
    /// the test, vdoctl still deletes all test objects. If vdoctl is killed, the next test deletes the remaining objects. Each step may
    /// take as long as --timeout (5 minutes by default). The exit code is 1 when a step fails.
    Selftest(Selftest),
    /// Creates, checks and rotates the drivers' accounts in a vCenter
    ///
    /// Every users command needs the user name and the password of a vCenter administrator. vdoctl stores neither the user name nor the
    /// password.
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Users(Users),
    /// Removes the drivers, then the operator
    ///
    /// The custom resource definitions and the namespace of the operator are also removed. Secrets with credentials are kept, and a
    /// namespace with such a Secret is also kept. Before the removal, the command names the cluster, lists the objects and asks for
    /// confirmation. If volumes or snapshots of the drivers exist, the command stops before it removes anything. The command does not need
    /// a running operator. After an interruption or a timeout, run the command again: the command continues where it stopped.
    Delete(Delete),
    /// Collects reports, objects, events and logs in one archive
    ///
    /// For each object, the archive contains only the fields in a fixed list. The archive contains no values of Secrets or ConfigMaps and no
    /// volumes of other drivers. Of container flags, the archive contains only the flags that vdoctl knows. Of environment variables, the
    /// archive contains all names, but only the values of the variables that vdoctl knows. Text that looks like a key or
    /// a token is removed from events and logs. Read the events and logs before you send the archive. If vdoctl cannot read some data, the
    /// data is left out and the command reports this.
    SupportBundle(SupportBundle),
    /// Writes an HTML report for the administrators of the vCenter
    ///
    /// The report contains the status, failed checks, nodes and virtual machines, privileges and versions. The report is a single file,
    /// made for screens, phones and paper. Its data comes from one cluster, from several clusters, or from a support bundle.
    Report(Report),
    /// Explains a condition, a reason or an exit code
    Explain(ExplainReason),
    /// Shows events of the operator, the drivers and their objects
    ///
    /// The oldest event is shown first. By default, the API server keeps events for one hour.
    Events(Events),
    /// Shows the logs of the operator, of a driver or of a node
    ///
    /// For each container, the command prints the last lines below a heading with the pod and the node. With --follow, the command prints
    /// each new line with a prefix that names the pod and the container.
    Logs(Logs),
    /// Prints the versions of vdoctl, operator, matrix and drivers
    ///
    /// If there is no cluster, or if the cluster does not answer, the command reports this and still succeeds.
    Version(Version),
    /// Prints a completion script for a shell
    ///
    /// To get completion for kubectl vdo, create a link with the name kubectl_complete-vdo to the vdoctl binary, in a folder of the PATH.
    Completion(Completion),
    /// Lists the options that every command accepts
    Options,
}

/// Arguments of `plan`.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Plan {
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// The format.
    #[command(flatten)]
    pub output: Output,
    /// A change that was not made yet.
    #[command(flatten)]
    pub preview: Preview,
}

/// Arguments of `approve`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Approve {
    /// The hash of the plan, from vdoctl plan or from the status of the VDOConfig
    #[arg(value_name = "HASH")]
    pub hash: Option<String>,
    /// When no hash is given: approves the plan that waits now, whatever its content
    #[arg(long, short = 'y')]
    pub yes: bool,
}

/// Arguments of `diff`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Diff {
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// The format.
    #[command(flatten)]
    pub output: Output,
    /// A change that was not made yet.
    #[command(flatten)]
    pub preview: Preview,
}

/// Arguments of `render`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Render {
    /// The index.
    #[command(flatten)]
    pub index: MatrixFile,
    /// The format; yaml by default.
    #[command(flatten)]
    pub output: Output,
    /// Prints the content of Secrets instead of ******
    #[arg(long)]
    pub show_secrets: bool,
}

/// Arguments of `version`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Version {
    /// The format.
    #[command(flatten)]
    pub output: Output,
    /// Prints only the version of vdoctl
    #[arg(long)]
    pub short: bool,
    /// Does not contact a cluster
    #[arg(long)]
    pub client: bool,
}

/// Arguments of `completion`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Completion {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// The parser. Help names variables of the environment and not their values, which may be private.
#[must_use]
pub fn command() -> clap::Command {
    fn tidy(command: clap::Command, path: &str) -> clap::Command {
        let command = command.mut_args(|arg| {
            let hidden = arg.is_hide_set() || of_all(&arg);
            summary::with_summary(arg.hide_env_values(true).hide(hidden))
        });
        let names: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
        let command = match (path, examples::of(path)) {
            ("", _) => {
                let template = groups::template(&command);
                command.help_template(template)
            }
            (_, []) => command.after_help(OPTIONS),
            (_, lines) => {
                let lines: Vec<String> = lines.iter().map(|line| examples::shown(line)).collect();
                command.after_help(format!("Examples:\n  {}\n\n{OPTIONS}", lines.join("\n  ")))
            }
        };
        names.iter().fold(command, |command, name| {
            let path = format!("{path} {name}").trim_start().to_owned();
            command.mut_subcommand(name, |verb| tidy(verb, &path))
        })
    }
    tidy(Cli::command(), "")
}

/// Whether an argument is one of those that every verb takes. They are listed once.
fn of_all(arg: &clap::Arg) -> bool {
    arg.get_help_heading() == Some(GLOBAL_OPTIONS)
}

/// The options that every verb takes, as help.
#[must_use]
pub fn options() -> clap::Command {
    let bare = clap::Command::new("vdoctl").disable_help_flag(true).help_template("{options}\n");
    Global::augment_args(bare).mut_args(|arg| arg.hide_env_values(true))
}

const OPTIONS: &str = "To list the global options, which every command accepts: vdoctl options";

#[cfg(test)]
mod help_tests;
