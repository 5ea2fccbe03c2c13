// SPDX-License-Identifier: Apache-2.0
//! Parses an image reference into path and tag, to recognise the program and the version of a driver in it.

use vdo_api::types::DriverVersion;

/// A reference of an image. Mirrors keep the end of the path, or join it with dashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image<'a> {
    /// Registry and path.
    pub path: &'a str,
    /// The tag, where the reference has one.
    pub tag: Option<&'a str>,
}

impl<'a> Image<'a> {
    /// The parts of a reference; `None` of an empty one.
    #[must_use]
    pub fn parse(reference: &'a str) -> Option<Self> {
        let named = reference.split('@').next()?;
        let (path, tag) = match named.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
            _ => (named, None),
        };
        (!path.is_empty()).then_some(Self { path, tag })
    }

    /// Whether a word, between characters that are neither letters nor digits, is in the path.
    #[must_use]
    pub fn has_word(&self, word: &str) -> bool {
        self.path.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == word)
    }

    /// The last word of the path.
    #[must_use]
    pub fn last_word(&self) -> &'a str {
        self.path.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default()
    }
}

/// The version of a driver by the tag of its image. Distributions add the number of their build to upstream's version.
#[must_use]
pub fn version(tag: &str) -> Option<DriverVersion> {
    let (numbers, rest) = tag.find(['-', '+', '_']).map_or((tag, ""), |at| tag.split_at(at));
    let is_early = ["-rc", "-alpha", "-beta"].iter().any(|word| rest.starts_with(word));
    let text = if is_early { tag } else { numbers };
    let text = text.strip_prefix('v').unwrap_or(text);
    let is_whole = numbers.trim_start_matches('v').split('.').count() == 3;
    is_whole.then(|| text.parse().ok()).flatten()
}
