// SPDX-License-Identifier: Apache-2.0
//! Lists all images that a chart can need, with any values and on each minor of Kubernetes; `vdoctl mirror pull` mirrors these images.

use crate::publish::rendered;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::Digest;
use vdo_core::chart::{self, Chart, ImageSource, RenderError};

/// An image that a mirror has to hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// As charts name it.
    pub reference: String,
    /// Where it is pulled from: elsewhere, when the registry of the reference was shut down.
    pub source: String,
    /// What it has to be, where the chart says it.
    pub digest: Option<Digest>,
}

/// Every image that a chart can ask for: those that its release lists, and those that it renders on one of these minors of Kubernetes with any
/// of the values that lead to other images.
///
/// # Errors
/// When it does not render.
pub fn references(chart: &Chart, minors: &[String]) -> Result<Vec<Wanted>, RenderError> {
    let mut all = BTreeMap::new();
    for image in chart.release.images.values() {
        for image in [Some(image), image.republished.as_deref()].into_iter().flatten() {
            let wanted = listed(chart, image);
            all.insert(wanted.reference.clone(), wanted);
        }
    }
    for reference in renderable(chart, minors)? {
        all.entry(reference.clone()).or_insert_with(|| Wanted {
            source: reference.clone(),
            digest: ImageSource::parse(&reference).digest,
            reference,
        });
    }
    Ok(all.into_values().collect())
}

/// The references of the objects, in every cell.
fn renderable(chart: &Chart, minors: &[String]) -> Result<BTreeSet<String>, RenderError> {
    let mut found = BTreeSet::new();
    let minors = if minors.is_empty() { &[String::new()] } else { minors };
    for minor in minors {
        for values in settings(chart) {
            let references = chart::images(&rendered(chart, minor, &values)?);
            // With a digest it is the same image.
            found.extend(references.into_iter().map(|reference| plain(&reference).to_owned()));
        }
    }
    Ok(found)
}

/// Values that lead to other objects, or to other references in them.
fn settings(chart: &Chart) -> Vec<Value> {
    let mut all = vec![Value::Null, chart::everything(chart)];
    if chart.values.pointer("/images/useRepublished").is_some() {
        all.push(json!({"images": {"useRepublished": true}}));
    }
    all
}

/// A reference by its tag alone, where it has one.
fn plain(reference: &str) -> &str {
    match reference.split_once('@') {
        Some((tagged, _)) if !ImageSource::parse(tagged).tag.is_empty() => tagged,
        _ => reference,
    }
}

fn listed(chart: &Chart, image: &ImageSource) -> Wanted {
    let named = |image: &ImageSource| match (&image.digest, image.tag.is_empty()) {
        (Some(digest), true) => format!("{}@{digest}", image.reference()),
        _ => image.reference(),
    };
    let reference = named(image);
    let closed = !chart::unavailable(chart, std::slice::from_ref(&reference)).is_empty();
    let open = image.republished.as_deref().filter(|_| closed).unwrap_or(image);
    Wanted {
        source: named(open),
        digest: open.digest.clone(),
        reference,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_core::chart::{Source, package};

    fn chart(release: &str, closed: &str) -> Chart {
        let files = [
            (
                "Chart.yaml",
                format!(
                    "apiVersion: v2\nname: toy\nversion: 0.0.0\nappVersion: v0.0.0\nannotations:\n  vdo.vmware.com/engine: minijinja\n  \
                     vdo.vmware.com/engine-version: \"1\"\n  vdo.vmware.com/role: other\n  vdo.vmware.com/configuration: none\n  vdo.vmware.com/closed-registries: {closed}\n"
                ),
            ),
            (
                "values.yaml",
                "images:\n  registry: \"\"\n  useRepublished: false\n  useDigests: false\n  overrides: {}\n".into(),
            ),
            ("values.schema.json", r#"{"type": "object"}"#.into()),
            (
                "templates/pod.yaml",
                "apiVersion: v1\nkind: Pod\nmetadata: {name: toy, namespace: toy}\nspec:\n  containers:\n  - {name: a, image: {{ image(\"main\") }}}\n  - {name: b, image: \"own.example/written:1\"}\n"
                    .into(),
            ),
            ("releases/1.0.yaml", format!("versions:\n  1.0.0:\n    images:\n      {release}\n")),
        ];
        let files = files.into_iter().map(|(path, text)| (path.to_owned(), text.into_bytes()));
        let source = Source::new(files);
        chart::open(&package(&source, &"1.0.0".parse().expect("a version")).expect("a package")).expect("a chart")
    }

    #[test]
    fn references_of_a_chart_are_those_of_every_value_and_those_that_its_release_lists() {
        let republished =
            "main: {registry: old.example, repository: a/main, tag: v1, republished: {registry: new.example, repository: main, tag: v1}}";
        let found = references(&chart(republished, "old.example"), &["1.34".into()]).expect("it renders");
        let found: Vec<_> = found
            .iter()
            .map(|wanted| (wanted.reference.as_str(), wanted.source.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("new.example/main:v1", "new.example/main:v1"),
                // It is asked for under this name by a cluster with images.registry, and is had elsewhere.
                ("old.example/a/main:v1", "new.example/main:v1"),
                ("own.example/written:1", "own.example/written:1"),
            ]
        );
    }

    #[test]
    fn references_that_have_only_a_digest_keep_it() {
        let digest = Digest::of(b"image");
        let release = format!("main: {{registry: r.example, repository: main, digest: '{digest}'}}");
        let found = references(&chart(&release, "none.example"), &[]).expect("it renders");
        let only = found.iter().find(|wanted| wanted.digest.is_some()).expect("one with a digest");
        assert_eq!(
            (only.reference.as_str(), found.len()),
            (format!("r.example/main@{digest}").as_str(), 2)
        );
    }
}
