// SPDX-License-Identifier: Apache-2.0
//! The OCI artifact of a chart package, as `helm push` makes it: tag, configuration and annotations, and the metadata for Artifact Hub.

use super::archive::{ArchiveError, unpack};
use super::opened_chart::ChartError;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use vdo_api::types::DriverRole;
use vdo_api::yaml;

/// A package with what is known of it beside its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// The name of the chart.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `Chart.yaml` as JSON, with the annotations.
    pub config: Vec<u8>,
    /// For the manifest: those of `Chart.yaml`, those that were added, and the ones that Helm makes.
    pub annotations: BTreeMap<String, String>,
}

/// The tag of a version: a tag has no `+`, so Helm writes `_`.
#[must_use]
pub fn tag(version: &str) -> String {
    version.replace('+', "_")
}

/// What a registry shows of a package, as `helm push` would, with further annotations. It need not be a chart of this project.
///
/// # Errors
/// When it is not a package, or has no `Chart.yaml` with name and version.
pub fn described(package: &[u8], further: BTreeMap<String, String>) -> Result<Described, ArchiveError> {
    let file = || "Chart.yaml".to_owned();
    let files = unpack(package)?;
    let bytes = files.get("Chart.yaml").ok_or_else(|| ChartError::Missing { file: file() })?;
    let text = std::str::from_utf8(bytes).map_err(|_| ChartError::NotText { file: file() })?;
    let mut metadata: Map<String, Value> = yaml::load(text).map_err(|source| ChartError::Yaml { file: file(), source })?;
    let field = |name: &str| metadata.get(name).and_then(Value::as_str).map(str::to_owned);
    let required = |name: &str| {
        let value = field(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| ChartError::Metadata(format!("it has no {name}")))
    };
    let (name, version) = (required("name")?, required("version")?);
    let mut annotations: BTreeMap<String, String> = match metadata.get("annotations") {
        Some(Value::Object(own)) => own
            .iter()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect(),
        _ => BTreeMap::new(),
    };
    // What the author has written counts more.
    for (key, value) in further {
        annotations.entry(key).or_insert(value);
    }
    metadata.insert("annotations".into(), json!(annotations));
    let first = |name: &str| metadata.get(name)?.as_array()?.first()?.as_str().map(str::to_owned);
    let authors: Vec<&str> = metadata
        .get("maintainers")
        .and_then(Value::as_array)
        .map(|all| all.iter().filter_map(|one| one["name"].as_str()).collect())
        .unwrap_or_default();
    let released = annotations.get("vdo.vmware.com/released").map(|day| format!("{day}T00:00:00Z"));
    for (key, value) in [
        ("title", Some(name.clone())),
        ("version", Some(version.clone())),
        (
            "description",
            metadata.get("description").and_then(Value::as_str).map(str::to_owned),
        ),
        ("url", metadata.get("home").and_then(Value::as_str).map(str::to_owned)),
        ("source", first("sources")),
        ("authors", Some(authors.join(", "))),
        ("created", released),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            annotations.insert(format!("org.opencontainers.image.{key}"), value);
        }
    }
    Ok(Described {
        name,
        version,
        config: serde_json::to_vec(&metadata).unwrap_or_default(),
        annotations,
    })
}

/// What Artifact Hub shows of a driver's chart.
#[must_use]
pub fn hub(
    role: DriverRole,
    is_prerelease: bool,
    images: &[String],
    links: &[(&str, &str)],
    license: Option<&str>,
) -> BTreeMap<String, String> {
    let list = |entries: Vec<Value>| yaml::dump_all(&[Value::Array(entries)]).trim_start_matches("---\n").to_owned();
    let image = |image: &String| {
        let name = image.rsplit('/').next().unwrap_or(image);
        json!({"name": name.split([':', '@']).next().unwrap_or(name), "image": image})
    };
    let category = match role {
        DriverRole::Storage => Some("storage"),
        DriverRole::Network => Some("networking"),
        _ => None,
    };
    let mut all = BTreeMap::from([("prerelease", is_prerelease.to_string())]);
    all.extend(category.map(|category| ("category", category.to_owned())));
    all.extend(license.map(|license| ("license", license.to_owned())));
    if !images.is_empty() {
        all.insert("images", list(images.iter().map(image).collect()));
    }
    if !links.is_empty() {
        let link = |(name, url): &(&str, &str)| json!({"name": name, "url": url});
        all.insert("links", list(links.iter().map(link).collect()));
    }
    all.into_iter()
        .map(|(key, value)| (format!("artifacthub.io/{key}"), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_of_a_version_has_no_plus() {
        assert_eq!(tag("1.2.3-rc.1+build.4"), "1.2.3-rc.1_build.4");
    }

    #[test]
    fn hub_annotations_are_yaml_that_lists_images_and_links() {
        let images = [
            "registry.example/team/driver:v1".to_owned(),
            "registry.example/team/syncer@sha256:12".to_owned(),
        ];
        let all = hub(
            DriverRole::Storage,
            false,
            &images,
            &[("source", "https://x.example")],
            Some("Apache-2.0"),
        );
        let read = |key: &str| yaml::load_value(&all[key]).expect("YAML");
        assert_eq!(
            read("artifacthub.io/images"),
            json!([{"name": "driver", "image": images[0]}, {"name": "syncer", "image": images[1]}])
        );
        assert_eq!(
            read("artifacthub.io/links"),
            json!([{"name": "source", "url": "https://x.example"}])
        );
        assert_eq!(
            (all["artifacthub.io/license"].as_str(), all["artifacthub.io/category"].as_str()),
            ("Apache-2.0", "storage")
        );
        assert_eq!(hub(DriverRole::Other, true, &[], &[], None).len(), 1);
    }
}
