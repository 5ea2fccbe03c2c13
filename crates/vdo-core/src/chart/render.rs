// SPDX-License-Identifier: Apache-2.0
//! Renders a chart with values to Kubernetes objects, and has every error of a render (`RenderError`).

use super::context::Context;
use super::document::{self, DocumentError};
use super::engine::{self, FUEL, Limited, OUTPUT_LIMIT};
use super::opened_chart::Chart;
use super::suggest;
use super::values::{self, ValuesError};
use minijinja::ErrorKind;
use minijinja::value::{Serde, Value as TemplateValue};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::error::Error as _;
use std::io;
use vdo_api::types::{ELEMENTS, ObjectId, Remedy};
use vdo_api::yaml::{self, YamlError};

/// The chart could not be turned into objects.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The values are not acceptable.
    #[error("the values for {chart} are not accepted")]
    Values {
        /// The chart.
        chart: String,
        /// Which ones and why.
        #[source]
        source: ValuesError,
    },
    /// The chart refuses what it was asked for, in its author's words.
    #[error("{chart}: {message}")]
    Refused {
        /// The chart.
        chart: String,
        /// Why.
        message: String,
    },
    /// A template failed.
    #[error("{chart}: {file}:{line}: {message}\n    {text}")]
    Template {
        /// The chart.
        chart: String,
        /// The template.
        file: String,
        /// The line in the template, from 1; 0 when it is not known.
        line: usize,
        /// What went wrong.
        message: String,
        /// The line itself, as the chart's author wrote it.
        text: String,
    },
    /// A template wrote more than the limit.
    #[error("{chart}: {file} makes the output of the templates larger than {} MiB; the chart is broken or hostile", OUTPUT_LIMIT >> 20)]
    TooLarge {
        /// The chart.
        chart: String,
        /// The template.
        file: String,
    },
    /// The machine has no room for the thread that renders.
    #[error("{chart} cannot be rendered: the system cannot start another thread")]
    Thread {
        /// The chart.
        chart: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What a template wrote is not YAML.
    #[error("{chart}: the output of {file} is not YAML")]
    Yaml {
        /// The chart.
        chart: String,
        /// The template.
        file: String,
        /// Where in the rendered text, and why.
        #[source]
        source: YamlError,
    },
    /// A rendered document is not a Kubernetes object.
    #[error("{chart}: document {number} of {file} is not a Kubernetes object")]
    Document {
        /// The chart.
        chart: String,
        /// The template.
        file: String,
        /// Which document of the file, from 1; empty ones do not count.
        number: usize,
        /// What it lacks.
        #[source]
        source: DocumentError,
    },
    /// Two documents are the same object.
    #[error("{chart}: {file} renders {object} a second time; render each object once")]
    Twice {
        /// The chart.
        chart: String,
        /// The template of the second.
        file: String,
        /// The object.
        object: Box<ObjectId>,
    },
}

impl Remedy for RenderError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Values { source, .. } => source.remedy(),
            Self::Thread { .. } => Some("Give the process more memory or threads.".into()),
            // Its author says what to do.
            Self::Refused { .. } => None,
            Self::Template { .. } | Self::TooLarge { .. } | Self::Yaml { .. } | Self::Document { .. } | Self::Twice { .. } => {
                Some("Correct the mistake in the source of the chart, or use another version of the driver.".into())
            }
        }
    }
}

/// The values that a render uses: the chart's defaults with the user's on top.
///
/// # Errors
/// When they do not fit the schema; the error names the chart, and every place with what is allowed.
pub fn accepted(chart: &Chart, user_values: &Value) -> Result<Value, RenderError> {
    values::effective(chart, user_values).map_err(|source| RenderError::Values {
        chart: chart.label(),
        source,
    })
}

