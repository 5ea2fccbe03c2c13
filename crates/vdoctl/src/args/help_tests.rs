// SPDX-License-Identifier: Apache-2.0
//! Tests of the help and the flags of all verbs: headings, references between similar verbs, environment variables, names with commas.

use std::collections::BTreeSet;

fn every(command: &clap::Command, path: &str, look: &mut impl FnMut(&str, &clap::Command)) {
    look(path, command);
    for verb in command.get_subcommands() {
        every(verb, format!("{path} {}", verb.get_name()).trim_start(), look);
    }
}

/// What says how an answer is written is no property of a vCenter or an account.
#[test]
fn help_headings_fit_their_flags() {
    every(&super::command(), "", &mut |path, command| {
        for arg in command.get_arguments() {
            let long = arg.get_long().unwrap_or_default();
            let of_site = matches!(arg.get_help_heading(), Some("vCenter" | "Account"));
            assert!(
                !(of_site && ["output", "dry-run", "yes", "wait", "emit", "gitops"].contains(&long)),
                "{path}: --{long} is under {:?}",
                arg.get_help_heading()
            );
        }
    });
    let deploy = super::command().find_subcommand("deploy").cloned().expect("deploy");
    let mut headings: Vec<(&str, Vec<&str>)> = Vec::new();
    for arg in deploy.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let (heading, long) = (arg.get_help_heading().unwrap_or("Options"), arg.get_long().unwrap_or_default());
        match headings.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, flags)) => flags.push(long),
            None => headings.push((heading, vec![long])),
        }
    }
    let text: Vec<String> = headings
        .iter()
        .map(|(heading, flags)| format!("{heading}: {}", flags.join(" ")))
        .collect();
    let expected = [
        "vCenter: vcenter datacenter thumbprint ca-file insecure",
        "Account: user password-file credentials-secret credentials-from-openshift create-account admin domain",
        "Drivers: values update-policy storage-policy",
        "Images: image image-registry cpi-image csi-image",
        "Matrix: matrix matrix-keys matrix-credentials",
        "Writing: dry-run gitops sops output no-wait yes ignore-checks",
        "Operator: host-network toleration allow-downgrade",
    ];
    assert_eq!(text, expected);
}

/// Verbs that a reader takes for each other say when each is the right one, and name the others.
#[test]
fn help_of_verbs_that_overlap_says_when_to_use_them() {
    let overlapping = [
        ("plan", &["diff", "render"][..]),
        ("diff", &["plan"]),
        ("render", &["plan", "diff"]),
        ("upgrade plan", &["matrix resolve"]),
        ("matrix resolve", &["upgrade plan"]),
        ("approve", &["reconcile", "resume"]),
        ("reconcile", &["pause", "approves"]),
        ("pause", &["spec.approval"]),
        ("resume", &["approve"]),
    ];
    let mut seen = 0;
    every(&super::command(), "", &mut |path, command| {
        for (_, others) in overlapping.iter().filter(|(verb, _)| *verb == path) {
            let help = command.get_long_about().map(ToString::to_string).unwrap_or_default();
            let line = help.lines().find(|line| line.starts_with("Use this command ")).unwrap_or_default();
            assert!(others.iter().all(|other| line.contains(other)), "vdoctl {path}: {help}");
            seen += 1;
        }
    });
    assert_eq!(seen, overlapping.len());
}

