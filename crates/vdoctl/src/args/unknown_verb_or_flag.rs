// SPDX-License-Identifier: Apache-2.0
//! Suggests the right verb or flag after an unknown one: names from other tools lead to verbs of vdoctl, flags of kubectl to its flags.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What other tools call it, and what it is here.
const WORDS: [(&[&str], &str); 12] = [
    (&["install", "apply", "create", "init", "up", "bootstrap"], "vdoctl deploy"),
    (&["uninstall", "remove", "destroy", "down", "purge"], "vdoctl delete"),
    (&["check", "validate", "verify", "test-connection"], "vdoctl doctor"),
    (&["preflight", "pre"], "vdoctl doctor --pre"),
    (&["get", "list", "ls", "show", "describe", "info"], "vdoctl status"),
    (&["set", "edit", "config", "connect", "connection"], "vdoctl configure"),
    (&["undo", "revert"], "vdoctl rollback"),
    (&["template", "manifests"], "vdoctl render"),
    (&["sync", "refresh"], "vdoctl reconcile"),
    (&["test", "conformance"], "vdoctl selftest"),
    (&["log"], "vdoctl logs"),
    (&["event"], "vdoctl events"),
];

/// Flags of kubectl that are called otherwise here, because a verb has one of that name, or a secret would be in the command line.
const FLAGS: [(&str, &str); 3] = [
    ("--cluster", "--kube-cluster NAME"),
    ("--user", "--kube-user NAME for a user of the kubeconfig"),
    (
        "--token",
        "--token-file FILE (--token-file - reads stdin), because other users can read the arguments of a command",
    ),
];

/// The error about a verb or a flag that does not exist, with the one that another tool's word stands for.
pub(in super::super) fn with_tip(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) {
        let flag = typed.split('=').next().unwrap_or_default();
        let known = FLAGS.iter().find(|(name, _)| *name == flag);
        if let Some((_, ours)) = known.filter(|_| error.kind() == ErrorKind::UnknownArgument) {
            let tip = StyledStr::from(format!("use instead: {ours}"));
            error.remove(ContextKind::SuggestedArg);
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        }
        return error;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let known = WORDS.iter().find(|(words, _)| words.contains(&word.as_str()));
    if let Some((_, verb)) = known.filter(|_| error.kind() == ErrorKind::InvalidSubcommand) {
        let tip = StyledStr::from(format!("use instead: {verb}"));
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn words_of_other_tools_lead_to_verbs_that_exist() {
        let known: BTreeSet<String> = super::super::command()
            .get_subcommands()
            .map(|verb| verb.get_name().to_owned())
            .collect();
        for (words, leads_to) in WORDS {
            if let Some(verb) = leads_to.strip_prefix("vdoctl ") {
                assert!(known.contains(verb.split(' ').next().unwrap_or_default()), "{leads_to}");
            }
            for word in words {
                assert!(!known.contains(*word), "{word} is a verb");
                let error = super::super::command().try_get_matches_from(["vdoctl", word]).map_err(with_tip);
                let said = error.expect_err("there is no such verb").to_string();
                assert!(said.contains(leads_to), "{said}");
            }
        }
        let other = super::super::command().try_get_matches_from(["vdoctl", "statsu"]).map_err(with_tip);
        let said = other.expect_err("there is no such verb").to_string();
        assert!(said.contains("'status'"), "{said}");
        let nested = super::super::command()
            .try_get_matches_from(["vdoctl", "matrix", "shwo"])
            .map_err(with_tip);
        assert!(nested.expect_err("there is no such verb").to_string().contains("'show'"));
    }

    #[test]
    fn flags_of_kubectl_lead_to_flags_that_exist() {
        let options = super::super::options();
        for (flag, ours) in FLAGS {
            let name = ours.trim_start_matches("--").split(' ').next().unwrap_or_default();
            assert!(options.get_arguments().any(|arg| arg.get_long() == Some(name)), "{ours}");
            for line in [&["vdoctl", "status", flag, "x"][..], &["vdoctl", "plan", &format!("{flag}=x")]] {
                let error = super::super::command().try_get_matches_from(line).map_err(with_tip);
                let said = error.expect_err("there is no such flag").to_string();
                assert!(said.contains(ours) && said.matches("tip:").count() == 1, "{said}");
            }
        }
    }
}
