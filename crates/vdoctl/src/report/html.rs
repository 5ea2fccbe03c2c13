//! The page: one file with its style in it and without a script, for a screen, a phone and paper.

use super::bars::svg;
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_core::drivers::short;

/// The style, for wide and narrow screens, bright and dark, and paper.
const STYLE: &str = include_str!("report.css");

/// A text as it may stand in a page.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The page of these facts: what a support bundle says of itself, with the documents of the verbs.
pub(super) fn page(facts: &Value) -> String {
    let cluster = text(&facts["cluster"]["name"]);
    let sections = [
        section("What has to be done", &problems(facts)),
        section("Drivers", &drivers(facts)),
        section("vCenters", &vcenters(facts)),
        section("Nodes, machines and hosts", &nodes(facts)),
        section("Privileges", &privileges(facts)),
        section("Versions and Kubernetes", &versions(facts)),
        section("The way to newer versions of Kubernetes", &outlook(facts)),
        section("History", &history(facts)),
        section("Not known", &missing(facts)),
    ];
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>vSphere drivers of cluster {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{head}{body}\
         <footer>Made by vdoctl {version}. It holds names, addresses and versions, and no value of a Secret.</footer>\n</body>\n</html>\n",
        title = escaped(&cluster),
        head = head(facts),
        body = sections.concat(),
        version = escaped(&text(&facts["vdoctl"])),
    )
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn section(title: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    format!("<section>\n<h2>{}</h2>\n{body}</section>\n", escaped(title))
}

fn head(facts: &Value) -> String {
    let status = &facts["status"];
    let health = text(&status["config"]["health"]);
    let class = match health.as_str() {
        "Healthy" => "good",
        "Degraded" | "Blocked" => "bad",
        _ => "unsure",
    };
    let shown = if health.is_empty() { "not deployed".to_owned() } else { health };
    let operator = text(&status["operator"]["version"]);
    format!(
        "<header>\n<h1>vSphere drivers of cluster {}</h1>\n<p class=\"facts\"><strong class=\"{class}\">{}</strong> Kubernetes {} · operator {} · as of {}</p>\n<p>{}</p>\n</header>\n",
        escaped(&text(&facts["cluster"]["name"])),
        escaped(&shown),
        escaped(&text(&facts["cluster"]["version"])),
        escaped(if operator.is_empty() { "not found" } else { &operator }),
        escaped(&text(&facts["taken"])),
        escaped(&text(&status["config"]["message"])),
    )
}

/// Every failed check with its remedy, and what the status names besides.
fn problems(facts: &Value) -> String {
    let mut all = String::new();
    let mut said: Vec<String> = Vec::new();
    for subject in list(&facts["doctor"]["subjects"]) {
        for check in list(&subject["checks"]).iter().filter(|check| check["status"] == "False") {
            let findings = list(&check["findings"]);
            let each: Vec<&Value> = if findings.is_empty() {
                vec![check]
            } else {
                findings.iter().collect()
            };
            for finding in each {
                said.push(text(&finding["message"]));
                all.push_str(&problem(
                    &format!("{} {}", text(&subject["subject"]), text(&subject["name"])),
                    &text(&finding["reason"]),
                    &text(&finding["message"]),
                    &text(&finding["remedy"]),
                ));
            }
        }
    }
    for found in list(&facts["status"]["problems"]).iter().filter(|problem| problem["fault"] == true) {
        let message = text(&found["message"]);
        if !said
            .iter()
            .any(|known| message.contains(known.as_str()) || known.contains(&message))
        {
            all.push_str(&problem(&text(&found["condition"]), &text(&found["reason"]), &message, ""));
        }
    }
    match (all.is_empty(), facts["doctor"].is_object()) {
        (true, true) => "<p class=\"good\">Nothing: every check holds.</p>\n".to_owned(),
        (true, false) => "<p class=\"unsure\">The checks were not made.</p>\n".to_owned(),
        (false, _) => all,
    }
}

fn problem(about: &str, reason: &str, message: &str, remedy: &str) -> String {
    let remedy = if remedy.is_empty() {
        String::new()
    } else {
        format!("<p class=\"remedy\">{}</p>\n", escaped(remedy))
    };
    format!(
        "<article>\n<h3>{} <code>{}</code></h3>\n<p>{}</p>\n{remedy}</article>\n",
        escaped(about.trim()),
        escaped(reason),
        escaped(message)
    )
}

/// A table; on a narrow screen each cell bears the name of its column.
fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let names: String = heading.iter().map(|name| format!("<th>{}</th>", escaped(name))).collect();
    let cells = |row: &Vec<String>| -> String {
        row.iter()
            .zip(heading)
            .map(|(cell, name)| format!("<td data-name=\"{}\">{}</td>", escaped(name), escaped(cell)))
            .collect()
    };
    let rows: String = rows.iter().map(|row| format!("<tr>{}</tr>\n", cells(row))).collect();
    format!("<table>\n<thead><tr>{names}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n")
}

