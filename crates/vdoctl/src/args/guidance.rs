// SPDX-License-Identifier: Apache-2.0
//! Tests of the help as a guide: headings that fit their flags, and when to use which verb.

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
