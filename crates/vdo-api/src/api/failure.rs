// SPDX-License-Identifier: Apache-2.0
//! The trait of errors with a reason and a failure class (wait, retry, terminal); the class decides when the operator retries.

use super::Reason;
use crate::types::Remedy;

/// What can be done about a failure, which decides when the next attempt is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Something else has to happen first; a watch wakes us.
    Wait,
    /// It may go away by itself; try again with backoff.
    Retry,
    /// Only new input helps; the slow resync is the only other chance.
    Terminal,
}

/// An error that can be reported in a condition.
pub trait Classify: Remedy {
    /// The one reason that this failure is published under.
    fn reason(&self) -> Reason;
    /// What can be done about it.
    fn class(&self) -> Class;
}
