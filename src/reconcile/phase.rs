// SPDX-License-Identifier: Apache-2.0
//! The result type of a phase: its value and findings, or the error that stopped it with the findings until then (pure).

use super::error::ReconcileError;
use vdo_core::status::{Failure, Report};

/// The value of a phase and what it found, or what stopped it.
pub type Phase<T> = Result<(T, Report), Stopped>;

/// A phase that could not end, and with it the run.
#[derive(Debug)]
pub struct Stopped {
    /// What was found until then.
    pub found: Box<Report>,
    /// Why.
    pub error: ReconcileError,
}

impl Stopped {
    /// Everything that there is to report.
    #[must_use]
    pub fn into_report(self) -> Report {
        let mut report = *self.found;
        report.failures.push(Failure::from(&self.error));
        report
    }
}

impl<E: Into<ReconcileError>> From<E> for Stopped {
    /// With nothing found.
    fn from(error: E) -> Self {
        Self {
            found: Box::default(),
            error: error.into(),
        }
    }
}

/// Collects what phases find, so that it is not lost when one of them stops the run.
pub(super) trait Collect: Sized {
    /// The value of a phase, whose findings are joined to these.
    fn take<T>(&mut self, phase: Phase<T>) -> Result<T, Stopped>;
    /// The value of a step without findings. Its error stops the run.
    fn or_stop<T, E: Into<ReconcileError>>(&mut self, step: Result<T, E>) -> Result<T, Stopped> {
        self.take(step.map(|value| (value, Report::default())).map_err(Stopped::from))
    }
}

impl Collect for Report {
    fn take<T>(&mut self, phase: Phase<T>) -> Result<T, Stopped> {
        match phase {
            Ok((value, found)) => {
                self.join(found);
                Ok(value)
            }
            Err(stopped) => {
                self.join(*stopped.found);
                Err(Stopped {
                    found: Box::new(std::mem::take(self)),
                    error: stopped.error,
                })
            }
        }
    }
}
