// SPDX-License-Identifier: Apache-2.0
//! `vdoctl chart import`: makes a chart from a project's own plain manifests.
//!
//! Images become those of a release, the namespace and pull secrets become values; everything else stays as it is, so that the render
//! equals the manifests. What a value cannot reach is noted.

mod images;
mod namespace;
mod template;

use super::add_release::{AddError, Manifest, block, scalar, with_entry};
use super::compare;
use super::document::{self, object_id};
use super::metadata::{ENGINE, ENGINE_VERSION};
use super::opened_chart::Files;
use super::package::{PackageError, package};
use super::render::{RenderError, render};
use super::source::Source;
use super::{ArchiveError, Context, archive, release_files};
use crate::manifest::pointer::escaped;
use images::Images;
use namespace::Namespace;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use template::Templates;
use vdo_api::types::{DriverRole, DriverVersion, ObjectId, Remedy, count, from_json};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The driver.
    pub name: String,
    /// What it does for the cluster.
    pub role: DriverRole,
    /// Its version.
    pub version: DriverVersion,
    /// The day of its release.
    pub date: Option<String>,
    /// Images to take instead of those of the manifests, by the name that the import gives them.
    pub images: BTreeMap<String, String>,
}

/// A chart of one release, and what its values do not reach.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The files of the chart.
    pub source: Source,
    /// Sentences about what was chosen and what is not covered.
    pub notes: Vec<String>,
    /// What `chart lint` finds.
    pub findings: Vec<String>,
}

/// The manifests cannot become a chart.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The name is none.
    #[error("{0:?} is not a valid name of a driver")]
    Name(String),
    /// There is no object.
    #[error("the manifests contain no object")]
    Empty,
    /// Two documents are the same object.
    #[error("{object} is defined twice: in {first} and in {second}")]
    Twice {
        /// The object.
        object: Box<ObjectId>,
        /// The file of the first.
        first: String,
        /// The file of the second.
        second: String,
    },
    /// An image was named that the manifests do not have.
    #[error("the manifests have no image {name:?}; they have {known}")]
    NoImage {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The chart does not render what it was made of.
    #[error("the chart does not render the same objects as the manifests: {0}")]
    Different(String),
    /// The chart cannot be packaged.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The chart cannot be opened.
    #[error(transparent)]
    Open(#[from] ArchiveError),
    /// The chart cannot be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
}

impl Remedy for ImportError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Name(_) => Some("Write small letters, digits and hyphens.".into()),
            Self::Empty => Some("Give the manifests that the driver's project publishes.".into()),
            Self::Twice { .. } => Some("Remove one of the two definitions.".into()),
            Self::NoImage { .. } => Some("Name one of these images.".into()),
            Self::Different(_) => Some("This is a defect, please report it with the manifests.".into()),
            Self::Package(error) => error.remedy(),
            Self::Open(error) => error.remedy(),
            Self::Render(error) => error.remedy(),
        }
    }
}

/// Makes a chart of manifests.
///
/// # Errors
/// When the manifests hold nothing or something twice, an image is named that they do not have, or the chart exceeds a limit of charts.
pub fn import(wanted: &Wanted, manifests: &[Manifest]) -> Result<Imported, ImportError> {
    let plain = |name: &str| {
        !name.is_empty() && name.len() <= 63 && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    if !plain(&wanted.name) || wanted.name.starts_with('-') || wanted.name.ends_with('-') {
        return Err(ImportError::Name(wanted.name.clone()));
    }
    let objects = distinct(manifests)?;
    let namespace = Namespace::of(&objects);
    let images = Images::of(&objects, &wanted.images)?;
    let mut templates = Templates::new(&objects);
    for object in &objects {
        let mut object = object.clone();
        namespace.replace(&mut object, &mut templates);
        images.replace(&mut object, &mut templates);
        templates.pull_secrets(&mut object);
        templates.add(object);
    }
    let mut source = Source::new(templates.files());
    let mut add = |path: String, text: String| drop(source.files.insert(path, text.into_bytes()));
    add("values.yaml".into(), values(&namespace));
    add("values.schema.json".into(), schema(&namespace, &images));
    add("release.schema.json".into(), RELEASE_SCHEMA.to_owned());
    add(release_files::path(&wanted.version), release(wanted, &images));
    add("Chart.yaml".into(), metadata(wanted, &given(&objects)));
    let deviations = deviations(&source, &wanted.version, &objects)?;
    if !deviations.is_empty() {
        let text = vdo_api::yaml::dump(&json!({ "deviations": deviations })).unwrap_or_default();
        source.files.insert("deviations.yaml".into(), text.into_bytes());
    }
    let chart = archive::open(&package(&source, &wanted.version)?)?;
    let mut notes = namespace.notes(&objects);
    notes.extend(images.notes(&objects));
    Ok(Imported {
        findings: super::lint(&chart),
        source,
        notes,
    })
}

/// What an import is to a chart that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Joined {
    /// Another chart: it has other templates or values.
    Other,
    /// A release that is there.
    There,
    /// A further release of it.
    With {
        /// The release file.
        file: String,
        /// Its text with the release.
        text: String,
    },
}

