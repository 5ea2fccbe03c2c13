// SPDX-License-Identifier: Apache-2.0
//! What is given to Prometheus and kube-state-metrics, against the pages and the definitions.

#![allow(clippy::panic, reason = "a failing test should stop where it fails")]

use crate::sources::root;
use serde_json::Value;
use std::collections::BTreeSet;
use vdo_api::yaml;

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn document(path: &str) -> Value {
    let mut all = yaml::load_all(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    all.remove(0)
}

#[test]
fn alerts_lead_to_a_section_each() {
    let base = format!("{}/blob/main/docs/monitoring.md#", env!("CARGO_PKG_REPOSITORY"));
    let rules = document("deploy/monitoring/alerts.yaml");
    let groups = rules["spec"]["groups"].as_array().expect("groups");
    let rules: Vec<Value> = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().expect("rules").clone())
        .collect();
    let mut alerts = BTreeSet::new();
    for rule in &rules {
        let alert = rule["alert"].as_str().expect("a name");
        let link = rule["annotations"]["runbook_url"].as_str().unwrap_or_default();
        assert_eq!(link, format!("{base}{}", alert.to_lowercase()), "{alert}");
        alerts.insert(alert.to_owned());
    }
    let page = read("docs/monitoring.md");
    let sections = page.lines().filter_map(|line| line.strip_prefix("### "));
    let sections: BTreeSet<String> = sections.map(str::to_owned).collect();
    assert_eq!(sections, alerts, "docs/monitoring.md has a section for each alert");
}

/// The part of a schema that a path leads to; through a list, to its items.
fn follow<'a>(schema: &'a Value, path: &Value) -> Option<&'a Value> {
    let path = path.as_array()?;
    path.iter().try_fold(schema, |schema, name| {
        let schema = schema.get("items").unwrap_or(schema);
        schema.get("properties")?.get(name.as_str()?)
    })
}

#[test]
fn kube_state_metrics_reads_fields_that_exist() {
    let configuration = document("deploy/monitoring/kube-state-metrics.yaml");
    let mut followed = 0;
    for resource in configuration["spec"]["resources"].as_array().expect("resources") {
        let kind = resource["groupVersionKind"]["kind"].as_str().expect("a kind").to_lowercase();
        let definition = document(&format!("deploy/crds/vdo.vmware.com_{kind}s.yaml"));
        let mut schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
        let metadata = serde_json::json!({"properties": {"name": {}, "namespace": {}, "generation": {}}});
        schema["properties"]["metadata"] = metadata;
        let mut check = |schema: &Value, path: &Value| {
            followed += 1;
            follow(schema, path).cloned().unwrap_or_else(|| panic!("{kind}: {path}"))
        };
        for path in resource["labelsFromPath"].as_object().expect("labels").values() {
            check(&schema, path);
        }
        for metric in resource["metrics"].as_array().expect("metrics") {
            let each = &metric["each"];
            let of_type = ["gauge", "info", "stateSet"]
                .iter()
                .find_map(|name| each.get(name))
                .expect("a type");
            let found = check(&schema, &of_type["path"]);
            for path in of_type["labelsFromPath"].as_object().into_iter().flat_map(|labels| labels.values()) {
                check(&found, path);
            }
            if let Some(path) = of_type.get("valueFrom") {
                check(&found, path);
            }
            if let Some(list) = of_type.get("list") {
                assert_eq!(&found["enum"], list, "{kind}: {}", metric["name"]);
            }
        }
    }
    assert!(followed > 20, "only {followed} paths");
}

/// Grafana adds the filter `cluster = east` to each query of the data source that the filter names, and to no other.
#[test]
fn dashboard_filter_reaches_every_panel() {
    let dashboard: Value = serde_json::from_str(&read("deploy/monitoring/dashboard.json")).expect("JSON");
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let filters: Vec<&Value> = variables.iter().filter(|variable| variable["type"] == "adhoc").collect();
    let [filter] = filters.as_slice() else {
        panic!("one filter above the panels, not {filters:?}");
    };
    let source = &filter["datasource"];
    let chosen = variables
        .iter()
        .find(|variable| variable["type"] == "datasource")
        .expect("a data source to choose");
    let name = chosen["name"].as_str().expect("a name");
    assert_eq!(
        source["uid"],
        format!("${{{name}}}"),
        "the filter is for the data source that is chosen"
    );
    assert_eq!(filter["filters"], serde_json::json!([]), "every cluster is shown at first");
    let rows = dashboard["panels"].as_array().expect("panels").iter();
    let panels = rows.flat_map(|panel| std::iter::once(panel).chain(panel["panels"].as_array().into_iter().flatten()));
    let mut queries = 0;
    for panel in panels {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let own = target.get("datasource").or_else(|| panel.get("datasource"));
            assert_eq!(own, Some(source), "{}: the filter does not reach it", panel["title"]);
            let query = target["expr"].as_str().expect("a query");
            assert!(!query.contains("cluster="), "{}: {query} has a cluster of its own", panel["title"]);
            queries += 1;
        }
    }
    assert!(queries > 20, "only {queries} queries");
}
