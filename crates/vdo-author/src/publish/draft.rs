// SPDX-License-Identifier: Apache-2.0
//! Makes the next version of a matrix index: adds and marks versions, sets digests, number and expiry; keeps unknown fields.

use super::PublishError;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use vdo_api::types::{Digest, DriverName, DriverRole, DriverVersion};
use vdo_api::yaml;
use vdo_core::matrix::Index;
use vdo_core::matrix::lint::lint;

/// How long an index is good when neither its publisher nor the last one says: half a year.
pub const VALIDITY: SignedDuration = SignedDuration::from_hours(24 * 182);

/// The next version of an index, as its text says it: what this build does not know stays.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    document: Map<String, Value>,
    index: Index,
    changed: bool,
}

impl Draft {
    /// An index without drivers, not published yet.
    #[must_use]
    pub fn empty() -> Self {
        let document = map(json!({
            "apiVersion": "vdo.vmware.com/matrix/v1", "kind": "CompatibilityMatrix", "version": 0,
            "generated": null, "expires": null, "sources": {}, "drivers": {},
        }));
        let index = Index {
            version: 0,
            generated: None,
            expires: None,
            sources: Default::default(),
            preconditions: Default::default(),
            vcenter_builds: Vec::new(),
            released: Default::default(),
            stated_digests: Default::default(),
            privileges: None,
            drivers: Default::default(),
            unknown_fields: Vec::new(),
        };
        Self {
            document,
            index,
            changed: true,
        }
    }

    /// The last version of it.
    ///
    /// # Errors
    /// When it is not an index, or one of the original format.
    pub fn read(bytes: &[u8]) -> Result<Self, PublishError> {
        let index = Index::parse(bytes)?;
        // It was parsed, so it is YAML.
        let document = map(yaml::load_long(&String::from_utf8_lossy(bytes)).unwrap_or_default());
        if !document.contains_key("apiVersion") {
            return Err(PublishError::Original);
        }
        Ok(Self {
            document,
            index,
            changed: false,
        })
    }

    /// The last version of it, as it was read.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Whether there is anything to publish.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// The fields of a version, as they stand there.
    #[must_use]
    pub fn fields(&self, driver: &str, version: &DriverVersion) -> Option<&Map<String, Value>> {
        let versions = self.document.get("drivers")?.get(driver)?.get("versions")?.as_array()?;
        versions.iter().find(|entry| is(entry, version))?.as_object()
    }

    /// Adds a version; one that is there with the same chart stays as it is. Says whether it was added.
    ///
    /// # Errors
    /// When it is there with another chart, or the driver has another role.
    pub fn add(&mut self, driver: &DriverName, role: DriverRole, entry: Map<String, Value>) -> Result<bool, PublishError> {
        let (version, given) = (version_of(&entry), digest_of(&entry));
        if let (Some(version), Some(given)) = (&version, given) {
            let listed = self.fields(driver, version).map(digest_of);
            match listed {
                Some(Some(listed)) if listed == given => return Ok(false),
                Some(Some(listed)) => {
                    return Err(PublishError::Published {
                        driver: driver.clone(),
                        version: version.clone(),
                        listed,
                        given,
                    });
                }
                _ => {}
            }
        }
        let known = self.part("drivers").entry(driver.as_str());
        let known = known.or_insert_with(|| json!({"role": role.to_string(), "versions": []}));
        let listed = known.get("role").and_then(Value::as_str).unwrap_or_default();
        if listed != role.to_string() {
            return Err(PublishError::Role {
                driver: driver.clone(),
                listed: listed.to_owned(),
                given: role.to_string(),
            });
        }
        if let Some(versions) = known.get_mut("versions").and_then(Value::as_array_mut) {
            // Newest first.
            let of = |entry: &Value| entry.as_object().and_then(version_of);
            let place = versions.iter().position(|other| of(other) < version).unwrap_or(versions.len());
            versions.insert(place, entry.into());
        }
        self.changed = true;
        Ok(true)
    }

    /// A part of the document that is a map, as the parser has seen to.
    fn part(&mut self, name: &str) -> &mut Map<String, Value> {
        let part = self.document.entry(name).or_insert_with(|| json!({}));
        if !part.is_object() {
            *part = json!({});
        }
        part.as_object_mut().expect("it was made a map")
    }

    /// Adds sources and preconditions that facts name; what is there stays.
    pub fn explain(&mut self, field: &str, named: &Map<String, Value>) {
        if named.is_empty() {
            return;
        }
        let all = self.part(field);
        let count = all.len();
        for (name, value) in named {
            all.entry(name.as_str()).or_insert_with(|| value.clone());
        }
        self.changed |= self.part(field).len() > count;
    }