/// Adds the release of an import to a chart with the same templates, values and everything else.
///
/// # Errors
/// When the chart has another release of that version, or its release file takes no entry.
pub fn joined(chart: &Source, imported: &Source, version: &DriverVersion) -> Result<Joined, AddError> {
    let rest = |source: &Source| -> Files {
        let files = source.files.iter().filter(|(path, _)| !path.starts_with("releases/"));
        files.map(|(path, content)| (path.clone(), content.clone())).collect()
    };
    let new = imported.release(version)?;
    let listed = chart.has(version);
    if rest(chart) != rest(imported) {
        return if listed { Err(listed_already(version)) } else { Ok(Joined::Other) };
    }
    if listed {
        return if chart.release(version)? == new {
            Ok(Joined::There)
        } else {
            Err(listed_already(version))
        };
    }
    let versions = chart.versions();
    let from = versions
        .iter()
        .rfind(|known| *known < version)
        .or(versions.first())
        .ok_or(AddError::Nothing)?;
    let text = with_entry(chart, (from, version), &new)?;
    Ok(Joined::With {
        file: release_files::path(version),
        text,
    })
}

fn listed_already(version: &DriverVersion) -> AddError {
    AddError::Listed {
        file: release_files::path(version),
        version: version.clone(),
    }
}

/// Every object once.
fn distinct(manifests: &[Manifest]) -> Result<Vec<Value>, ImportError> {
    let mut seen: BTreeMap<ObjectId, &str> = BTreeMap::new();
    let mut objects = Vec::new();
    for manifest in manifests {
        for object in &manifest.objects {
            let Ok(id) = object_id(object) else { continue }; // refused where the files are read
            if let Some(first) = seen.insert(id.clone(), &manifest.name) {
                return Err(ImportError::Twice {
                    object: Box::new(id),
                    first: first.to_owned(),
                    second: manifest.name.clone(),
                });
            }
            objects.push(object.clone());
        }
    }
    if objects.is_empty() { Err(ImportError::Empty) } else { Ok(objects) }
}

/// What the render with its defaults has otherwise than the manifests, which is only what was asked for or had to be.
fn deviations(source: &Source, version: &DriverVersion, objects: &[Value]) -> Result<Vec<Value>, ImportError> {
    let chart = archive::open(&package(source, version)?)?;
    let rendered = render(&chart, &Value::Null, &Context::default())?;
    let different = |problem: String| ImportError::Different(problem);
    let found = compare::compare(objects, &rendered).map_err(|error| different(error.to_string()))?;
    let one = |difference: &compare::Difference| {
        let reason = if difference.path.is_empty() {
            "The manifest names no namespace; the chart adds one."
        } else if difference.path.ends_with("/image") {
            "The image was given when the manifest was imported."
        } else {
            return Err(different(difference.to_string()));
        };
        let mut deviation = json!({"object": difference.object, "path": difference.path, "kind": difference.kind, "reason": reason});
        if let Some(original) = difference.original.as_ref().filter(|_| !difference.path.is_empty()) {
            deviation["original"] = original.clone();
        }
        Ok(deviation)
    };
    found.iter().map(one).collect()
}

/// Objects that the manifests name and do not hold: a person or another driver brings them.
fn given(objects: &[Value]) -> Vec<String> {
    let mut given: Vec<String> = super::lint::dangling(objects)
        .into_iter()
        .map(|(_, kind, name)| format!("{kind}/{name}"))
        .collect();
    given.sort();
    given.dedup();
    given
}

