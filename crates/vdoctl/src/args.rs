//! The command line as it is typed.
//!
//! What every verb takes, and what holds passwords, keys, logins and the matrix, can be set in the environment, too; the flag wins. A name means
//! the same with every verb (decision 125).

mod chart;
mod configure;
mod delete;
mod deploy;
mod doctor;
mod examples;
mod explain;
mod history;
mod matrix;
mod mirror;
mod parse;
mod preview;
mod publish;
mod registry;
mod rights;
mod support;
mod trust;
mod upgrade;
mod users;

use super::completion::Shell;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

pub use chart::{
    Chart, ChartAddRelease, ChartCompare, ChartImport, ChartLint, ChartName, ChartPackage, ChartPull, ChartPush, ChartRender, ChartSources,
    ChartVerb, ChartWith,
};
pub use configure::{
    Configure, ConfigureConnection, ConfigureDrivers, ConfigureMatrix, ConfigureVerb, Secrets, SecretsList, SecretsSet, SecretsVerb,
    Writing,
};
pub use delete::Delete;
pub use deploy::{Deploy, DeployVcenter, DryRun};
pub use doctor::{Allow, Commands, Doctor, DoctorFixing, DoctorVcenter, DoctorVerb};
pub use examples::of as examples;
pub use explain::ExplainReason;
pub use history::{History, Rollback};
pub use matrix::{
    Explain, Lint, List, Matrix, MatrixFile, MatrixLoad, MatrixSourceArgs, MatrixVerb, Platform, Resolve, Show, Sign, Verify, WhyNot,
};
pub use mirror::{Mirror, MirrorCopy, MirrorPrune, MirrorPull, MirrorPush, MirrorVerb, MirrorVerify, Resolving, Selecting, Taking};
pub use parse::{CredentialsSecret, DriverArg, Setting, Vcenter};
pub use preview::Preview;
pub use publish::{Init, Mark, MatrixDiff, Publish, Publishing};
pub use registry::{Registries, RegistryArgs};
pub use rights::Rights;
pub use support::{Report, SupportBundle};
pub use trust::TypedTrust;
pub use upgrade::{Manage, Upgrade, UpgradeApply, UpgradePlan, UpgradeVerb, Wait};
pub use users::{For, Users, UsersAccount, UsersChange, UsersCreate, UsersVcenter, UsersVerb};

/// Chooses, shows and checks the vSphere drivers of a Kubernetes cluster.
///
/// Whatever it says comes from the same code as the operator. Data goes to stdout, talk to stderr.
#[derive(Debug, Clone, PartialEq, Parser)]
#[command(name = "vdoctl", version, max_term_width = 100, subcommand_required = true, arg_required_else_help = true, after_help = AFTER)]
pub struct Cli {
    /// What applies to every verb.
    #[command(flatten)]
    pub global: Global,
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

const AFTER: &str = "Every verb takes the global options: vdoctl options\n\nExit codes: 0 done, 1 differences or a failed check, 2 usage, 3 not found or not deployed, 4 refused, \
5 cluster unreachable, 6 vCenter, 7 timed out, 130 and 143 signals.";

/// What applies to every verb.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = GLOBAL_OPTIONS)]
pub struct Global {
    /// The kubeconfig file; default: what KUBECONFIG names, then ~/.kube/config, then the service account of the pod
    #[arg(long, env = "VDO_KUBECONFIG", value_name = "FILE", global = true)]
    pub kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig; default: the current one
    #[arg(long, env = "VDO_CONTEXT", value_name = "NAME", global = true)]
    pub context: Option<String>,
    /// The namespace of the operator and its configuration
    #[arg(long, short = 'n', env = "VDO_NAMESPACE", value_name = "NAME", default_value = vdo_api::api::OPERATOR_NAMESPACE, global = true)]
    pub namespace: String,
    /// A user to act as
    #[arg(long = "as", env = "VDO_AS", value_name = "USER", global = true)]
    pub impersonate: Option<String>,
    /// When to use colours: auto, always or never; auto means on a terminal, unless NO_COLOR is set
    #[arg(
        long,
        env = "VDO_COLOR",
        value_enum,
        hide_possible_values = true,
        default_value = "auto",
        value_name = "WHEN",
        global = true
    )]
    pub color: Color,
    /// How long to wait, for example 30s or 2m: for the cluster's answers (default 30s); with deploy and delete, for the end (default 15m)
    #[arg(long, env = "VDO_TIMEOUT", value_name = "TIME", value_parser = parse::duration, global = true)]
    pub timeout: Option<Duration>,
}

