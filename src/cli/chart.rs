//! `vdoctl chart`: charts without a cluster.

use super::answer::document;
use super::args::{Chart as Args, ChartName, ChartPackage, ChartRender, ChartVerb, Format, Global};
use super::failure::capital;
use super::{Answer, CliError, Exit, chart_lint, matrix, style};
use crate::chart::{self, Chart};
use crate::fetch::Store;
use crate::matrix::{Driver, Entry, Index};
use crate::types::{DriverVersion, KubernetesVersion};
use crate::yaml;
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::Path;

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    match &args.verb {
        ChartVerb::Render(args) => render(args, global).await,
        ChartVerb::Images(args) => images(args, global).await,
        ChartVerb::Package(args) => package(args).await,
        ChartVerb::Lint(args) => chart_lint::run(args),
    }
}

async fn render(args: &ChartRender, global: &Global) -> Result<Answer, CliError> {
    let (_, objects) = rendered(args, global).await?;
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
    let (chart, objects) = rendered(args, global).await?;
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
    let index = matrix::index(&Store::Embedded).await?;
    let (name, entry) = entry(&index, &args.chart)?;
    let bytes = Store::Embedded
        .chart(&entry.chart)
        .await
        .map_err(|error| CliError::of(Exit::Refused, &error))?;
    let line = format!("{name} {}, {} bytes, {}", entry.version, bytes.len(), entry.chart.digest);
    if args.output == Path::new("-") {
        return Ok(Answer::bytes(bytes).say(line));
    }
    std::fs::write(&args.output, &bytes).map_err(|error| {
        CliError::new(
            Exit::Refused,
            format!("{} cannot be written: {error}", args.output.display()),
            "Choose another file with -o.",
        )
    })?;
    Ok(Answer::text("").say(format!("wrote {}: {line}", args.output.display())))
}

/// The chart and its objects.
async fn rendered(args: &ChartRender, global: &Global) -> Result<(Chart, Vec<Value>), CliError> {
    let index = matrix::index(&Store::Embedded).await?;
    let (_, entry) = entry(&index, &args.chart)?;
    let bytes = Store::Embedded
        .chart(&entry.chart)
        .await
        .map_err(|error| CliError::of(Exit::Refused, &error))?;
    let chart = chart::open(&bytes).map_err(|error| CliError::of(Exit::Refused, &error))?;
    let kubernetes = kubernetes(args, entry)?;
    let context = chart::Context {
        cluster: chart::Cluster {
            version: kubernetes.raw().into(),
            minor: kubernetes.minor(),
            ..chart::Cluster::default()
        },
        connections: Vec::new(),
        namespace: global.namespace.clone(),
    };
    let objects = chart::render(&chart, &values(args)?, &context).map_err(|error| CliError::of(Exit::Refused, &error))?;
    Ok((chart, objects))
}

/// The version to render for: the newest that is supported, unless another one is named.
fn kubernetes(args: &ChartRender, entry: &Entry) -> Result<KubernetesVersion, CliError> {
    let newest = || {
        entry
            .kubernetes
            .range
            .max()
            .or(entry.kubernetes.range.min())
            .unwrap_or("1.34")
            .parse()
    };
    args.kubernetes
        .clone()
        .map_or_else(newest, Ok)
        .map_err(|error| CliError::internal(&error))
}

/// The values of all files in their order, then the single settings.
fn values(args: &ChartRender) -> Result<Value, CliError> {
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

/// The entry of the matrix that was named; a wrong name is answered with what there is.
fn entry<'a>(index: &'a Index, name: &ChartName) -> Result<(&'a str, &'a Entry), CliError> {
    let (driver, all) = matrix::driver(index, &name.driver)?;
    let version = name.version.parse::<DriverVersion>();
    if let Some(entry) = version.as_ref().ok().and_then(|version| all.entry(version)) {
        return Ok((driver, entry));
    }
    let near = match &version {
        Ok(version) => all.nearest(version),
        Err(_) => beginning_with(all, &name.version),
    };
    let near: Vec<String> = near
        .iter()
        .filter_map(|version| all.entry(version))
        .map(|entry| {
            format!(
                "{} (Kubernetes {}, vSphere {})",
                entry.version, entry.kubernetes.range, entry.vsphere.range
            )
        })
        .collect();
    let remedy = match near.as_slice() {
        [] => String::new(),
        [one] => format!("The nearest is {one}.\n"),
        many => capital(&format!("the nearest are {}.\n", many.join(" and ")))
            .trim_end_matches('.')
            .to_owned(),
    };
    Err(CliError::new(
        Exit::NotFound,
        format!("{driver} has no version {:?} in the matrix of this vdoctl", name.version),
        format!("{remedy}All versions: vdoctl matrix list {driver}"),
    ))
}

/// The newest versions that begin with what was typed, or the newest of all.
fn beginning_with(driver: &Driver, typed: &str) -> Vec<DriverVersion> {
    let typed = typed.trim_start_matches('v');
    let mut all: Vec<&DriverVersion> = driver.versions.iter().map(|entry| &entry.version).collect();
    all.sort_by(|a, b| b.cmp(a));
    let fits: Vec<DriverVersion> = all
        .iter()
        .filter(|v| format!("{v}.").starts_with(&format!("{typed}.")))
        .take(2)
        .map(|v| (*v).clone())
        .collect();
    if fits.is_empty() {
        all.into_iter().take(1).cloned().collect()
    } else {
        fits
    }
}
