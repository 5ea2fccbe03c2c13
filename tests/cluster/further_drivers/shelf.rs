// SPDX-License-Identifier: Apache-2.0
//! A matrix in a folder: everything of the embedded one, and further drivers beside it.

use crate::common::Bed;
use crate::matrix_source::embedded_index;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use vdo_api::types::Digest;

/// A release of a driver.
pub struct Release {
    pub version: &'static str,
    from: From,
}

enum From {
    /// The binary.
    Embedded,
    Templates,
    Manifests {
        role: &'static str,
        texts: Vec<String>,
    },
}

impl Release {
    /// Rendered by the templates below.
    pub fn templates(version: &'static str) -> Self {
        Self {
            version,
            from: From::Templates,
        }
    }

    /// In the matrix of the binary.
    pub fn embedded(version: &'static str) -> Self {
        let from = From::Embedded;
        Self { version, from }
    }

    pub fn is_embedded(&self) -> bool {
        matches!(self.from, From::Embedded)
    }

    /// Imported from manifests.
    pub fn manifests(role: &'static str, version: &'static str, texts: Vec<String>) -> Self {
        Self {
            version,
            from: From::Manifests { role, texts },
        }
    }
}

pub struct Shelf {
    folder: tempfile::TempDir,
}

const TEMPLATE: &str = r#"apiVersion: v1
kind: Namespace
metadata:
  name: {{ values.namespace }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: lamp
  namespace: {{ values.namespace }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ "lamp-" ~ release.version }}
  namespace: {{ values.namespace }}
data:
  light: {{ values.light }}
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: lamp
  namespace: {{ values.namespace }}
spec:
  selector:
    matchLabels: {app: lamp}
  template:
    metadata:
      labels: {app: lamp}
    spec:
      serviceAccountName: lamp
      containers:
      - name: lamp
        image: {{ image("lamp") }}
"#;

const CHART: &str = "apiVersion: v2
name: lamp
description: A lamp for every rack
type: application
version: 0.0.0
appVersion: v0.0.0
annotations:
  vdo.vmware.com/engine: minijinja
  vdo.vmware.com/engine-version: \"1\"
  vdo.vmware.com/role: other
  vdo.vmware.com/configuration: none
";

impl Shelf {
    /// Makes the charts with vdoctl, as a publisher would, and an index of them.
    pub fn of(bed: &Bed, name: &str, releases: &[Release]) -> Result<Self> {
        // As on the machines of people: with a space.
        let folder = tempfile::Builder::new().prefix("the shelf ").tempdir()?;
        let at = |path: &str| folder.path().join(path);
        let run = |args: &[&str]| -> Result<()> {
            let (code, text, talk) = bed.vdoctl(args)?;
            ensure!(code == 0, "vdoctl {args:?}: {code} {text} {talk}");
            Ok(())
        };
        let mut index = embedded_index()?;
        let charts = at("charts");
        let mut entries = Vec::new();
        let mut role = "other";
        for release in releases.iter().rev() {
            match &release.from {
                From::Embedded => {}
                From::Templates => write_templates(&charts.join(name), releases)?,
                From::Manifests { role: own, texts } => {
                    role = own;
                    let file = |number: usize| at(&format!("{}-{number}.yaml", release.version));
                    for (number, text) in texts.iter().enumerate() {
                        fs::write(file(number), text)?;
                    }
                    let files: Vec<PathBuf> = (0..texts.len()).map(file).collect();
                    let mut args = vec!["chart", "import", "--name", name, "--role", own, "--version", release.version];
                    args.extend(["--output", utf8(&charts)?]);
                    for file in &files {
                        args.push(utf8(file)?);
                    }
                    run(&args)?;
                    let mut args = vec!["chart", "compare", name, "--version", release.version, "--charts", utf8(&charts)?];
                    for file in &files {
                        args.push(utf8(file)?);
                    }
                    run(&args)?;
                }
            }
            let package = format!("{name}-{}.tgz", release.version);
            let path = at(&package);
            let (version, charts) = (["--version", release.version], ["--charts", utf8(&charts)?]);
            run(&[&["chart", "package", name, "-o", utf8(&path)?], &version[..], &charts].concat())?;
            let (code, images, talk) = bed.vdoctl(&[&["chart", "images", name, "-o", "json"], &version[..], &charts].concat())?;
            ensure!(code == 0, "{talk}");
            let images: Value = serde_json::from_str(&images)?;
            let digest = Digest::of(&fs::read(&path)?).to_string();
            entries.push(json!({
                "version": release.version,
                "chart": {"sha256": digest.trim_start_matches("sha256:"), "urls": [package]},
                "kubernetes": {"min": "1.30", "max": "1.36", "confidence": "primary", "evidence": ["own"]},
                "vsphere": {"min": null, "max": null, "confidence": "primary", "evidence": ["own"]},
                "images": images_of(&images),
            }));
        }
        index["sources"]["own"] = json!({"url": "https://example.com", "kind": "primary", "note": "the project itself"});
        index["drivers"][name] = json!({"role": role, "versions": entries});
        index["version"] = 8000.into();
        fs::write(at("index.yaml"), serde_json::to_vec(&index)?)?;
        // The other charts come out of the binary.
        Ok(Self { folder })
    }

