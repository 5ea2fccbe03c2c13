// SPDX-License-Identifier: Apache-2.0
//! Replaces secrets in free text (logs, events, messages) by `******`; each file of the folder finds one form of secret.
//!
//! Free text has no list of allowed content, so this code searches for secrets. Fields, arguments and environment variables are shown
//! by lists of what is allowed.

mod assignments;
mod blocks;
mod formats;
mod names;
mod random;
mod shown_env_variables;

pub use names::is_sensitive;
pub use shown_env_variables::is_shown_variable;

/// What stands in the place of a secret.
pub const MASKED: &str = "******";

/// The text without what looks like a secret.
#[must_use]
pub fn redacted(text: &str) -> String {
    blocks::redacted(&blocks::without_private_keys(text))
}

/// One line, or a part of one.
fn line(text: &str) -> String {
    random::masked(&assignments::masked(&formats::masked(text)))
}

#[cfg(test)]
mod tests;
