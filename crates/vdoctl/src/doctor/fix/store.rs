// SPDX-License-Identifier: Apache-2.0
//! Reads and writes the file of `--record`, in which `doctor --fix` records its changes for `doctor --undo`.

use super::super::super::context::now;
use super::super::super::{CliError, Exit, atomic_files, support};
use super::site::Site;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use vdo_admin::fixes::{Record, Step};

/// A record and its file. The file is written before a step is made, and is not there while there is nothing to undo.
pub(super) struct Store {
    path: PathBuf,
    pub(super) record: Record,
}

impl Store {
    /// The record that is there, or a new one.
    pub(super) fn open(site: &Site) -> Result<Self, CliError> {
        let path = site.record.clone();
        let refused = |error: &vdo_admin::fixes::RecordError| {
            let error = CliError::of(Exit::Refused, error);
            CliError {
                what: format!("{}: {}", path.display(), error.what),
                ..error
            }
        };
        let record = match fs::read(&path) {
            Ok(bytes) => Record::parse(&bytes)
                .and_then(|record| record.of_vcenter(&site.endpoint.address(), &site.vcenter))
                .map_err(|error| refused(&error))?,
            Err(error) if error.kind() == ErrorKind::NotFound => Record::new(&site.endpoint.address(), &site.vcenter, now()),
            Err(error) => {
                return Err(CliError::new(
                    Exit::Refused,
                    format!("{} cannot be read: {error}", path.display()),
                    "Name another file with --record FILE.",
                ));
            }
        };
        Ok(Self { path, record })
    }

    /// The file, for messages.
    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// A step is about to be made.
    pub(super) fn add(&mut self, step: &Step) -> Result<(), CliError> {
        self.record.add(step, now());
        self.write()
    }

    /// A step was not made, or was undone.
    pub(super) fn remove(&mut self, step: &Step) -> Result<(), CliError> {
        self.record.remove(step);
        self.write()
    }

    fn write(&self) -> Result<(), CliError> {
        if self.record.steps.is_empty() {
            return match fs::remove_file(&self.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(support::unwritable(&self.path, &error)),
                _ => Ok(()),
            };
        }
        let text = serde_json::to_string_pretty(&self.record).map_err(|error| CliError::internal(&error))?;
        atomic_files::write_private(&self.path, format!("{text}\n").as_bytes()).map_err(|error| support::unwritable(&self.path, &error))
    }
}
