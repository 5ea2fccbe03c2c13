use super::{Answer, args};

pub use clap_complete::Shell;

/// The completion script.
pub(super) fn run(args: &args::Completion) -> Answer {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "vdoctl", &mut script);
    Answer::bytes(script)
}
