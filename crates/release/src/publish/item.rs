// SPDX-License-Identifier: Apache-2.0
//! An artifact to publish with its content, and the states of its tag: new, incomplete, present, older or refused (pure).
//!
//! It compares lists of files, and decides whether the tag `stable` of the matrix may move to another version.

use std::sync::Arc;
use vdo_api::types::Digest;
use vdo_core::chart::artifact::Described;
use vdo_oci::layout::Layout;
use vdo_oci::oci::Descriptor;
use vdo_oci::registry::{Artifact, Reference};

/// One thing that is published.
pub struct Item {
    /// What it is, for people.
    pub what: String,
    /// The tag that leads to it.
    pub to: Reference,
    /// Its manifest.
    pub manifest: Descriptor,
    /// What it consists of.
    pub content: Content,
}

/// What is published.
pub enum Content {
    /// An image with what refers to it.
    Image(Arc<Layout>),
    /// A Helm chart: what a registry shows of it, and its package.
    Chart(Described, Vec<u8>),
    /// Files.
    Files(Artifact),
    /// The files of a matrix under the tag that operators follow: the version of the matrix may only grow.
    Channel(Artifact, u64),
}

impl Content {
    /// Whether its manifest is signed. Files have a signature among them.
    pub fn is_signed(&self) -> bool {
        matches!(self, Self::Image(_) | Self::Chart(..))
    }
}

/// What the registry has at the tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Missing,
    /// It, without all that refers to it.
    Incomplete,
    /// It.
    There,
    /// An older version of what the tag follows.
    Older(Digest),
    /// Something else, and why it stays.
    Other(Digest, &'static str),
}

impl State {
    /// Whether it is to be published.
    pub fn is_to_do(&self) -> bool {
        matches!(self, Self::Missing | Self::Incomplete | Self::Older(_))
    }

    /// A word for the list.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Missing => "new",
            Self::Incomplete => "incomplete",
            Self::There => "there",
            Self::Older(_) => "newer",
            Self::Other(..) => "REFUSED",
        }
    }
}

/// How files under a tag compare to ours: as lists of paths with digests.
#[derive(Debug, PartialEq, Eq)]
pub enum Compared<'a> {
    /// The same.
    Same,
    /// The same but for signatures, which have a random part: these of theirs are to be verified.
    Signatures(Vec<&'a str>),
    /// Others.
    Other,
}

/// The file that a signature is about, when this is a signature.
pub fn signed_by(path: &str) -> Option<&str> {
    path.strip_suffix(".sigstore.json").or_else(|| path.strip_suffix(".sig"))
}

/// Compares files.
pub fn compared<'a>(ours: &[(String, Digest)], theirs: &'a [(String, Digest)]) -> Compared<'a> {
    let of = |list: &[(String, Digest)]| {
        let mut rest: Vec<(String, Digest)> = list.iter().filter(|(path, _)| signed_by(path).is_none()).cloned().collect();
        rest.sort();
        rest
    };
    if of(ours) != of(theirs) {
        return Compared::Other;
    }
    let is_theirs = |path: &str| theirs.iter().any(|(other, _)| other == path);
    // What is signed here and not there would be published without its signature.
    if ours.iter().any(|(path, _)| signed_by(path).is_some() && !is_theirs(path)) {
        return Compared::Other;
    }
    let differs = |entry: &&(String, Digest)| signed_by(&entry.0).is_some() && !ours.contains(entry);
    let signatures: Vec<&str> = theirs.iter().filter(differs).map(|(path, _)| path.as_str()).collect();
    match signatures.is_empty() {
        true => Compared::Same,
        false => Compared::Signatures(signatures),
    }
}

/// Whether a tag that operators follow may move: from a version to a higher one.
pub fn channel(there: Option<(Digest, u64)>, same: bool, version: u64) -> State {
    match there {
        None => State::Missing,
        Some(_) if same => State::There,
        Some((digest, old)) if old < version => State::Older(digest),
        Some((digest, old)) if old == version => State::Other(digest, "a matrix of the same version with other content"),
        Some((digest, _)) => State::Other(digest, "a matrix of a higher version"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(&str, &str)]) -> Vec<(String, Digest)> {
        entries
            .iter()
            .map(|(path, text)| ((*path).to_owned(), Digest::of(text.as_bytes())))
            .collect()
    }

    #[test]
    fn compared_only_signatures_may_differ() {
        let ours = list(&[("a", "1"), ("SHA256SUMS", "s"), ("SHA256SUMS.sigstore.json", "x")]);
        for (theirs, expected) in [
            (
                list(&[("SHA256SUMS.sigstore.json", "x"), ("a", "1"), ("SHA256SUMS", "s")]),
                Compared::Same,
            ),
            (
                list(&[("a", "1"), ("SHA256SUMS", "s"), ("SHA256SUMS.sigstore.json", "y")]),
                Compared::Signatures(vec!["SHA256SUMS.sigstore.json"]),
            ),
            (
                list(&[("a", "2"), ("SHA256SUMS", "s"), ("SHA256SUMS.sigstore.json", "x")]),
                Compared::Other,
            ),
            (
                list(&[("a", "1"), ("SHA256SUMS", "s"), ("b", "1"), ("SHA256SUMS.sigstore.json", "x")]),
                Compared::Other,
            ),
            (list(&[("a", "1"), ("SHA256SUMS", "s")]), Compared::Other),
        ] {
            assert_eq!(compared(&ours, &theirs), expected);
        }
        let unsigned = list(&[("a", "1"), ("SHA256SUMS", "s")]);
        assert_eq!(compared(&unsigned, &ours), Compared::Signatures(vec!["SHA256SUMS.sigstore.json"]));
    }

    #[test]
    fn channel_only_grows() {
        let digest = Digest::of(b"there");
        let there = |version| Some((digest.clone(), version));
        assert_eq!(channel(None, false, 5), State::Missing);
        assert_eq!(channel(there(5), true, 5), State::There);
        assert_eq!(channel(there(4), false, 5), State::Older(digest.clone()));
        for version in [5, 6] {
            assert!(matches!(channel(there(version), false, 5), State::Other(..)), "{version}");
        }
    }
}
