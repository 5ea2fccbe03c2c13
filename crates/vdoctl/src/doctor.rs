// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor` and its subcommands: calls the checks, also of `--pre` and `--from`, and prints the result for people or as a document.
//!
//! It has no checks of its own: those of a vCenter come from the operator's inspection, and those of the drivers from the operator's
//! pipeline up to the plan. It never sends a password that was refused before. It writes nothing, except with `--fix` and `--undo`, after
//! an administrator has confirmed the changes.

pub(super) mod check;
mod cluster;
pub(super) mod exit_code;
mod fix;
mod operator;
mod preflight;
mod required;
mod topology;
mod uninstall;
mod view;
mod volumes;

use super::args::{Doctor as Args, DoctorVerb, Format, Global};
use super::context::Context;
use super::printer::Printer;
use super::progress::Progress;
use super::views::doctor::{DoctorView, OfConnection};
use super::views::volumes::VolumesView;
use super::{Answer, CliError, Exit};
use check::{Check, KUBELETS, Subject, Topic};
use exit_code::worst;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vdo_api::api::ConditionType;
use vdo_api::facts::Node;
use vdo_vsphere::vsphere::{ConnectionReport, NodeReport, kubelet_check};

/// Everything that was found.
#[derive(Debug, Clone, Default)]
struct Findings {
    /// What is shown of it; the sums come last.
    view: DoctorView,
    /// What else ends the command with a code of its own.
    exits: Vec<Exit>,
    /// Lines for stderr.
    talk: Vec<String>,
}

impl Findings {
    /// What the look at a connection has shown. A node is shown once: where it was found, or where it was not if it is nowhere.
    fn take(&mut self, name: &str, subject: Subject, reported: ConnectionReport) {
        let connection = || name.to_owned();
        let view = &mut self.view;
        view.subjects.push(subject);
        view.privileges.push(OfConnection {
            of: reported.privileges,
            connection: connection(),
        });
        let datastores = reported.shared.into_iter().map(|of| OfConnection {
            of,
            connection: connection(),
        });
        view.datastores.extend(datastores);
        let topology = reported.topology.into_iter().map(|of| OfConnection {
            of,
            connection: connection(),
        });
        view.topology.extend(topology);
        for of in reported.nodes {
            let same = |old: &&mut OfConnection<NodeReport>| old.of.node == of.node && (old.of.machine.is_empty() || of.machine.is_empty());
            let old = view.nodes.iter_mut().find(same);
            let new = OfConnection {
                of,
                connection: connection(),
            };
            match old {
                Some(old) if old.of.machine.is_empty() => *old = new,
                Some(_) => {}
                None => view.nodes.push(new),
            }
        }
    }
}

/// The cluster, within the time that it may take.
async fn open(global: &Global) -> Result<Context, CliError> {
    match tokio::time::timeout(global.timeout(), Context::open(global)).await {
        Ok(context) => context,
        Err(_) => Err(CliError::timed_out(global.timeout())),
    }
}

/// A connection with its stages.
pub(super) fn connection_subject(name: &str, reported: &ConnectionReport) -> Subject {
    Subject {
        subject: Topic::Connection,
        name: name.to_owned(),
        about: reported
            .about
            .iter()
            .map(|about| format!("vCenter {} build {}", about.version, about.build))
            .collect(),
        checks: reported.checks.iter().map(Check::of_connection).collect(),
    }
}

/// Whether the kubelets leave their nodes to a cloud provider.
pub(super) fn kubelet(nodes: &[Arc<Node>]) -> Check {
    Check {
        check: KUBELETS.into(),
        ..Check::of_connection(&kubelet_check(nodes))
    }
}

pub(super) async fn run(args: &Args, global: &Global, printer: &Printer) -> Result<Answer, CliError> {
    let format = args.output().or_table();
    misuse(args)?;
    if args.fixing.fix || args.fixing.undo {
        return fix::run(args, global, &mut Progress::new(printer, format)).await;
    }
    let is_about_volumes = matches!(args.what, Some(DoctorVerb::Volumes));
    match &args.from {
        Some(file) => recorded(args, file, format),
        None if is_about_volumes => volumes::answer(&watched(volumes::inspect(global), Progress::new(printer, format)).await?, format),
        None => {
            let mut progress = Progress::new(printer, format);
            let args = &preflight::asked(args, &mut progress).await?;
            answer(args, watched(found(args, global), progress).await?, format)
        }
    }
}

