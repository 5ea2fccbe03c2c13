// SPDX-License-Identifier: Apache-2.0
//! `vdoctl history`: prints the applied revisions of each driver, with their outcome, or the objects of one revision.

use super::args::{Format, Global, History as Args};
use super::chart::objects_answer;
use super::context::{Context, now};
use super::output::nameless;
use super::views::history::{DriverHistoryView, HistoryView};
use super::{Answer, CliError, Exit, ages, style};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use vdo::reconcile;
use vdo_api::api::{API_VERSION, VDOConfig};
use vdo_api::types::count;
use vdo_core::drivers::short;
use vdo_core::plan::{Inventory, Outcome, Revision};

/// The drivers of a cluster with what was applied of them.
pub(super) struct Histories {
    pub(super) context: Context,
    pub(super) config: VDOConfig,
    pub(super) inventory: Inventory,
}

impl Histories {
    pub(super) async fn read(global: &Global) -> Result<Self, CliError> {
        let context = Context::open(global).await?;
        let config = context.acting().await?;
        let inventory = reconcile::inventory(&context.ports.reader, &config).await?;
        Ok(Self {
            context,
            config,
            inventory: inventory.unwrap_or_default(),
        })
    }

    /// A driver by what was typed, with its revisions.
    pub(super) fn driver(&self, typed: &str) -> Result<(&str, &[Revision]), CliError> {
        let word = typed.to_lowercase();
        let mut all = self.inventory.history.iter();
        let found = all.find(|(name, _)| **name == word || short(name).to_lowercase() == word);
        found.map(|(name, revisions)| (name.as_str(), revisions.as_slice())).ok_or_else(|| {
            let names: Vec<&str> = self.inventory.history.keys().map(String::as_str).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            CliError::new(
                Exit::NotFound,
                format!("no revision of driver {typed:?} was applied in cluster {}", self.context.name),
                format!("Drivers with a history: {known}."),
            )
        })
    }

    pub(super) async fn annotate(&self, key: &str, value: Value) -> Result<(), CliError> {
        let change = json!({"metadata": {"annotations": {key: value}}});
        let id = self.config.id();
        self.context.ports.writer.merge(API_VERSION, &id, &change, false).await?;
        Ok(())
    }
}

pub(super) fn revision<'a>(driver: &str, revisions: &'a [Revision], number: u64) -> Result<&'a Revision, CliError> {
    revisions.iter().find(|revision| revision.number == number).ok_or_else(|| {
        let known: Vec<String> = revisions.iter().map(|revision| revision.number.to_string()).collect();
        CliError::new(
            Exit::NotFound,
            format!("{driver} has no revision {number} in its history"),
            format!(
                "Available: {}. See vdoctl history {}.",
                known.join(", "),
                short(driver).to_lowercase()
            ),
        )
    })
}

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let all = Histories::read(global).await?;
    if let (Some(driver), Some(number)) = (&args.driver, args.revision) {
        let (name, revisions) = all.driver(driver)?;
        return one(args, name, revision(name, revisions, number)?);
    }
    let mut shown: Vec<(&str, &[Revision])> = match &args.driver {
        Some(driver) => vec![all.driver(driver)?],
        None => all
            .inventory
            .history
            .iter()
            .map(|(name, revisions)| (name.as_str(), revisions.as_slice()))
            .collect(),
    };
    shown.retain(|(_, revisions)| !revisions.is_empty());
    let format = args.output.or_table();
    let view = HistoryView {
        drivers: shown.into_iter().map(of_driver).collect(),
    };
    let answer = Answer::view(format, &view, || table(&view, format == Format::Wide, now()))?;
    Ok(match view.drivers.is_empty() {
        true => answer.note("nothing was applied yet"),
        false => answer,
    })
}

/// One revision: what is known of it, or its objects.
fn one(args: &Args, driver: &str, revision: &Revision) -> Result<Answer, CliError> {
    let all: Vec<Value> = revision.objects.objects().iter().map(|object| object.masked()).collect();
    match args.output.format {
        Some(format @ (Format::Json | Format::Yaml)) => objects_answer(format, &all),
        Some(Format::Name) => Err(nameless()),
        _ => Ok(Answer::text(text(driver, revision, &all))),
    }
}

fn text(driver: &str, revision: &Revision, objects: &[Value]) -> String {
    let about = &revision.about;
    let name = style::head(&format!("{driver} {} (revision {})", about.version, revision.number));
    let mut text = format!("{name}  {}\n\n", outcome(revision));
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |what: &str, value: String| rows.push(vec![what.to_owned(), value]);
    row("Applied", ages::time(revision.time));
    row("Cause", revision.cause.clone());
    if let Some(failure) = &revision.failure {
        row("Failed", failure.message.clone());
    }
    row("Chart", about.chart.clone());
    row("Values", about.values.clone());
    if !about.patches.is_empty() {
        row("Patches", about.patches.clone());
    }
    row("Configuration", about.configuration.clone());
    row("Matrix", format!("version {}", about.matrix));
    row("Objects", count(objects.len(), "object"));
    text.push_str(&style::columns(rows.iter()));
    text
}

fn outcome(revision: &Revision) -> String {
    let word = revision.outcome.to_string();
    match revision.outcome {
        Outcome::Deployed => style::good(&word),
        Outcome::Progressing => style::warn(&word),
        Outcome::Failed => style::bad(&word),
        Outcome::Superseded => style::faint(&word),
    }
}

fn of_driver((driver, revisions): (&str, &[Revision])) -> DriverHistoryView {
    DriverHistoryView {
        name: driver.to_owned(),
        revisions: revisions.to_vec(),
    }
}

fn table(view: &HistoryView, wide: bool, now: Timestamp) -> String {
    let mut heading = vec!["DRIVER", "REVISION", "VERSION", "OUTCOME", "AGE", "CAUSE"];
    if wide {
        heading.extend(["MATRIX", "CHART"]);
    }
    let row = |driver: &str, revision: &Revision| {
        let about = &revision.about;
        let mut row = vec![
            driver.to_owned(),
            revision.number.to_string(),
            about.version.clone(),
            outcome(revision),
            ages::ago(revision.time, now),
            revision.cause.clone(),
        ];
        if wide {
            row.extend([about.matrix.to_string(), about.chart.clone()]);
        }
        row
    };
    let rows = view.drivers.iter();
    let rows = rows.flat_map(|driver| driver.revisions.iter().rev().map(|revision| row(&driver.name, revision)));
    style::table(&heading, &rows.collect::<Vec<_>>())
}
