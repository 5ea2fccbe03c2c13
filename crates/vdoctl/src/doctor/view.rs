// SPDX-License-Identifier: Apache-2.0
//! Prints the results of `vdoctl doctor`, `doctor nodes`, `doctor connection` and `doctor privileges` for people.

use super::super::ages::counted_from;
use super::super::context::now;
use super::super::style::{bad, faint, good, head, table, warn};
use super::super::views::doctor::{DoctorView, OfConnection};
use super::super::wrap::unbroken;
use super::check::{Check, Finding, Mark, Subject};
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::Reason;
use vdo_api::types::name_list;
use vdo_vsphere::vsphere::AdviceLine;
use vdo_vsphere::vsphere::{HeldPrivilege, MissingPrivilege, NodeReport, Privileges};

/// All checks, under what they are about; `wide` shows everything, however long a line becomes, here and below.
pub(super) fn checks(found: &DoctorView, wide: bool) -> String {
    let names = found
        .subjects
        .iter()
        .flat_map(|subject| &subject.checks)
        .map(|check| check.check.len());
    let longest = names.max().unwrap_or(0);
    let mut text = String::new();
    for subject in &found.subjects {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("{}  {}", head(&subject.subject.to_string().to_uppercase()), subject.name));
        subject.about.iter().for_each(|part| text.push_str(&format!("  {part}")));
        text.push('\n');
        let later = match wide {
            true => Vec::new(),
            false => later(subject),
        };
        let made = subject.checks.iter().filter(|check| !later.contains(&check.check.as_str()));
        made.for_each(|check| text.push_str(&line(check, longest)));
        if !later.is_empty() {
            let what = format!("{} later checks were not made: {}", later.len(), later.join(", "));
            text.push_str(&format!("  {} {}\n", warn("?"), faint(&what)));
        }
    }
    text.push_str(&format!("\n{}\n", sum(found)));
    text
}

/// The checks that another one keeps from being made, where they are several: one cause is one line. Where no other check shows the cause,
/// the first of them does.
fn later(subject: &Subject) -> Vec<&str> {
    let has_cause = |check: &&Check| check.status != Mark::True && !check.follows() && !check.is_not_requested();
    let cause = subject.checks.iter().any(|check| has_cause(&check));
    let all = subject.checks.iter().filter(|check| check.follows()).skip(usize::from(!cause));
    let names: Vec<&str> = all.map(|check| check.check.as_str()).collect();
    if names.len() > 1 { names } else { Vec::new() }
}

fn line(check: &Check, longest: usize) -> String {
    let mark = match check.status {
        Mark::True if check.informs() => warn("!"),
        Mark::True => good("✓"),
        Mark::False => bad("✗"),
        Mark::Unknown if check.is_not_requested() => "-".into(),
        Mark::Unknown => warn("?"),
    };
    let message = counted_from(&check.message, now());
    let message = match check.follows() || check.is_not_requested() {
        true => faint(&message),
        false => message,
    };
    let mut text = format!("  {mark} {}{}  {message}\n", check.check, " ".repeat(longest - check.check.len()));
    if (check.status == Mark::True && !check.informs()) || check.follows() || check.is_not_requested() {
        return text;
    }
    let own = Finding {
        reason: check.reason.clone(),
        message: check.message.clone(),
        remedy: check.remedy.clone(),
    };
    let all = if check.findings.is_empty() {
        std::slice::from_ref(&own)
    } else {
        &check.findings
    };
    for (i, finding) in all.iter().enumerate() {
        // The first one is the check's own message.
        if i > 0 {
            text.push_str(&format!("    {mark} {}\n", counted_from(&finding.message, now())));
        }
        text.push_str(&remedy(finding));
    }
    text
}

/// What to do, and where more of it is written. Commands stand on lines of their own.
pub(super) fn remedy(finding: &Finding) -> String {
    let mut lines: Vec<(bool, String)> = Vec::new();
    for line in finding.remedy.lines() {
        lines.push(match line {
            AdviceLine::Text(text) => (false, text.clone()),
            AdviceLine::Verbatim(text) => (true, text.clone()),
        });
    }
    if Reason::ALL.iter().any(|reason| reason.as_str() == finding.reason) {
        let explain = faint(&format!("(vdoctl explain {})", finding.reason));
        match lines.iter_mut().rev().find(|(command, _)| !command) {
            // A colon leads to the commands below it.
            Some((_, last)) if !last.ends_with(':') => last.push_str(&format!(" {explain}")),
            _ => lines.push((false, explain)),
        }
    }
    let shown = lines.iter().map(|(command, line)| match command {
        true => format!("        {}\n", unbroken(line)),
        false => format!("      {line}\n"),
    });
    shown.collect()
}