/// What clap cannot say of flags that hold for subcommands, too.
fn misuse(args: &Args) -> Result<(), CliError> {
    let fixing = &args.fixing;
    let changes = fixing.fix || fixing.undo;
    let usage = |what: &str, remedy: &str| Err(CliError::new(Exit::Usage, what, remedy));
    if changes && !matches!(args.what, None | Some(DoctorVerb::Connection { .. })) {
        return usage(
            "--fix and --undo apply to a whole vCenter, not to a part of the checks",
            "Write: vdoctl doctor --fix, or vdoctl doctor connection NAME --fix",
        );
    }
    if args.pre && matches!(args.what, Some(DoctorVerb::Volumes)) {
        return usage(
            "before an installation there are no volumes of the drivers",
            "Leave out --pre, or write: vdoctl doctor --pre",
        );
    }
    if args.vcenter.user.is_some() && !args.pre && !changes {
        return usage(
            "--user needs --pre, --fix or --undo",
            "Without these flags, the account in the connection's Secret is used.",
        );
    }
    Ok(())
}

/// The same findings as a document and as text: a password is tried once only.
pub(super) async fn both(args: &Args, global: &Global) -> Result<(Answer, Answer), CliError> {
    let found = found(args, global).await?;
    let document = answer(args, found.clone(), Format::Json)?;
    Ok((document, answer(args, found, Format::Wide)?))
}

/// What is wrong with volumes, as a document and as text.
pub(super) async fn volumes(global: &Global) -> Result<(Answer, Answer), CliError> {
    let view = volumes::inspect(global).await?;
    let answer = |format| volumes::answer(&view, format);
    Ok((answer(Format::Json)?, answer(Format::Wide)?))
}

/// What is wrong with volumes, for verbs that explain a failure.
pub(super) async fn volume_findings(global: &Global) -> Result<VolumesView, CliError> {
    volumes::inspect(global).await
}

async fn found(args: &Args, global: &Global) -> Result<Findings, CliError> {
    match args.pre {
        true => preflight::inspect(args, global).await,
        false => cluster::inspect(args, global).await,
    }
}

/// The checks that a support bundle holds, as they were when that was made.
fn recorded(args: &Args, file: &Path, format: Format) -> Result<Answer, CliError> {
    let bundle = super::support::read(file)?;
    if matches!(args.what, Some(DoctorVerb::Volumes)) {
        let view: VolumesView = bundle.view("volumes")?;
        return Ok(bundle.answer("volumes", volumes::answer(&view, format)?));
    }
    let view: DoctorView = bundle.view("doctor")?;
    if matches!(args.what, Some(DoctorVerb::Topology)) {
        return topology::answer(&view.topology, format);
    }
    Ok(bundle.answer("doctor", shown(args, &view, format)?))
}

fn answer(args: &Args, found: Findings, format: Format) -> Result<Answer, CliError> {
    let exit = worst(&found.view.subjects, &found.exits);
    let view = found.view.counted(exit);
    let answer = match args.what {
        Some(DoctorVerb::Topology) => of_topology(&view, exit, format)?,
        _ => shown(args, &view, format)?.exit(exit),
    };
    Ok(found.talk.into_iter().fold(answer, Answer::note))
}

fn shown(args: &Args, view: &DoctorView, format: Format) -> Result<Answer, CliError> {
    let wide = format == Format::Wide;
    match args.what {
        Some(DoctorVerb::Privileges {
            required: true, commands, ..
        }) => {
            let required = required::view(&view.privileges);
            Answer::view(format, &required, || required::text(&view.privileges, commands))
        }
        Some(DoctorVerb::Nodes) => Answer::view(format, view, || view::nodes(view, wide)),
        Some(DoctorVerb::Privileges { .. }) => Answer::view(format, view, || view::privileges(view, wide)),
        _ => Answer::view(format, view, || view::checks(view, wide)),
    }
}

/// The table of the topology. Other checks that failed do not count, but a vCenter that could not be asked does.
fn of_topology(view: &DoctorView, exit: Exit, format: Format) -> Result<Answer, CliError> {
    let mut answer = topology::answer(&view.topology, format)?;
    if view.topology.is_empty() {
        let checks = view
            .subjects
            .iter()
            .flat_map(|subject| subject.checks.iter().map(move |check| (subject, check)));
        let own = checks.filter(|(_, check)| check.check == ConditionType::TopologyConsistent.as_str());
        answer = own.fold(answer, |answer, (subject, check)| {
            answer.note(format!("{} {}: {}", subject.subject, subject.name, check.message))
        });
    }
    Ok(match exit {
        Exit::Ok | Exit::Differences => answer,
        other => answer.exit(other),
    })
}

/// How soon a person is shown that something goes on, and how often that it still does.
const PACE: Duration = Duration::from_millis(500);

/// On a terminal it is shown that checks are under way: a vCenter that does not answer takes its time.
async fn watched<T>(look: impl Future<Output = Result<T, CliError>>, mut progress: Progress) -> Result<T, CliError> {
    let mut look = std::pin::pin!(look);
    loop {
        match tokio::time::timeout(PACE, &mut look).await {
            Ok(found) => {
                progress.end();
                return found;
            }
            Err(_) if progress.is_live() => progress.waiting(&["checking the cluster and its vCenters".to_owned()]),
            Err(_) => {}
        }
    }
}