fn metadata(wanted: &Wanted, given: &[String]) -> String {
    let role = json!(wanted.role);
    let given = match given {
        [] => String::new(),
        all => format!(
            "\n  # Objects that the chart refers to and does not create.\n  vdo.vmware.com/given: {}",
            all.join(" ")
        ),
    };
    format!(
        "apiVersion: v2\nname: {name}\ndescription: {name} as its own project ships it\ntype: application\n\
         # The two versions are set when a release is packaged.\nversion: 0.0.0\nappVersion: v0.0.0\nannotations:\n  \
         vdo.vmware.com/engine: {ENGINE} # helm template cannot render this chart\n  vdo.vmware.com/engine-version: \"{ENGINE_VERSION}\"\n  \
         vdo.vmware.com/role: {role}\n  vdo.vmware.com/configuration: none{given}\n",
        name = wanted.name,
        role = role.as_str().unwrap_or("other"),
    )
}

fn values(namespace: &Namespace) -> String {
    let namespace = namespace.main().map_or(String::new(), |name| {
        format!("# The namespace that the driver runs in.\nnamespace: {}\n", scalar(&name.into()))
    });
    format!(
        "{namespace}images:\n  # A registry that replaces the registry of every image; the path and the tag stay.\n  registry: \"\"\n  \
         # Whether image references contain the digest, if the manifest has one.\n  useDigests: true\n  \
         # Complete references for single images; the key is the name of the image under `images` in this chart's release.yaml.\n  \
         overrides: {{}}\n\
         # Names of Secrets with credentials for the registry, in the namespace of the pods.\nimagePullSecrets: []\n"
    )
}

fn schema(namespace: &Namespace, images: &Images) -> String {
    let mut schema: Value = from_json(include_str!("import/values.schema.json")).unwrap_or_default();
    let names = images.names();
    schema["properties"]["images"]["properties"]["overrides"]["properties"] = names
        .map(|name| (name.to_owned(), json!({"$ref": "#/$defs/image"})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let (required, properties) = (&["namespace", "images", "imagePullSecrets"], &mut schema["properties"]);
    let required = match (namespace.main(), properties.as_object_mut()) {
        (None, Some(properties)) => {
            properties.shift_remove("namespace");
            &required[1..]
        }
        _ => &required[..],
    };
    schema["required"] = json!(required);
    format!("{schema:#}\n")
}

const RELEASE_SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["version", "images"],
  "properties": {
    "version": {"description": "The version of the driver.", "type": "string"},
    "date": {"description": "The day of its release.", "type": "string"},
    "images": {"description": "The images of its manifests.", "type": "object", "additionalProperties": {"type": "object"}}
  }
}
"#;

fn release(wanted: &Wanted, images: &Images) -> String {
    let mut release = json!({});
    if let Some(date) = &wanted.date {
        release["date"] = date.as_str().into();
    }
    release["images"] = images.release();
    let mut text = format!(
        "# The images of the releases {}, as their manifests name them.\nversions:\n  {}:\n",
        wanted.version.minor(),
        wanted.version
    );
    block(&release, 4, &mut text);
    text
}

/// The texts of a value that people or programs wrote, by their place, outside of the descriptions of a definition.
fn texts<'a>(value: &'a Value, path: &mut String, visit: &mut impl FnMut(&str, &'a str)) {
    let mut below = |step: &str, value: &'a Value| {
        let end = path.len();
        let _ = write!(path, "/{}", escaped(step));
        texts(value, path, visit);
        path.truncate(end);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| below(key, value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, value)| below(&index.to_string(), value)),
        Value::String(text) => visit(path, text),
        _ => {}
    }
}

/// How a note names an object.
fn called(object: &Value) -> String {
    document::object_id(object).map_or_else(|_| "an object".to_owned(), |id| id.to_string())
}

/// `a, b and 3 more`.
fn some(all: &[String]) -> String {
    const SHOWN: usize = 5;
    match all.len().checked_sub(SHOWN) {
        None | Some(0) => all.join(", "),
        Some(more) => format!(
            "{} and {}",
            all[..SHOWN].join(", "),
            count(more, "more place").replace(" place", "")
        ),
    }
}
