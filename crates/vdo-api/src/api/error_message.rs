// SPDX-License-Identifier: Apache-2.0
//! Joins an error, its causes and its remedy to the message of a condition or a log line, with at most 1,000 characters.

use crate::types::{Remedy, in_words, with_remedy};
use std::error::Error;

/// How many characters of an error are shown.
const MOST: usize = 1000;

/// The error, its sources and what to do about it as one text of at most 1,000 characters. The causes are cut before the remedy is.
#[must_use]
pub fn chain(error: &dyn Remedy) -> String {
    let remedy = error.remedy().unwrap_or_default();
    let room = MOST.saturating_sub(remedy.chars().count() + 2);
    cut(with_remedy(&cut(causes(error), room), &remedy), MOST)
}

/// The error and its sources as one text: every error says its own sentence only.
#[must_use]
pub fn causes(error: &dyn Error) -> String {
    let mut text = in_words(&error.to_string());
    let mut source = error.source();
    while let Some(error) = source {
        let sentence = in_words(&error.to_string());
        if !text.contains(&sentence) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&sentence);
        }
        source = error.source();
    }
    text
}

fn cut(text: String, most: usize) -> String {
    if text.chars().count() <= most {
        return text;
    }
    let mut cut: String = text.chars().take(most.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[derive(Debug, thiserror::Error)]
    #[error("{what}")]
    struct Example {
        what: String,
        remedy: Option<&'static str>,
        source: Option<Box<Example>>,
    }

    impl Remedy for Example {
        fn remedy(&self) -> Option<Cow<'static, str>> {
            self.remedy.map(Cow::from)
        }
    }

    fn example(what: &str, remedy: Option<&'static str>, source: Option<Example>) -> Example {
        Example {
            what: what.into(),
            remedy,
            source: source.map(Box::new),
        }
    }

    #[test]
    fn chain_names_causes_then_remedy() {
        let inner = || example("the server said no", None, None);
        for (error, expected) in [
            (example("x is wrong", None, None), "x is wrong"),
            (example("x is wrong", Some("Correct x."), None), "x is wrong. Correct x."),
            (
                example("x is wrong", Some("Correct x."), Some(inner())),
                "x is wrong: the server said no. Correct x.",
            ),
            (
                example("x is wrong, the server said no", None, Some(inner())),
                "x is wrong, the server said no",
            ),
        ] {
            assert_eq!(chain(&error), expected);
        }
    }

    #[test]
    fn chain_too_long_keeps_remedy() {
        let long = example(&"x".repeat(2000), Some("Correct x."), None);
        let text = chain(&long);
        assert_eq!(text.chars().count(), MOST);
        assert!(text.ends_with("x…. Correct x."), "{text}");
    }
}
