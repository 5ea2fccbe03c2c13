// SPDX-License-Identifier: Apache-2.0
//! Parses and validates an image reference, `HOST[:PORT]/REPOSITORY[:TAG][@sha256:…]` (pure).

use std::fmt;
use std::str::FromStr;
use vdo_api::types::Digest;

/// `HOST[:PORT]/REPOSITORY[:TAG][@sha256:…]`, in front of which `oci://` may stand. A digest counts more than a tag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The registry, perhaps with its port.
    pub host: String,
    /// The repository in it.
    pub repository: String,
    /// The tag, if one is named.
    pub tag: Option<String>,
    /// The digest, if one is named.
    pub digest: Option<Digest>,
}

/// The text is not a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid registry reference: {problem}")]
pub struct ParseReferenceError {
    text: String,
    problem: &'static str,
}

/// Bytes of a name, as the specification of registries limits host and repository together.
const NAME: usize = 255;
const TAG: usize = 128;

impl Reference {
    /// This repository, at a tag.
    #[must_use]
    pub fn at_tag(&self, tag: &str) -> Self {
        Self {
            tag: Some(tag.to_owned()),
            digest: None,
            ..self.clone()
        }
    }

    /// This repository, at a digest.
    #[must_use]
    pub fn at_digest(&self, digest: &Digest) -> Self {
        Self {
            tag: None,
            digest: Some(digest.clone()),
            ..self.clone()
        }
    }

    /// What a registry is asked for: the digest, or else the tag, or else the tag `latest`.
    #[must_use]
    pub fn pointer(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => "latest".into(),
        }
    }

    /// Whether it can name something else tomorrow.
    #[must_use]
    pub fn moves(&self) -> bool {
        self.digest.is_none()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.repository)?;
        self.tag.iter().try_for_each(|tag| write!(f, ":{tag}"))?;
        self.digest.iter().try_for_each(|digest| write!(f, "@{digest}"))
    }
}

impl FromStr for Reference {
    type Err = ParseReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |problem| ParseReferenceError {
            // What stands before an @ in a host may be a password.
            text: match text.split('/').any(|part| part.contains('@') && !part.contains("@sha256:")) {
                true => "the address".into(),
                false => text.to_owned(),
            },
            problem,
        };
        let rest = text.strip_prefix("oci://").unwrap_or(text);
        let (host, rest) = rest.split_once('/').ok_or_else(|| wrong("write HOST/REPOSITORY:TAG"))?;
        if host.contains('@') {
            return Err(wrong(
                "an address must not contain credentials; put them into --matrix-credentials or log in",
            ));
        }
        if !is_host(host) {
            return Err(wrong("the host is empty"));
        }
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (
                rest,
                Some(
                    digest
                        .parse()
                        .map_err(|_| wrong("the digest is not a SHA-256 digest; write @sha256: and 64 digits"))?,
                ),
            ),
            None => (rest, None),
        };
        let (repository, tag) = match rest.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (rest, None),
        };
        if !repository.split('/').all(is_component) || host.len() + repository.len() > NAME {
            return Err(wrong(
                "a repository name has only small letters and digits, separated by . _ - or /",
            ));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(wrong("a tag has at most 128 letters, digits, dots, hyphens and underscores"));
        }
        Ok(Self {
            host: host.to_owned(),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }
}

/// A name or address, perhaps with a port.
fn is_host(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) => (address, port.strip_prefix(':').or(Some(port).filter(|port| !port.is_empty()))),
            None => return false,
        },
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    let is_name = match host.starts_with('[') {
        true => name.parse::<std::net::Ipv6Addr>().is_ok(),
        false => {
            let is_label = |label: &str| {
                !label.is_empty()
                    && !label.starts_with('-')
                    && !label.ends_with('-')
                    && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            };
            name.split('.').all(is_label)
        }
    };
    is_name && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// Words of small letters and digits, joined by one dot, one or two underscores, or hyphens.
fn is_component(component: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut joins = component.split(is_plain).filter(|join| !join.is_empty());
    let ends_plain = component.starts_with(is_plain) && component.ends_with(is_plain);
    ends_plain && joins.all(|join| matches!(join, "." | "_" | "__") || join.bytes().all(|b| b == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.len() <= TAG && tag.bytes().next().is_some_and(is_word) && tag.bytes().all(|b| is_word(b) || b == b'.' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_text_is_read_and_shown_again() {
        let digest = Digest::of(b"x");
        for (text, repository, pointer) in [
            ("r.example/a:1".to_owned(), "a", "1".to_owned()),
            ("r.example:5000/a/b.c/d__e-f:v1.2_x".into(), "a/b.c/d__e-f", "v1.2_x".into()),
            ("127.0.0.1:5000/a".into(), "a", "latest".into()),
            ("[::1]:5000/a:t".into(), "a", "t".into()),
            (format!("r.example/a@{digest}"), "a", digest.to_string()),
            (format!("r.example/a:1@{digest}"), "a", digest.to_string()),
        ] {
            let reference: Reference = text.parse().expect(&text);
            assert_eq!(reference.to_string(), text);
            assert_eq!((reference.repository.as_str(), reference.pointer()), (repository, pointer));
            assert_eq!(format!("oci://{text}").parse(), Ok(reference));
        }
    }

    #[test]
    fn reference_that_names_nothing_is_rejected() {
        for (text, said) in [
            ("", "HOST/REPOSITORY"),
            ("r.example", "HOST/REPOSITORY"),
            ("/a:1", "host"),
            ("r_x/a:1", "host"),
            ("r.example:port/a:1", "host"),
            ("r.example:0/a:1", "host"),
            ("[::1/a:1", "host"),
            ("user:s3cret@r.example/a:1", "credentials"),
            ("r.example/A:1", "small letters"),
            ("r.example/a//b:1", "small letters"),
            ("r.example/a..b:1", "small letters"),
            ("r.example/a/../b:1", "small letters"),
            ("r.example/a:", "a tag"),
            ("r.example/a:x/y", "a tag"),
            ("r.example/a@sha256:12", "digest"),
            ("r.example/a?x=1", "small letters"),
        ] {
            let error = text.parse::<Reference>().expect_err(text).to_string();
            assert!(error.contains(said) && !error.contains("s3cret"), "{text}: {error}");
        }
    }
}
