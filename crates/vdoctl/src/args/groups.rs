// SPDX-License-Identifier: Apache-2.0
//! The groups of verbs and their headings in `vdoctl --help`.

use clap::Command;
use std::fmt::Write as _;

/// What people do, with the verbs for it.
pub(in super::super) const GROUPS: [(&str, &[&str]); 7] = [
    ("Start", &["deploy", "adopt", "configure", "secrets", "rights", "delete"]),
    (
        "Operate",
        &[
            "plan",
            "diff",
            "approve",
            "upgrade",
            "history",
            "rollback",
            "pause",
            "resume",
            "reconcile",
            "wait",
            "release",
        ],
    ),
    (
        "Look",
        &[
            "status",
            "doctor",
            "events",
            "logs",
            "selftest",
            "explain",
            "render",
            "report",
            "support-bundle",
        ],
    ),
    ("Accounts in vCenter", &["users"]),
    ("Sites without internet", &["mirror"]),
    ("Make drivers and matrices", &["matrix", "chart"]),
    ("Other", &["version", "completion", "options"]),
];

/// The help of the whole command line.
pub(super) fn template(command: &Command) -> String {
    let width = GROUPS
        .iter()
        .flat_map(|(_, verbs)| *verbs)
        .map(|verb| verb.len())
        .max()
        .unwrap_or_default();
    let mut text = String::new();
    for (group, verbs) in GROUPS {
        let _ = writeln!(text, "{group}:");
        for verb in verbs {
            let about = command.find_subcommand(verb).and_then(Command::get_about).map(ToString::to_string);
            let _ = writeln!(text, "  {verb:width$}  {}", about.unwrap_or_default());
        }
        text.push('\n');
    }
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{{after-help}}\n",
        text.trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn groups_have_every_verb_once_and_fit_a_terminal() {
        let command = super::super::command();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let known: BTreeSet<&str> = shown.map(Command::get_name).filter(|name| *name != "help").collect();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), known);
        assert_eq!(listed.len(), known.len(), "a verb is in two groups");
        for line in template(&command).lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