impl Global {
    /// How long the cluster may take to answer.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(Duration::from_secs(30))
    }

    /// How long the drivers may take to come or to go.
    #[must_use]
    pub fn timeout_with_drivers(&self) -> Duration {
        self.timeout.unwrap_or(Duration::from_secs(15 * 60))
    }
}

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
    /// Installs or upgrades the operator, hands it the configuration, and waits until the drivers are healthy
    ///
    /// Needs three inputs: the vCenter, the user and the password. Everything is checked, and tried in the API server, before anything is
    /// written. Run again it goes on where it was; without --vcenter it upgrades the operator and leaves the configuration as it is.
    Deploy(Deploy),
    /// Shows what runs, what is wrong and what to do next
    ///
    /// Works when nothing is deployed, too. Ends with 1 when something is wrong, with 3 when VDO is not deployed.
    Status(Status),
    /// Shows everything that the operator would do, in order, why, and what it waits for
    ///
    /// The API server tries it all in a dry run. Ends with 0 when there is nothing to do, with 1 when there is, with more than 1 on
    /// an error. Changes nothing. -o wide also lists what is as it should be.
    ///
    /// With -f or --set it is the plan of a change that was not made yet.
    Plan(Plan),
    /// Lets the operator carry out the plan that it waits with, where spec.approval is Manual
    Approve(Approve),
    /// Shows what was applied of the drivers, state by state
    History(History),
    /// Brings a driver back to an earlier revision and keeps it there until --lift
    ///
    /// Sets the annotation revision.vdo.vmware.com/DRIVER of the VDOConfig; the operator does the rest, with the checks of any change. It
    /// needs neither the matrix nor the chart of that revision.
    Rollback(Rollback),
    /// Plans and makes upgrades of the drivers
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Upgrade(Upgrade),
    /// Writes connections, the VDOConfig and the source of the matrix as kubectl would, after checking everything
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Configure(Configure),
    /// Lists and sets the credentials of vSphere connections; never shows them
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Secrets(Secrets),
    /// Pauses management: everything is checked and reported, and nothing is written
    Pause(Manage),
    /// Resumes management after a pause
    Resume(Manage),
    /// Has the operator reconcile now, and ask the source of its matrix
    Reconcile,
    /// Waits until the drivers are healthy, a condition holds, or the VDOConfig is deleted
    ///
    /// Ends with 7 when that did not come within --timeout (15 minutes by default), and says what it waited for.
    Wait(Wait),
    /// Shows field by field how the drivers in the cluster differ from what they should be
    ///
    /// Ends with 0 when there is no difference, with 1 when there is, with more than 1 on an error. Changes nothing. With -f or --set it
    /// compares with what would be wanted after a change that was not made yet.
    Diff(Diff),
    /// Prints all objects that the operator would apply for the VDOConfig of this cluster
    Render(Render),
    /// Prints the namespaces, roles and bindings that the drivers and the operator need
    ///
    /// The operator writes none of them: who installs it applies them. One output is enough for all versions of the matrix, or for
    /// those that --driver names. Needs a cluster only for --missing.
    Rights(Rights),
    /// Asks the compatibility matrix
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Matrix(Matrix),
    /// Copies a part of the matrix with all its images, for sites without internet
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Mirror(Mirror),
    /// Looks into charts; needs no cluster
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Chart(Chart),
    /// Makes every check of the operator now and says what is wrong and how to fix it
    ///
    /// With --pre before anything is installed. Changes nothing. A password that a vCenter has refused is not sent again until the
    /// Secret changes. Ends with 1 when a check fails, with 6 when it is the vCenter that cannot be reached or refuses.
    Doctor(Doctor),
    /// Creates, checks and rotates the drivers' accounts in a vCenter
    ///
    /// An administrator's user and password are needed for the command and stored nowhere.
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Users(Users),
    /// Removes the drivers, then the operator with its definitions and namespace
    ///
    /// Names the cluster and what is removed, and asks. Volumes and snapshots of the drivers block it before anything is removed. Works
    /// without a running operator, too. Interrupted or timed out, it goes on when it is run again. Secrets with credentials stay.
    Delete(Delete),
    /// Collects the answers of the verbs, listed fields of objects, events and logs in one archive
    ///
    /// Of objects only listed fields are in it: no values of Secrets and ConfigMaps, no unknown flags and variables, no volumes of other
    /// drivers. What looks like a key or a token is taken out of events and logs; read those before they are sent. What cannot be read is
    /// named and left out.
    SupportBundle(SupportBundle),
    /// Writes a page about the cluster for the people who run the vCenter: status, failed checks, nodes and machines, privileges, versions
    ///
    /// One file with everything in it, readable on a phone and on paper; from the cluster, or from a support bundle.
    Report(Report),
    /// Says what a condition, its reason or an exit code means and what to do about it; needs no cluster
    Explain(ExplainReason),
    /// Prints the version of vdoctl and of the operator, of the matrix, and of the drivers that vdoctl knows
    ///
    /// A cluster that is not there or does not answer is reported, and is no failure.
    Version(Version),
    /// Prints a completion script for a shell
    ///
    /// As kubectl_complete-vdo in the path the same binary completes kubectl vdo.
    Completion(Completion),
    /// Lists the global options, which every verb takes
    Options,
}

