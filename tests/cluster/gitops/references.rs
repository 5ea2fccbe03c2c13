// SPDX-License-Identifier: Apache-2.0
//! What the documents of docs/gitops.md name is there: other documents, folders, the chart and its values, fields of a machine configuration.

use super::recipes::{document, documents, page};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;

fn chart(file: &str) -> Result<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/chart").join(file);
    Ok(vdo_api::yaml::load_value(&std::fs::read_to_string(path)?)?)
}

#[test]
fn gitops_documents_name_what_is_there() -> Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for name in ["vdo-operator", "vdo-config"] {
        let spec = document("Kustomization", name)?["spec"].take();
        document(&text(&spec["sourceRef"]["kind"]), &text(&spec["sourceRef"]["name"]))?;
        for other in spec["dependsOn"].as_array().into_iter().flatten() {
            document("Kustomization", &text(&other["name"]))?;
        }
    }
    let reference = &document("HelmRelease", "vdo")?["spec"]["chartRef"];
    document(&text(&reference["kind"]), &text(&reference["name"]))?;
    let set = document("ClusterResourceSet", "vdo")?;
    let profile = document("ClusterProfile", "vdo")?;
    let listed = [&set["spec"]["resources"], &profile["spec"]["policyRefs"]];
    for reference in listed.into_iter().flat_map(|list| list.as_array().into_iter().flatten()) {
        let (kind, name) = (text(&reference["kind"]), text(&reference["name"]));
        // One is made by a command of the page, which a test runs.
        let made = page()?.contains(&format!("kubectl create {} {name} ", kind.to_lowercase()));
        ensure!(made || document(&kind, &name).is_ok(), "there is no {kind} {name}");
    }
    let cluster = document("Cluster", "east")?;
    let class = document("ClusterClass", &text(&cluster["spec"]["topology"]["classRef"]["name"]))?;
    let names = |list: &Value| -> Vec<String> {
        let all = list.as_array().into_iter().flatten();
        all.map(|one| text(&one["name"])).collect()
    };
    ensure!(names(&class["spec"]["variables"]) == names(&cluster["spec"]["topology"]["variables"]));
    for selecting in [&set, &profile, &document("HelmChartProxy", "vdo")?] {
        let wanted = &selecting["spec"]["clusterSelector"]["matchLabels"];
        ensure!(*wanted == cluster["metadata"]["labels"], "{wanted} selects no cluster of the page");
    }
    Ok(())
}

#[test]
fn gitops_charts_are_the_operators_with_values_that_it_has() -> Result<()> {
    let (of_chart, values) = (chart("Chart.yaml")?, chart("values.yaml")?);
    let (name, version) = (&of_chart["name"], &of_chart["version"]);
    let repository = document("OCIRepository", "vdo")?;
    let (proxy, helm) = (document("HelmChartProxy", "vdo")?, document("HelmChart", "vdo")?);
    let profile = &document("ClusterProfile", "vdo")?["spec"]["helmCharts"][0];
    ensure!(repository["spec"]["ref"]["tag"] == *version && helm["spec"]["version"] == *version && proxy["spec"]["version"] == *version);
    ensure!(profile["chartVersion"] == *version && profile["chartName"] == *name && proxy["spec"]["chartName"] == *name);
    for address in [&repository["spec"]["url"], &helm["spec"]["chart"]] {
        let address = address.as_str().context("an address")?;
        ensure!(address.ends_with(&format!("/{}", name.as_str().unwrap_or_default())), "{address}");
    }
    for text in [&proxy["spec"]["valuesTemplate"], &helm["spec"]["valuesContent"]] {
        let given = vdo_api::yaml::load_value(text.as_str().context("values")?)?;
        for key in given.as_object().into_iter().flat_map(|fields| fields.keys()) {
            ensure!(values.get(key).is_some(), "the chart has no value {key}");
        }
    }
    Ok(())
}

/// The names of pkg/machinery/config/types/v1alpha1/v1alpha1_types.go of github.com/siderolabs/talos: ClusterConfig, ExternalCloudProviderConfig and
/// ClusterInlineManifest.
#[test]
fn gitops_machine_configuration_has_keys_of_talos() -> Result<()> {
    let known = |value: &Value, names: &[&str]| -> Result<()> {
        for key in value.as_object().context("an object")?.keys() {
            ensure!(names.contains(&key.as_str()), "{key} is none of {names:?}");
        }
        Ok(())
    };
    let mut all = documents()?;
    all.retain(|document| document["kind"].is_null());
    ensure!(all.len() == 1, "one document is no object");
    known(&all[0], &["cluster"])?;
    let cluster = &all[0]["cluster"];
    known(cluster, &["externalCloudProvider", "extraManifests", "inlineManifests"])?;
    known(&cluster["externalCloudProvider"], &["enabled", "manifests"])?;
    let inline = cluster["inlineManifests"].as_array().context("manifests")?;
    ensure!(inline.len() == 2);
    inline.iter().try_for_each(|manifest| known(manifest, &["name", "contents"]))
}
