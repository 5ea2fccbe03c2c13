// SPDX-License-Identifier: Apache-2.0
//! `vdoctl chart`: calls its verbs, and implements `render`, `images` and `package`; prints objects as YAML, List or table for other verbs.

mod add_release;
mod compare;
mod file;
mod folder;
mod import;
mod lint;
mod manifests;
mod open;
mod push_and_pull;
mod sources;
mod values;

use super::args::{Chart as Args, ChartPackage, ChartRender, ChartVerb, ChartWith, Format, Global};
use super::output::object_name;
use super::views::publish::ImageListView;
use super::{Answer, CliError, Exit, atomic_files, style};
use open::Opened;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use values::Values;
use vdo_api::types::KubernetesVersion;
use vdo_api::yaml;
use vdo_core::chart::{self, Chart};
use vdo_core::plan;

pub(super) use file::{bytes, text};
pub(super) use folder::{read as read_folder, write as write_folder};

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    match &args.verb {
        ChartVerb::Render(args) => render(args, global).await,
        ChartVerb::Images(args) => images(args, global).await,
        ChartVerb::Compare(args) => compare::run(args, global).await,
        ChartVerb::Package(args) => package(args).await,
        ChartVerb::Lint(args) => lint::run(args).await,
        ChartVerb::Sources(args) => sources::run(args),
        ChartVerb::AddRelease(args) => add_release::run(args).await,
        ChartVerb::Import(args) => import::run(args),
        ChartVerb::Push(args) => push_and_pull::push(args).await,
        ChartVerb::Pull(args) => push_and_pull::pull(args).await,
    }
}

async fn render(args: &ChartRender, global: &Global) -> Result<Answer, CliError> {
    objects_answer(args.output.or_yaml(), &rendered(&args.with, global).await?.objects)
}

/// Objects as YAML documents, as a List, or as a table of their names.
pub(super) fn objects_answer(format: Format, objects: &[Value]) -> Result<Answer, CliError> {
    Ok(match format {
        Format::Yaml => Answer::yaml(yaml::dump_all(objects)),
        Format::Json => Answer::json(&serde_json::to_value(list(objects)).map_err(|error| CliError::internal(&error))?),
        Format::Name => Answer::names(&objects.iter().map(name).collect::<Vec<_>>()),
        Format::Table | Format::Wide => {
            let row = |o: &Value| {
                ["/kind", "/metadata/namespace", "/metadata/name", "/apiVersion"]
                    .map(|pointer| text_at(o, pointer).to_owned())
                    .to_vec()
            };
            Answer::text(style::table(
                &["KIND", "NAMESPACE", "NAME", "API"],
                &objects.iter().map(row).collect::<Vec<_>>(),
            ))
        }
    })
}

/// Several objects, as kubectl writes them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    api_version: &'static str,
    kind: &'static str,
    items: &'a [Value],
}

fn list(items: &[Value]) -> List<'_> {
    List {
        api_version: "v1",
        kind: "List",
        items,
    }
}

fn text_at<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn name(object: &Value) -> String {
    let [version, kind, name] = ["/apiVersion", "/kind", "/metadata/name"].map(|pointer| text_at(object, pointer));
    object_name(version, kind, name)
}

async fn images(args: &ChartRender, global: &Global) -> Result<Answer, CliError> {
    let Rendered { chart, objects, .. } = rendered(&args.with, global).await?;
    let images = chart::images(&objects);
    let gone = chart::unavailable(&chart, &images);
    let view = ImageListView {
        driver: chart.metadata.name.clone(),
        version: chart.metadata.version.clone(),
        unavailable: gone.iter().flat_map(|gone| gone.images.clone()).collect(),
        images,
    };
    let text = || view.images.iter().map(|image| format!("{image}\n")).collect();
    let answer = Answer::view(args.output.or_table(), &view, text)?;
    Ok(gone.iter().fold(answer, |answer, gone| answer.note(warning(gone))))
}

/// What to do about images that cannot be pulled.
fn warning(gone: &chart::Unavailable) -> String {
    let what = match gone.images.as_slice() {
        [one] => format!("{one} cannot be pulled: the registry {} was shut down.", gone.registry),
        all => format!(
            "{} images cannot be pulled: the registry {} was shut down.",
            all.len(),
            gone.registry
        ),
    };
    let remedy = if gone.republished {
        "Use the copies that were published elsewhere: --set images.useRepublished=true. Or use your own copies: --set images.registry=REGISTRY."
    } else {
        "No one has published copies of this version: put your own copies into a registry, and name it with --set images.registry=REGISTRY."
    };
    format!("{what} {remedy}")
}

async fn package(args: &ChartPackage) -> Result<Answer, CliError> {
    let opened = open::open(&args.chart).await?;
    let line = opened.line();
    if args.output == Path::new("-") {
        return Ok(Answer::bytes(opened.bytes).note(line));
    }
    atomic_files::write(&args.output, &opened.bytes).map_err(|error| {
        CliError::new(
            Exit::Refused,
            format!("{} cannot be written: {error}", args.output.display()),
            "Choose another file with -o.",
        )
    })?;
    Ok(Answer::text("").note(format!("wrote {}: {line}", args.output.display())))
}

/// A chart with what it rendered.
struct Rendered {
    chart: Chart,
    /// What the user asked for; the defaults are not in it.
    values: Value,
    objects: Vec<Value>,
}

async fn rendered(args: &ChartWith, global: &Global) -> Result<Rendered, CliError> {
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
    let values = Values::read(args)?;
    let mut objects = chart::render(&opened.chart, &values.all, &context).map_err(|error| values.refused(&error))?;
    // as they can be applied: a namespace before what lives in it
    let role = opened.chart.metadata.role;
    objects.sort_by_key(|object| plan::wave(text_at(object, "/kind"), role));
    Ok(Rendered {
        chart: opened.chart,
        values: values.all,
        objects,
    })
}

/// The version to render for: the newest that is supported, unless another one is named.
fn kubernetes(args: &ChartWith, opened: &Opened) -> Result<KubernetesVersion, CliError> {
    let newest = || opened.kubernetes.as_deref().unwrap_or("1.34").parse();
    args.kubernetes
        .clone()
        .map_or_else(newest, Ok)
        .map_err(|error| CliError::internal(&error))
}
