//! The test bed for people: builds its parts, and keeps one running for a demonstration.
#![expect(clippy::print_stdout, reason = "answering on standard output is this program's job")]

use std::path::PathBuf;

use anyhow::Result;
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
    /// Builds all programs, where they are missing
    Build,
    /// Starts a test bed in the background, or finds the one that runs
    Up(demo::Options),
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
}

#[derive(Debug, clap::Args)]
struct At {
    /// The test bed's folder
    #[arg(long, default_value = ".demo")]
    dir: PathBuf,
}

#[tokio::main]
async fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Build => {
            let binaries = tokio::task::spawn_blocking(Binaries::ensure_all).await??;
            for part in Part::ALL {
                println!("{}", binaries.path(part).display());
            }
        }
        Command::Up(options) => println!("{}", demo::up(&options).await?),
        Command::Down(at) => println!("{}", demo::down(&at.dir).await?),
        Command::Status(at) => println!("{}", demo::status(&at.dir)?),
        Command::Token { at, namespace, name } => println!("{}", demo::token(&at.dir, &namespace, &name).await?.display()),
        Command::Run(options) => demo::run(&options).await?,
    }
    Ok(())
}