fn sum(found: &DoctorView) -> String {
    let (passed, failed, unknown) = (found.passed, found.failed, found.unknown);
    let mut parts = vec![good(&format!("{passed} passed"))];
    parts.push(if failed > 0 {
        bad(&format!("{failed} failed"))
    } else {
        "0 failed".into()
    });
    if unknown > 0 {
        parts.push(warn(&format!("{unknown} unknown")));
    }
    parts.join(", ")
}

/// A line for each node, and below it what is wrong.
pub(super) fn nodes(found: &DoctorView, wide: bool) -> String {
    if found.nodes.is_empty() {
        return format!("{}\n\n{}", warn("no node was compared with a vCenter"), checks(found, wide));
    }
    let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let rows: Vec<Vec<String>> = found
        .nodes
        .iter()
        .map(|OfConnection { connection, of: node }| {
            let seen = !node.machine.is_empty();
            let word = |yes: bool, right: &str, wrong: &str| match (seen, yes) {
                (false, _) => "-".to_owned(),
                (true, true) => right.to_owned(),
                (true, false) => wrong.to_owned(),
            };
            let mut row = vec![
                node.node.clone(),
                dash(&node.machine),
                dash(&node.hardware),
                word(node.disk_uuid == Some(true), "on", "off"),
                word(node.tools_running, "running", "not running"),
            ];
            if wide {
                let provider = if node.provider_id.is_empty() { "-" } else { "set" };
                row.extend([
                    connection.clone(),
                    dash(&node.by),
                    dash(&node.host),
                    dash(&node.host_version),
                    provider.into(),
                ]);
            }
            row.push(verdict(node, wide));
            row
        })
        .collect();
    let mut heading = vec!["NODE", "VM", "HW", "UUID", "TOOLS"];
    if wide {
        heading.extend(["CONNECTION", "FOUND BY", "HOST", "ESXI", "PROVIDER-ID"]);
    }
    heading.push("VERDICT");
    let mut text = table(&heading, &rows);
    for finding in found.nodes.iter().flat_map(|node| &node.of.findings) {
        text.push_str(&format!("\n{} {}\n", bad("✗"), finding.message));
        text.push_str(&remedy(&Finding::of(finding)));
    }
    text
}

/// The reasons, or how many there are: what they mean stands below.
fn verdict(node: &NodeReport, wide: bool) -> String {
    let reasons: Vec<&str> = node.findings.iter().map(|finding| finding.reason.as_str()).collect();
    match reasons.as_slice() {
        [] => good("✓"),
        [one] => format!("{} {one}", bad("✗")),
        all if wide => format!("{} {}", bad("✗"), all.join(", ")),
        all => format!("{} {} problems", bad("✗"), all.len()),
    }
}

/// What each account lacks, and what it has beyond its needs where that was asked for.
pub(super) fn privileges(found: &DoctorView, wide: bool) -> String {
    let mut text = String::new();
    for OfConnection { connection, of: all } in &found.privileges {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("{}  {connection}  {}\n", head("CONNECTION"), principal(all)));
        if all.missing.is_empty() && all.checked > 0 {
            text.push_str(&format!(
                "  {} has all {} privileges that the features in use need\n",
                good("✓"),
                all.checked
            ));
        }
        let mut rows = Vec::new();
        for lack in &all.missing {
            let mut row = vec![
                bad("✗ lacks"),
                lack.privilege.clone(),
                format!("{} {}", lack.object.kind, lack.path),
            ];
            if wide {
                let features: Vec<&str> = lack.features.iter().map(|feature| feature.as_str()).collect();
                row.extend([
                    features.join(", "),
                    format!("{} ({})", lack.role, lack.shown_as),
                    lack.evidence.clone(),
                ]);
            }
            rows.push(row);
        }
        rows.extend(held(&all.held, wide));
        for more in &all.surplus {
            for privilege in &more.privileges {
                let object = format!("{} {}", more.object.kind, more.path);
                rows.push(vec![warn("+ has"), privilege.clone(), object]);
            }
        }
        if !rows.is_empty() {
            let mut heading = vec!["", "PRIVILEGE", "ON"];
            if wide {
                heading.extend(["NEEDED FOR", "ROLE (AS SHOWN IN VCENTER)", "ACCORDING TO"]);
            }
            text.push_str(&table(&heading, &rows));
        }
        for line in roles(&all.missing) {
            text.push_str(&format!("  - {line}\n"));
        }
        if all.checked == 0 {
            let stages = found.subjects.iter().filter(|subject| subject.name == *connection);
            let why = stages.flat_map(|s| &s.checks).find(|c| c.status != Mark::True && !c.follows());
            let why = why.map_or_else(
                || "no privilege was checked".into(),
                |check| format!("{}: {}", check.check, check.message),
            );
            text.push_str(&format!("  {} {why}\n", warn("?")));
        }
    }
    text
}