fn drivers(facts: &Value) -> String {
    let row = |driver: &Value| {
        let nodes = match driver["nodes"]["total"].is_number() {
            true => format!("{}/{}", text(&driver["nodes"]["ready"]), text(&driver["nodes"]["total"])),
            false => String::new(),
        };
        vec![
            short(&text(&driver["name"])).to_owned(),
            text(&driver["version"]),
            text(&driver["newest"]),
            text(&driver["pods"]),
            nodes,
            text(&driver["state"]),
            text(&driver["message"]),
        ]
    };
    let rows: Vec<Vec<String>> = list(&facts["status"]["drivers"]).iter().map(row).collect();
    table(
        &["Driver", "Version", "Newest that fits", "Pods", "Nodes", "State", "Message"],
        &rows,
    )
}

fn vcenters(facts: &Value) -> String {
    let row = |vcenter: &Value| {
        vec![
            text(&vcenter["connection"]),
            text(&vcenter["server"]),
            text(&vcenter["version"]),
            text(&vcenter["build"]),
            text(&vcenter["user"]),
            text(&vcenter["message"]),
        ]
    };
    let rows: Vec<Vec<String>> = list(&facts["status"]["vcenters"]).iter().map(row).collect();
    table(&["Connection", "Server", "Version", "Build", "User", "Message"], &rows)
}

fn nodes(facts: &Value) -> String {
    let row = |node: &Value| {
        let findings: Vec<String> = list(&node["findings"]).iter().map(|finding| text(&finding["message"])).collect();
        let host = match text(&node["hostVersion"]) {
            version if version.is_empty() => text(&node["host"]),
            version => format!("{} (ESXi {version})", text(&node["host"])),
        };
        let uuid = match node["diskUuid"].as_bool() {
            Some(true) => "on",
            Some(false) => "off",
            None => "not set",
        };
        vec![
            text(&node["node"]),
            text(&node["connection"]),
            text(&node["machine"]),
            host,
            text(&node["hardware"]),
            uuid.to_owned(),
            if findings.is_empty() {
                "ok".to_owned()
            } else {
                findings.join("; ")
            },
        ]
    };
    let rows: Vec<Vec<String>> = list(&facts["doctor"]["nodes"]).iter().map(row).collect();
    let mut body = table(
        &[
            "Node",
            "Connection",
            "Virtual machine",
            "Host",
            "Hardware",
            "disk.EnableUUID",
            "Verdict",
        ],
        &rows,
    );
    body.push_str(&table(
        &["Segment", "Datastores that every host of its nodes reaches"],
        &datastores(facts),
    ));
    body
}

