// SPDX-License-Identifier: Apache-2.0
//! `vdoctl deploy`: installs or upgrades the operator, hands it the configuration, and waits until the drivers are healthy.
//!
//! ```text
//! inputs -> guards -> checks -> try everything in the API server -> write everything -> watch
//! ```
//!
//! Nothing is written before all checks are made. After the last write, the operator has everything that it needs, so it continues
//! when vdoctl is interrupted.

pub(super) mod configuration;
mod default_class;
mod gitops;
mod installed;
pub(super) mod matrix;
mod network;
mod openshift;
pub(super) mod target;
pub(super) mod vcenter;
pub(super) mod write;

use super::args::{Deploy as Args, DryRun, Format, Global};
use super::chart::objects_answer;
use super::context::{Context, Deciding};
use super::doctor::check::Check;
use super::matrix::Choice;
use super::password_file::private;
use super::preflight_checks::{self, Asking};
use super::printer::Printer;
use super::progress::{Mark, Progress};
use super::wait::{After, come_about};
use super::wait_until_healthy;
use super::{Answer, CliError, Exit, prompt, stopping};
use configuration::{Configuration, logins};
use default_class::with_default_class;
use installed::Installed;
use matrix::Matrix;
use openshift::Known;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};
use target::{Served, Target, operator, settings};
use vdo_api::types::count;
use vdo_core::drivers::short;
use vdo_core::install::{Change, HostNetwork, OPERATOR};
use vdo_core::manifest::Object;
use vdo_source::fetch::ConfigMaps;
use vdo_vsphere::vcenter::Budget;
use write::Fate;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is said of a deployment that is stopped before it has begun to write, and what to do.
const NOTHING: &str = "nothing is deployed yet";
const AGAIN: &str = "Run the same command again.";
/// What to do where it is stopped after that.
const WATCH: &str = "`vdoctl wait` waits for the drivers, and `vdoctl status` shows their state.";

pub(super) async fn run(args: &Args, global: &Global, printer: &Printer) -> Result<Answer, CliError> {
    let format = args.output.unwrap_or(Format::Table);
    let mut progress = Progress::new(printer, format);
    let answer = deploy(args, global, format, &mut progress).await;
    match progress.end() {
        Some(exit) => answer.map(|answer| answer.exit(exit)),
        None => answer,
    }
}

