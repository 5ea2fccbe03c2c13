// SPDX-License-Identifier: Apache-2.0
//! Reads and writes the history of the drivers (their revisions) in the inventory's Secret.

use super::inventory::Damage;
use super::{Outcome, PackedObjects, Revision};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vdo_api::types::{DriverName, from_json};

type History = BTreeMap<DriverName, Vec<Revision>>;

/// The revisions as text, a line for each.
pub(super) fn history_text(history: &History) -> String {
    let line = |driver: &String, revision: &Revision| {
        let record = StoredRevision {
            revision: revision.clone(),
            objects: part(driver, &revision.objects),
        };
        serde_json::to_string(&record).unwrap_or_default()
    };
    let driver = |(driver, revisions): (&String, &Vec<Revision>)| {
        let lines: Vec<String> = revisions.iter().map(|revision| line(driver, revision)).collect();
        format!("{}: [\n{}\n]", serde_json::Value::from(driver.as_str()), lines.join(",\n"))
    };
    let drivers: Vec<String> = history.iter().map(driver).collect();
    format!("{{{}}}", drivers.join(",\n"))
}

/// A revision as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredRevision {
    #[serde(flatten)]
    revision: Revision,
    /// The key of its objects.
    objects: String,
}

pub(super) fn history(text: &str, parts: &BTreeMap<&str, PackedObjects>) -> Result<History, Damage> {
    let records: BTreeMap<DriverName, Vec<StoredRevision>> = from_json(text).map_err(Damage::History)?;
    let revision = |record: StoredRevision| {
        let (objects, revision) = (parts.get(record.objects.as_str()), record.revision);
        Revision {
            outcome: if objects.is_some() {
                revision.outcome
            } else {
                Outcome::Progressing
            },
            objects: objects.cloned().unwrap_or_default(),
            ..revision
        }
    };
    let driver = |(driver, records): (DriverName, Vec<StoredRevision>)| {
        let mut revisions: Vec<Revision> = records.into_iter().map(revision).collect();
        // Of the newest the objects are stored again when the driver is healthy with them; nothing else can be done with the others.
        let newest = revisions.last().map(|newest| newest.number);
        revisions.retain(|revision| revision.is_known() || Some(revision.number) == newest);
        (driver, revisions)
    };
    Ok(records.into_iter().map(driver).collect())
}

/// What an operator kept that knew no revisions: what it applied last.
pub(super) fn first_revisions(parts: BTreeMap<&str, PackedObjects>) -> History {
    let first = |(key, objects): (&str, PackedObjects)| {
        let driver = key.split('.').next().unwrap_or_default();
        (driver.to_owned(), vec![Revision::of(1, objects)])
    };
    parts.into_iter().map(first).collect()
}

/// The key of the objects of a revision. It says what is in it, so that a change by another user is seen.
pub(super) fn part(driver: &str, objects: &PackedObjects) -> String {
    format!("{driver}.{}.json.gz", objects.digest())
}
