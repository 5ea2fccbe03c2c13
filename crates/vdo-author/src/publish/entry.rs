// SPDX-License-Identifier: Apache-2.0
//! Builds the matrix entry of a driver version from its chart, the publisher's facts and the entry of the version before.

use super::PublishError;
use super::chart_check::rendered;
use serde_json::{Map, Value, json};
use vdo_api::types::{Digest, DriverVersion, VersionRange};
use vdo_api::yaml;
use vdo_core::chart::{self, Chart, RenderError};
use vdo_core::matrix::Image;

/// What the publisher states of a version.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Fields of the entry.
    pub fields: Map<String, Value>,
    /// Where they come from, by name.
    pub sources: Map<String, Value>,
    /// The preconditions that they name, in words.
    pub preconditions: Map<String, Value>,
}

/// What the entry of a version gets from its chart.
const OF_CHART: [&str; 3] = ["version", "chart", "images"];
/// What versions of one minor have in common, unless something else is stated.
const SHARED: [&str; 5] = ["kubernetes", "vsphere", "requires", "features", "upgradesFrom"];

impl Facts {
    /// Reads a file with facts.
    ///
    /// # Errors
    /// When it is not a map of facts.
    pub fn parse(text: &str) -> Result<Self, PublishError> {
        let wrong = |problem: String| PublishError::Facts(problem);
        let Value::Object(mut fields) = yaml::load_value(text).map_err(|error| wrong(error.to_string()))? else {
            return Err(wrong("they are not a map".to_owned()));
        };
        if let Some(field) = OF_CHART.into_iter().find(|field| fields.contains_key(*field)) {
            return Err(wrong(format!("{field} is taken from the chart and cannot be set")));
        }
        let parts = ["sources", "preconditions"];
        let known = || SHARED.into_iter().chain(parts).chain(["state"]);
        if let Some(field) = fields.keys().find(|field| !known().any(|known| known == field.as_str())) {
            let known = known().collect::<Vec<_>>().join(", ");
            return Err(wrong(format!("{field} is not one of the possible fields: {known}")));
        }
        let mut part = |name: &str| match fields.shift_remove(name) {
            None => Ok(Map::new()),
            Some(Value::Object(part)) => Ok(part),
            Some(_) => Err(wrong(format!("{name} is not a map"))),
        };
        let (sources, preconditions) = (part("sources")?, part("preconditions")?);
        Ok(Self {
            fields,
            sources,
            preconditions,
        })
    }

    /// States a range that is based on nothing but the publisher's word.
    pub fn range(&mut self, field: &str, range: &VersionRange) {
        let stated = json!({"min": range.min(), "max": range.max(), "confidence": "unverified"});
        self.fields.insert(field.to_owned(), stated);
    }
}

/// The entry of a version: what its chart says, what the publisher states, and for the rest what is known of the version of the same minor
/// before it.
///
/// # Errors
/// When it is not known what it supports.
pub fn entry(
    chart: &Chart,
    digest: &Digest,
    images: &[Image],
    facts: &Facts,
    before: Option<(&DriverVersion, &Map<String, Value>)>,
) -> Result<Map<String, Value>, PublishError> {
    let (driver, version) = (&chart.metadata.name, &chart.metadata.version);
    let before = before.filter(|(before, _)| before.minor() == version.minor());
    let mut entry = Map::new();
    entry.insert("version".to_owned(), version.to_string().into());
    let url = format!("charts/{driver}-{version}.tgz");
    entry.insert("chart".to_owned(), json!({"urls": [url], "sha256": digest.hex()}));
    for field in SHARED {
        let same = || before.and_then(|(version, fields)| Some(taken_over(fields.get(field)?, version)));
        if let Some(value) = facts.fields.get(field).cloned().or_else(same) {
            entry.insert(field.to_owned(), value);
        }
    }
    for (field, value) in facts.fields.iter().filter(|(field, _)| !SHARED.contains(&field.as_str())) {
        entry.insert(field.clone(), value.clone());
    }
    for (field, what) in [("kubernetes", "Kubernetes"), ("vsphere", "vSphere")] {
        if !entry.contains_key(field) {
            return Err(PublishError::NotStated {
                driver: driver.clone(),
                version: version.clone(),
                minor: version.minor(),
                what,
            });
        }
    }
    entry.insert("images".to_owned(), json!(images));
    Ok(entry)
}

/// A fact of the version before: for this one it is based on nothing but that.
fn taken_over(fact: &Value, from: &DriverVersion) -> Value {
    let mut fact = fact.clone();
    if let Some(range) = fact.as_object_mut().filter(|fields| fields.contains_key("confidence")) {
        range.shift_remove("evidence");
        range.insert("confidence".to_owned(), "unverified".into());
        range.insert("note".to_owned(), format!("copied from {from}").into());
    }
    fact
}

/// The images of a chart with its default values, as an entry lists them.
///
/// # Errors
/// When it does not render, or renders an image that its release does not list.
pub fn images(chart: &Chart) -> Result<Result<Vec<Image>, String>, RenderError> {
    let rendered = chart::images(&rendered(chart, "", &Value::Null)?);
    let mut images = Vec::new();
    for (name, source) in &chart.release.images {
        let reference = source.reference();
        if rendered.contains(&reference) {
            images.push(Image {
                name: name.clone(),
                reference,
                digest: source.digest.clone(),
            });
        }
    }
    let missing = rendered.iter().find(|image| !images.iter().any(|known| known.reference == **image));
    Ok(match missing {
        Some(image) => Err(format!("renders {image}, which its release does not list")),
        None => Ok(images),
    })
}
