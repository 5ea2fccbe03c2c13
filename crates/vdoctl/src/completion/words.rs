// SPDX-License-Identifier: Apache-2.0
//! Parses an incomplete command line for completion: decides whether the last word is a verb, a flag or the value of an argument.

use super::Value;
use clap::{Arg, Command};
use std::collections::BTreeMap;

/// A command line up to the word that is completed.
pub(super) struct Asked<'a> {
    /// The commands, from `vdoctl` to the last verb.
    commands: Vec<&'a Command>,
    /// What was given for the arguments, by their names.
    pub given: BTreeMap<String, String>,
    /// What the last word can be.
    pub wanted: Wanted<'a>,
    /// The part of the value that is there.
    pub prefix: String,
}

/// What a word can be.
pub(super) enum Wanted<'a> {
    /// A flag.
    Flags,
    /// A value of this argument; without one a verb at most.
    Values(Option<&'a Arg>),
}

/// Reads the words after `vdoctl`; the last one, perhaps empty, is completed.
pub(super) fn read<'a>(root: &'a Command, line: &[String]) -> Asked<'a> {
    let (last, before) = line.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut commands = vec![root];
    let mut given = BTreeMap::new();
    let mut positions = 0;
    let mut open: Option<&Arg> = None;
    for word in before {
        if let Some(arg) = open.take() {
            given.insert(arg.get_id().to_string(), word.clone());
            continue;
        }
        if let Some((arg, value)) = flag(&commands, word) {
            match value {
                Some(value) => drop(given.insert(arg.get_id().to_string(), value.to_owned())),
                None if arg.get_action().takes_values() => open = Some(arg),
                None => {}
            }
            continue;
        }
        let here = commands.last().copied().unwrap_or(root);
        match here.find_subcommand(word) {
            Some(verb) => {
                commands.push(verb);
                positions = 0;
            }
            None => {
                if let Some(arg) = position(here, positions) {
                    given.insert(arg.get_id().to_string(), word.clone());
                }
                positions += 1;
            }
        }
    }
    let (wanted, prefix) = match (open, flag(&commands, last)) {
        (Some(arg), _) => (Wanted::Values(Some(arg)), last),
        (None, Some((arg, Some(value)))) => (Wanted::Values(Some(arg)), value),
        (None, _) if last.starts_with('-') => (Wanted::Flags, last),
        (None, _) => (Wanted::Values(position(commands.last().copied().unwrap_or(root), positions)), last),
    };
    Asked {
        prefix: prefix.to_owned(),
        wanted,
        commands,
        given,
    }
}

/// The flag that a word is, and its value where the word has it: `--flag=value`, `-fvalue`.
fn flag<'a, 'w>(commands: &[&'a Command], word: &'w str) -> Option<(&'a Arg, Option<&'w str>)> {
    if let Some(rest) = word.strip_prefix("--") {
        let (name, value) = rest.split_once('=').map_or((rest, None), |(name, value)| (name, Some(value)));
        let found = known(commands).find(|arg| arg.get_long() == Some(name))?;
        return Some((found, value));
    }
    let mut letters = word.strip_prefix('-')?.chars();
    let letter = letters.next()?;
    let found = known(commands).find(|arg| arg.get_short() == Some(letter))?;
    let rest = letters.as_str();
    let value = (found.get_action().takes_values() && !rest.is_empty()).then(|| rest.trim_start_matches('='));
    Some((found, value))
}

/// The flags of the last verb, and those that hold for every verb below another.
fn known<'a>(commands: &[&'a Command]) -> impl Iterator<Item = &'a Arg> {
    let last = commands.len().saturating_sub(1);
    let all: Vec<&'a Arg> = commands
        .iter()
        .enumerate()
        .flat_map(|(at, command)| command.get_arguments().filter(move |arg| at == last || arg.is_global_set()))
        .filter(|arg| !arg.is_positional())
        .collect();
    all.into_iter()
}

/// The positional argument at a place; the last one may take several words.
fn position(command: &Command, at: usize) -> Option<&Arg> {
    let all: Vec<&Arg> = command.get_positionals().collect();
    let several =
        |arg: &&Arg| arg.get_num_args().is_some_and(|range| range.max_values() > 1) || matches!(arg.get_action(), clap::ArgAction::Append);
    all.get(at).copied().or_else(|| all.last().copied().filter(several))
}

impl Asked<'_> {
    /// The names of the verbs, without `vdoctl`.
    pub(super) fn path(&self) -> Vec<&str> {
        self.commands.iter().skip(1).map(|command| command.get_name()).collect()
    }

    /// The verbs that can follow, where no argument of the last one is given.
    pub(super) fn verbs(&self) -> Vec<Value> {
        let flag = matches!(&self.wanted, Wanted::Values(Some(arg)) if !arg.is_positional());
        let here = self.commands.last().into_iter().filter(|_| !flag);
        let verbs = here
            .flat_map(|command| command.get_subcommands())
            .filter(|verb| !verb.is_hide_set());
        verbs
            .map(|verb| Value::new(verb.get_name(), verb.get_about().map(ToString::to_string).unwrap_or_default()))
            .collect()
    }

    /// The flags that can follow.
    pub(super) fn flags(&self) -> Vec<Value> {
        let about = |arg: &Arg| arg.get_help().map(ToString::to_string).unwrap_or_default();
        let all = known(&self.commands).filter_map(|arg| Some(Value::new(format!("--{}", arg.get_long()?), about(arg))));
        all.chain([Value::new("--help", "Print help")]).collect()
    }
}