    /// The index. It lives as long as the tests, as flags do.
    pub fn index(&self) -> &'static str {
        Box::leak(self.folder.path().display().to_string().into_boxed_str())
    }
}

/// Grants what is missing, as the message says.
pub async fn grant(bed: &Bed, message: &str) -> Result<()> {
    let command = message.split("vdoctl ").nth(1).and_then(|rest| rest.split(" | ").next());
    let words = command.and_then(shlex::split).context("a command")?;
    let args: Vec<&str> = words.iter().map(String::as_str).collect();
    let (code, text, talk) = bed.vdoctl(&args)?;
    ensure!(code == 0 && talk.contains("is missing"), "{code} {talk}");
    for object in vdo_api::yaml::load_all(&text)? {
        bed.apply(&object).await?;
    }
    let (_, text, talk) = bed.vdoctl(&args)?;
    ensure!(text.trim().is_empty() && talk.contains("has all required rights"), "{text} {talk}");
    Ok(())
}

fn utf8(path: &Path) -> Result<&str> {
    path.to_str().context("a path in UTF-8")
}

fn images_of(found: &Value) -> Value {
    let all = found.as_array().cloned().unwrap_or_default();
    let one = |image: Value| json!({"name": image["name"], "ref": image["ref"], "digest": null});
    all.into_iter().map(one).collect()
}

fn write_templates(chart: &Path, releases: &[Release]) -> Result<()> {
    fs::create_dir_all(chart.join("templates"))?;
    fs::create_dir_all(chart.join("releases"))?;
    let text = |description: &str| json!({"description": description, "type": "string"});
    let object = |description: &str, properties: Value| {
        let required: Vec<&String> = properties.as_object().expect("a map").keys().collect();
        json!({"description": description, "type": "object", "additionalProperties": false, "required": required, "properties": properties})
    };
    let values = object(
        "The lamp.",
        json!({
            "namespace": text("Where the lamp runs."),
            "images": object("Where images come from.", json!({"registry": text("A registry that replaces the one of every image.")})),
            "light": text("How bright it is."),
        }),
    );
    let release = object(
        "A release.",
        json!({"version": text("The version."), "date": text("Its day."), "images": {"description": "Its images.", "type": "object"}}),
    );
    let files = [
        ("Chart.yaml", CHART.to_owned()),
        (
            "values.yaml",
            "namespace: lamps\nimages:\n  registry: \"\"\nlight: dim\n".to_owned(),
        ),
        ("values.schema.json", values.to_string()),
        ("release.schema.json", release.to_string()),
        ("templates/lamp.yaml", TEMPLATE.to_owned()),
    ];
    for (name, text) in files {
        fs::write(chart.join(name), text)?;
    }
    for release in releases {
        let minor = release.version.rsplit_once('.').context("a version")?.0;
        let image = json!({"lamp": {"registry": "registry.example.com", "repository": "lamps/lamp", "tag": release.version}});
        let text = json!({"versions": {release.version: {"date": "2026-01-15", "images": image}}});
        fs::write(chart.join(format!("releases/{minor}.yaml")), text.to_string())?;
    }
    Ok(())
}