async fn deploy(args: &Args, global: &Global, format: Format, progress: &mut Progress) -> Result<Answer, CliError> {
    if let Some(folder) = &args.gitops.folder {
        return gitops::run(args, global, folder, progress).await;
    }
    if format == Format::Yaml {
        return manifests(args, global, progress).await;
    }
    stopping::when_stopped(NOTHING, AGAIN);
    // --timeout is for the drivers; a request is answered soon or not at all.
    let requests = Global {
        timeout: None,
        ..global.clone()
    };
    let context = Context::open(&requests).await?;
    let nodes = vdo::reconcile::nodes(&context.ports.reader).await?;
    let target = Target::look(args, global, &context, nodes).await?;
    let installed = &target.installed;
    let mut matrix = Matrix::of(&args.matrix, &global.namespace, installed.operator(&context)).await?;
    matrix.move_keys(&context, installed.operator(&context)).await?;
    let operator = target.operator(matrix.mounts)?;
    target.shown(&context, progress);
    let change = installed.permits(&context, &operator, args.allow_downgrade)?;
    progress.step(Mark::Note, &planned(change, installed.version.as_deref()));
    consent(args, &context, change)?;

    matrix.notes.iter().for_each(|note| progress.step(Mark::Note, note));
    let known = target.openshift.known(args, installed.config.as_ref(), progress)?;
    let made;
    let args = match args.vcenter.create_account {
        false => args,
        true => match vcenter::create_account(args, &requests, progress).await? {
            Ok(with_secret) => {
                made = with_secret;
                &made
            }
            Err(answer) => return Ok(answer),
        },
    };
    stopping::when_stopped(NOTHING, AGAIN);
    vcenter::stored(&context, &args.vcenter.credentials_secret).await?;
    let mut context = deciding(args, &requests, context, &target, progress).await?;
    context.matrix_lines().for_each(|line| progress.step(Mark::Note, &line));
    let configured = configured(args, global, &known, Some((&context, installed)), progress).await?;
    if let Some(configured) = &configured {
        let asking = Asking {
            only: None,
            installed: &operator,
            there: installed.config.as_ref(),
            surplus: false,
            budget: Budget::default(),
        };
        let inspected = preflight_checks::check(&mut context, configured, asking).await?;
        judged(&inspected, Judge::of(args.ignore_checks), progress)?;
    }
    let all: Vec<Object> = operator
        .into_iter()
        .chain(matrix.objects)
        .chain(configured.map(|configured| configured.objects).unwrap_or_default())
        .collect();
    let all = write::beside_others(&context, all).await?;
    if args.dry_run == DryRun::Client {
        all.iter()
            .for_each(|object| progress.step(Mark::Note, &format!("{object} would be applied (client dry run)")));
        return Ok(Answer::text("").note("Nothing was written."));
    }
    let fates = write::dry_run(&context, &all).await?;
    if args.dry_run == DryRun::Server {
        write::shown(&all, &fates, progress);
        return Ok(Answer::text("").note("Nothing was written."));
    }
    let configured = installed.config.is_some();
    let replaced = written(&context, &all, &fates, matrix.place.as_ref(), configured, progress).await?;
    stopping::when_stopped("everything is written, and the operator continues without vdoctl", WATCH);
    if args.no_wait {
        return Ok(Answer::text("").note("vdoctl status --watch shows the progress."));
    }
    let summary = ready(&context, global.timeout_with_drivers(), replaced && configured, progress).await?;
    progress.step(Mark::Done, &summary);
    Ok(Answer::text(""))
}

/// Waits until the drivers are healthy. Before a new operator has reconciled, the status is the one that the operator before it has left.
async fn ready(context: &Context, patience: Duration, is_new: bool, progress: &mut Progress) -> Result<String, CliError> {
    let begun = Instant::now();
    let summary = wait_until_healthy::until_ready(wait_until_healthy::Watcher::new(context, true), patience, progress).await?;
    if !is_new {
        return Ok(summary);
    }
    let left = patience.saturating_sub(begun.elapsed());
    come_about(context, After::Healthy, left, progress).await
}

/// The objects as YAML, which nothing is written of.
async fn manifests(args: &Args, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    if args.vcenter.create_account {
        return Err(CliError::new(
            Exit::Usage,
            "--create-account and -o yaml cannot be combined: --create-account changes a vCenter, but -o yaml writes nothing",
            "Create the account first with vdoctl users create, and name its Secret: --credentials-secret NAME.",
        ));
    }
    let manifests = Manifests::of(args, global, progress).await?;
    let all: Vec<_> = manifests.all().map(|object| object.value().clone()).collect();
    Ok(objects_answer(Format::Yaml, &all)?
        .note("If a password was given, the output contains the password. Nothing was written to a cluster."))
}

/// Writes the objects that change. Whether the operator is replaced by it.
async fn written(
    context: &Context,
    all: &[Object],
    fates: &[Fate],
    matrix: Option<&ConfigMaps>,
    configured: bool,
    progress: &mut Progress,
) -> Result<bool, CliError> {
    let changing = all.iter().zip(fates).filter(|(_, fate)| **fate != Fate::Unchanged);
    let changing: Vec<Object> = changing.map(|(object, _)| object.clone()).collect();
    let replaced = changing
        .iter()
        .any(|object| object.kind() == "Deployment" && object.name() == OPERATOR);
    if !changing.is_empty() {
        write::apply(context, &changing, matrix.map(|place| (place, all)), progress).await?;
        // An operator that lacked what was just written may wait minutes for its next attempt.
        if !replaced && configured {
            super::pause_resume_reconcile::wake(context).await?;
        }
    }
    progress.step(Mark::Done, &applied(changing.len(), all.len() - changing.len()));
    Ok(replaced)
}

