// SPDX-License-Identifier: Apache-2.0
//! Makes the text of a server one line without control characters and at most 256 characters; `redaction.rs` removes secrets.

/// A text of a server for events and screens: one line, and not a long one.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(256).collect()
}
