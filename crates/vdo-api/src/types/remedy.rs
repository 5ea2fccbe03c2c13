// SPDX-License-Identifier: Apache-2.0
//! The trait `Remedy` of errors with a text of what a user can do, and the quoting of shell arguments in such texts.

use std::borrow::Cow;
use std::error::Error;

/// An error that knows what a person can do about it.
///
/// `Display` says what happened, and to which object. The remedy is a sentence of its own, so that the place that prints decides how the
/// two are shown, and reads neither.
pub trait Remedy: Error {
    /// What to do: sentences with a capital letter and a full stop; `None` where only time or another version of this program helps.
    fn remedy(&self) -> Option<Cow<'static, str>>;
}

/// A word of a command, as a shell reads it: quoted where it has to be.
#[must_use]
pub fn shell_word(word: &str) -> Cow<'_, str> {
    // Only a zero byte cannot be quoted, and no argument can have one.
    shlex::try_quote(word).unwrap_or(Cow::Borrowed(word))
}

/// What happened and what to do, as one text: the message of a condition, a line of a log.
#[must_use]
pub fn with_remedy(what: &str, remedy: &str) -> String {
    if remedy.is_empty() {
        return what.to_owned();
    }
    format!("{}. {remedy}", what.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_word_is_quoted_only_where_a_shell_would_split_or_expand_it() {
        assert_eq!(shell_word("kube-system/vdo"), "kube-system/vdo");
        for word in ["", "a b", "it's", "$HOME", "a;b", "*", "\"", "a\nb"] {
            let quoted = shell_word(word);
            assert_ne!(quoted, word);
            assert_eq!(shlex::split(&quoted), Some(vec![word.to_owned()]), "{quoted}");
        }
        assert_eq!(shell_word("a\0b"), "a\0b", "no shell can be given it");
    }
}
