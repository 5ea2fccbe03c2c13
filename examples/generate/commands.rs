// SPDX-License-Identifier: Apache-2.0
//! A page with every verb of vdoctl: what it does, its flags, examples, and the exit codes.

use super::docs::{Failure, cell};
use clap::{Arg, Command};
use std::fmt::Write as _;
use vdoctl::{Exit, args};

/// The path of the page, with its content.
pub(crate) fn file() -> Result<(String, String), Failure> {
    let mut command = args::command();
    command.build();
    let mut text = String::from(
        "# vdoctl: every verb\n\n\
         Generated from crates/vdoctl/src/args by `make generate`. Do not edit. `vdoctl VERB --help` prints the same text. [cli.md](../cli.md) describes \
         how the verbs work together, their exit codes and their output for programs.\n\n\
         If a table names an environment variable for a flag, you can set the variable instead of the flag. If both are set, vdoctl uses the \
         flag.\n\n",
    );
    list(&command, &mut text)?;
    text.push_str("\n## Global options\n\nEvery verb accepts these options.\n\n");
    flags(&args::options(), &mut text)?;
    text.push_str("\n## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for exit in Exit::ALL {
        writeln!(text, "| {} | {} |", *exit as u8, cell(exit.meaning()))?;
    }
    verbs(&command, "", &mut text)?;
    Ok(("docs/reference/vdoctl.md".to_owned(), text))
}

/// Verbs that people type; clap's own `help` is not one of them.
fn typed(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|verb| verb.get_name() != "help" && !verb.is_hide_set())
}

/// A row for each verb that is typed, with what it does.
fn list(command: &Command, text: &mut String) -> Result<(), Failure> {
    text.push_str("| verb | purpose |\n|---|---|\n");
    rows(command, "", text)
}

fn rows(command: &Command, path: &str, text: &mut String) -> Result<(), Failure> {
    for verb in typed(command) {
        let path = format!("{path} {}", verb.get_name()).trim_start().to_owned();
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(text, "| [`vdoctl {path}`](#vdoctl-{}) | {} |", path.replace(' ', "-"), cell(&about))?;
        rows(verb, &path, text)?;
    }
    Ok(())
}

fn verbs(command: &Command, path: &str, text: &mut String) -> Result<(), Failure> {
    for verb in typed(command) {
        let path = format!("{path} {}", verb.get_name()).trim_start().to_owned();
        write!(text, "\n## vdoctl {path}\n\n")?;
        let about = verb.get_long_about().or_else(|| verb.get_about()).map(ToString::to_string);
        writeln!(text, "{}", prose(&about.unwrap_or_default()))?;
        if typed(verb).next().is_some() {
            let names: Vec<String> = typed(verb).map(|one| format!("`{}`", one.get_name())).collect();
            writeln!(text, "\n`vdoctl {path}` has these subcommands: {}.", names.join(", "))?;
        } else {
            let usage = verb.clone().render_usage().to_string();
            let usage: Vec<&str> = usage.trim_start_matches("Usage:").lines().map(str::trim).collect();
            write!(text, "\n```text\n{}\n```\n", usage.join("\n"))?;
        }
        if verb.get_arguments().any(shown) {
            text.push('\n');
            flags(verb, text)?;
        }
        let examples = args::examples(&path);
        if !examples.is_empty() {
            write!(text, "\n```text\n{}\n```\n", examples.join("\n"))?;
        }
        verbs(verb, &path, text)?;
    }
    Ok(())
}

/// Global options are listed once; they are hidden in the help of a verb.
fn shown(arg: &Arg) -> bool {
    !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version")
}

fn flags(command: &Command, text: &mut String) -> Result<(), Failure> {
    text.push_str("| flag | environment | default | meaning |\n|---|---|---|---|\n");
    for arg in command.get_arguments().filter(|arg| shown(arg)) {
        let values: Vec<&str> = arg
            .get_value_names()
            .into_iter()
            .flatten()
            .map(clap::builder::Str::as_str)
            .collect();
        let takes = arg.get_action().takes_values();
        let value = if takes { values.join(" ") } else { String::new() };
        let name = match (arg.get_short(), arg.get_long()) {
            (Some(short), Some(long)) => format!("-{short}, --{long} {value}"),
            (None, Some(long)) => format!("--{long} {value}"),
            (Some(short), None) => format!("-{short} {value}"),
            (None, None) => value,
        };
        let variable = arg
            .get_env()
            .map(|variable| format!("`{}`", variable.to_string_lossy()))
            .unwrap_or_default();
        let defaults: Vec<String> = arg
            .get_default_values()
            .iter()
            .map(|value| value.to_string_lossy().into_owned())
            .collect();
        let default = if takes && !defaults.is_empty() {
            format!("`{}`", defaults.join(" "))
        } else {
            String::new()
        };
        let meaning = arg
            .get_long_help()
            .or_else(|| arg.get_help())
            .map(ToString::to_string)
            .unwrap_or_default();
        let mut meaning = meaning.split_whitespace().collect::<Vec<_>>().join(" ");
        let choices: Vec<String> = arg
            .get_possible_values()
            .iter()
            .filter(|one| !one.is_hide_set())
            .map(|one| one.get_name().to_owned())
            .collect();
        if takes && !arg.is_hide_possible_values_set() && !choices.is_empty() {
            write!(meaning, ". Allowed values: {}", choices.join(", "))?;
        }
        writeln!(text, "| `{}` | {variable} | {default} | {} |", name.trim(), cell(&meaning))?;
    }
    Ok(())
}

/// Paragraphs as they are, each on one line.
fn prose(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    let whole = paragraphs.map(|part| if part.ends_with('.') { part } else { part + "." });
    escape(&whole.collect::<Vec<_>>().join("\n\n"))
}

/// Angle brackets are not tags.
fn escape(text: &str) -> String {
    text.replace('<', "\\<")
}
