// SPDX-License-Identifier: Apache-2.0
//! Prints the result of `vdoctl adopt`: the objects with the origin of each setting, the lost settings, and the view for `-o json`.

use super::super::args::{Adopt as Args, Format};
use super::super::style::{head, table};
use super::super::views::adopt::{AdoptionView, LossView, SettingView, WorkloadView};
use super::super::views::plan::ObjectView;
use super::super::{Answer, CliError};
use super::find::Found;
use super::plan_after_adoption::Picture;
use serde_json::Value;
use vdo_adopt::Document;

/// The objects with comments for `-o yaml`; else what was found.
pub(super) fn answer(args: &Args, found: &Found, picture: Option<&Picture>, written: bool) -> Result<Answer, CliError> {
    if args.output.format == Some(Format::Yaml) {
        let documents = found.adoption.documents.iter().map(|document| document.yaml(args.show_secrets));
        let losses = found.adoption.losses.iter();
        let losses = losses.map(|loss| format!("# lost: {} ({}): {}\n", loss.key, loss.origin, loss.because));
        let kept = found.adoption.kept.iter().map(|name| format!("# {}\n", kept(name)));
        let text: String = kept.chain(losses).chain(documents).collect();
        return Ok(Answer::yaml(text));
    }
    let view = AdoptionView {
        plan: picture.and_then(Picture::view),
        failed_checks: picture.map(|picture| picture.failed.clone()).unwrap_or_default(),
        ..view(args, found, written)
    };
    Answer::view(args.output.or_table(), &view, || {
        text(&view) + &picture.map(Picture::text).unwrap_or_default()
    })
}

fn view(args: &Args, found: &Found, written: bool) -> AdoptionView {
    let adoption = &found.adoption;
    AdoptionView {
        workloads: found
            .workloads
            .iter()
            .map(|one| WorkloadView {
                driver: one.driver.name.to_owned(),
                version: one.version.as_ref().map(ToString::to_string),
                object: object(one.object.value()),
                evidence: one.evidence.to_string(),
                installed_by: one.ownership("").to_string(),
            })
            .collect(),
        settings: adoption.documents.iter().flat_map(settings).collect(),
        losses: adoption
            .losses
            .iter()
            .map(|loss| LossView {
                key: loss.key.clone(),
                origin: loss.origin.to_string(),
                reason: loss.because.clone(),
                accepted: args.accepted.contains(&loss.key),
            })
            .collect(),
        objects: adoption.documents.iter().map(|document| object(&document.draft.object)).collect(),
        connections: adoption.kept.clone(),
        plan: None,
        failed_checks: Vec::new(),
        written,
    }
}

fn settings(document: &Document) -> Vec<SettingView> {
    let whole = &document.draft.object;
    let of = |path: &Vec<String>| {
        let step = |at: &'_ Value, step: &String| match at {
            Value::Array(items) => step.parse::<usize>().ok().and_then(|place| items.get(place)).cloned(),
            other => other.get(step).cloned(),
        };
        path.iter().try_fold(whole.clone(), |at, name| step(&at, name))
    };
    let setting = |(path, origin): (&Vec<String>, &vdo_adopt::Origin)| SettingView {
        object: object(whole),
        field: path.join("."),
        value: of(path),
        origin: origin.to_string(),
    };
    document.draft.origins.iter().map(setting).collect()
}

fn object(value: &Value) -> ObjectView {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    ObjectView {
        api_version: text("/apiVersion"),
        kind: text("/kind"),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
    }
}

fn text(view: &AdoptionView) -> String {
    let place = |one: &ObjectView| format!("{} {}/{}", one.kind, one.namespace, one.name);
    let workloads: Vec<Vec<String>> = view
        .workloads
        .iter()
        .map(|one| {
            let version = one.version.clone().unwrap_or_else(|| "unknown".to_owned());
            vec![
                one.driver.clone(),
                version,
                place(&one.object),
                one.installed_by.clone(),
                one.evidence.clone(),
            ]
        })
        .collect();
    let settings: Vec<Vec<String>> = view
        .settings
        .iter()
        .map(|one| {
            let value = one.value.as_ref().map_or_else(|| "******".to_owned(), short);
            vec![format!("{} {}", one.object.kind, one.field), value, one.origin.clone()]
        })
        .collect();
    let mut text = table(&["DRIVER", "VERSION", "WORKLOAD", "INSTALLED BY", "FOUND BY"], &workloads);
    text.push('\n');
    text.push_str(&table(&["SETTING", "VALUE", "FROM"], &settings));
    if !view.connections.is_empty() {
        text.push('\n');
        text.extend(view.connections.iter().map(|name| format!("{}\n", kept(name))));
    }
    if !view.losses.is_empty() {
        text.push_str(&format!("\n{}\n", head("Settings that would be lost:")));
        for loss in &view.losses {
            let accepted = if loss.accepted { " (accepted)" } else { "" };
            text.push_str(&format!("  {}{accepted}\n    {}\n    {}\n", loss.key, loss.origin, loss.reason));
        }
    }
    text
}

/// A connection that counts more than the file of a driver.
fn kept(name: &str) -> String {
    format!("connection {name} already exists for a vCenter of the drivers; its account, certificate and datacenters are used")
}

/// A value in one line.
fn short(value: &Value) -> String {
    const MOST: usize = 40;
    let text = match value {
        Value::String(text) => text.lines().next().unwrap_or_default().to_owned(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}
