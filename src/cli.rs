//! `vdoctl`: the pipeline of the operator, cut at the arrow that a verb asks for.
//!
//! ```text
//! args (as typed) -> one file per verb: Answer or CliError -> printer -> exit
//! ```
//!
//! A verb returns a value; it prints nothing and decides no exit code but through [`Exit`]. What goes to stdout is data, what
//! goes to stderr is talk. Only `status --watch` holds the printer itself, because it has more than one answer.
//!
//! Layer 3: may use everything below; not `controller`.

mod answer;
mod approve;
pub mod args;
mod chart;
mod completion;
mod diff;
mod doctor;
mod exit;
mod explain;
mod failure;
mod matrix;
mod plan;
mod planned;
mod printer;
mod render;
mod session;
mod status;
mod style;
mod version;

pub use answer::Answer;
pub use exit::Exit;
pub use failure::CliError;

use args::{Cli, Verb};
use clap::FromArgMatches as _;
use printer::Printer;
use std::ffi::OsString;
use std::future::Future;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// Runs one command line to its end.
pub async fn main(line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let parsed = args::command()
        .try_get_matches_from(line)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return Printer::auto().usage(&error).into(),
    };
    let mut printer = Printer::new(cli.global.color);
    let exit = tokio::select! {
        // The signals are caught before anything is begun.
        biased;
        exit = interrupted() => exit,
        exit = run(&cli, &mut printer) => exit,
    };
    exit.into()
}

async fn run(cli: &Cli, printer: &mut Printer) -> Exit {
    let global = &cli.global;
    let result = match &cli.verb {
        Verb::Status(args) if args.watch => status::watch(args, global, printer).await,
        Verb::Status(args) => within(global, status::run(args, global)).await,
        Verb::Plan(args) => within(global, plan::run(args, global)).await,
        Verb::Approve(args) => within(global, approve::run(args, global)).await,
        Verb::Diff(args) => within(global, diff::run(args, global)).await,
        Verb::Render(args) => within(global, render::run(args, global)).await,
        Verb::Matrix(args) => within(global, matrix::run(args, global)).await,
        Verb::Chart(args) => chart::run(args, global).await,
        // Its own deadlines are those of each vCenter; --timeout is the cluster's.
        Verb::Doctor(args) => doctor::run(args, global).await,
        Verb::Explain(args) => explain::run(args),
        Verb::Version(args) => version::run(args).await,
        Verb::Completion(args) => Ok(completion::run(args)),
    };
    match result {
        Ok(answer) => printer.answer(&answer),
        Err(error) => printer.failure(&error),
    }
}

/// A verb that speaks to a cluster, with the deadline of `--timeout`.
async fn within(global: &args::Global, verb: impl Future<Output = Result<Answer, CliError>>) -> Result<Answer, CliError> {
    match tokio::time::timeout(global.timeout, verb).await {
        Ok(result) => result,
        Err(_) => Err(CliError::timed_out(global.timeout)),
    }
}

/// Ends when the process is told to stop.
async fn interrupted() -> Exit {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => Exit::Interrupted,
        _ = terminate.recv() => Exit::Terminated,
    }
}
