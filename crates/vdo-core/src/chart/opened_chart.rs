// SPDX-License-Identifier: Apache-2.0
//! The type `Chart`: checks and compiles the files of an unpacked package into a chart that `render.rs` can render.

use super::compiled::CompiledSchema;
use super::engine::{TEMPLATE_LIMIT, Templates};
use super::metadata::Metadata;
use super::release::Release;
use super::release_files;
use super::{interpolation, schema_errors, template_tag_limits};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use vdo_api::types::{DriverVersion, Remedy};
use vdo_api::yaml::{self, YamlError};

/// The files of a chart, by path below its top folder.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// Bytes of all templates of a chart. The largest driver of today has 30 KiB.
const TEMPLATES_LIMIT: usize = 4 << 20;

/// Values of one of its documents, of which it has five. The largest of today has 565.
const VALUES_LIMIT: usize = 20_000;

/// A chart of one driver version, ready to be rendered.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// `Chart.yaml`.
    pub metadata: Metadata,
    /// The release as the engine understands it.
    pub release: Release,
    /// The release as the templates see it.
    pub release_data: Value,
    /// `release.schema.json`: what a release file of this chart may say.
    pub(super) release_schema: Option<Value>,
    /// `values.yaml`: the defaults.
    pub values: Value,
    /// `values.schema.json`.
    pub(super) schema: Value,
    /// Every file under `templates/`, by its path in the chart.
    pub templates: BTreeMap<String, String>,
    /// The templates, compiled.
    pub(super) compiled_templates: Templates,
    /// The schema, compiled.
    pub(super) compiled: CompiledSchema,
    /// `deviations.yaml`: every intended difference to the driver's own manifest.
    pub deviations: Vec<super::compare::Deviation>,
}

/// The files do not make a chart.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// A file that every chart has is not there.
    #[error("the chart has no {file}; a package contains Chart.yaml, values.yaml, values.schema.json, release.yaml and templates/")]
    Missing {
        /// The path in the chart.
        file: String,
    },
    /// A file is not UTF-8.
    #[error("{file} of the chart is not UTF-8 text")]
    NotText {
        /// The path in the chart.
        file: String,
    },
    /// A file cannot be read as YAML.
    #[error("{file} of the chart cannot be read")]
    Yaml {
        /// The path in the chart.
        file: String,
        /// Where and why.
        #[source]
        source: YamlError,
    },
    /// `Chart.yaml` says something this build cannot work with.
    #[error("Chart.yaml is not acceptable: {0}")]
    Metadata(String),
    /// The release file is for another version than `Chart.yaml`.
    #[error("Chart.yaml has version {chart}, but release.yaml has version {release}")]
    VersionMismatch {
        /// In `Chart.yaml`.
        chart: DriverVersion,
        /// In `release.yaml`.
        release: DriverVersion,
    },
    /// The release file says what `release.schema.json` does not allow.
    #[error("the release {version} is not accepted: {problems}")]
    Release {
        /// The version.
        version: DriverVersion,
        /// Which switches, and what is allowed.
        problems: String,
    },
    /// A template uses what charts are not offered, or is not a template.
    #[error("{file}:{line}: {message}\n    {text}")]
    Language {
        /// The template.
        file: String,
        /// The line, from 1; 0 when it is not known.
        line: usize,
        /// What is wrong and what is offered.
        message: String,
        /// The line itself.
        text: String,
    },
    /// A template interpolates in a place where a value could change the structure.
    #[error("{file}:{line}: {message}\n    {text}")]
    Lint {
        /// The template.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong and what to write.
        message: &'static str,
        /// The line itself.
        text: String,
    },
}

impl Remedy for ChartError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Missing { .. } => Some("Add the file, and package the chart again.".into()),
            Self::NotText { .. } => Some("Save it as UTF-8, and package the chart again.".into()),
            Self::Yaml { .. } | Self::Metadata(_) | Self::Release { .. } | Self::Language { .. } | Self::Lint { .. } => {
                Some("Correct the mistake in the source of the chart, and package the chart again.".into())
            }
            Self::VersionMismatch { .. } => Some("Package the chart again.".into()),
        }
    }
}

