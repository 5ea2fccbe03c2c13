//! The generated parts of `matrix-index/index.yaml`: the digest of every chart package and the images it renders.

use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;
use vdo::chart::{self, Context, Source};
use vdo::types::{Digest, DriverVersion};
use vdo::yaml;

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

/// The index as it should be: what is written by hand is taken over, what is generated is made anew.
pub(crate) fn refreshed(root: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(root.join("matrix-index/index.yaml"))?;
    let mut index = yaml::load_value(&text)?;
    let drivers = index
        .get_mut("drivers")
        .and_then(Value::as_object_mut)
        .ok_or("the index has no drivers")?;
    for (name, driver) in drivers {
        let source = source(&root.join("charts").join(name))?;
        let entries = driver
            .get_mut("versions")
            .and_then(Value::as_array_mut)
            .ok_or("a driver has no versions")?;
        for entry in entries {
            refresh(&source, entry)?;
        }
    }
    let header: String = text
        .lines()
        .take_while(|line| line.starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect();
    Ok(header + &yaml::dump(&index)?)
}

fn refresh(source: &Source, entry: &mut Value) -> Result<(), Failure> {
    let version: DriverVersion = entry
        .get("version")
        .and_then(Value::as_str)
        .ok_or("an entry has no version")?
        .parse()?;
    let package = chart::package(source, &version)?;
    let opened = chart::open(&package)?;
    let rendered = chart::images(&chart::render(&opened, &Value::Null, &Context::default())?);
    let mut images = Vec::new();
    for (name, image) in &opened.release.images {
        let reference = format!("{}/{}:{}", image.registry, image.repository, image.tag);
        if rendered.contains(&reference) {
            images.push(json!({"name": name, "ref": reference, "digest": image.digest}));
        }
    }
    let missing = rendered
        .iter()
        .find(|image| !images.iter().any(|known| known["ref"] == image.as_str()));
    if let Some(image) = missing {
        return Err(format!("{version} renders {image}, which its release does not list").into());
    }
    let entry = entry.as_object_mut().ok_or("an entry is not a map")?;
    let chart = entry.entry("chart").or_insert_with(|| Map::new().into());
    chart["sha256"] = Digest::of(&package).hex().into();
    entry.insert("images".to_owned(), images.into());
    Ok(())
}
