// SPDX-License-Identifier: Apache-2.0
//! Adds the cluster's flags (`--context`, `-n`, …) to the commands in messages, and keeps each command on one line for pasting.

use super::args::{self, ClusterFlag};
use clap::error::ErrorKind;
use std::ops::Range;

/// The programs whose commands are recognised.
const PROGRAMS: [&str; 3] = ["vdoctl", "kubectl", "helm"];
/// Verbs that ask no cluster.
const OFFLINE: [&str; 4] = ["explain", "completion", "options", "chart"];

/// A blank at which no line is broken.
pub(super) const NO_BREAK: char = '\u{a0}';

/// The flags of a command line that choose the cluster.
#[derive(Debug, Clone, Default)]
pub(super) struct ClusterFlags(pub Vec<ClusterFlag>);

impl ClusterFlags {
    /// The text, with these flags in each command that lacks them.
    pub(super) fn added_to(&self, text: &str) -> String {
        if self.0.is_empty() {
            return text.to_owned();
        }
        let line = |line: &str| {
            let mut line = line.to_owned();
            for span in spans(&line).into_iter().rev() {
                let programs = line[span.clone()].split(" | ").map(|program| self.added_to_program(program));
                let command = programs.collect::<Vec<_>>().join(" | ");
                line.replace_range(span, &command);
            }
            line
        };
        text.split_inclusive('\n').map(line).collect()
    }

    /// One program of a pipe.
    fn added_to_program(&self, command: &str) -> String {
        let words: Vec<&str> = command.split([' ', NO_BREAK]).collect();
        let [program, verb, ..] = words[..] else {
            return command.to_owned();
        };
        if program == "vdoctl" && OFFLINE.contains(&verb) {
            return command.to_owned();
        }
        let has = |flag: &str| {
            let is_long = |word: &str| word.strip_prefix("--").and_then(|word| word.split('=').next()) == Some(flag);
            words.iter().any(|word| is_long(word) || (*word == "-n" && flag == "namespace"))
        };
        let flag = |flag: &ClusterFlag| {
            let name = match program {
                "vdoctl" => flag.vdoctl,
                "kubectl" => flag.kubectl,
                "helm" => flag.helm,
                _ => return None,
            };
            (!name.is_empty() && !has(name)).then(|| format!(" --{name} {}", flag.value))
        };
        let flags: String = self.0.iter().filter_map(flag).collect();
        format!("{program}{flags}{}", &command[program.len()..])
    }
}

/// A line in which no command has a blank that breaks it; what is in backquotes counts as a command.
pub(super) fn kept(line: &str) -> String {
    let commands: Vec<Range<usize>> = quoted(line).chain(spans(line)).collect();
    let letter = |(at, letter)| match letter == ' ' && commands.iter().any(|span| span.contains(&at)) {
        true => NO_BREAK,
        false => letter,
    };
    line.char_indices().map(letter).collect()
}

/// What is in backquotes. A single backquote, as others may write it, changes nothing.
pub(super) fn quoted(line: &str) -> impl Iterator<Item = Range<usize>> {
    let quotes: Vec<usize> = line.match_indices('`').map(|(at, _)| at).collect();
    let pairs = quotes.chunks_exact(2).map(|pair| pair[0] + 1..pair[1]);
    pairs.collect::<Vec<_>>().into_iter()
}

/// Where the commands of a line are: in backquotes or brackets, or from the beginning of a line, of a column or of what follows a colon.
fn spans(line: &str) -> Vec<Range<usize>> {
    let (text, places) = seen(line);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(begin) = PROGRAMS.iter().filter_map(|program| named(&text, from, program)).min() {
        let end = end_of(&text, begin).filter(|end| is_command(&text[begin..*end]));
        found.extend(end.map(|end| places[begin]..places[end - 1] + 1));
        from = end.unwrap_or(begin + 1);
    }
    found
}

/// Where the name of a program begins, from here on.
fn named(text: &str, from: usize, program: &str) -> Option<usize> {
    let mut all = text[from..].match_indices(program).map(|(at, _)| from + at);
    all.find(|at| text[at + program.len()..].starts_with(' '))
}

/// Where a command ends that begins here. `None` within a sentence.
fn end_of(text: &str, begin: usize) -> Option<usize> {
    let (before, rest) = text.split_at(begin);
    let until = |sign: &str| rest.find(sign).map(|length| begin + length);
    match before.chars().next_back() {
        Some('`') => until("`"),
        Some('(') => until(")"),
        _ => {
            let is_mark = before.trim().chars().count() <= 1;
            let begins = is_mark || [": ", "; ", "  "].iter().any(|sign| before.ends_with(sign));
            let last = text.trim_end().trim_end_matches(['.', ';', ',']).len();
            let ends = ["  ", ". ", ", ", "; "].into_iter().filter_map(until);
            begins.then_some(ends.fold(last, usize::min))
        }
    }
}

/// Whether this is a command, and not a sentence about one: vdoctl knows its own words.
fn is_command(text: &str) -> bool {
    let first = text.split(" | ").next().unwrap_or_default();
    let mut words = first.split(' ');
    match (words.next(), words.next()) {
        (Some("vdoctl"), Some(_)) => {
            let parsed = args::command().try_get_matches_from(first.split(' '));
            let unknown = [ErrorKind::UnknownArgument, ErrorKind::InvalidSubcommand, ErrorKind::TooManyValues];
            parsed.map_or_else(|error| !unknown.contains(&error.kind()), |_| true)
        }
        (Some(_), Some(verb)) => verb.starts_with(|first: char| first.is_ascii_lowercase() || first == '-'),
        _ => false,
    }
}

