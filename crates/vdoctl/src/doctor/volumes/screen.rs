// SPDX-License-Identifier: Apache-2.0
//! Prints the result of `vdoctl doctor volumes` for people: each cause once, with the objects that have it and the remedy.

use super::super::super::style::{bad, faint, good, head, warn};
use super::super::super::views::volumes::VolumesView;
use vdo_api::types::count;
use vdo_core::volume_diagnosis::Finding;

/// How many objects of a cause are shown; wide shows all.
const SHOWN: usize = 10;

pub(super) fn text(view: &VolumesView, wide: bool) -> String {
    let mut text = String::new();
    for group in view.findings.chunk_by(|a, b| a.cause == b.cause) {
        text.push_str(&of_cause(group, wide));
    }
    for unread in &view.not_read {
        text.push_str(&format!("{} {} not read: {}\n", warn("?"), unread.what, unread.message));
        if !unread.remedy.is_empty() {
            text.push_str(&format!("      {}\n", unread.remedy));
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&sum(view));
    text
}

fn of_cause(group: &[Finding], wide: bool) -> String {
    let Some(first) = group.first() else { return String::new() };
    let mark = if first.is_fault { bad("✗") } else { warn("!") };
    let about = first.cause.about();
    let mut text = format!("{mark} {}  {}\n", head(&first.cause.to_string()), about.what);
    let most = if wide { group.len() } else { SHOWN };
    for finding in group.iter().take(most) {
        text.push_str(&format!("    {}{}\n", finding.object(), detail(finding, about.what)));
    }
    if group.len() > most {
        let more = format!("and {} more; -o wide shows all", group.len() - most);
        text.push_str(&format!("    {}\n", faint(&more)));
    }
    text.push_str(&format!("      {}\n", first.remedy));
    if !first.command.is_empty() {
        text.push_str(&format!("        {}\n", first.command));
    }
    text
}

/// What is said of this object beyond its cause.
fn detail(finding: &Finding, what: &str) -> String {
    finding.message.strip_prefix(what).unwrap_or(&finding.message).to_owned()
}

fn sum(view: &VolumesView) -> String {
    let of = |kind: &str| view.read.iter().find(|read| read.kind == kind).map(|read| read.count);
    let kinds = [
        ("PersistentVolumeClaim", "claim"),
        ("PersistentVolume", "volume"),
        ("VolumeAttachment", "attachment"),
        ("VolumeSnapshot", "snapshot"),
    ];
    let read: Vec<String> = kinds.iter().filter_map(|(kind, name)| Some(count(of(kind)?, name))).collect();
    let notes = view.findings.len() - view.faults;
    let faults = match view.faults {
        0 => good("0 faults"),
        some => bad(&count(some, "fault")),
    };
    let mut parts = vec![faults];
    if notes > 0 {
        parts.push(warn(&count(notes, "note")));
    }
    if !view.not_read.is_empty() {
        parts.push(warn(&format!("{} not read", count(view.not_read.len(), "kind"))));
    }
    format!("{}: {}\n", read.join(", "), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::super::super::views::volumes::{NotReadView, ReadView};
    use super::super::super::super::wrap::fit;
    use super::*;
    use vdo_core::volume_diagnosis::{Cause, Observed, findings};

    fn view(claims: usize) -> VolumesView {
        let claim = |i: usize| {
            let value = serde_json::json!({"metadata": {"name": format!("c-{i:02}"), "namespace": "ns"},
                "spec": {"storageClassName": "gone"}, "status": {"phase": "Pending"}});
            serde_json::from_value(value).expect("a claim")
        };
        let observed = Observed {
            claims: Some((0..claims).map(claim).collect()),
            classes: Some(Vec::new()),
            ..Observed::default()
        };
        let findings = findings(&observed);
        VolumesView {
            faults: findings.len(),
            findings,
            read: vec![ReadView {
                kind: "PersistentVolumeClaim".into(),
                count: claims,
            }],
            not_read: vec![NotReadView {
                what: "Pod".into(),
                message: "you lack the right to list pods".into(),
                remedy: "Ask for a role.".into(),
            }],
        }
    }

    #[test]
    fn volumes_screen_shows_a_cause_once_with_its_objects() {
        let plain = |wide| anstream::adapter::strip_str(&fit(&text(&view(12), wide), None)).to_string();
        let shown = plain(false);
        assert_eq!(shown.matches(&Cause::ClassNotFound.to_string()).count(), 1, "{shown}");
        assert!(
            shown.contains("    PersistentVolumeClaim ns/c-09: gone\n    and 2 more; -o wide shows all\n"),
            "{shown}"
        );
        assert!(shown.contains("        kubectl get storageclass\n"), "{shown}");
        assert!(
            shown.contains("? Pod not read: you lack the right to list pods\n      Ask for a role.\n"),
            "{shown}"
        );
        assert!(shown.ends_with("12 claims: 12 faults, 1 kind not read\n"), "{shown}");
        assert!(plain(true).contains("ns/c-11"), "{}", plain(true));
    }
}
