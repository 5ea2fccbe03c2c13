// SPDX-License-Identifier: Apache-2.0
//! The place where an adopted setting was found (object, key, line), and the record of a setting that the adoption loses.

use std::fmt;
use vdo_api::types::ObjectId;

/// Where a setting was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The object, for example `Secret kube-system/vsphere-config-secret`.
    pub object: String,
    /// The key of its data, or the place in its pods.
    pub place: String,
    /// The line of a file, from 1.
    pub line: Option<usize>,
}

impl Origin {
    /// A place in an object that is not a line of a file.
    pub(crate) fn new(object: impl Into<String>, place: impl Into<String>) -> Self {
        Self {
            object: object.into(),
            place: place.into(),
            line: None,
        }
    }

    /// A line of the same place.
    #[must_use]
    pub(crate) fn line(&self, line: usize) -> Self {
        Self {
            line: Some(line),
            ..self.clone()
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.object)?;
        if !self.place.is_empty() {
            write!(f, ", {}", self.place)?;
        }
        match self.line {
            Some(line) => write!(f, ", line {line}"),
            None => Ok(()),
        }
    }
}

/// The name of an object for people.
pub(crate) fn named(id: &ObjectId) -> String {
    format!("{} {}/{}", id.kind(), id.namespace, id.name)
}

/// A value and where it was found.
#[derive(Debug, Clone)]
pub(crate) struct Said<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Said<T> {
    pub(crate) const fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}

/// A setting that is not taken along. Its value is not part of it, because it may be a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// What it is called, for example `csi/Global/cnspvcprotection-cleanup-intervalinmin`.
    pub key: String,
    /// Where it is.
    pub origin: Origin,
    /// Why.
    pub because: String,
}

/// The losses of a driver.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// The driver, `cpi` or `csi`.
    driver: &'static str,
    /// All of them.
    pub all: Vec<Loss>,
}

impl Losses {
    pub(crate) const fn of(driver: &'static str) -> Self {
        Self { driver, all: Vec::new() }
    }

    pub(crate) fn add(&mut self, key: &str, origin: Origin, because: impl Into<String>) {
        let key = format!("{}/{key}", self.driver).replace(char::is_whitespace, "_");
        if self.all.iter().all(|known| known.key != key || known.origin != origin) {
            let because = because.into();
            self.all.push(Loss { key, origin, because });
        }
    }
}
