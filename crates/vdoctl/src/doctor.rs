//! `vdoctl doctor`: the checks of the operator, made now and shown to a person.
//!
//! It has no checks of its own: what it says of a vCenter comes from the look that the operator takes, and what it says of the
//! drivers from the operator's pipeline up to the plan. It never sends a password that was refused before, and it writes nothing, but for
//! `--fix` and `--undo`, which an administrator consents to.

pub(super) mod check;
mod cluster;
mod fix;
mod operator;
pub(super) mod password;
pub(super) mod preflight;
mod required;
mod topology;
mod uninstall;
mod view;

use super::args::{Doctor as Args, DoctorVerb, Format, Global};
use super::context::Context;
use super::output::document;
use super::printer::Printer;
use super::progress::Progress;
use super::{Answer, CliError, Exit};
use check::{Check, KUBELETS, Mark, Subject, worst};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use vdo_api::api::ConditionType;
use vdo_api::facts::Node;
use vdo_vsphere::vsphere::{ConnectionReport, NodeReport, NodeTopology, Privileges, SharedDatastores, kubelet_check};

/// Everything that was found.
#[derive(Debug, Default)]
struct Findings {
    /// What was looked at.
    subjects: Vec<Subject>,
    /// The connection and the machine of each node.
    nodes: Vec<(String, NodeReport)>,
    /// What the account of each connection may do.
    privileges: Vec<(String, Privileges)>,
    /// The zones and regions of the nodes of each connection.
    topology: Vec<(String, NodeTopology)>,
    /// The datastores that all hosts of the nodes of a connection reach, by topology segment.
    datastores: Vec<(String, SharedDatastores)>,
    /// What else ends the command with a code of its own.
    exits: Vec<Exit>,
    /// Lines for stderr.
    talk: Vec<String>,
}