/// Arguments of `status`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Status {
    /// The format.
    #[command(flatten)]
    pub output: Output,
    /// Goes on showing it until interrupted
    #[arg(long, short = 'w')]
    pub watch: bool,
    /// Shows what it was when this support bundle was made; needs no cluster
    #[arg(long = "from", value_name = "FILE", conflicts_with = "watch")]
    pub from: Option<PathBuf>,
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
            ("", _) => command,
            (_, []) => command.after_help(OPTIONS),
            (_, lines) => command.after_help(format!("Examples:\n  {}\n\n{OPTIONS}", lines.join("\n  "))),
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

const GLOBAL_OPTIONS: &str = "Global options";

const OPTIONS: &str = "Every verb takes the global options, too: vdoctl options";

#[cfg(test)]
mod free_names;
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
            ("VDO_COLOR", "color"),
            ("VDO_CONTEXT", "context"),
            ("VDO_KUBECONFIG", "kubeconfig"),
            ("VDO_MATRIX", "matrix"),
            ("VDO_MATRIX_CREDENTIALS", "matrix-credentials"),
            ("VDO_MATRIX_KEYS", "keys"),
            ("VDO_MATRIX_KEYS", "matrix-keys"),
            ("VDO_NAMESPACE", "namespace"),
            ("VDO_OUTPUT", "output"),
            ("VDO_PASSWORD_FILE", "password-file"),
            ("VDO_REGISTRY_CONFIG", "registry-config"),
            ("VDO_SIGNING_KEY_FILE", "key-file"),
            ("VDO_TIMEOUT", "timeout"),
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
        let deciding = "deploy, plan, upgrade plan, upgrade apply, configure drivers, diff, render, rights, matrix resolve, matrix explain, matrix why-not, matrix list, matrix show, matrix init, mirror pull, doctor";
        assert_eq!(found.join(", "), deciding);
    }

    #[test]
    fn cli_args_definition_is_consistent() {
        super::command().debug_assert();
    }
}