    /// Writes down the day on which a version was released.
    pub fn released(&mut self, driver: &DriverName, version: &DriverVersion, day: &str) {
        let of = self.part("released").entry(driver.as_str()).or_insert_with(|| json!({}));
        if let Some(of) = of.as_object_mut() {
            let before = of.insert(version.to_string(), day.into());
            self.changed |= before != Some(day.into());
        }
    }

    /// Writes digests, by the references of images, wherever there is none; one that was only stated is measured then. Says how many
    /// were written, and which images have another digest than the one that was found: these stay as they are.
    pub fn resolve(&mut self, found: &BTreeMap<String, Digest>) -> (usize, Vec<String>) {
        let (mut written, mut others, mut measured) = (0, Vec::new(), Vec::new());
        let drivers = self.part("drivers").values_mut();
        let entries = drivers.filter_map(|driver| driver.get_mut("versions")?.as_array_mut()).flatten();
        let images = entries.filter_map(|entry| entry.get_mut("images")?.as_array_mut()).flatten();
        for image in images {
            let reference = image.get("ref").and_then(Value::as_str).unwrap_or_default().to_owned();
            let Some(digest) = found.get(&reference).map(ToString::to_string) else {
                continue;
            };
            match image.get("digest").and_then(Value::as_str) {
                None => {
                    image["digest"] = digest.into();
                    written += 1;
                }
                Some(known) if known == digest => measured.push(digest),
                Some(known) => others.push(format!(
                    "{reference} has the digest {digest} in its registry, but {known} in the matrix"
                )),
            }
        }
        others.sort();
        others.dedup();
        let mut confirmed = 0;
        if let Some(Value::Object(all)) = self.document.get_mut("statedDigests") {
            for stated in all.values_mut().filter_map(Value::as_array_mut) {
                let before = stated.len();
                stated.retain(|digest| !measured.iter().any(|measured| digest == measured));
                confirmed += before - stated.len();
            }
            all.retain(|_, stated| stated != &json!([]));
        }
        self.changed |= written + confirmed > 0;
        (written, others)
    }

    /// Says of a version whether it may be chosen: `null` that it is good.
    ///
    /// # Errors
    /// When the driver has no such version.
    pub fn mark(&mut self, driver: &DriverName, version: &DriverVersion, state: Value) -> Result<(), PublishError> {
        let versions = self.part("drivers").get_mut(driver.as_str());
        let versions = versions.and_then(|driver| driver.get_mut("versions")?.as_array_mut());
        let entry = versions.into_iter().flatten().find(|entry| is(entry, version));
        let entry = entry.and_then(Value::as_object_mut).ok_or_else(|| PublishError::NotListed {
            driver: driver.clone(),
            version: version.clone(),
        })?;
        let before = match state.is_null() {
            true => entry.shift_remove("state"),
            false => entry.insert("state".to_owned(), state.clone()),
        };
        self.changed |= before.unwrap_or_default() != state;
        Ok(())
    }

    /// The bytes of the next version. Without `validity` it is good for as long as the last one was.
    ///
    /// # Errors
    /// When the clock is behind the last version, or the index would have mistakes.
    pub fn finish(mut self, now: Timestamp, validity: Option<SignedDuration>) -> Result<Vec<u8>, PublishError> {
        if let Some(generated) = self.index.generated.filter(|generated| *generated > now) {
            return Err(PublishError::Clock(generated));
        }
        let before = self.index.expires.zip(self.index.generated);
        let before = before.map(|(expires, generated)| expires.duration_since(generated));
        let validity = validity.or(before).unwrap_or(VALIDITY);
        // A matrix may say that it is valid for ten thousand years.
        let expires = now.saturating_add(validity).unwrap_or(Timestamp::MAX);
        let second = |time: Timestamp| Timestamp::from_second(time.as_second()).unwrap_or(time).to_string();
        let document = &mut self.document;
        document.insert("version".to_owned(), self.index.version.saturating_add(1).into());
        document.insert("generated".to_owned(), second(now).into());
        document.insert("expires".to_owned(), second(expires).into());
        let text = yaml::dump(&self.document).map_err(|error| PublishError::Mistakes(vec![error.to_string()]))?;
        let findings = lint(&text, &self.index).findings;
        if findings.is_empty() {
            return Ok(text.into_bytes());
        }
        let sentence = |finding: vdo_core::matrix::lint::Finding| {
            let place = [finding.at, finding.field].join(" ");
            format!("{}: {}", place.trim(), finding.problem)
        };
        Err(PublishError::Mistakes(findings.into_iter().map(sentence).collect()))
    }
}

fn is(entry: &Value, version: &DriverVersion) -> bool {
    entry.as_object().and_then(version_of).as_ref() == Some(version)
}

fn version_of(entry: &Map<String, Value>) -> Option<DriverVersion> {
    entry.get("version")?.as_str()?.parse().ok()
}

fn digest_of(entry: &Map<String, Value>) -> Option<Digest> {
    format!("sha256:{}", entry.get("chart")?.get("sha256")?.as_str()?).parse().ok()
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
