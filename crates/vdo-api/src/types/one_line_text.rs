// SPDX-License-Identifier: Apache-2.0
//! The text of a server as one short line without control characters; secrets are removed in `redaction.rs`.

/// A text of a server for events and screens: one line, and not a long one.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(256).collect()
}
