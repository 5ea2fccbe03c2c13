// SPDX-License-Identifier: Apache-2.0
//! `matrix-index/index.yaml`: what is known of the drivers (`facts.yaml`), for every version that `charts/` has a release of, with the
//! digest of its package and the images it renders.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use vdo_api::types::{Digest, DriverVersion};
use vdo_api::yaml;
use vdo_author::publish;
use vdo_core::chart::{self, Source};

type Failure = Box<dyn std::error::Error>;

/// The chart source in a folder of the working copy.
pub(crate) fn source(folder: &Path) -> Result<Source, Failure> {
    fn collect(root: &Path, folder: &Path, source: &mut Source) -> Result<(), Failure> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                collect(root, &path, source)?;
            } else {
                let name = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
                source.files.insert(name, fs::read(&path)?);
            }
        }
        Ok(())
    }
    let mut source = Source::default();
    collect(folder, folder, &mut source)?;
    Ok(source)
}

/// What a chart adds to an entry: the digest of its package, and its images.
pub(crate) struct Packed {
    pub sha256: String,
    pub images: Vec<Value>,
}

/// The index as it should be.
pub(crate) fn refreshed(root: &Path) -> Result<String, Failure> {
    let facts = yaml::load_value(&fs::read_to_string(root.join("matrix-index/facts.yaml"))?)?;
    let mut sources: BTreeMap<String, Source> = BTreeMap::new();
    let index = assembled(&facts, |driver, version| {
        if !sources.contains_key(driver) {
            sources.insert(driver.to_owned(), source(&root.join("charts").join(driver))?);
        }
        packed(&sources[driver], version)
    })?;
    for (driver, source) in &sources {
        let known = |version: &DriverVersion| {
            let entries = index["drivers"][driver]["versions"].as_array().into_iter().flatten();
            entries.into_iter().any(|entry| entry["version"] == version.to_string().as_str())
        };
        if let Some(version) = source.versions().iter().find(|version| !known(version)) {
            return Err(format!("charts/{driver} has a release {version}, of which matrix-index/facts.yaml says nothing").into());
        }
    }
    let mut index = index;
    released(&mut index, &sources)?;
    let privileges = yaml::load_value(&fs::read_to_string(root.join("matrix-index/privileges.yaml"))?)?;
    let drivers = index.as_object_mut().and_then(|index| index.shift_remove("drivers"));
    index["privileges"] = privileges;
    index["drivers"] = drivers.unwrap_or_default();
    let header = "# Generated from facts.yaml and charts/: `cargo run --example generate -- matrix`. Do not edit.\n";
    Ok(header.to_owned() + &yaml::dump(&index)?)
}

/// The days of releases: those of the charts, and what the facts say instead, where `null` is a day that is not known.
fn released(index: &mut Value, sources: &BTreeMap<String, Source>) -> Result<(), Failure> {
    let stated = index["released"].clone();
    let mut all = Map::new();
    all.insert("kubernetes".to_owned(), stated["kubernetes"].clone());
    for (driver, source) in sources {
        let mut days = Map::new();
        for version in source.versions() {
            let text = version.to_string();
            let day = match stated[driver].get(&text) {
                Some(day) => day.clone(),
                None => source.release(&version)?["date"].clone(),
            };
            if !day.is_null() {
                days.insert(text, day);
            }
        }
        all.insert(driver.clone(), days.into());
    }
    index["released"] = all.into();
    Ok(())
}

/// Lays out one entry for every version of the facts that has a chart.
pub(crate) fn assembled(
    facts: &Value,
    mut chart: impl FnMut(&str, &DriverVersion) -> Result<Option<Packed>, Failure>,
) -> Result<Value, Failure> {
    let mut index = facts.clone();
    let drivers = index
        .get_mut("drivers")
        .and_then(Value::as_object_mut)
        .ok_or("the facts have no drivers")?;
    for (name, driver) in drivers {
        let driver = driver.as_object_mut().ok_or("a driver is not a map")?;
        let lines = driver.shift_remove("lines").ok_or("a driver has no lines")?;
        let mut entries = Vec::new();
        for line in lines.as_array().ok_or("lines is not a list")? {
            for version in line["versions"].as_array().ok_or("a line has no versions")? {
                let text = version.as_str().ok_or("a version is not text; put it in quotes")?;
                let version: DriverVersion = text.parse()?;
                if let Some(packed) = chart(name, &version)? {
                    entries.push((version, entry(name, text, line, packed)?));
                }
            }
        }
        entries.sort_by(|(left, _), (right, _)| right.cmp(left));
        let entries: Vec<Value> = entries.into_iter().map(|(_, entry)| entry).collect();
        driver.insert("versions".to_owned(), entries.into());
    }
    Ok(index)
}

fn entry(driver: &str, version: &str, line: &Value, packed: Packed) -> Result<Value, Failure> {
    let mut fields = line.as_object().ok_or("a line is not a map")?.clone();
    fields.shift_remove("versions");
    let except = fields.shift_remove("except").unwrap_or_default();
    let mut entry = Map::new();
    entry.insert("version".to_owned(), version.into());
    let url = format!("charts/{driver}-{version}.tgz");
    entry.insert("chart".to_owned(), json!({"urls": [url], "sha256": packed.sha256}));
    entry.extend(fields);
    if let Some(own) = except.get(version) {
        entry.extend(own.as_object().ok_or("an exception is not a map")?.clone());
    }
    entry.insert("images".to_owned(), packed.images.into());
    Ok(entry.into())
}

/// What the release of a version says; nothing while there is no release.
fn packed(source: &Source, version: &DriverVersion) -> Result<Option<Packed>, Failure> {
    if !source.has(version) {
        return Ok(None);
    }
    let package = chart::package(source, version)?;
    let opened = chart::open(&package)?;
    let images = publish::images(&opened)?.map_err(|problem| format!("{version} {problem}"))?;
    Ok(Some(Packed {
        sha256: Digest::of(&package).hex().to_owned(),
        images: images.iter().map(|image| json!(image)).collect(),
    }))
}