/// A row for each privilege that is needed and there, with the objects that it is needed on.
fn held(all: &[HeldPrivilege], wide: bool) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for same in all.chunk_by(|one, other| (&one.privilege, &one.kind) == (&other.privilege, &other.kind)) {
        let first = &same[0];
        let paths: Vec<&str> = same.iter().map(|held| held.path.as_str()).collect();
        let mut row = vec![
            good("✓ has"),
            first.privilege.clone(),
            format!("{} {}", first.kind, name_list(&paths)),
        ];
        if wide {
            let features: BTreeSet<&str> = same
                .iter()
                .flat_map(|held| &held.features)
                .map(|feature| feature.as_str())
                .collect();
            let features: Vec<&str> = features.into_iter().collect();
            row.extend([features.join(", "), format!("{} ({})", first.role, first.shown_as)]);
        }
        rows.push(row);
    }
    rows
}

/// What each missing privilege is for, in which role it is, and what the client calls it: once for each.
fn roles(missing: &[MissingPrivilege]) -> Vec<String> {
    let mut all: BTreeMap<&str, (&MissingPrivilege, BTreeSet<&str>)> = BTreeMap::new();
    for lack in missing {
        let features = lack.features.iter().map(|feature| feature.as_str());
        all.entry(&lack.privilege).or_insert((lack, BTreeSet::new())).1.extend(features);
    }
    let line = |(privilege, (lack, features)): (&str, (&MissingPrivilege, BTreeSet<&str>))| {
        let features = features.into_iter().collect::<Vec<_>>().join(", ");
        format!(
            "{privilege}, shown in vCenter as {}: needed for {features}; part of role {}",
            lack.shown_as, lack.role
        )
    };
    all.into_iter().map(line).collect()
}

