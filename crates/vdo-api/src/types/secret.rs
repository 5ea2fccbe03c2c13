// SPDX-License-Identifier: Apache-2.0
//! `Secret`: a value that prints as `******` and is wiped from memory when it is dropped.

use std::fmt;
use zeroize::{ZeroizeOnDrop, Zeroizing};

/// A value that must never be printed. `Debug` and `Display` show `******`; [`Secret::expose`] is the one way out,
/// so a search for `expose` finds every place where a secret leaves its wrapper. Its memory is wiped when it is dropped.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(Zeroizing<String>);

impl ZeroizeOnDrop for Secret {}

impl Secret {
    /// Wraps a value.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(Zeroizing::new(value.into()))
    }

    /// The value itself. The caller takes care that it reaches no log, event, status or error.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A foreign text without this value: a server may repeat what it was sent.
    #[must_use]
    pub fn hidden_in(&self, text: &str) -> String {
        let parts = [self.expose(), self.expose().trim()];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.fold(text.to_owned(), |text, part| text.replace(part, "******"))
    }

    /// Whether there is nothing inside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("******")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("******")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_printed_is_masked() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "****** ****** Some(******)");
        assert_eq!(secret.expose(), "hunter2");
    }

    /// Freed memory cannot be read without unsafe code, so the types are compared instead.
    #[test]
    fn secret_dropped_is_wiped_by_its_type() {
        fn wiped_on_drop<T: ZeroizeOnDrop>(_: &T) {}
        let secret = Secret::new("hunter2");
        let Secret(inner) = &secret;
        wiped_on_drop(inner);
        wiped_on_drop(&secret);
    }

    #[test]
    fn secret_in_foreign_text_is_masked() {
        assert_eq!(Secret::new("hunter2").hidden_in("hunter2 or hunter2?"), "****** or ******?");
        assert_eq!(Secret::new(" hunter2 ").hidden_in("you sent hunter2"), "you sent ******");
        assert_eq!(Secret::new("").hidden_in("nothing"), "nothing");
    }
}