/// Datastores by topology segment, as far as the checks list them.
fn datastores(facts: &Value) -> Vec<Vec<String>> {
    let shared = list(&facts["doctor"]["datastores"]);
    let names = |entry: &Value| {
        list(&entry["datastores"])
            .iter()
            .map(|store| text(store.get("name").unwrap_or(store)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    shared
        .iter()
        .map(|entry| {
            let segment = text(&entry["segment"]);
            vec![if segment.is_empty() { "all nodes".to_owned() } else { segment }, names(entry)]
        })
        .collect()
}

/// What the accounts need, on which object, and whether they have it.
fn privileges(facts: &Value) -> String {
    let mut body = String::new();
    for account in list(&facts["doctor"]["privileges"]) {
        let mut rows: BTreeMap<(String, String, &str), Vec<String>> = BTreeMap::new();
        for (state, key) in [("missing", "missing"), ("there", "held")] {
            for one in list(&account[key]) {
                rows.entry((text(&one["path"]), text(&one["role"]), state))
                    .or_default()
                    .push(text(&one["privilege"]));
            }
        }
        // What is missing comes first.
        let mut rows: Vec<Vec<String>> = rows
            .into_iter()
            .map(|((path, role, state), privileges)| vec![state.to_owned(), path, role, privileges.join(", ")])
            .collect();
        rows.sort_by_key(|row| row[0] != "missing");
        if !rows.is_empty() {
            body.push_str(&format!(
                "<h3>{} on {}</h3>\n",
                escaped(&text(&account["principal"])),
                escaped(&text(&account["connection"]))
            ));
            body.push_str(&table(&["State", "Object", "Role", "Privileges"], &rows));
        }
    }
    body
}

/// The minor of the cluster.
fn minor(facts: &Value) -> Option<u64> {
    text(&facts["cluster"]["version"])
        .trim_start_matches('v')
        .split('.')
        .nth(1)?
        .parse()
        .ok()
}

fn versions(facts: &Value) -> String {
    let picture = svg(list(&facts["matrix"]["versions"]), minor(facts));
    if picture.is_empty() {
        return String::new();
    }
    let legend = "<p class=\"legend\"><span class=\"fits\"></span> supported <span class=\"unsure\"></span> unconfirmed <span class=\"old\"></span> deprecated \
                  <span class=\"here\"></span> this cluster</p>\n";
    format!("<div class=\"wide\">{picture}</div>\n{legend}")
}

/// What an upgrade of Kubernetes asks for, step by step.
fn outlook(facts: &Value) -> String {
    let mut steps = String::new();
    for stage in list(&facts["outlook"]["stages"]) {
        let fits = stage["fits"] == true;
        let mut lines: Vec<String> = list(&stage["changes"])
            .iter()
            .map(|change| {
                let path: Vec<String> = list(&change["path"]).iter().map(text).collect();
                let when = if change["when"] == "before" {
                    "before this step"
                } else {
                    "right after it"
                };
                format!(
                    "{} {} → {} {when}",
                    short(&text(&change["driver"])),
                    text(&change["from"]),
                    path.join(" → ")
                )
            })
            .collect();
        lines.extend(list(&stage["failures"]).iter().map(|failure| {
            let advice = text(&failure["advice"]);
            format!("{}{}{advice}", text(&failure["message"]), if advice.is_empty() { "" } else { ". " })
        }));
        if lines.is_empty() {
            lines.push("nothing changes".to_owned());
        }
        let lines: String = lines.iter().map(|line| format!("<li>{}</li>\n", escaped(line))).collect();
        steps.push_str(&format!(
            "<li class=\"{}\"><h3>Kubernetes {}</h3>\n<ul>\n{lines}</ul></li>\n",
            if fits { "good" } else { "bad" },
            escaped(&text(&stage["kubernetes"]))
        ));
    }
    if steps.is_empty() {
        steps
    } else {
        format!("<ol class=\"path\">\n{steps}</ol>\n")
    }
}

fn history(facts: &Value) -> String {
    let mut rows = Vec::new();
    for driver in list(&facts["history"]["drivers"]) {
        for revision in list(&driver["revisions"]).iter().rev() {
            let about = if revision["about"].is_object() {
                &revision["about"]
            } else {
                revision
            };
            rows.push(vec![
                short(&text(&driver["name"])).to_owned(),
                text(&revision["number"]),
                text(&about["version"]),
                text(&revision["outcome"]),
                text(&revision["time"]),
                text(&revision["cause"]),
            ]);
        }
    }
    table(&["Driver", "Revision", "Version", "Outcome", "Applied", "Cause"], &rows)
}

fn missing(facts: &Value) -> String {
    let lines: String = list(&facts["missing"])
        .iter()
        .map(|line| format!("<li>{}</li>\n", escaped(&text(line))))
        .collect();
    if lines.is_empty() { lines } else { format!("<ul>\n{lines}</ul>\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn facts() -> Value {
        json!({
            "vdoctl": "0.1.0", "taken": "2026-01-01T00:00:00Z", "cluster": {"name": "demo <1>", "version": "v1.34.4"}, "missing": ["plan: no answer"],
            "status": {"config": {"health": "Degraded", "message": "a & b"}, "operator": {"version": "0.1.0"},
                "drivers": [{"name": "vsphere-csi", "version": "3.7.3", "newest": "3.7.3", "pods": "4/7", "nodes": {"ready": 3, "total": 4}, "state": "degraded", "message": "w-3"}],
                "vcenters": [{"connection": "vc1", "server": "vc.example.com", "version": "8.0.3", "build": "1", "user": "k8s"}],
                "problems": [{"condition": "StorageReady", "reason": "PodsFailing", "fault": true, "message": "a pod fails"}]},
            "doctor": {"subjects": [{"subject": "connection", "name": "vc1", "checks": [
                    {"check": "NodesFound", "status": "False", "reason": "DiskUuidDisabled", "message": "VM w-3 has no UUID", "remedy": "govc vm.change", "findings": []},
                    {"check": "Resolved", "status": "True", "reason": "Healthy", "message": "it resolves", "remedy": "", "findings": []}]}],
                "nodes": [{"connection": "vc1", "node": "w-3", "machine": "/DC0/vm/w-3", "host": "esx-02", "hostVersion": "8.0.3", "hardware": "vmx-13", "diskUuid": false, "findings": []}],
                "privileges": [{"connection": "vc1", "principal": "k8s", "missing": [{"path": "/", "role": "CNS", "privilege": "Cns.Searchable"}], "held": [{"path": "/DC0", "role": "ReadOnly", "privilege": "System.Read"}]}]},
            "matrix": {"versions": [
                {"driver": "vsphere-csi", "version": "3.7.3", "kubernetes": {"min": "1.33", "max": "1.35", "confidence": "primary"}, "state": {"word": "good"}},
                {"driver": "vsphere-csi", "version": "3.7.0", "kubernetes": {"min": "1.33", "max": "1.35", "confidence": "primary"}, "state": {"word": "good"}},
                {"driver": "vsphere-csi", "version": "3.0.0", "kubernetes": {"min": "1.24", "max": "1.27", "confidence": "primary"}, "state": {"word": "withdrawn"}}]},
            "outlook": {"stages": [
                {"kubernetes": "1.35", "fits": true, "changes": [{"driver": "vsphere-cpi", "from": "1.34.0", "path": ["1.35.1"], "when": "with"}], "failures": []},
                {"kubernetes": "1.36", "fits": false, "changes": [], "failures": [{"message": "no version of vsphere-csi fits"}]}]},
            "history": {"drivers": [{"name": "vsphere-csi", "revisions": [{"number": 1, "version": "3.7.3", "outcome": "Deployed", "time": "2026-01-01T00:00:00Z", "cause": "installation"}]}]},
        })
    }

    #[test]
    fn report_page_shows_every_part_and_escapes_all_of_it() {
        let page = page(&facts());
        for part in [
            "demo &lt;1&gt;",
            "a &amp; b",
            "DiskUuidDisabled",
            "govc vm.change",
            "a pod fails",
            "/DC0/vm/w-3",
            "esx-02 (ESXi 8.0.3)",
            "Cns.Searchable",
            "CSI 3.7.0–3.7.3",
            "CPI 1.34.0 → 1.35.1 right after it",
            "no version of vsphere-csi fits",
            "installation",
            "plan: no answer",
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
        let page = page(&json!({"cluster": {"name": "empty"}}));
        assert!(page.contains("not deployed") && page.contains("The checks were not made.") && page.ends_with("</html>\n"));
    }
}
