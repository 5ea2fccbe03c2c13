// SPDX-License-Identifier: Apache-2.0
//! The command line as it is typed.
//!
//! What every verb takes, and what holds passwords, keys, logins and the matrix, can be set in the environment, too; the flag wins. A name means
//! the same with every verb (decision 125).

mod adopt;
mod chart;
mod configure;
mod contexts;
mod delete;
mod deploy;
mod doctor;
mod examples;
mod explain;
mod global;
mod groups;
mod history;
mod look;
mod matrix;
mod mirror;
mod parse;
mod preview;
mod publish;
mod registry;
mod release;
mod rights;
mod selftest;
mod support;
mod trust;
mod upgrade;
mod users;

use super::completion::Shell;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};

pub use adopt::Adopt;
pub use chart::{
    Chart, ChartAddRelease, ChartCompare, ChartImport, ChartLint, ChartName, ChartPackage, ChartPull, ChartPush, ChartRender, ChartSources,
    ChartVerb, ChartWith,
};
pub use configure::{
    Configure, ConfigureConnection, ConfigureDrivers, ConfigureMatrix, ConfigureVerb, Secrets, SecretsList, SecretsSet, SecretsVerb,
    Writing,
};
pub use contexts::Contexts;
pub use delete::Delete;
pub use deploy::{Deploy, DeployVcenter, DryRun};
pub use doctor::{Allow, Commands, Doctor, DoctorFixing, DoctorVcenter, DoctorVerb};
pub use examples::of as examples;
pub use explain::ExplainReason;
use global::GLOBAL_OPTIONS;
pub use global::Global;
pub(super) use groups::{GROUPS, with_tip};
pub use history::{History, Rollback};
pub use look::{Events, Logs, Status};
pub use matrix::{
    Explain, Lint, List, Matrix, MatrixFile, MatrixLoad, MatrixSourceArgs, MatrixVerb, Platform, Resolve, Show, Sign, Verify, WhyNot,
};
pub use mirror::{Mirror, MirrorCopy, MirrorPrune, MirrorPull, MirrorPush, MirrorVerb, MirrorVerify, Resolving, Selecting, Taking};
pub use parse::{CredentialsSecret, DriverArg, Setting, Vcenter};
pub use preview::Preview;
pub use publish::{Init, Mark, MatrixDiff, Publish, Publishing};
pub use registry::{Registries, RegistryArgs};
pub use release::{NewOwner, Release};
pub use rights::Rights;
pub use selftest::{AccessMode, Selftest, SelftestFormat};
pub use support::{Report, SupportBundle};
pub use trust::TypedTrust;
pub use upgrade::{Manage, Upgrade, UpgradeApply, UpgradePlan, UpgradeVerb, Wait};
pub use users::{For, Users, UsersAccount, UsersChange, UsersCreate, UsersVcenter, UsersVerb};

/// Installs, upgrades, checks and removes the vSphere drivers of a Kubernetes cluster.
///
/// Whatever it says comes from the same code as the operator. Results go to stdout, messages to stderr.
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

const AFTER: &str = "Every verb takes the global options: vdoctl options\n\nExit codes: 0 done, 1 differences or a failed check, 2 usage, 3 not found or not deployed, 4 refused, \
5 cluster unreachable, 6 vCenter, 7 timed out, 130 and 143 signals.";

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
    /// For people with wide screens
    Wide,
    /// For programs, with a stable schema
    Json,
    /// As json, in YAML
    Yaml,
    /// The names of the objects, one a line
    Name,
}