/// A name that people choose may have a comma in it. Only words of a grammar of ours are separated by commas; all else is repeated.
#[test]
fn cli_args_free_names_are_never_split() {
    const GRAMMAR: [&str; 12] = [
        "[DRIVER=]NAME",
        "VERSION",
        "NAME[=VERSION]",
        "[NAME=]VERSION",
        "NAME=VERSION",
        "DRIVER=VERSION",
        "DRIVER[=VERSIONS]",
        "LIST",
        "CHANGE",
        "OS/ARCH",
        "PREFIX=PREFIX",
        "HOST",
    ];
    fn look(command: &clap::Command, seen: &mut usize) {
        for arg in command.get_arguments().filter(|arg| arg.get_value_delimiter() == Some(',')) {
            let flag = arg.get_long().unwrap_or_default();
            let name = arg
                .get_value_names()
                .and_then(|names| names.first())
                .map_or("", |name| name.as_str());
            assert!(
                GRAMMAR.contains(&name) || (flag, name) == ("feature", "NAME"),
                "{} --{flag} {name} is split at commas",
                command.get_name()
            );
            *seen += 1;
        }
        command.get_subcommands().for_each(|command| look(command, seen));
    }
    let mut seen = 0;
    look(&super::command(), &mut seen);
    assert!(seen > 5, "{seen}");
    let name = "FRA1 - Rhein, Hessen";
    for line in [
        &[
            "deploy",
            "--vcenter",
            "h",
            "--user",
            "u",
            "--datacenter",
            name,
            "--datacenter",
            "DC2",
        ][..],
        &["configure", "connection", "vc1", "--datacenter", name, "--datacenter", "DC2"],
        &[
            "doctor",
            "--pre",
            "--vcenter",
            "h",
            "--user",
            "u",
            "--datacenter",
            name,
            "--datacenter",
            "DC2",
        ],
        &[
            "users",
            "create",
            "--vcenter",
            "h",
            "--user",
            "u",
            "--datastore",
            name,
            "--datastore",
            "DC2",
        ],
        &[
            "users",
            "create",
            "--vcenter",
            "h",
            "--user",
            "u",
            "--storage-policy",
            name,
            "--storage-policy",
            "DC2",
        ],
    ] {
        let words = ["vdoctl"].iter().chain(line);
        let mut matches = super::command()
            .try_get_matches_from(words)
            .unwrap_or_else(|error| panic!("{line:?}: {error}"));
        while let Some((_, below)) = matches.remove_subcommand() {
            matches = below;
        }
        let id = line[line.len() - 2].trim_start_matches("--").replace('-', "_");
        let found: Vec<String> = matches.remove_many(&id).map(Iterator::collect).unwrap_or_default();
        assert_eq!(found, [name, "DC2"], "{line:?}");
    }
}

/// Which flags can be set in the environment. One more needs a reason in decision 125.
#[test]
fn cli_args_environment_has_one_meaning_for_each_name() {
    fn look<'a>(command: &'a clap::Command, found: &mut BTreeSet<(&'a str, &'a str)>) {
        for arg in command.get_arguments() {
            let name = arg.get_env().map(|name| name.to_str().expect("UTF-8"));
            found.extend(name.map(|name| (name, arg.get_long().unwrap_or_default())));
        }
        command.get_subcommands().for_each(|verb| look(verb, found));
    }
    let command = super::command();
    let mut found = BTreeSet::new();
    look(&command, &mut found);
    let expected = [
        ("VDO_ACCOUNT_PASSWORD_FILE", "account-password-file"),
        ("VDO_AS", "as"),
        ("VDO_AS_GROUP", "as-group"),
        ("VDO_COLOR", "color"),
        ("VDO_CONTEXT", "context"),
        ("VDO_KUBECONFIG", "kubeconfig"),
        ("VDO_KUBE_CLUSTER", "kube-cluster"),
        ("VDO_KUBE_USER", "kube-user"),
        ("VDO_MATRIX", "matrix"),
        ("VDO_MATRIX_CREDENTIALS", "matrix-credentials"),
        ("VDO_MATRIX_KEYS", "keys"),
        ("VDO_MATRIX_KEYS", "matrix-keys"),
        ("VDO_NAMESPACE", "namespace"),
        ("VDO_OUTPUT", "output"),
        ("VDO_PASSWORD_FILE", "password-file"),
        ("VDO_REGISTRY_CONFIG", "registry-config"),
        ("VDO_REQUEST_TIMEOUT", "request-timeout"),
        ("VDO_SIGNING_KEY_FILE", "key-file"),
        ("VDO_TIMEOUT", "timeout"),
        ("VDO_TOKEN_FILE", "token-file"),
    ];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
}

/// Every verb that decides takes the same sources, keys and credentials.
#[test]
fn cli_args_verbs_with_a_matrix_have_its_keys_and_credentials() {
    fn look(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        let has = |name: &str| command.get_arguments().any(|arg| arg.get_long() == Some(name));
        let path = format!("{path} {}", command.get_name());
        if has("matrix") {
            assert!(has("matrix-keys") && has("matrix-credentials"), "{path}");
            found.push(path.trim_start_matches(" vdoctl ").to_owned());
        }
        command.get_subcommands().for_each(|command| look(command, &path, found));
    }
    let mut found = Vec::new();
    look(&super::command(), "", &mut found);
    let deciding = "deploy, adopt, plan, upgrade plan, upgrade apply, configure drivers, diff, render, release, rights, matrix resolve, matrix explain, matrix why-not, matrix list, matrix show, matrix init, mirror pull, doctor";
    assert_eq!(found.join(", "), deciding);
}

#[test]
fn cli_args_definition_is_consistent() {
    super::command().debug_assert();
}
