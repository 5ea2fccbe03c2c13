// SPDX-License-Identifier: Apache-2.0
//! The examples at the end of every help are run: those that only read as they are, those that write as a dry run.

use crate::fixture::INSTALLED;
use crate::page::run;
use anyhow::{Result, ensure};
use std::os::unix::fs::PermissionsExt as _;

/// Verbs that only read.
const READ: [&str; 20] = [
    "status",
    "plan",
    "diff",
    "history",
    "render",
    "doctor",
    "doctor connection",
    "doctor nodes",
    "doctor privileges",
    "doctor topology",
    "doctor volumes",
    "upgrade plan",
    "rights",
    "matrix list",
    "matrix show",
    "matrix resolve",
    "matrix explain",
    "matrix why-not",
    "secrets list",
    "explain",
];

/// What in an example stands for something that only its reader has: files, places, other clusters, a vCenter at its name, an end that does not
/// come by itself.
const OF_THE_READER: [&str; 11] = [
    "./",
    ".yaml",
    ".tar.gz",
    ".txt",
    "oci://",
    "https://",
    "example.com",
    "--watch",
    "--interactive",
    "--pre",
    "vc2",
];

/// What an installation that is new cannot do, with what is said about it.
const NOT_HERE: [(&str, &str); 8] = [
    ("vdoctl history csi 3 -o yaml", "has no revision 3 in its history"),
    (
        "vdoctl configure connection vc1 --fetch-certificate",
        "there is no terminal on which to confirm the certificate",
    ),
    ("vdoctl users rotate", "which is not an account that vdoctl created"),
    ("vdoctl doctor --undo", "name another file with --record FILE"),
    ("vdoctl logs", "no pod of operator exists in cluster"),
    ("vdoctl selftest", "no StorageClass is the default of the cluster"),
    ("vdoctl selftest", "StorageClass vsphere-default does not exist"),
    ("vdoctl adopt", "no other tool runs a vSphere driver"),
];

fn leaves(command: &clap::Command, path: &str, found: &mut Vec<(String, String, bool)>) {
    for verb in command.get_subcommands() {
        let path = format!("{path} {}", verb.get_name()).trim_start().to_owned();
        let tries = verb.get_arguments().any(|arg| arg.get_long() == Some("dry-run"));
        for line in vdoctl::args::examples(&path).iter().filter(|line| line.starts_with("vdoctl ")) {
            let line = line.split(['#', '>', '|']).next().unwrap_or_default();
            found.push((path.clone(), line.trim().to_owned(), tries));
        }
        leaves(verb, &path, found);
    }
}

#[test]
#[ignore = "long"]
fn examples_of_help_run_against_an_installation() -> Result<()> {
    INSTALLED.run(async |bed| {
        let mut all = Vec::new();
        leaves(&vdoctl::args::command(), "", &mut all);
        let (mut done, mut wrong) = (Vec::new(), Vec::new());
        let password = bed.cluster.dir().join("examples.password");
        std::fs::write(&password, bed.vcenter.password())?;
        std::fs::set_permissions(&password, std::fs::Permissions::from_mode(0o600))?;
        let given = format!("export VDO_PASSWORD_FILE={}", shlex::try_quote(&password.display().to_string())?);
        for (verb, line, tries) in all {
            if OF_THE_READER.iter().any(|word| line.contains(word)) || !(tries || READ.contains(&verb.as_str())) {
                continue;
            }
            let dry = if tries && !line.contains("--dry-run") { " --dry-run" } else { "" };
            // Differences are an answer; so is the wait of a person that a question would need.
            let command = format!("{given}\n{line}{dry} || test $? -eq 1");
            let said = |error: &anyhow::Error| {
                let mut known = NOT_HERE.iter().filter(|(begin, _)| line.starts_with(begin));
                known.any(|(_, said)| error.to_string().contains(said))
            };
            match run(bed, &command) {
                Ok(_) => done.push(line),
                Err(error) if said(&error) => done.push(line),
                Err(error) => wrong.push(format!("{error}")),
            }
        }
        println!("{} examples were run", done.len());
        ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
        ensure!(done.len() >= 25, "only {}: {done:?}", done.len());
        // The verbs for accounts ask more than the operator ever does.
        bed.vcenter.forget_calls("vdo").await
    })
}