/// Renders a chart: the user's values over the defaults, checked, then every template.
///
/// The objects come in the order of the template files' names and of the documents in them. The same arguments give the same
/// objects; `render` reads nothing else.
///
/// # Errors
/// When the values do not fit the schema, a template fails, or what comes out is not a list of distinct Kubernetes objects.
pub fn render(chart: &Chart, user_values: &Value, context: &Context) -> Result<Vec<Value>, RenderError> {
    render_unknown(chart, user_values, context, &mut Known::default())
}

/// What templates have written, and the objects in these texts.
#[derive(Default)]
pub(super) struct Known(HashMap<String, Content>);

/// The objects in the output of a template.
struct Content {
    ids: Vec<ObjectId>,
    /// How many values the documents have.
    nodes: usize,
}

/// The same as [`render`], without the objects of templates whose output is known: most values change the output of few templates, and
/// YAML takes most of the time of a render. What the others have written is known afterwards.
pub(super) fn render_unknown(chart: &Chart, user_values: &Value, context: &Context, known: &mut Known) -> Result<Vec<Value>, RenderError> {
    let values = accepted(chart, user_values)?;
    let rendered = engine::on_a_deep_stack(|| objects(chart, values, context, known));
    rendered.unwrap_or_else(|source| {
        Err(RenderError::Thread {
            chart: chart.label(),
            source,
        })
    })
}

fn objects(chart: &Chart, values: Value, context: &Context, known: &mut Known) -> Result<Vec<Value>, RenderError> {
    let environment = engine::environment(chart, &values);
    let variables = variables(chart, values, context);
    // Once for all templates: a clone shares it.
    let root = TemplateValue::from(Serde(&variables));
    let (mut left, mut nodes) = (OUTPUT_LIMIT, ELEMENTS);
    let (mut objects, mut read) = (Vec::new(), HashMap::new());
    let mut seen = BTreeSet::new();
    for path in chart.templates.keys().filter(|path| is_rendered(path)) {
        let text = write(chart, &environment, path, (&variables, root.clone()), left)?;
        left = left.saturating_sub(text.len());
        let content = match known.0.get(&text) {
            Some(content) => content,
            None => {
                let (documents, content) = parsed(chart, path, &text, nodes)?;
                objects.extend(documents);
                read.entry(text).or_insert(content)
            }
        };
        nodes = nodes.saturating_sub(content.nodes);
        for id in &content.ids {
            if !seen.insert(id.clone()) {
                return Err(RenderError::Twice {
                    chart: chart.label(),
                    file: path.clone(),
                    object: Box::new(id.clone()),
                });
            }
        }
    }
    // A render that fails shows none of its objects.
    known.0.extend(read);
    Ok(objects)
}

/// The objects in the output of a template, which have no more than this many values.
fn parsed(chart: &Chart, path: &str, text: &str, nodes: usize) -> Result<(Vec<Value>, Content), RenderError> {
    let documents = yaml::load_all_within(text, nodes).map_err(|source| RenderError::Yaml {
        chart: chart.label(),
        file: path.to_owned(),
        source,
    })?;
    let ids = documents.iter().enumerate().map(|(index, object)| {
        document::object_id(object).map_err(|source| RenderError::Document {
            chart: chart.label(),
            file: path.to_owned(),
            number: index + 1,
            source,
        })
    });
    let content = Content {
        ids: ids.collect::<Result<_, _>>()?,
        nodes: documents.iter().map(values_in).sum(),
    };
    Ok((documents, content))
}

/// How many values a document has.
fn values_in(document: &Value) -> usize {
    1 + match document {
        Value::Array(items) => items.iter().map(values_in).sum(),
        Value::Object(fields) => fields.values().map(values_in).sum(),
        _ => 0,
    }
}

/// Files whose name starts with an underscore hold macros, as in Helm.
fn is_rendered(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    !name.starts_with('_') && (name.ends_with(".yaml") || name.ends_with(".yml"))
}

