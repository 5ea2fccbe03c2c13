//! The screens of `doctor`.

use super::super::style::{bad, faint, good, head, table, warn};
use super::Findings;
use super::check::{Check, Finding, Mark};
use crate::api::Reason;
use crate::health::{NodeReport, Privileges};

/// All checks, under what they are about.
pub(super) fn checks(found: &Findings) -> String {
    let names = found
        .subjects
        .iter()
        .flat_map(|subject| &subject.checks)
        .map(|check| check.check.len());
    let wide = names.max().unwrap_or(0);
    let mut text = String::new();
    for subject in &found.subjects {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("{}  {}", head(&subject.subject.to_uppercase()), subject.name));
        subject.about.iter().for_each(|part| text.push_str(&format!("  {part}")));
        text.push('\n');
        subject.checks.iter().for_each(|check| text.push_str(&line(check, wide)));
    }
    text.push_str(&format!("\n{}\n", sum(found)));
    text
}

fn line(check: &Check, wide: usize) -> String {
    let mark = match check.status {
        Mark::True => good("✓"),
        Mark::False => bad("✗"),
        Mark::Unknown => warn("?"),
    };
    let message = if check.follows() {
        faint(&check.message)
    } else {
        check.message.clone()
    };
    let mut text = format!("  {mark} {}{}  {message}\n", check.check, " ".repeat(wide - check.check.len()));
    if check.status == Mark::True || check.follows() {
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
            text.push_str(&format!("    {} {}\n", bad("✗"), finding.message));
        }
        text.push_str(&remedy(finding));
    }
    text
}

fn remedy(finding: &Finding) -> String {
    let mut lines: Vec<String> = finding.remedy.lines().map(str::to_owned).collect();
    if Reason::ALL.iter().any(|reason| reason.as_str() == finding.reason) {
        let explain = faint(&format!("(vdoctl explain {})", finding.reason));
        match lines.last_mut() {
            Some(last) => last.push_str(&format!("  {explain}")),
            None => lines.push(explain),
        }
    }
    lines.iter().map(|line| format!("      {line}\n")).collect()
}

fn sum(found: &Findings) -> String {
    let count = |mark| found.subjects.iter().map(|subject| subject.count(mark)).sum::<usize>();
    let (passed, failed, unknown) = (count(Mark::True), count(Mark::False), count(Mark::Unknown));
    let mut parts = vec![good(&format!("{passed} passed"))];
    parts.push(if failed > 0 {
        bad(&format!("{failed} failed"))
    } else {
        "0 failed".into()
    });
    if unknown > 0 {
        parts.push(warn(&format!("{unknown} could not be told")));
    }
    parts.join(", ")
}

/// A line for each node, and below it what is wrong.
pub(super) fn nodes(found: &Findings) -> String {
    if found.nodes.is_empty() {
        return format!("{}\n\n{}", warn("no node was held against a vCenter"), checks(found));
    }
    let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let rows: Vec<Vec<String>> = found
        .nodes
        .iter()
        .map(|(connection, node)| {
            let seen = !node.machine.is_empty();
            let word = |yes: bool, right: &str, wrong: &str| match (seen, yes) {
                (false, _) => "-".to_owned(),
                (true, true) => right.to_owned(),
                (true, false) => wrong.to_owned(),
            };
            let provider = if node.provider_id.is_empty() { "-" } else { "set" };
            vec![
                node.node.clone(),
                connection.clone(),
                dash(&node.machine),
                dash(&node.hardware),
                word(node.disk_uuid == Some(true), "on", "off"),
                word(node.tools_running, "running", "not running"),
                dash(&node.host),
                provider.into(),
                verdict(node),
            ]
        })
        .collect();
    let heading = ["NODE", "CONNECTION", "VM", "HW", "UUID", "TOOLS", "HOST", "PROVIDER-ID", "VERDICT"];
    let mut text = table(&heading, &rows);
    for finding in found.nodes.iter().flat_map(|(_, node)| &node.findings) {
        text.push_str(&format!("\n{} {}\n", bad("✗"), finding.message));
        text.push_str(&remedy(&Finding::of(finding)));
    }
    text
}

fn verdict(node: &NodeReport) -> String {
    let reasons: Vec<&str> = node.findings.iter().map(|finding| finding.reason.as_str()).collect();
    if reasons.is_empty() {
        good("✓")
    } else {
        format!("{} {}", bad("✗"), reasons.join(", "))
    }
}

/// What each account lacks, and what it has beyond its needs where that was asked for.
pub(super) fn privileges(found: &Findings) -> String {
    let mut text = String::new();
    for (connection, all) in &found.privileges {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("{}  {connection}  {}\n", head("CONNECTION"), principal(all)));
        if all.missing.is_empty() && all.checked > 0 {
            text.push_str(&format!(
                "  {} all {} privileges that the features in use need are there\n",
                good("✓"),
                all.checked
            ));
        }
        let mut rows = Vec::new();
        for lack in &all.missing {
            let features: Vec<&str> = lack.features.iter().map(|feature| feature.as_str()).collect();
            rows.push(vec![
                bad("✗ lacks"),
                lack.privilege.clone(),
                format!("{} {}", lack.object.kind, lack.path),
                features.join(", "),
                format!("{} ({})", lack.role, lack.shown_as),
            ]);
        }
        for more in &all.surplus {
            for privilege in &more.privileges {
                let object = format!("{} {}", more.object.kind, more.path);
                rows.push(vec![warn("+ has"), privilege.clone(), object, "nothing in use".into(), "-".into()]);
            }
        }
        if !rows.is_empty() {
            text.push_str(&table(&["", "PRIVILEGE", "ON", "NEEDED FOR", "ROLE (AS SHOWN IN VCENTER)"], &rows));
        }
        if all.checked == 0 {
            let stages = found.subjects.iter().filter(|subject| subject.name == *connection);
            let why = stages.flat_map(|s| &s.checks).find(|c| c.status != Mark::True && !c.follows());
            let why = why.map_or_else(
                || "no privilege was looked at".into(),
                |check| format!("{}: {}", check.check, check.message),
            );
            text.push_str(&format!("  {} {why}\n", warn("?")));
        }
    }
    text
}

fn principal(all: &Privileges) -> &str {
    if all.principal.is_empty() {
        "(not logged in)"
    } else {
        &all.principal
    }
}
