//! `vdoctl chart`: charts without a cluster.

mod compare;
mod open;

use super::answer::document;
use super::args::{Chart as Args, ChartPackage, ChartRender, ChartVerb, ChartWith, Format, Global};
use super::{Answer, CliError, Exit, chart_lint, style};
use crate::chart::{self, Chart};
use crate::types::KubernetesVersion;
use crate::yaml;
use open::Opened;
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::Path;

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    match &args.verb {
        ChartVerb::Render(args) => render(args, global).await,
        ChartVerb::Images(args) => images(args, global).await,
        ChartVerb::Compare(args) => compare::run(args, global).await,
        ChartVerb::Package(args) => package(args).await,
        ChartVerb::Lint(args) => chart_lint::run(args),
    }
}

async fn render(args: &ChartRender, global: &Global) -> Result<Answer, CliError> {
    let (_, objects) = rendered(&args.with, global).await?;
    objects_answer(args.output.or_yaml(), &objects)
}

/// Objects as YAML documents, as a List, or as a table of their names.
pub(super) fn objects_answer(format: Format, objects: &[Value]) -> Result<Answer, CliError> {
    Ok(match format {
        Format::Yaml => Answer::text(yaml::dump_all(objects)),
        Format::Json => Answer::text(format!("{:#}\n", json!({"apiVersion": "v1", "kind": "List", "items": objects}))),
        Format::Table | Format::Wide => {
            let text = |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            let row = |o: &Value| {
                ["/kind", "/metadata/namespace", "/metadata/name", "/apiVersion"]
                    .map(|pointer| text(o, pointer))
                    .to_vec()
            };
            Answer::text(style::table(
                &["KIND", "NAMESPACE", "NAME", "API"],
                &objects.iter().map(row).collect::<Vec<_>>(),
            ))
        }
    })
}

async fn images(args: &ChartRender, global: &Global) -> Result<Answer, CliError> {
    let (chart, objects) = rendered(&args.with, global).await?;
    let images = chart::images(&objects);
    Answer::formatted(
        args.output.or_table(),
        || {
            document(
                "ImageList",
                json!({"driver": chart.metadata.name, "version": chart.metadata.version, "images": images}),
            )
        },
        || images.iter().map(|image| format!("{image}\n")).collect(),
    )
}

async fn package(args: &ChartPackage) -> Result<Answer, CliError> {
    let opened = open::open(&args.chart).await?;
    let line = opened.line();
    if args.output == Path::new("-") {
        return Ok(Answer::bytes(opened.bytes).say(line));
    }
    std::fs::write(&args.output, &opened.bytes).map_err(|error| {
        CliError::new(
            Exit::Refused,
            format!("{} cannot be written: {error}", args.output.display()),
            "Choose another file with -o.",
        )
    })?;
    Ok(Answer::text("").say(format!("wrote {}: {line}", args.output.display())))
}

/// The chart and its objects.
async fn rendered(args: &ChartWith, global: &Global) -> Result<(Chart, Vec<Value>), CliError> {
    let opened = open::open(&args.chart).await?;
    let kubernetes = kubernetes(args, &opened)?;
    let context = chart::Context {
        cluster: chart::Cluster {
            version: kubernetes.raw().into(),
            minor: kubernetes.minor(),
            ..chart::Cluster::default()
        },
        connections: Vec::new(),
        namespace: global.namespace.clone(),
    };
    let objects = chart::render(&opened.chart, &values(args)?, &context).map_err(|error| CliError::of(Exit::Refused, &error))?;
    Ok((opened.chart, objects))
}

/// The version to render for: the newest that is supported, unless another one is named.
fn kubernetes(args: &ChartWith, opened: &Opened) -> Result<KubernetesVersion, CliError> {
    let newest = || opened.kubernetes.as_deref().unwrap_or("1.34").parse();
    args.kubernetes
        .clone()
        .map_or_else(newest, Ok)
        .map_err(|error| CliError::internal(&error))
}

/// The values of all files in their order, then the single settings.
fn values(args: &ChartWith) -> Result<Value, CliError> {
    let mut values = json!({});
    for path in &args.values {
        let wrong = |problem: String| CliError::new(Exit::Refused, format!("values file {}: {problem}", path.display()), "");
        let text = read(path).map_err(|error| CliError {
            exit: Exit::NotFound,
            ..wrong(error.to_string())
        })?;
        let file = if text.trim().is_empty() {
            Value::Null
        } else {
            yaml::load_value(&text).map_err(|error| wrong(error.to_string()))?
        };
        match file {
            Value::Null => {}
            Value::Object(_) => overlay(&mut values, file),
            _ => return Err(wrong("it is not a map; write key: value".into())),
        }
    }
    for setting in &args.set {
        overlay(&mut values, setting.values());
    }
    Ok(values)
}

/// Like the merge of a chart, but a null stays a null until the chart sees it: it takes a default away.
fn overlay(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                overlay(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    if path != Path::new("-") {
        return std::fs::read_to_string(path);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text)
}