impl Findings {
    /// What the look at a connection has shown. A node is shown once: where it was found, or where it was not if it is nowhere.
    fn take(&mut self, name: &str, subject: Subject, reported: ConnectionReport) {
        self.subjects.push(subject);
        self.privileges.push((name.to_owned(), reported.privileges));
        self.datastores
            .extend(reported.shared.into_iter().map(|shared| (name.to_owned(), shared)));
        self.topology
            .extend(reported.topology.into_iter().map(|line| (name.to_owned(), line)));
        for node in reported.nodes {
            match self
                .nodes
                .iter_mut()
                .find(|(_, old)| old.node == node.node && (old.machine.is_empty() || node.machine.is_empty()))
            {
                Some(old) if old.1.machine.is_empty() => *old = (name.to_owned(), node),
                Some(_) => {}
                None => self.nodes.push((name.to_owned(), node)),
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
        subject: "connection",
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
    match &args.from {
        Some(file) if matches!(args.what, Some(DoctorVerb::Topology)) => topology::recorded(args, file),
        Some(file) => super::support::recorded(file, "doctor", format),
        None => answer(args, &watched(found(args, global), Progress::new(printer, format)).await?, format),
    }
}

/// What clap cannot say of flags that hold for subcommands, too.
fn misuse(args: &Args) -> Result<(), CliError> {
    let fixing = &args.fixing;
    let changes = fixing.fix || fixing.undo;
    let usage = |what: &str, remedy: &str| Err(CliError::new(Exit::Usage, what, remedy));
    if changes && !matches!(args.what, None | Some(DoctorVerb::Connection { .. })) {
        return usage(
            "--fix and --undo are about one vCenter as a whole",
            "Write: vdoctl doctor --fix, or vdoctl doctor connection NAME --fix",
        );
    }
    if args.vcenter.user.is_some() && !args.pre && !changes {
        return usage(
            "--user goes with --pre, --fix or --undo",
            "Without them the account in the connection's Secret is used.",
        );
    }
    Ok(())
}

/// The same findings as a document and as text: a password is tried once only.
pub(super) async fn both(args: &Args, global: &Global) -> Result<(Answer, Answer), CliError> {
    let found = found(args, global).await?;
    Ok((answer(args, &found, Format::Json)?, answer(args, &found, Format::Wide)?))
}

async fn found(args: &Args, global: &Global) -> Result<Findings, CliError> {
    match args.pre {
        true => preflight::inspect(args, global).await,
        false => cluster::inspect(args, global).await,
    }
}

fn answer(args: &Args, found: &Findings, format: Format) -> Result<Answer, CliError> {
    if matches!(args.what, Some(DoctorVerb::Topology)) {
        return of_topology(found, format);
    }
    let exit = worst(&found.subjects, &found.exits);
    let wide = format == Format::Wide;
    let text = || match args.what {
        Some(DoctorVerb::Nodes) => view::nodes(found, wide),
        Some(DoctorVerb::Privileges {
            required: true, commands, ..
        }) => required::text(&found.privileges, commands),
        Some(DoctorVerb::Privileges { .. }) => view::privileges(found, wide),
        _ => view::checks(found, wide),
    };
    let document = || match args.what {
        Some(DoctorVerb::Privileges { required: true, .. }) => {
            let all = found.privileges.iter().map(|(name, account)| required::json_of(name, account));
            document("RequiredRoles", json!({"accounts": all.collect::<Vec<_>>()}))
        }
        _ => json(found, exit),
    };
    let mut answer = Answer::formatted(format, document, text)?.exit(exit);
    answer.talk.extend(found.talk.iter().cloned());
    Ok(answer)
}

/// The table of the topology. Other checks that failed do not count, but a vCenter that could not be asked does.
fn of_topology(found: &Findings, format: Format) -> Result<Answer, CliError> {
    let mut answer = topology::answer(&found.topology, format)?;
    if found.topology.is_empty() {
        let checks = found
            .subjects
            .iter()
            .flat_map(|subject| subject.checks.iter().map(move |check| (subject, check)));
        let own = checks.filter(|(_, check)| check.check == ConditionType::TopologyConsistent.as_str());
        answer = own.fold(answer, |answer, (subject, check)| {
            answer.note(format!("{} {}: {}", subject.subject, subject.name, check.message))
        });
    }
    answer.talk.extend(found.talk.iter().cloned());
    Ok(match worst(&found.subjects, &found.exits) {
        Exit::Ok | Exit::Differences => answer,
        other => answer.exit(other),
    })
}

/// How soon a person is shown that something goes on, and how often that it still does.
const PACE: Duration = Duration::from_millis(500);

/// On a terminal it is shown that checks are under way: a vCenter that does not answer takes its time.
async fn watched(look: impl Future<Output = Result<Findings, CliError>>, mut progress: Progress) -> Result<Findings, CliError> {
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

fn json(found: &Findings, exit: Exit) -> Value {
    let count = |mark| found.subjects.iter().map(|subject| subject.count(mark)).sum::<usize>();
    let checks = found.subjects.iter().flat_map(|subject| &subject.checks);
    let not_requested = checks.filter(|check| check.is_not_requested()).count();
    let of = |connection: &str, mut value: Value| {
        value["connection"] = connection.into();
        value
    };
    let nodes: Vec<Value> = found.nodes.iter().map(|(name, node)| of(name, json!(node))).collect();
    let privileges: Vec<Value> = found.privileges.iter().map(|(name, all)| of(name, json!(all))).collect();
    let datastores: Vec<Value> = found.datastores.iter().map(|(name, shared)| of(name, json!(shared))).collect();
    document(
        "Doctor",
        json!({
            "subjects": found.subjects,
            "nodes": nodes,
            "privileges": privileges,
            "topology": topology::json_of(&found.topology),
            "datastores": datastores,
            "passed": count(Mark::True),
            "failed": count(Mark::False),
            "unknown": count(Mark::Unknown) - not_requested,
            "notRequested": not_requested,
            "exit": exit as u8,
        }),
    )
}
