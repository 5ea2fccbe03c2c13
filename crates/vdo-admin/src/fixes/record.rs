// SPDX-License-Identifier: Apache-2.0
//! The record file of `vdoctl doctor --fix`, which `--undo` reads: the steps that were made in a vCenter and not undone.

use super::Step;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use vdo_api::types::{Remedy, from_json};

const VERSION: &str = "vdoctl/v1";
const KIND: &str = "DoctorRecord";

/// The steps that were made in a vCenter and not undone, in the order in which they were made.
///
/// A step is recorded before it is made and taken out when it was refused, so a step that was made is never missing; one that is recorded
/// and was not made has nothing to be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    api_version: String,
    kind: String,
    /// The address of the vCenter, for people.
    pub address: String,
    /// Its instance UUID.
    pub vcenter: String,
    /// What tags and categories that these steps created have in their descriptions.
    pub mark: String,
    /// The steps.
    pub steps: Vec<Entry>,
}

/// A step that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// The step.
    #[serde(flatten)]
    pub step: Step,
}

/// A record cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is something else, or damaged.
    #[error("the file is not a record of vdoctl doctor --fix: {0}")]
    NotOne(String),
    /// It is about another vCenter.
    #[error("the record belongs to the vCenter {recorded}, and not to {asked}")]
    OtherVcenter {
        /// Where it was made.
        recorded: String,
        /// Where it was to be used.
        asked: String,
    },
}

impl Remedy for RecordError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Self::NotOne(_) => "Name the file that vdoctl doctor --fix has written, or another file with --record FILE.",
            Self::OtherVcenter { .. } => "Name another file with --record FILE, or the connection of that vCenter.",
        };
        Some(remedy.into())
    }
}

impl Record {
    /// One without steps.
    #[must_use]
    pub fn new(address: &str, vcenter: &str, now: Timestamp) -> Self {
        Self {
            api_version: VERSION.into(),
            kind: KIND.into(),
            address: address.into(),
            vcenter: vcenter.into(),
            mark: format!("Created by vdoctl doctor --fix, record {:x}.", now.as_nanosecond()),
            steps: Vec::new(),
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &[u8]) -> Result<Self, RecordError> {
        let record: Self = from_json(text).map_err(|error| RecordError::NotOne(error.to_string()))?;
        match (record.api_version.as_str(), record.kind.as_str()) {
            (VERSION, KIND) => Ok(record),
            (version, kind) => Err(RecordError::NotOne(format!("it has kind {kind} and apiVersion {version}"))),
        }
    }

    /// It, if it was made in this vCenter.
    ///
    /// # Errors
    /// When it was made in another one.
    pub fn of_vcenter(self, address: &str, vcenter: &str) -> Result<Self, RecordError> {
        match self.vcenter == vcenter {
            true => Ok(self),
            false => Err(RecordError::OtherVcenter {
                recorded: self.address,
                asked: address.into(),
            }),
        }
    }

    /// With a step that is about to be made. One that changed the same thing before is not undone any more: the way back leads to what
    /// was there right before the newer one.
    pub fn add(&mut self, step: &Step, now: Timestamp) {
        self.steps.retain(|entry| !step.replaces(&entry.step));
        self.steps.push(Entry {
            at: now,
            step: step.clone(),
        });
    }

    /// Without a step that was not made, or was undone.
    pub fn remove(&mut self, step: &Step) {
        self.steps.retain(|entry| entry.step != *step);
    }
}