/// The choice of a format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct Output {
    /// How the answer is written: table, wide, json, yaml or name
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
    /// Installs or upgrades operator and drivers, and waits for them
    ///
    /// Hands the operator its configuration, and waits until the drivers are healthy. Needs three inputs: the vCenter, the user and the password.
    /// Everything is checked, and tried in the API server, before anything is written. Run again it goes on where it was; without --vcenter it
    /// upgrades the operator and leaves the configuration as it is.
    Deploy(Deploy),
    /// Takes over drivers that another tool installed, with settings
    ///
    /// Reads them with their settings into the objects of VDO. Prints each setting with the place where it was found, and each that no field can
    /// express. Ends with 1 when there are such. Changes nothing without --write or --move, and prints no value of a Secret without
    /// --show-secrets.
    Adopt(Adopt),
    /// Shows what runs, what is wrong and what to do next
    ///
    /// Works when nothing is deployed, too. Ends with 1 when something is wrong, with 3 when VDO is not deployed. Of several clusters each has a
    /// line, problems first, and it ends as for the first of them alone.
    Status(Status),
    /// Shows what the operator would do, in order, and why
    ///
    /// The API server tries it all in a dry run. Ends with 0 when there is nothing to do, with 1 when there is, with more than 1 on
    /// an error. Changes nothing. -o wide also lists what is as it should be.
    ///
    /// With -f or --set it is the plan of a change that was not made yet.
    ///
    /// Use it when you want to know what happens next, in which order and why. diff shows the fields that differ, render whole objects.
    Plan(Plan),
    /// Approves the plan that waits, where spec.approval is Manual
    ///
    /// Use it when status shows a plan that waits for approval: that plan is carried out, and no other. reconcile and resume approve nothing.
    Approve(Approve),
    /// Shows what was applied of the drivers, state by state
    History(History),
    /// Brings a driver back to an earlier revision and keeps it there
    ///
    /// It stays there until --lift. Sets the annotation revision.vdo.vmware.com/DRIVER of the VDOConfig; the operator does the rest, with the
    /// checks of any change. It needs neither the matrix nor the chart of that revision.
    Rollback(Rollback),
    /// Plans and makes upgrades of the drivers
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Upgrade(Upgrade),
    /// Writes connections, VDOConfig and matrix source, checked first
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Configure(Configure),
    /// Lists and sets credentials of connections; never shows them
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Secrets(Secrets),
    /// Pauses management: all is reported, and nothing is written
    ///
    /// Use it when you change objects of the drivers by hand, which are otherwise repaired. To hold only changes of versions and settings until
    /// they are approved, set spec.approval to Manual instead.
    Pause(Manage),
    /// Resumes management after a pause
    ///
    /// Use it when the pause is over: what was changed by hand is repaired. A plan that waits for approval still waits; see approve.
    Resume(Manage),
    /// Has the operator reconcile now, and ask its matrix source
    ///
    /// Use it when something outside of the cluster was fixed, in the vCenter or in the matrix, and the operator is to see it at once. It ends no
    /// pause and approves no plan.
    Reconcile,
    /// Waits until the drivers are healthy, or a condition holds
    ///
    /// With --for=deleted it waits until the VDOConfig is deleted. Ends with 7 when that did not come within --timeout (15 minutes by default), and says what it waited for.
    Wait(Wait),
    /// Shows field by field how the live drivers differ
    ///
    /// Ends with 0 when there is no difference, with 1 when there is, with more than 1 on an error. Changes nothing. With -f or --set it
    /// compares with what would be wanted after a change that was not made yet.
    ///
    /// Use it when you want to know which fields differ now. plan shows the order, the reasons and the restarts.
    Diff(Diff),
    /// Prints all objects that the operator would apply
    ///
    /// Use it when you want whole objects, for a review or for another tool. plan and diff show only what changes.
    Render(Render),
    /// Hands the drivers over, as manifests or as a chart
    ///
    /// Prints the commands for the other owner, and changes nothing in the cluster. The drivers run on while they change their owner, with the
    /// same pods.
    Release(Release),
    /// Prints the namespaces, roles and bindings that are needed
    ///
    /// The operator writes none of them: an administrator applies them. The output covers all versions of the matrix, or those that
    /// --driver names. Needs a cluster only for --missing.
    Rights(Rights),
    /// Asks the compatibility matrix
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Matrix(Matrix),
    /// Copies matrix and images, for sites without internet
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Mirror(Mirror),
    /// Looks into charts; needs no cluster
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Chart(Chart),
    /// Makes every check now, and says how to fix what is wrong
    ///
    /// With --pre before anything is installed. Changes nothing. A password that a vCenter has refused is not sent again until the
    /// Secret changes. Ends with 1 when a check fails, with 6 when a vCenter cannot be reached or refuses the login.
    Doctor(Doctor),
    /// Uses storage as a workload does, and cleans up
    ///
    /// Everything is in a namespace of its own, which is deleted at the end. A claim is bound, a pod writes and reads, the volume grows, a
    /// snapshot is restored, and a pod on another node reads the data. What the cluster cannot do is skipped with the reason. Why a step failed
    /// comes from the checks of doctor volumes. Interrupted, it deletes everything; what a killed run has left is deleted by the next one. Each
    /// step may take the time of --timeout, 5 minutes by default. Ends with 1 when a step has failed.
    Selftest(Selftest),
    /// Creates, checks and rotates the drivers' accounts in a vCenter
    ///
    /// An administrator's user and password are needed for the command and stored nowhere.
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Users(Users),
    /// Removes the drivers, then the operator
    ///
    /// The definitions and the namespace of the operator go with it. Names the cluster and what is removed, and asks. Volumes and snapshots of the
    /// drivers block it before anything is removed. Works without a running operator, too. Interrupted or timed out, it goes on when it is run
    /// again. Secrets with credentials stay.
    Delete(Delete),
    /// Collects answers, fields, events and logs in one archive
    ///
    /// Of objects only listed fields are in it: no values of Secrets and ConfigMaps, no unknown flags and variables, no volumes of other
    /// drivers. What looks like a key or a token is taken out of events and logs; read those before they are sent. What cannot be read is
    /// named and left out.
    SupportBundle(SupportBundle),
    /// Writes a page for the people who run the vCenter
    ///
    /// It has status, failed checks, nodes and machines, privileges and versions. One file with everything in it, readable on a phone and on
    /// paper; from the cluster, from several, or from a support bundle.
    Report(Report),
    /// Says what a condition, a reason or an exit code means
    Explain(ExplainReason),
    /// Shows events of the operator, the drivers and their objects
    ///
    /// The oldest first. The API server keeps events for an hour, unless it is set up otherwise.
    Events(Events),
    /// Shows the logs of the operator, of a driver or of a node
    ///
    /// Of each container the last lines, below its pod and node. With --follow each line as it comes, behind its pod and container.
    Logs(Logs),
    /// Prints the versions of vdoctl, operator, matrix and drivers
    ///
    /// A cluster that is not there or does not answer is reported, and is not a failure.
    Version(Version),
    /// Prints a completion script for a shell
    ///
    /// As kubectl_complete-vdo in the path the same binary completes kubectl vdo.
    Completion(Completion),
    /// Lists the global options, which every verb takes
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
    /// The hash of the plan, as vdoctl plan and the status of the VDOConfig show it
    #[arg(value_name = "HASH")]
    pub hash: Option<String>,
    /// Approves the plan that is there, whatever it is, when no hash is given
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
    /// Prints the version of vdoctl and nothing else
    #[arg(long)]
    pub short: bool,
    /// Asks no cluster
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
            arg.hide_env_values(true).hide(hidden)
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