/// What flags and files make without a cluster.
struct Manifests {
    /// The definitions, the namespaces, the rights and the operator.
    operator: Vec<Object>,
    /// What the operator gets for the source of its matrix.
    matrix: Vec<Object>,
    configuration: Vec<Object>,
}

impl Manifests {
    async fn of(args: &Args, global: &Global, progress: &mut Progress) -> Result<Self, CliError> {
        let matrix = Matrix::of(&args.matrix, &global.namespace, None).await?;
        let settings = settings(args, global, args.host_network.then(HostNetwork::default), Served::default(), None);
        let operator = operator(&settings, matrix.mounts)?;
        let configured = configured(args, global, &Known::default(), None, progress).await?;
        Ok(Self {
            operator,
            matrix: matrix.objects,
            configuration: configured.unwrap_or_default().objects,
        })
    }

    /// In the order in which they are applied.
    fn all(&self) -> impl Iterator<Item = &Object> {
        self.operator.iter().chain(&self.matrix).chain(&self.configuration)
    }
}

/// The checks are to be made with the matrix that the operator is going to have. Where this machine does not reach it, that is a failed check.
async fn deciding(args: &Args, global: &Global, context: Context, target: &Target, progress: &mut Progress) -> Result<Deciding, CliError> {
    if !args.ignore_checks || args.matrix.matrix.is_none() {
        return target.deciding(&args.matrix, global, context).await;
    }
    match Choice::in_cluster(&args.matrix, &context, global).await {
        Ok(choice) => Ok(context.deciding_with(choice)),
        Err(error) => {
            progress.step(Mark::Failed, &format!("the matrix cannot be read from this machine: {error}"));
            context.like_this_build().await
        }
    }
}

/// What is configured; `None` where the configuration of the cluster stays as it is.
async fn configured(
    args: &Args,
    global: &Global,
    known: &Known,
    cluster: Option<(&Context, &Installed)>,
    progress: &mut Progress,
) -> Result<Option<Configuration>, CliError> {
    if let Some(file) = &args.values {
        return Configuration::read(&file.display().to_string(), &text(file)?, &global.namespace).map(Some);
    }
    let there = cluster.and_then(|(_, installed)| installed.config.as_ref());
    let images = args.image_registry.is_some() || args.cpi_image.is_some() || args.csi_image.is_some();
    let says = images || args.update_policy.is_some() || args.storage_policy.is_some();
    let context = cluster.map(|(context, _)| context);
    let accounts = match there {
        Some(_) if args.vcenter.vcenter.is_none() => Vec::new(),
        _ => vcenter::accounts(&args.vcenter, &known.vcenters, context, progress).await?,
    };
    if accounts.is_empty() && !says {
        return Ok(None);
    }
    for account in &accounts {
        for (connection, _) in logins(&account.connection, &account.login) {
            cluster.map_or(Ok(()), |(_, installed)| {
                installed.same_server(&connection, &account.endpoint.server)
            })?;
        }
    }
    let name = there.and_then(|config| config.metadata.name.as_deref()).unwrap_or("vdo");
    let specification = with_default_class(&known.specification, there, args.storage_policy.as_deref());
    Configuration::of_flags(args, &global.namespace, name, &accounts, &specification)
        .map(Some)
        .map_err(|error| CliError::internal(&error))
}

/// The text of a file that may hold passwords.
pub(super) fn text(file: &Path) -> Result<String, CliError> {
    const MOST: u64 = 4 << 20;
    let name = file.display().to_string();
    let unreadable = |error: std::io::Error| {
        CliError::new(
            Exit::Usage,
            format!("{name} cannot be read: {error}"),
            "Name a file with YAML, or - for stdin.",
        )
    };
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().lock().take(MOST).read_to_string(&mut text).map_err(unreadable)?;
    } else {
        let open = std::fs::File::open(file).map_err(unreadable)?;
        open.take(MOST).read_to_string(&mut text).map_err(unreadable)?;
        if load_has_secrets(&text) {
            private(file)?;
        }
    }
    Ok(text)
}

