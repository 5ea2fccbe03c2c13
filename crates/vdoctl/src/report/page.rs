// SPDX-License-Identifier: Apache-2.0
//! Renders the HTML page of `vdoctl report`: its tables, problems and upgrade steps, in a single file without scripts.

use super::super::support::Facts;
use super::super::views::doctor::{DoctorView, OfConnection};
use super::super::views::status::StatusView;
use super::super::views::volumes::VolumesView;
use super::bars::{minor, svg};
use crate::ages;
use crate::doctor::check::{Finding, Mark};
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior, escape_formatter};
use serde::Serialize;
use std::collections::BTreeMap;
use vdo_api::types::name_list;
use vdo_core::drivers::short;
use vdo_core::volume_diagnosis::Finding as Broken;
use vdo_vsphere::vsphere::Privileges;

const TEMPLATE: &str = include_str!("report.html.j2");

/// The style, for wide and narrow screens, bright and dark, and paper.
const STYLE: &str = include_str!("report.css");

/// What the template shows.
#[derive(Serialize)]
struct Page {
    style: &'static str,
    vdoctl: String,
    /// Where several were asked: a row for each, problems first.
    overview: Option<Table>,
    clusters: Vec<Cluster>,
}

/// What it shows of a cluster.
#[derive(Serialize)]
struct Cluster {
    taken: String,
    cluster: String,
    kubernetes: String,
    /// In a word, and how that word is drawn.
    health: (String, &'static str),
    operator: String,
    message: String,
    /// Whether the checks were made.
    checked: bool,
    problems: Vec<Problem>,
    drivers: Table,
    vcenters: Table,
    nodes: Table,
    datastores: Table,
    /// The accounts with their privileges.
    accounts: Vec<(String, Table)>,
    /// The versions and the minors of Kubernetes.
    picture: String,
    stages: Vec<Stage>,
    history: Table,
    missing: Vec<String>,
}

/// Something that has to be done.
#[derive(Debug, Serialize)]
struct Problem {
    about: String,
    reason: String,
    message: String,
    remedy: String,
}

/// On a narrow screen each cell bears the name of its column.
#[derive(Serialize)]
struct Table {
    heading: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

/// A step to a newer Kubernetes.
#[derive(Serialize)]
struct Stage {
    kubernetes: String,
    fits: bool,
    lines: Vec<String>,
}

/// The page of these facts, about one cluster or about several, and then with a row for each before them.
///
/// # Errors
/// When the template is wrong.
pub(super) fn page(clusters: &[&Facts], overview: Option<Vec<Vec<String>>>) -> Result<String, Error> {
    let heading = &["Context", "State", "Kubernetes", "Drivers", "Problem"];
    let vdoctl = clusters.first().map_or(env!("CARGO_PKG_VERSION"), |facts| &facts.about.vdoctl);
    let page = Page {
        style: STYLE,
        vdoctl: vdoctl.to_owned(),
        overview: overview.map(|rows| Table { heading, rows }),
        clusters: clusters.iter().map(|facts| shown(facts)).collect::<Result<_, _>>()?,
    };
    let page = environment().render_str(TEMPLATE, Value::from(Serde(page)))?;
    Ok(page + "\n")
}

/// In which everything that is shown is escaped, and has no control characters.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(|out, state, value| match value.as_str().filter(|_| !value.is_safe()) {
        Some(text) => escape_formatter(out, state, &text.replace(is_control, "\u{fffd}").into()),
        None => escape_formatter(out, state, value),
    });
    environment
}

