// SPDX-License-Identifier: Apache-2.0
//! docs/volumes.md shows the table of causes, row by row.

use crate::sources::root;
use std::fs;
use vdo_core::volume_diagnosis::ABOUT;

#[test]
fn volumes_page_shows_every_cause_with_its_remedy_and_command() {
    let page = fs::read_to_string(root().join("docs/volumes.md")).expect("the page");
    let shown: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| `") && line.matches('|').count() == 5)
        .collect();
    let rows: Vec<String> = ABOUT
        .iter()
        .map(|about| {
            let note = if about.is_fault { "" } else { " (note)" };
            let command = match about.command {
                "" => String::new(),
                command => format!("`{command}` "),
            };
            format!("| `{}`{note} | {} | {} | {command}|", about.cause, about.what, about.remedy)
        })
        .collect();
    assert_eq!(shown, rows);
}

/// Every command of a remedy is one of kubectl that reads, or that a person decides about, or a verb of vdoctl.
#[test]
fn volumes_commands_of_causes_are_known() {
    let deciding = ["kubectl annotate storageclass", "kubectl delete volumeattachment"];
    for about in &ABOUT {
        let command = about.command;
        let reads = ["", "kubectl get ", "kubectl describe ", "vdoctl doctor", "vdoctl status"];
        let known = command.is_empty() || reads.iter().skip(1).chain(&deciding).any(|begin| command.starts_with(begin));
        let configures = command.starts_with("vdoctl configure drivers --set storageProvider.") || command == "vdoctl secrets set";
        assert!(known || configures, "{command}");
    }
}