const OPTIONS: &str = "Every verb takes the global options, too: vdoctl options";

#[cfg(test)]
mod free_names;
#[cfg(test)]
mod guidance;
#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// Which flags can be set in the environment. One more needs a reason in decision 125.
    #[test]
    fn cli_args_environment_has_one_meaning_for_each_name() {
        fn look<'a>(command: &'a clap::Command, found: &mut BTreeSet<(&'a str, &'a str)>) {
            for arg in command.get_arguments() {
                let name = arg.get_env().map(|name| name.to_str().expect("UTF-8"));
                found.extend(name.map(|name| (name, arg.get_long().unwrap_or_default())));
            }
            command.get_subcommands().for_each(|verb| look(verb, found));
        }
        let command = super::command();
        let mut found = BTreeSet::new();
        look(&command, &mut found);
        let expected = [
            ("VDO_ACCOUNT_PASSWORD_FILE", "account-password-file"),
            ("VDO_AS", "as"),
            ("VDO_AS_GROUP", "as-group"),
            ("VDO_COLOR", "color"),
            ("VDO_CONTEXT", "context"),
            ("VDO_KUBECONFIG", "kubeconfig"),
            ("VDO_KUBE_CLUSTER", "kube-cluster"),
            ("VDO_KUBE_USER", "kube-user"),
            ("VDO_MATRIX", "matrix"),
            ("VDO_MATRIX_CREDENTIALS", "matrix-credentials"),
            ("VDO_MATRIX_KEYS", "keys"),
            ("VDO_MATRIX_KEYS", "matrix-keys"),
            ("VDO_NAMESPACE", "namespace"),
            ("VDO_OUTPUT", "output"),
            ("VDO_PASSWORD_FILE", "password-file"),
            ("VDO_REGISTRY_CONFIG", "registry-config"),
            ("VDO_REQUEST_TIMEOUT", "request-timeout"),
            ("VDO_SIGNING_KEY_FILE", "key-file"),
            ("VDO_TIMEOUT", "timeout"),
            ("VDO_TOKEN_FILE", "token-file"),
        ];
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    }

    /// Every verb that decides takes the same sources, keys and credentials.
    #[test]
    fn cli_args_verbs_with_a_matrix_have_its_keys_and_credentials() {
        fn look(command: &clap::Command, path: &str, found: &mut Vec<String>) {
            let has = |name: &str| command.get_arguments().any(|arg| arg.get_long() == Some(name));
            let path = format!("{path} {}", command.get_name());
            if has("matrix") {
                assert!(has("matrix-keys") && has("matrix-credentials"), "{path}");
                found.push(path.trim_start_matches(" vdoctl ").to_owned());
            }
            command.get_subcommands().for_each(|command| look(command, &path, found));
        }
        let mut found = Vec::new();
        look(&super::command(), "", &mut found);
        let deciding = "deploy, adopt, plan, upgrade plan, upgrade apply, configure drivers, diff, render, release, rights, matrix resolve, matrix explain, matrix why-not, matrix list, matrix show, matrix init, mirror pull, doctor";
        assert_eq!(found.join(", "), deciding);
    }

    #[test]
    fn cli_args_definition_is_consistent() {
        super::command().debug_assert();
    }
}