/// The line without its styles and with ordinary blanks, and for each byte of it its place in the line.
fn seen(line: &str) -> (String, Vec<usize>) {
    let (mut text, mut places) = (String::new(), Vec::new());
    let mut letters = line.char_indices();
    while let Some((at, letter)) = letters.next() {
        if letter == '\x1b' {
            letters.find(|(_, letter)| *letter == 'm');
            continue;
        }
        let letter = if letter == NO_BREAK { ' ' } else { letter };
        text.push(letter);
        places.extend((0..letter.len_utf8()).map(|byte| at + byte));
    }
    (text, places)
}

#[cfg(test)]
mod tests {
    use super::super::style::{bad, faint, head};
    use super::*;
    use clap::FromArgMatches as _;

    /// Those of this command line.
    fn flags(words: &[&str]) -> ClusterFlags {
        let words = ["vdoctl", "options"].iter().chain(words);
        let matches = args::command().try_get_matches_from(words).expect("a command line");
        let cli = args::Cli::from_arg_matches(&matches).expect("arguments");
        ClusterFlags(cli.global.typed(&matches))
    }

    #[test]
    fn command_is_no_sentence_about_one() {
        for (line, expected) in [
            ("vdoctl status", &["vdoctl status"][..]),
            ("      kubectl get pods -n csi\n", &["kubectl get pods -n csi"]),
            ("Continue with: vdoctl deploy --vcenter vc1", &["vdoctl deploy --vcenter vc1"]),
            ("Run `vdoctl plan`, then `vdoctl approve 1`.", &["vdoctl plan", "vdoctl approve 1"]),
            ("is wrong (vdoctl explain NotOurs)", &["vdoctl explain NotOurs"]),
            ("vdoctl status     shows the state", &["vdoctl status"]),
            (
                "Operator  `kubectl logs x` or -  kubectl get a,b",
                &["kubectl logs x", "kubectl get a,b"],
            ),
            (
                "vdoctl rights --missing | kubectl apply -f -",
                &["vdoctl rights --missing | kubectl apply -f -"],
            ),
            ("✗ vdoctl --context a status", &["vdoctl --context a status"]),
            (
                "Make one: vdoctl users create. Or then: vdoctl resume, and vdoctl plan.",
                &["vdoctl users create", "vdoctl resume"],
            ),
            (
                "Look: kubectl get a; kubectl get b; vdoctl status shows it",
                &["kubectl get a", "kubectl get b"],
            ),
            ("Back to it: vdoctl rollback csi REVISION", &["vdoctl rollback csi REVISION"]),
            ("vdoctl delete continues when it runs again.", &[]),
            ("Interrupting is safe: vdoctl delete continues, as always", &[]),
            ("with vdoctl status you see it", &[]),
            ("vdoctl searches only PATH", &[]),
            ("error: vdoctl has no verb status", &[]),
            ("vdoctl", &[]),
        ] {
            let found: Vec<&str> = spans(line).into_iter().map(|span| &line[span]).collect();
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn command_gets_the_flags_of_the_cluster_that_it_lacks() {
        let all = flags(&[
            "--kubeconfig",
            "/k",
            "--context",
            "a b",
            "--kube-cluster",
            "c",
            "--token-file",
            "t",
            "-n",
            "n",
            "--as",
            "me",
        ]);
        let few = flags(&["--context", "a", "-n", "n"]);
        for (given, line, expected) in [
            (
                &all,
                "vdoctl status",
                "vdoctl --kubeconfig /k --context 'a b' --kube-cluster c --token-file t --namespace n --as me status",
            ),
            (
                &all,
                "kubectl get pods",
                "kubectl --kubeconfig /k --context 'a b' --cluster c --as me get pods",
            ),
            (
                &all,
                "helm list",
                "helm --kubeconfig /k --kube-context 'a b' --kube-as-user me list",
            ),
            (
                &few,
                "add: `vdoctl rights --missing | kubectl apply -f -`\nnow\n",
                "add: `vdoctl --context a --namespace n rights --missing | kubectl --context a apply -f -`\nnow\n",
            ),
            (&few, "vdoctl delete -n x --context=y", "vdoctl delete -n x --context=y"),
            (&few, "(vdoctl explain NotOurs)", "(vdoctl explain NotOurs)"),
            (&few, "vdoctl is older than the operator", "vdoctl is older than the operator"),
            (&few, "grüße: vdoctl\u{a0}plan", "grüße: vdoctl --context a --namespace n\u{a0}plan"),
            (&flags(&[]), "vdoctl status", "vdoctl status"),
        ] {
            assert_eq!(given.added_to(line), expected);
        }
        let styled = format!("{} {}\n", bad("✗"), head("vdoctl plan"));
        let expected = format!("{} {}\n", bad("✗"), head("vdoctl --context a --namespace n plan"));
        assert_eq!(few.added_to(&styled), expected);
    }

    #[test]
    fn command_has_no_blank_that_breaks_it() {
        let shown = |line: &str| kept(line).replace(NO_BREAK, "_");
        for (line, expected) in [
            ("Continue with: vdoctl deploy --no-wait", "Continue with: vdoctl_deploy_--no-wait"),
            ("ab `b c` d`e f g", "ab `b_c` d`e f g"),
            ("Run `vdoctl plan` now", "Run `vdoctl_plan` now"),
        ] {
            assert_eq!(shown(line), expected);
        }
        let styled = format!("why {}", faint("(vdoctl explain NotOurs)"));
        assert_eq!(shown(&styled), format!("why {}", faint("(vdoctl_explain_NotOurs)")));
    }
}
