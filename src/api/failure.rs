use super::Reason;
use std::error::Error;

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
pub trait Failure: Error {
    /// The one reason that this failure is published under.
    fn reason(&self) -> Reason;
    /// What can be done about it.
    fn class(&self) -> Class;
}

/// The error and its sources as one text, cut at 1,000 characters: every error says its own sentence only.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let sentence = error.to_string();
        if !text.contains(&sentence) {
            text.push_str(": ");
            text.push_str(&sentence);
        }
        source = error.source();
    }
    if text.chars().count() > 1000 {
        text = text.chars().take(999).collect();
        text.push('…');
    }
    text
}
