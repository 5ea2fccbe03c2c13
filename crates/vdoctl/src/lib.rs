// SPDX-License-Identifier: Apache-2.0
//! `vdoctl`: a command runs a part of the operator's pipeline, and ends after the stage that its verb needs.
//!
//! ```text
//! args (parsed) -> one file per verb: Answer or CliError -> printer -> exit
//! ```
//!
//! A verb returns a value; it prints nothing itself, and sets the exit code only through [`Exit`]. Results go to stdout, messages to
//! stderr. Verbs with progress, or with more than one answer (`status --watch`, `logs --follow`, `deploy`, `delete`, …), also receive the
//! printer.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::too_many_lines))]

mod adopt;
mod ages;
mod api_server_connection;
mod approve;
pub mod args;
mod atomic_files;
mod certificate_question;
mod chart;
mod commands;
mod completion;
mod configure;
mod context;
mod delete;
mod deploy;
mod diff;
mod digests;
mod doctor;
mod driver_changes;
mod driver_fields;
mod error;
mod events;
mod exit;
mod explain;
mod field_view;
mod history;
mod logs;
mod matrix;
mod memory_limited_child;
mod mirror;
mod object_write;
mod operator_running;
mod output;
mod password_file;
mod pause_resume_reconcile;
mod plan;
mod plan_and_diff;
mod preflight_checks;
mod preview;
mod printer;
mod progress;
mod prompt;
mod registry;
mod release;
mod remedy;
mod render;
mod report;
mod rights;
mod rollback;
mod secrets;
mod selftest;
mod several_clusters;
mod start;
mod status;
mod stopping;
mod style;
mod support;
mod terminal_escapes;
mod text_diff;
mod upgrade;
mod users;
mod vcenter_address;
mod vdo_namespaces;
mod vdoctl_lease;
mod version;
mod views;
mod wait;
mod wait_until_healthy;
mod wrap;

pub use error::CliError;
pub use exit::Exit;
pub use output::Answer;
pub use report::support_bars;
pub use views::schemas;

use args::{Cli, Format, UpgradeVerb, Verb};
use clap::FromArgMatches as _;
use clap::builder::Styles;
use commands::ClusterFlags;
use printer::Printer;
use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;
use vdo_api::api::ManagementState;
use vdo_system::{Signals, Stop};
use wait::{After, after};

/// As much as a main thread has.
const STACK: usize = 8 << 20;

/// Runs one command line to its end.
pub fn main(line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let line: Vec<OsString> = line.into_iter().collect();
    let called = line.first().map(Path::new).and_then(Path::file_stem).unwrap_or_default().to_owned();
    if let Some(words) = completion::asked(&called, &line) {
        return complete(&words);
    }
    // As a plugin of kubectl it is called as one.
    let as_called = |command: clap::Command| match called.to_str() {
        Some("kubectl-vdo") => command.bin_name("kubectl vdo"),
        _ => command,
    };
    let parse = |command: clap::Command| {
        as_called(command)
            .try_get_matches_from(&line)
            .and_then(|matches| {
                let cli = Cli::from_arg_matches(&matches)?;
                let flags = ClusterFlags(cli.global.typed(&matches));
                Ok((cli, flags))
            })
            .map_err(args::with_tip)
    };
    let (cli, flags) = match parse(args::command()) {
        Ok(parsed) => parsed,
        Err(painted) => {
            let bare = parse(args::command().styles(Styles::plain())).err();
            return Printer::auto().usage(&painted, bare.as_ref().unwrap_or(&painted)).into();
        }
    };
    let mut printer = Printer::new(cli.global.color).with_cluster(flags);
    // Never dropped: that would wait for whatever still works.
    let exit = match Runtime::new().map(ManuallyDrop::new) {
        Ok(runtime) => runtime
            .block_on(to_the_end(cli, printer.clone()))
            .unwrap_or_else(|error| printer.failure(&CliError::internal(&error))),
        Err(error) => printer.failure(&CliError::internal(&error)),
    };
    vdo_system::end_children();
    exit.into()
}

/// Answers a shell.
fn complete(words: &[String]) -> ExitCode {
    let answer = Runtime::new().map(|runtime| runtime.block_on(completion::answer(words)));
    let mut printer = Printer::auto();
    let exit = match answer {
        Ok(answer) => printer.answer(&answer),
        Err(error) => printer.failure(&CliError::internal(&error)),
    };
    vdo_system::end_children();
    exit.into()
}

/// Runs the verb until it ends or the process receives a signal to stop. The verb has a thread of its own, so that a signal is heard
/// whatever the verb is at: what computes, or waits for a file, does not let go.
async fn to_the_end(cli: Cli, mut printer: Printer) -> io::Result<Exit> {
    // The signals are caught before anything is begun.
    let mut signals = Signals::catch()?;
    let quiet = printer.clone();
    let (tell, mut reported) = oneshot::channel();
    let here = Handle::current();
    let work = move || {
        let _ = tell.send(here.block_on(run(&cli, &mut printer)));
    };
    let verb = thread::Builder::new().name("verb".into()).stack_size(STACK).spawn(work)?;
    let stopped = tokio::select! {
        biased;
        stop = signals.next() => match stop {
            Stop::Interrupted => Exit::Interrupted,
            Stop::Terminated => Exit::Terminated,
        },
        exit = &mut reported => return match exit {
            Ok(exit) => Ok(exit),
            // It has said nothing: a defect, which was reported where it happened.
            Err(_) => verb.join().map_or_else(|defect| std::panic::resume_unwind(defect), |()| Ok(Exit::Refused)),
        },
    };
    if stopping::ask(stopped) {
        // The verb puts things in order first, unless a second signal comes.
        tokio::select! {
            biased;
            _ = signals.next() => {}
            _ = reported => {}
        }
    } else {
        let mut own = quiet.apart();
        quiet.silence();
        tokio::select! {
            biased;
            _ = signals.next() => {}
            () = stopping::settled() => {}
        }
        if let Some(written) = stopping::stopped(stopped) {
            own.failure(&written);
        }
    }
    quiet.silence();
    prompt::end();
    atomic_files::give_up();
    Ok(stopped)
}