/// Whether there is a Secret in it.
fn load_has_secrets(text: &str) -> bool {
    vdo_api::yaml::load_all(text).is_ok_and(|all| all.iter().any(|value| value["kind"] == "Secret"))
}

fn planned(change: Change, version: Option<&str>) -> String {
    let version = version.unwrap_or("unknown");
    match change {
        Change::Install => format!("operator {VERSION} will be installed"),
        Change::Same => format!("operator {VERSION} is installed; only objects that differ will be applied"),
        Change::Upgrade => format!("operator {version} will be upgraded to {VERSION}"),
        Change::Downgrade => format!("operator {version} will be replaced by the older {VERSION}"),
    }
}

/// Asks a person before a cluster gets something that it does not have, or another version of the operator.
fn consent(args: &Args, context: &Context, change: Change) -> Result<(), CliError> {
    let asks = change != Change::Same && args.dry_run == DryRun::None && !args.yes;
    // Without a person it goes on: a pipeline deploys without --yes, as kubectl applies.
    if !asks || !prompt::is_terminal() {
        return Ok(());
    }
    let question = format!("    Deploy to cluster {} at {}?", context.name, context.server);
    let nothing = format!("nothing was written to cluster {}", context.name);
    prompt::confirmed(&question, &nothing, "", "Choose another cluster with --kubeconfig or --context.")
}

/// Which failed checks keep something from being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judge {
    /// Every one.
    All,
    /// Those of the login and what it needs.
    Login,
    /// None.
    Nothing,
}

impl Judge {
    /// By `--ignore-checks`.
    pub(super) fn of(ignore: bool) -> Self {
        if ignore { Self::Nothing } else { Self::All }
    }

    fn counts(self, check: &Check) -> bool {
        match self {
            Self::All => true,
            Self::Login => check.is_of_the_login(),
            Self::Nothing => false,
        }
    }
}

/// Shows what the checks found and which versions are chosen.
///
/// # Errors
/// When one failed that keeps it from being written.
pub(super) fn judged(checked: &preflight_checks::Checked, judge: Judge, progress: &mut Progress) -> Result<(), CliError> {
    let lines = checked.connections.iter().filter_map(preflight_checks::Connected::line);
    lines.for_each(|line| progress.step(Mark::Done, &line));
    let mut failed = Vec::new();
    for check in checked.failures() {
        let counts = judge.counts(check) || judge == Judge::Nothing;
        let remedy = check.remedy.to_string();
        let parts = [check.message.as_str(), remedy.as_str()]
            .into_iter()
            .filter(|part| !part.is_empty());
        let text = parts.collect::<Vec<_>>().join("\n");
        progress.step(if counts { Mark::Failed } else { Mark::Note }, &text);
        if judge.counts(check) {
            failed.push(check.check.clone());
        }
    }
    if !failed.is_empty() {
        return Err(CliError::new(
            checked.exit(),
            format!(
                "{} failed ({}), so nothing was written",
                count(failed.len(), "check"),
                failed.join(", ")
            ),
            "Fix the problem and run the same command again; --ignore-checks writes despite failed checks.",
        ));
    }
    if checked.failures().next().is_none() {
        progress.step(Mark::Done, &format!("{} passed", count(checked.passed(), "check")));
    }
    // In a cluster without drivers there is nothing to say but that they are created.
    if let Some(plan) = checked.plan.as_ref().filter(|plan| plan.takes_over()) {
        progress.step(Mark::Note, &format!("the existing drivers: {}", plan.effect()));
    }
    for (driver, pick) in checked.choice.iter().flat_map(|choice| &choice.picks) {
        progress.step(
            Mark::Done,
            &format!("chosen: {} {} ({})", short(driver), pick.version, pick.because),
        );
    }
    Ok(())
}

fn applied(changed: usize, kept: usize) -> String {
    let kept = match kept {
        0 => String::new(),
        kept if changed == 0 => return write::kept(kept),
        kept => format!(", {}", write::kept(kept)),
    };
    format!(
        "{} applied{kept}; the operator continues by itself, so interrupting is safe",
        count(changed, "object")
    )
}