fn principal(all: &Privileges) -> &str {
    if all.principal.is_empty() {
        "(not logged in)"
    } else {
        &all.principal
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::exit::Exit;
    use super::super::super::style::width;
    use super::super::super::wrap::fit;
    use super::super::check::Topic;
    use super::*;
    use vdo_vsphere::vsphere::{self, Advice};

    fn sick() -> DoctorView {
        let finding = |reason, message: &str, remedy: Advice| vsphere::Finding::new(reason, message, remedy);
        let nodes = vec![
            finding(
                Reason::DiskUuidDisabled,
                "node w-3: machine /DC0/vm/a folder/w-3 has disk.EnableUUID FALSE, so volumes cannot be mounted there",
                Advice::run(
                    "Power the machine off and set disk.EnableUUID:",
                    "govc vm.change -vm '/DC0/vm/a folder/with a long name/w-3' -e disk.enableUUID=TRUE",
                ),
            ),
            finding(
                Reason::ToolsNotRunning,
                "node w-2: VMware Tools do not run in machine /DC0/vm/w-2",
                "Install open-vm-tools in the guest and start its service vmtoolsd; the cloud provider gets the addresses from VMware \
                 Tools."
                    .into(),
            ),
        ];
        let soon = vsphere::Check::failed(
            vdo_api::api::ConditionType::Trusted,
            Some(true),
            Reason::CertificateExpiresSoon,
            "the certificate with the SHA-256 thumbprint AB:CD expires at 2026-12-01T00:00:00Z",
            "Renew it in vCenter under Administration, Certificates.",
        );
        let stages = [soon, vsphere::Check::of(vdo_api::api::ConditionType::NodesFound, "", nodes.clone())];
        let report = NodeReport {
            node: "w-3".into(),
            machine: "/DC0/vm/w-3".into(),
            hardware: "vmx-13".into(),
            findings: nodes,
            ..NodeReport::default()
        };
        DoctorView {
            subjects: vec![Subject {
                subject: Topic::Connection,
                name: "vc1".into(),
                about: vec![],
                checks: stages.iter().map(Check::of_connection).collect(),
            }],
            nodes: vec![OfConnection {
                of: report,
                connection: "vc1".into(),
            }],
            ..DoctorView::default()
        }
        .counted(Exit::Ok)
    }

    /// On a terminal of eighty columns no line is broken by the terminal but commands, which are copied whole.
    #[test]
    fn doctor_text_eighty_columns_wraps_all_but_commands() {
        for text in [checks(&sick(), false), nodes(&sick(), false)].map(|text| fit(&text, Some(80))) {
            for line in text.lines().filter(|line| !line.starts_with("        govc")) {
                assert!(width(line) <= 80, "{} columns: {line}\n{text}", width(line));
            }
            let command = "\n        govc vm.change -vm '/DC0/vm/a folder/with a long name/w-3' -e disk.enableUUID=TRUE\n";
            assert!(text.contains(command), "{text}");
        }
    }

    #[test]
    fn doctor_text_checks_not_made_are_one_line_below_their_cause() {
        let check = |name: &str, status, reason| Check::new(name, status, reason, "as it was found", "");
        let follows = |name: &str| check(name, None, Reason::NotChecked);
        let shown = |checks: Vec<Check>, wide| {
            let subjects = vec![Subject {
                subject: Topic::Connection,
                name: "vc1".into(),
                about: vec![],
                checks,
            }];
            let found = DoctorView {
                subjects,
                ..DoctorView::default()
            }
            .counted(Exit::Ok);
            let text = super::checks(&found, wide);
            anstream::adapter::strip_str(&text).to_string()
        };
        let failed = || vec![check("Trusted", Some(false), Reason::TlsFailed), follows("A"), follows("B")];
        assert!(shown(failed(), false).contains("? 2 later checks were not made: A, B\n"));
        assert!(!shown(failed(), true).contains("later checks"));
        // Here nothing else says why.
        let untried = shown(vec![follows("Authenticated"), follows("A"), follows("B")], false);
        assert!(
            untried.contains("? Authenticated  as it was found") && untried.contains("? 2 later checks were not made: A, B"),
            "{untried}"
        );
        let unrequested = shown(vec![check("Snapshots", None, Reason::NotRequested)], false);
        assert!(
            unrequested.contains("- Snapshots  as it was found") && unrequested.ends_with("\n0 passed, 0 failed\n"),
            "{unrequested}"
        );
    }

    /// Of what the specification does not ask for, nothing has to be done.
    #[test]
    fn doctor_text_check_that_was_not_requested_is_one_line() {
        let shown = |reason| {
            let check = Check::new("Snapshots", None, reason, "not asked for", "Install the definitions.");
            let found = DoctorView {
                subjects: vec![Subject {
                    subject: Topic::Connection,
                    name: "vc1".into(),
                    about: vec![],
                    checks: vec![check],
                }],
                ..DoctorView::default()
            };
            anstream::adapter::strip_str(&checks(&found.counted(Exit::Ok), false)).to_string()
        };
        let unrequested = shown(Reason::NotRequested);
        let others = |text: &str| text.lines().filter(|line| line.starts_with("   ")).count();
        assert!(
            unrequested.contains("  - Snapshots  not asked for\n") && others(&unrequested) == 0,
            "{unrequested}"
        );
        let forbidden = shown(Reason::Forbidden);
        assert!(
            forbidden.contains("Install the definitions.") && others(&forbidden) > 0,
            "{forbidden}"
        );
    }

    #[test]
    fn doctor_text_default_layout_marks_warning_and_failure() {
        let text = anstream::adapter::strip_str(&checks(&sick(), false)).to_string();
        assert!(
            text.contains("  ! Trusted     the certificate with the SHA-256 thumbprint") && text.contains("      Renew it in vCenter"),
            "{text}"
        );
        assert!(text.contains("  ✗ NodesFound  node w-3") && text.lines().count() == 11, "{text}");
    }
}
