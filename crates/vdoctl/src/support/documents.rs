// SPDX-License-Identifier: Apache-2.0
//! Runs `status`, `doctor`, `plan` and further verbs for a support bundle, and stores the answer of each as JSON and as text.

use super::super::args::{Contexts, Doctor, Format, Global, History, List, MatrixFile, Output, Platform, Resolve, SecretsList, Status};
use super::super::context::Context;
use super::super::terminal_escapes;
use super::super::{Answer, CliError, doctor, history, matrix, plan, secrets, status, version};
use super::archive::Archive;
use super::fields;
use super::mask::Mask;
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_api::types::{KubernetesVersion, from_json};

/// The answer of a verb.
struct Part {
    json: Value,
    text: String,
    exit: u8,
}

/// The answers of verbs, or why there is none.
pub(super) struct Documents(BTreeMap<&'static str, Result<Part, String>>);

/// As a document and as text.
type Both = Result<(Answer, Answer), CliError>;

impl Documents {
    /// Asks every verb. What one cannot say is said by another, so none of them ends it; a cluster that is gone does.
    pub(super) async fn collect(context: &Context, global: &Global) -> Result<Self, CliError> {
        let output = |format| Output { format: Some(format) };
        let mut all = BTreeMap::new();
        let status = async |format| {
            let args = Status {
                output: output(format),
                watch: false,
                from: None,
                contexts: Contexts::default(),
            };
            status::run(&args, global).await
        };
        // Without it there is nothing to ask the others about.
        all.insert("status", part(Ok((status(Format::Json).await?, status(Format::Wide).await?))));
        all.insert("doctor", part(doctor::both(&Doctor::default(), global).await));
        all.insert("volumes", part(doctor::volumes(global).await));
        all.insert("plan", part(plan::with_fields(global, fields::difference).await));
        let histories = async |format| {
            let args = History {
                driver: None,
                revision: None,
                output: output(format),
            };
            history::run(&args, global).await
        };
        all.insert("history", part(both(histories(Format::Json).await, histories(Format::Wide).await)));
        let secrets = async |format| secrets::list(&SecretsList { output: output(format) }, global).await;
        all.insert("secrets", part(both(secrets(Format::Json).await, secrets(Format::Table).await)));
        let versions = async |format| version::of_both_sides(output(format), global).await;
        all.insert("version", part(both(versions(Format::Json).await, versions(Format::Table).await)));
        let index = MatrixFile::default();
        let lists = async |format| {
            let args = List {
                output: output(format),
                ..List::default()
            };
            matrix::list(&args, global).await
        };
        all.insert("matrix", part(both(lists(Format::Json).await, lists(Format::Wide).await)));
        let outlooks = async |format| {
            let args = Resolve {
                platform: Platform::default(),
                what_if_kubernetes: later(&context.kubernetes, 2),
                what_if_vcenter: Vec::new(),
                index: index.clone(),
                output: output(format),
            };
            matrix::resolve(&args, global).await
        };
        all.insert("outlook", part(both(outlooks(Format::Json).await, outlooks(Format::Table).await)));
        Ok(Self(all))
    }

    /// The document of a verb without secrets.
    pub(super) fn json(&self, verb: &str, mask: &Mask) -> Option<Value> {
        let part = self.0.get(verb)?.as_ref().ok()?;
        Some(mask.document(part.json.clone()))
    }

    /// What could not be collected, and why.
    pub(super) fn missing(&self) -> Vec<String> {
        let why = |(verb, part): (&&str, &Result<Part, String>)| Some(format!("{verb}: {}", part.as_ref().err()?));
        self.0.iter().filter_map(why).collect()
    }

    /// The exit code of each verb.
    pub(super) fn exits(&self) -> BTreeMap<String, u8> {
        let code = |(verb, part): (&&str, &Result<Part, String>)| Some(((*verb).to_owned(), part.as_ref().ok()?.exit));
        self.0.iter().filter_map(code).collect()
    }

    pub(super) fn write(&self, archive: &mut Archive, mask: &Mask) {
        for (verb, part) in &self.0 {
            if let Ok(part) = part {
                archive.add(&format!("{verb}.json"), mask.json(part.json.clone()).as_bytes());
                archive.add(&format!("{verb}.txt"), mask.text(&part.text).as_bytes());
            }
        }
    }
}

/// Some minors further.
fn later(version: &KubernetesVersion, minors: u64) -> Option<KubernetesVersion> {
    let minor = version.minor();
    let (major, minor) = minor.split_once('.')?;
    format!("{major}.{}", minor.parse::<u64>().ok()?.saturating_add(minors))
        .parse()
        .ok()
}

fn both(document: Result<Answer, CliError>, text: Result<Answer, CliError>) -> Both {
    Ok((document?, text?))
}

fn part(answers: Both) -> Result<Part, String> {
    let (document, text) = answers.map_err(|error| error.what)?;
    let plain = |bytes: &[u8]| anstream::adapter::strip_str(&terminal_escapes::shown(&String::from_utf8_lossy(bytes))).to_string();
    let talk: String = text.talk.iter().map(|line| format!("{line}\n")).collect();
    Ok(Part {
        json: from_json(&document.data).map_err(|error| error.to_string())?,
        text: plain(&text.data) + &plain(talk.as_bytes()),
        exit: document.exit as u8,
    })
}