async fn run(cli: &Cli, printer: &mut Printer) -> Exit {
    let global = &cli.global;
    if let Some(limit) = global.request_timeout {
        vdo::cluster::set_request_timeout(limit);
    }
    let Some(verb) = &cli.verb else {
        return match start::run(global).await {
            Ok(answer) => printer.answer(&answer),
            Err(error) => printer.failure(&error),
        };
    };
    if writes(verb) {
        stopping::count_writes();
    }
    let result = match verb {
        Verb::Deploy(args) => deploy::run(args, global, printer).await,
        Verb::Adopt(args) => adopt::run(args, global, printer).await,
        Verb::Status(args) if args.watch => status::watch(args, global, printer).await,
        // Each cluster has the time of --timeout for itself.
        Verb::Status(args) if args.contexts.are_given() => status::of_several(args, global).await,
        Verb::Status(args) => within(global, status::run(args, global)).await,
        Verb::Plan(args) => within(global, plan::run(args, global)).await,
        Verb::Approve(args) => within(global, approve::run(args, global)).await,
        Verb::History(args) => within(global, history::run(args, global)).await,
        Verb::Events(args) => within(global, events::run(args, global)).await,
        Verb::Logs(args) => logs::run(args, global, printer).await,
        Verb::Rollback(args) => {
            let done = within(global, rollback::run(args, global)).await;
            after(args.wait.then_some(After::Healthy), done, Format::Table, global, printer).await
        }
        Verb::Upgrade(args) => match &args.verb {
            UpgradeVerb::Plan(args) => within(global, upgrade::plan(args, global)).await,
            UpgradeVerb::Apply(args) => upgrade::apply(args, global, printer).await,
            UpgradeVerb::Retry => within(global, upgrade::retry(global)).await,
        },
        Verb::Configure(args) => configure::run(args, global, printer).await,
        Verb::Secrets(args) => secrets::run(args, global, printer).await,
        Verb::Pause(args) => {
            let done = within(global, pause_resume_reconcile::state(args, ManagementState::Paused, global)).await;
            after(args.wait.then_some(After::Handled), done, Format::Table, global, printer).await
        }
        Verb::Resume(args) => {
            let done = within(global, pause_resume_reconcile::state(args, ManagementState::Managed, global)).await;
            after(args.wait.then_some(After::Healthy), done, Format::Table, global, printer).await
        }
        Verb::Reconcile => within(global, pause_resume_reconcile::reconcile(global)).await,
        Verb::Wait(args) => wait::run(args, global, printer).await,
        Verb::Diff(args) => within(global, diff::run(args, global)).await,
        Verb::Render(args) => within(global, render::run(args, global)).await,
        Verb::Release(args) => within(global, release::run(args, global)).await,
        Verb::Rights(args) => rights::run(args, global).await,
        // How long it takes depends on the images.
        Verb::Matrix(args) if matrix::asks_registries(args) => matrix::run(args, global).await,
        Verb::Matrix(args) => within(global, matrix::run(args, global)).await,
        // How long it takes depends on the images.
        Verb::Mirror(args) => mirror::run(args, global, printer).await,
        Verb::Chart(args) => chart::run(args, global).await,
        // The cluster and each vCenter have the time of --timeout for themselves.
        Verb::Doctor(args) => doctor::run(args, global, printer).await,
        // Each step has its own time.
        Verb::Selftest(args) => selftest::run(args, global, printer).await,
        Verb::Users(args) => users::run(args, global, printer).await,
        Verb::Delete(args) => delete::run(args, global, printer).await,
        // Logs take their time.
        Verb::SupportBundle(args) => support::run(args, global).await,
        Verb::Report(args) => report::run(args, global).await,
        Verb::Explain(args) => explain::run(args),
        Verb::Version(args) => version::run(args, global).await,
        Verb::Completion(args) => Ok(completion::run(args)),
        Verb::Options => {
            let bare = args::options().styles(Styles::plain()).render_help();
            Ok(Answer::text(printer::help(&args::options().render_help(), &bare)))
        }
    };
    match result {
        Ok(answer) => printer.answer(&answer),
        Err(error) => printer.failure(&error),
    }
}

/// Whether a verb writes single objects of the cluster and nothing else. The others say themselves how far they have come.
fn writes(verb: &Verb) -> bool {
    match verb {
        Verb::Approve(_)
        | Verb::Rollback(_)
        | Verb::Configure(_)
        | Verb::Secrets(_)
        | Verb::Pause(_)
        | Verb::Resume(_)
        | Verb::Reconcile => true,
        Verb::Upgrade(args) => !matches!(args.verb, UpgradeVerb::Plan(_)),
        Verb::Adopt(args) => args.write || args.moves,
        _ => false,
    }
}

/// A verb that speaks to a cluster, with the deadline of `--timeout`.
async fn within<T>(global: &args::Global, work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    match tokio::time::timeout(global.timeout(), work).await {
        Ok(result) => result,
        Err(_) => Err(CliError::timed_out(global.timeout())),
    }
}