/// Whether a character has no place in a page.
fn is_control(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

fn shown(facts: &Facts) -> Result<Cluster, Error> {
    let about = &facts.about;
    let status = facts.status.as_ref();
    let config = status.and_then(|status| status.config.as_ref());
    let health = config.and_then(|config| config.health).map(|health| format!("{health:?}"));
    let class = match health.as_deref() {
        Some("Healthy") => "good",
        Some("Degraded" | "Blocked") => "bad",
        _ => "unsure",
    };
    let operator = status
        .and_then(|status| status.operator.as_ref())
        .map(|operator| operator.version.clone());
    let doctor = facts.doctor.as_ref();
    let matrix = facts.matrix.as_ref();
    let here = minor(about.cluster.version.trim_start_matches('v'));
    Ok(Cluster {
        taken: about.taken.map(ages::time).unwrap_or_default(),
        cluster: about.cluster.name.clone(),
        kubernetes: about.cluster.version.clone(),
        health: (health.unwrap_or_else(|| "not deployed".to_owned()), class),
        operator: operator.unwrap_or_else(|| "not found".to_owned()),
        message: config.and_then(|config| config.message.clone()).unwrap_or_default(),
        checked: doctor.is_some(),
        problems: problems(doctor, status)
            .into_iter()
            .chain(volumes(facts.volumes.as_ref()))
            .collect(),
        drivers: drivers(status),
        vcenters: vcenters(status),
        nodes: nodes(doctor),
        datastores: datastores(doctor),
        accounts: doctor
            .into_iter()
            .flat_map(|doctor| &doctor.privileges)
            .filter_map(privileges)
            .collect(),
        picture: matrix.map(|matrix| svg(&matrix.versions, here)).transpose()?.unwrap_or_default(),
        stages: stages(facts),
        history: history(facts),
        missing: about.missing.clone(),
    })
}

/// Every failed check with its remedy, and what the status names besides.
fn problems(doctor: Option<&DoctorView>, status: Option<&StatusView>) -> Vec<Problem> {
    let mut all: Vec<Problem> = Vec::new();
    for subject in doctor.into_iter().flat_map(|doctor| &doctor.subjects) {
        for check in subject.checks.iter().filter(|check| check.status == Mark::False) {
            let own = Finding {
                reason: check.reason.clone(),
                message: check.message.clone(),
                remedy: check.remedy.clone(),
            };
            let each = match check.findings.is_empty() {
                true => std::slice::from_ref(&own),
                false => &check.findings,
            };
            all.extend(each.iter().map(|finding| Problem {
                about: format!("{} {}", subject.subject, subject.name).trim().to_owned(),
                reason: finding.reason.clone(),
                message: finding.message.clone(),
                remedy: finding.remedy.to_string(),
            }));
        }
    }
    let checks = all.len();
    for fault in status
        .into_iter()
        .flat_map(|status| &status.problems)
        .filter(|problem| problem.fault)
    {
        let known = |old: &Problem| fault.message.contains(&old.message) || old.message.contains(&fault.message);
        if !all[..checks].iter().any(known) {
            all.push(Problem {
                about: fault.condition.clone(),
                reason: fault.reason.clone(),
                message: fault.message.clone(),
                remedy: fault.command.clone().unwrap_or_default(),
            });
        }
    }
    all
}

/// Each cause for which volumes do not work, with the first of its objects.
fn volumes(volumes: Option<&VolumesView>) -> Vec<Problem> {
    let faults: Vec<&Broken> = volumes
        .into_iter()
        .flat_map(|volumes| &volumes.findings)
        .filter(|finding| finding.is_fault)
        .collect();
    let groups = faults.chunk_by(|a, b| a.cause == b.cause);
    let problem = |group: &[&Broken]| {
        let first = group.first()?;
        let objects: Vec<String> = group.iter().map(|finding| finding.object()).collect();
        Some(Problem {
            about: name_list(&objects),
            reason: first.cause.to_string(),
            message: first.message.clone(),
            remedy: format!("{} {}", first.remedy, first.command).trim_end().to_owned(),
        })
    };
    groups.filter_map(problem).collect()
}

fn drivers(status: Option<&StatusView>) -> Table {
    let all = status.into_iter().flat_map(|status| &status.drivers).map(|driver| {
        let nodes = driver.nodes.as_ref().map(|nodes| format!("{}/{}", nodes.ready, nodes.total));
        vec![
            short(&driver.name).to_owned(),
            driver.version.clone(),
            driver.newest.clone(),
            driver.pods.clone(),
            nodes.unwrap_or_default(),
            driver.state.clone(),
            driver.message.clone(),
        ]
    });
    Table {
        heading: &["Driver", "Version", "Newest fit", "Pods", "Nodes", "State", "Message"],
        rows: all.collect(),
    }
}

fn vcenters(status: Option<&StatusView>) -> Table {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let all = status.into_iter().flat_map(|status| &status.vcenters).map(|vcenter| {
        vec![
            vcenter.connection.clone(),
            vcenter.server.clone(),
            text(&vcenter.version),
            text(&vcenter.build),
            text(&vcenter.user),
            text(&vcenter.message),
        ]
    });
    Table {
        heading: &["Connection", "Server", "Version", "Build", "User", "Message"],
        rows: all.collect(),
    }
}

fn nodes(doctor: Option<&DoctorView>) -> Table {
    let all = doctor
        .into_iter()
        .flat_map(|doctor| &doctor.nodes)
        .map(|OfConnection { of: node, connection }| {
            let findings: Vec<&str> = node.findings.iter().map(|finding| finding.message.as_str()).collect();
            let host = match node.host_version.as_str() {
                "" => node.host.clone(),
                version => format!("{} (ESXi {version})", node.host),
            };
            let uuid = match node.disk_uuid {
                Some(true) => "on",
                Some(false) => "off",
                None => "not set",
            };
            vec![
                node.node.clone(),
                connection.clone(),
                node.machine.clone(),
                host,
                node.hardware.clone(),
                uuid.to_owned(),
                if findings.is_empty() {
                    "ok".to_owned()
                } else {
                    findings.join("; ")
                },
            ]
        });
    Table {
        heading: &[
            "Node",
            "Connection",
            "Virtual machine",
            "Host",
            "Hardware",
            "disk.EnableUUID",
            "Verdict",
        ],
        rows: all.collect(),
    }
}

/// Datastores by topology segment, as far as the checks list them.
fn datastores(doctor: Option<&DoctorView>) -> Table {
    let all = doctor.into_iter().flat_map(|doctor| &doctor.datastores).map(|shared| {
        let segment = match shared.of.segment.as_str() {
            "" => "all nodes".to_owned(),
            segment => segment.to_owned(),
        };
        vec![segment, shared.of.datastores.join(", ")]
    });
    Table {
        heading: &["Segment", "Datastores that all hosts of the segment's nodes can reach"],
        rows: all.collect(),
    }
}

/// What an account needs, on which object, and whether it has it: what is missing comes first.
fn privileges(account: &OfConnection<Privileges>) -> Option<(String, Table)> {
    let of = &account.of;
    let missing = of.missing.iter().map(|one| ((false, &one.path, &one.role), &one.privilege));
    let held = of.held.iter().map(|one| ((true, &one.path, &one.role), &one.privilege));
    let mut rows: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for (place, privilege) in missing.chain(held) {
        rows.entry(place).or_default().push(privilege);
    }
    let row = |((granted, path, role), privileges): ((bool, &String, &String), Vec<&str>)| {
        let state = if granted { "granted" } else { "missing" };
        vec![state.to_owned(), path.clone(), role.clone(), privileges.join(", ")]
    };
    let table = Table {
        heading: &["State", "Object", "Role", "Privileges"],
        rows: rows.into_iter().map(row).collect(),
    };
    (!table.rows.is_empty()).then(|| (format!("{} on {}", of.principal, account.connection), table))
}

/// What an upgrade of Kubernetes asks for, step by step.
fn stages(facts: &Facts) -> Vec<Stage> {
    let all = facts.outlook.iter().flat_map(|outlook| &outlook.stages).map(|stage| {
        let changes = stage.changes.iter().map(|change| {
            let path: Vec<String> = change.path.iter().map(ToString::to_string).collect();
            let when = if change.when == "before" {
                "before this step"
            } else {
                "right after this step"
            };
            let from = change.from.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{} {from} → {} {when}", short(&change.driver), path.join(" → "))
        });
        let failures = stage.failures.iter().map(|failure| match &failure.advice {
            Some(advice) => format!("{}. {advice}", failure.message),
            None => failure.message.clone(),
        });
        let mut lines: Vec<String> = changes.chain(failures).collect();
        if lines.is_empty() {
            lines.push("nothing changes".to_owned());
        }
        Stage {
            kubernetes: stage.kubernetes.to_string(),
            fits: stage.fits,
            lines,
        }
    });
    all.collect()
}

fn history(facts: &Facts) -> Table {
    let drivers = facts.history.iter().flat_map(|history| &history.drivers);
    let all = drivers.flat_map(|driver| driver.revisions.iter().rev().map(move |revision| (driver, revision)));
    let rows = all.map(|(driver, revision)| {
        vec![
            short(&driver.name).to_owned(),
            revision.number.to_string(),
            revision.about.version.clone(),
            revision.outcome.to_string(),
            ages::time(revision.time),
            revision.cause.clone(),
        ]
    });
    Table {
        heading: &["Driver", "Revision", "Version", "Outcome", "Applied", "Cause"],
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn facts() -> Facts {
        let support = |min: &str, max: &str| json!({"min": min, "max": max, "confidence": "primary", "evidence": []});
        let version = |version: &str, min: &str, max: &str, word: &str| {
            json!({"driver": "vsphere-csi", "version": version, "kubernetes": support(min, max), "vsphere": support("7.0", "9.0"), "requires": [],
                "state": {"word": word, "reason": null, "use": null}, "chart": {"urls": [], "digest": format!("sha256:{}", "0".repeat(64))}})
        };
        let matrix = json!({"source": "embedded", "version": 1, "generated": null, "expires": null, "digest": format!("sha256:{}", "0".repeat(64)),
            "decidedBy": "vdoctl", "cluster": null, "kubernetes": {"newest": "1.35", "released": null}, "old": false});
        let about = json!({"vdoctl": "0.1.0", "taken": "2026-01-01T00:00:00Z", "cluster": {"name": "demo <1>", "version": "v1.34.4"}, "missing": ["plan: no \u{1b} answer"]});
        let document = |verb: &str| {
            Some(match verb {
                "status" => {
                    json!({"deployed": true, "cluster": {"name": "demo", "server": "", "version": "v1.34.4", "nodes": 4}, "client": {"version": "0.1.0"},
                    "operator": {"version": "0.1.0", "ready": true, "message": null},
                    "config": {"name": "n/vdo", "current": true, "deleting": false, "upgradePins": {}, "kept": [], "ready": "False", "health": "Degraded", "message": "a & b"},
                    "drivers": [{"name": "vsphere-csi", "version": "3.7.3", "newest": "3.7.3", "because": "", "pods": "4/7", "nodes": {"ready": 3, "total": 4},
                        "ready": "False", "state": "degraded", "message": "w-3", "objects": 1, "chart": ""}],
                    "vcenters": [{"connection": "vc1", "server": "vc.example.com", "version": "8.0.3", "build": "1", "user": "k8s", "ready": "True"}],
                    "problems": [{"condition": "StorageReady", "reason": "PodsFailing", "progress": false, "known": true, "fault": true, "message": "a pod fails"}]})
                }
                "doctor" => json!({"subjects": [{"subject": "connection", "name": "vc1", "about": [], "checks": [
                        {"check": "NodesFound", "status": "False", "reason": "DiskUuidDisabled", "message": "VM w-3 has no UUID", "remedy": "govc vm.change", "findings": []},
                        {"check": "Resolved", "status": "True", "reason": "Healthy", "message": "it resolves", "remedy": "", "findings": []}]}],
                    "nodes": [{"connection": "vc1", "node": "w-3", "machine": "/DC0/vm/w-3", "host": "esx-02", "hostVersion": "8.0.3", "hardware": "vmx-13", "diskUuid": false, "findings": []}],
                    "privileges": [{"connection": "vc1", "principal": "k8s", "missing": [{"path": "/", "role": "CNS", "privilege": "Cns.Searchable"}],
                        "held": [{"path": "/DC0", "role": "ReadOnly", "privilege": "System.Read"}]}]}),
                "volumes" => {
                    json!({"findings": [{"cause": "PolicyNotFound", "isFault": true, "kind": "PersistentVolumeClaim", "namespace": "ns",
                    "name": "data", "message": "no policy gold", "remedy": "Create the policy.", "command": "kubectl get storageclass"}]})
                }
                "matrix" => json!({"matrix": matrix, "versions": [
                    version("3.7.3", "1.33", "1.35", "good"), version("3.7.0", "1.33", "1.35", "good"), version("3.0.0", "1.24", "1.27", "withdrawn")]}),
                "outlook" => json!({"matrix": matrix, "fits": false, "stages": [
                    {"kubernetes": "1.35", "vcenters": [], "fits": true, "runs": {}, "failures": [], "changes": [
                        {"driver": "vsphere-cpi", "from": "1.34.0", "path": ["1.35.1"], "steps": [], "when": "with", "because": ""}]},
                    {"kubernetes": "1.36", "vcenters": [], "fits": false, "runs": {}, "changes": [],
                        "failures": [{"driver": "vsphere-csi", "message": "no version of vsphere-csi fits", "advice": null}]}]}),
                "history" => {
                    json!({"drivers": [{"name": "vsphere-csi", "revisions": [{"number": 1, "version": "3.7.3", "chart": "", "values": "", "configuration": "",
                    "matrix": 1, "generation": 1, "outcome": "Deployed", "time": "2026-01-01T00:00:00Z", "cause": "installation"}]}]})
                }
                _ => return None,
            })
        };
        Facts::of(serde_json::from_value(about).expect("a manifest"), document)
    }

    #[test]
    fn report_page_shows_every_part_and_escapes_all_of_it() {
        // As a browser reads a slash.
        let page = page(&[&facts()], None).expect("a page").replace("&#x2f;", "/");
        for part in [
            "demo &lt;1&gt;",
            "a &amp; b",
            "DiskUuidDisabled",
            "govc vm.change",
            "a pod fails",
            "/DC0/vm/w-3",
            "esx-02 (ESXi 8.0.3)",
            "Cns.Searchable",
            ">granted<",
            "CSI 3.7.0–3.7.3",
            "CPI 1.34.0 → 1.35.1 right after this step",
            "no version of vsphere-csi fits",
            "installation",
            "plan: no \u{fffd} answer",
            "PersistentVolumeClaim ns/data",
            "Create the policy. kubectl get storageclass",
        ] {
            assert!(page.contains(part), "{part} is not in the page");
        }
        for never in ["<script", "src=", "url(", "http://", "https://", "it resolves", "3.0.0", "demo <1>"] {
            assert!(!page.contains(never), "{never} is in the page");
        }
        // What is missing comes before what is there.
        assert!(page.find("Cns.Searchable") < page.find("System.Read"));
    }

    #[test]
    fn report_page_of_nothing_is_a_page() {
        let about = serde_json::from_value(json!({"cluster": {"name": "empty"}})).expect("a manifest");
        let page = page(&[&Facts::of(about, |_| None)], None).expect("a page");
        assert!(page.contains("not deployed") && page.contains("The checks were not made.") && page.ends_with("</html>\n"));
    }
    #[test]
    fn report_page_of_several_begins_with_a_row_for_each() {
        let row = |context: &str, problem: &str| [context, "unreachable", "-", "-", problem].map(str::to_owned).to_vec();
        let rows = vec![row("dead", "no <answer>"), row("demo <1>", "")];
        let page = page(&[&facts()], Some(rows)).expect("a page");
        let places = [
            "<h1>vSphere drivers of 2 clusters",
            "no &lt;answer&gt;",
            "<h1>vSphere drivers of cluster demo &lt;1&gt;",
            "DiskUuidDisabled",
        ];
        let found: Vec<Option<usize>> = places.iter().map(|part| page.find(part)).collect();
        assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{found:?} {page}");
        assert!(!page.contains("<answer>"), "{page}");
    }
}
