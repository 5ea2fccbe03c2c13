// SPDX-License-Identifier: Apache-2.0
//! The test bed for people: builds its parts, and keeps one running for a demonstration.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use vdo_testbed::{Binaries, Part, demo};

/// A real Kubernetes control plane, simulated nodes, a simulated vCenter and the real vSphere cloud provider, on
/// loopback.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Builds programs, where they are missing
    Build {
        /// Only these; default: everything that the tests use
        #[arg(value_parser = Part::ON_DEMAND.map(Part::file_name))]
        programs: Vec<String>,
        /// Only those of the demonstration
        #[arg(long, conflicts_with = "programs")]
        demo: bool,
    },
    /// Starts a test bed in the background, or finds the one that runs
    Up(demo::Options),
    /// Starts a test bed, or finds the one that runs, and shows the operator installing the drivers in it
    Demo(demo::Options),
    /// Ends the test bed
    Down(At),
    /// Says what runs
    Status(At),
    /// Writes the kubeconfig of a service account and prints its path
    Token {
        #[command(flatten)]
        at: At,
        /// The account's namespace
        #[arg(long)]
        namespace: String,
        /// The account's name
        #[arg(long)]
        name: String,
    },
    /// Runs a test bed in the foreground until it is interrupted
    Run(demo::Options),
    /// Becomes the container that the file describes; the node agent calls it
    #[command(hide = true)]
    Enter {
        /// The file; with --try a folder that is entered, and left at once
        path: PathBuf,
        /// Only sees whether this machine permits it
        #[arg(long = "try")]
        trial: bool,
    },
    /// Becomes a program that finds the token where pods have that of their service account
    #[command(hide = true)]
    WithToken {
        /// The token's file
        token: PathBuf,
        /// The program and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        argv: Vec<OsString>,
    },
}

#[derive(Debug, clap::Args)]
struct At {
    /// The test bed's folder
    #[arg(long, default_value = ".demo")]
    dir: PathBuf,
}

fn main() -> ExitCode {
    let answer = match Cli::parse().command {
        // Before there are other threads.
        Command::Enter { path, trial: true } => vdo_testbed::try_out(&path).map(|()| String::new()),
        Command::Enter { path, trial: false } => vdo_testbed::enter(&path).map(|never| match never {}),
        Command::WithToken { token, argv } => vdo_testbed::with_token(&token, &argv).map(|never| match never {}),
        command => tokio::runtime::Runtime::new()
            .map_err(Into::into)
            .and_then(|runtime| runtime.block_on(answer(command))),
    };
    match answer {
        Ok(answer) => {
            // A reader who has seen enough, such as `head`, is not a failure.
            let _ = write!(std::io::stdout(), "{answer}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn answer(command: Command) -> Result<String> {
    let answer = match command {
        Command::Build { demo: true, .. } => {
            demo::build().await?;
            return Ok(String::new());
        }
        Command::Build { programs, demo: false } => {
            let asked = Part::ON_DEMAND
                .into_iter()
                .filter(|part| programs.iter().any(|name| name == part.file_name()));
            let whole = programs.is_empty();
            let parts: Vec<Part> = if whole { Part::ALL.to_vec() } else { asked.collect() };
            let built = parts.clone();
            let build = move || match whole {
                true => Binaries::ensure_for_tests(),
                false => Binaries::ensure(&built),
            };
            let binaries = tokio::task::spawn_blocking(build).await??;
            let paths: Vec<String> = parts.iter().map(|part| binaries.path(*part).display().to_string()).collect();
            paths.join("\n")
        }
        Command::Up(options) => demo::up(&options).await?,
        Command::Demo(options) => {
            demo::show(&options).await?;
            return Ok(String::new());
        }
        Command::Down(at) => demo::down(&at.dir).await?,
        Command::Status(at) => demo::status(&at.dir)?,
        Command::Token { at, namespace, name } => demo::token(&at.dir, &namespace, &name).await?.display().to_string(),
        Command::Run(options) => {
            demo::run(&options).await?;
            String::from("the test bed has ended")
        }
        Command::Enter { .. } | Command::WithToken { .. } => bail!("a container is entered before there are other threads"),
    };
    Ok(format!("{answer}\n"))
}