impl Chart {
    /// Makes a chart from the files of an unpacked package.
    ///
    /// # Errors
    /// When a file is missing, unreadable or contradicts another, or a template breaks the rule of whole values.
    pub fn from_files(files: &Files) -> Result<Self, ChartError> {
        let metadata = Metadata::parse(text(files, "Chart.yaml")?).map_err(ChartError::Metadata)?;
        let release: Release = read(files, "release.yaml")?;
        if release.version != metadata.version {
            return Err(ChartError::VersionMismatch {
                chart: metadata.version,
                release: release.version,
            });
        }
        let mut templates = BTreeMap::new();
        let mut room = TEMPLATES_LIMIT;
        for path in files.keys().filter(|path| path.starts_with("templates/")) {
            let source = text(files, path)?;
            room = fits(path, source, room)?;
            if let Some(finding) = interpolation::check(source) {
                return Err(ChartError::Lint {
                    file: path.clone(),
                    line: finding.line,
                    message: finding.message,
                    text: source.lines().nth(finding.line - 1).unwrap_or_default().trim().to_owned(),
                });
            }
            template_tag_limits::check(source).map_err(|(line, message)| language(path, source, line, message))?;
            templates.insert(path.clone(), source.to_owned());
        }
        let compiled_templates = Templates::compile(&templates).map_err(|error| {
            let path = error.name().unwrap_or("templates/");
            let source = templates.get(path).map_or("", String::as_str);
            let message = match error.detail() {
                Some(detail) => format!("{}: {detail}", error.kind()),
                None => error.kind().to_string(),
            };
            language(path, source, error.line().unwrap_or(0), message)
        })?;
        let deviations = if files.contains_key("deviations.yaml") {
            read::<super::compare::Deviations>(files, "deviations.yaml")?.deviations
        } else {
            Vec::new()
        };
        let release_data = value(files, "release.yaml")?;
        let release_schema = match files.get("release.schema.json") {
            Some(_) => Some(value(files, "release.schema.json")?),
            None => None,
        };
        if let Some(schema) = &release_schema {
            let problems = match release_files::problems(schema, &release_data) {
                Ok(problems) if problems.is_empty() => None,
                Ok(problems) => Some(schema_errors::list(&problems)),
                Err(problem) => Some(format!("release.schema.json {problem}")),
            };
            if let Some(problems) = problems {
                let version = release.version.clone();
                return Err(ChartError::Release { version, problems });
            }
        }
        Ok(Self {
            metadata,
            release,
            release_data,
            release_schema,
            values: value(files, "values.yaml")?,
            schema: value(files, "values.schema.json")?,
            templates,
            compiled_templates,
            compiled: CompiledSchema::default(),
            deviations,
        })
    }

    /// `values.schema.json`.
    #[must_use]
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// `vsphere-csi 3.7.3`: how messages name this chart.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} {}", self.metadata.name, self.metadata.version)
    }
}

/// How much room is left for templates after this one. Sizes come first: whatever reads a template takes longer the longer it is.
fn fits(file: &str, source: &str, room: usize) -> Result<usize, ChartError> {
    let refused = |message: String| language(file, "", 0, message);
    if source.len() > TEMPLATE_LIMIT {
        return Err(refused(format!("the template is larger than {TEMPLATE_LIMIT} bytes; split it")));
    }
    room.checked_sub(source.len()).ok_or_else(|| {
        refused(format!(
            "the templates of the chart are together larger than {} MiB",
            TEMPLATES_LIMIT >> 20
        ))
    })
}

fn language(file: &str, source: &str, line: usize, message: String) -> ChartError {
    let text = line.checked_sub(1).and_then(|index| source.lines().nth(index));
    ChartError::Language {
        file: file.to_owned(),
        line,
        message,
        text: text.unwrap_or_default().trim().to_owned(),
    }
}

fn text<'a>(files: &'a Files, file: &str) -> Result<&'a str, ChartError> {
    let bytes = files.get(file).ok_or_else(|| ChartError::Missing { file: file.to_owned() })?;
    std::str::from_utf8(bytes).map_err(|_| ChartError::NotText { file: file.to_owned() })
}

fn read<T: serde::de::DeserializeOwned>(files: &Files, file: &str) -> Result<T, ChartError> {
    yaml::load(text(files, file)?).map_err(|source| ChartError::Yaml {
        file: file.to_owned(),
        source,
    })
}

fn value(files: &Files, file: &str) -> Result<Value, ChartError> {
    yaml::load_value_within(text(files, file)?, VALUES_LIMIT).map_err(|source| ChartError::Yaml {
        file: file.to_owned(),
        source,
    })
}