fn variables(chart: &Chart, values: Value, context: &Context) -> Map<String, Value> {
    let mut all = match serde_json::to_value(context) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(), // a struct of strings and numbers is always an object
    };
    all.insert("values".to_owned(), values);
    all.insert("release".to_owned(), chart.release_data.clone());
    all.insert(
        "chart".to_owned(),
        json!({
            "name": chart.metadata.name,
            "version": chart.metadata.version,
            "appVersion": chart.metadata.app_version,
        }),
    );
    all
}

fn write(
    chart: &Chart,
    environment: &minijinja::Environment<'_>,
    path: &str,
    (variables, root): (&Map<String, Value>, TemplateValue),
    limit: usize,
) -> Result<String, RenderError> {
    let failed = |error: &minijinja::Error| failure(chart, path, variables, error);
    let template = environment.get_template(path).map_err(|error| failed(&error))?;
    let mut out = Limited::new(limit);
    let result = template.render_captured_to(root, &mut out).map(drop);
    if out.full {
        return Err(RenderError::TooLarge {
            chart: chart.label(),
            file: path.to_owned(),
        });
    }
    result.map_err(|error| failed(&error))?;
    Ok(String::from_utf8(out.bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// The innermost error that knows its place: an error in a macro is reported in the macro's file.
fn failure(chart: &Chart, path: &str, variables: &Map<String, Value>, error: &minijinja::Error) -> RenderError {
    let mut deepest = error;
    let mut next = error.source();
    while let Some(source) = next {
        if let Some(inner) = source.downcast_ref::<minijinja::Error>().filter(|inner| inner.line().is_some()) {
            deepest = inner;
        }
        next = source.source();
    }
    if let Some(message) = deepest
        .detail()
        .filter(|_| deepest.source().is_some_and(|source| source.is::<engine::Said>()))
    {
        return RenderError::Refused {
            chart: chart.label(),
            message: message.to_owned(),
        };
    }
    let file = deepest.name().unwrap_or(path);
    let line = deepest.line().unwrap_or(0);
    let source = chart
        .templates
        .get(file)
        .and_then(|source| source.lines().nth(line.checked_sub(1)?));
    let kind = match deepest.kind() {
        ErrorKind::OutOfFuel => format!(
            "the template takes more than {FUEL} steps or {} MiB; it is broken or hostile",
            FUEL >> 14 // a step pays for 64 bytes
        ),
        kind => kind.to_string(),
    };
    let whole = chart.templates.get(file).map_or("", String::as_str);
    let hint = match deepest.kind() {
        ErrorKind::UndefinedError => suggest::hint(source.unwrap_or_default(), whole, variables),
        ErrorKind::UnknownFilter | ErrorKind::UnknownTest | ErrorKind::UnknownFunction => {
            Some("docs/charts.md lists the functions, filters and tests".to_owned())
        }
        _ => None,
    };
    let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
    RenderError::Template {
        chart: chart.label(),
        file: file.to_owned(),
        line,
        message: match deepest.detail() {
            Some(detail) => format!("{kind}: {detail}{hint}"),
            None => format!("{kind}{hint}"),
        },
        text: source.unwrap_or_default().trim().to_owned(),
    }
}
/// Values with which a chart renders the objects that it leaves out otherwise, and the others as with its defaults.
#[must_use]
pub fn everything(chart: &Chart) -> Value {
    let mut values = as_upstream(chart);
    if chart.values.get("podDisruptionBudgets").is_some() {
        values["podDisruptionBudgets"] = true.into();
        if let Some(webhook) = values["webhook"].as_object_mut() {
            webhook.insert("replicas".into(), 2.into());
        }
    }
    values
}

/// Values with which a chart renders every object of the driver's own manifests.
#[must_use]
pub fn as_upstream(chart: &Chart) -> Value {
    match chart.values.get("webhook") {
        Some(_) => json!({"webhook": {"enabled": true, "caBundle": "Q0E="}}),
        None => json!({}),
    }
}
