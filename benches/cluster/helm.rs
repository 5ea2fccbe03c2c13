// SPDX-License-Identifier: Apache-2.0
//! A Helm chart that renders what our CSI chart renders.

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use vdo_api::yaml;
use vdo_core::chart::Chart;

const REPLICAS: &str = "{{ .Values.controller.replicas }}";

/// Writes it: the objects as templates that take images, namespace and replicas from values; our values, our schema.
pub fn write(folder: &Path, chart: &Chart, objects: &[Value]) -> Result<()> {
    ensure!(
        !json!(objects).to_string().contains("{{"),
        "an object holds braces, which Helm would read"
    );
    std::fs::create_dir_all(folder.join("templates"))?;
    let metadata = json!({"apiVersion": "v2", "name": chart.metadata.name, "version": chart.metadata.version});
    std::fs::write(folder.join("Chart.yaml"), yaml::dump(&metadata)?)?;

    let images: BTreeMap<&str, String> = chart
        .release
        .images
        .iter()
        .map(|(name, image)| (name.as_str(), format!("{}/{}:{}", image.registry, image.repository, image.tag)))
        .collect();
    let mut values = chart.values.clone();
    values["release"] = json!({ "images": images });
    std::fs::write(folder.join("values.yaml"), yaml::dump(&values)?)?;
    let mut schema = chart.schema().clone();
    schema["properties"]["release"] = json!({"type": "object"});
    std::fs::write(folder.join("values.schema.json"), schema.to_string())?;

    let names: BTreeMap<&str, &str> = images.iter().map(|(name, image)| (image.as_str(), *name)).collect();
    let namespace = values["namespace"].as_str().context("a namespace")?;
    for (number, object) in objects.iter().enumerate() {
        let template = yaml::dump(&interpolated("", object, namespace, &names))?;
        // A number must not stay in quotation marks.
        let template = ['"', '\'']
            .iter()
            .fold(template, |text, mark| text.replace(&format!("{mark}{REPLICAS}{mark}"), REPLICAS));
        std::fs::write(folder.join(format!("templates/object-{number:02}.yaml")), template)?;
    }
    Ok(())
}

fn interpolated(key: &str, value: &Value, namespace: &str, images: &BTreeMap<&str, &str>) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), interpolated(key, value, namespace, images)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(|item| interpolated("", item, namespace, images)).collect(),
        Value::Number(_) if key == "replicas" => REPLICAS.into(),
        Value::String(text) if key == "namespace" && text == namespace => "{{ .Values.namespace }}".into(),
        Value::String(text) if key == "image" => match images.get(text.as_str()) {
            Some(name) => format!("{{{{ .Values.release.images.{name} }}}}").into(),
            None => value.clone(),
        },
        other => other.clone(),
    }
}
