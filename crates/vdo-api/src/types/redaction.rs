// SPDX-License-Identifier: Apache-2.0
//! Foreign text without secrets: what stands behind the name of a secret, and what has the form of a key, a token or a password.
//!
//! This is the second net, for text of which no list can say what is allowed in it, such as logs and events. Fields, arguments and
//! environments are judged by lists of what may be shown.

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
