// SPDX-License-Identifier: Apache-2.0
//! Validates identifiers, object references, names and session tokens that a vCenter sends and that later requests contain.
//!
//! Identifiers are also escaped where they are written. So requests remain small and well-formed, however a server names its objects.

use super::xml::Element;
use crate::vsphere::ManagedObject;
use hyper::header::HeaderValue;
use vdo_api::types::plain;

/// The identifiers of a vCenter are about forty characters long, those of the simulator ninety.
const MAX_IDENTIFIER: usize = 256;
/// The kinds of managed objects are words.
const MAX_KIND: usize = 64;
/// What proves a session. Browsers keep no longer cookies.
const MAX_PROOF: usize = 4096;
/// A name has 80 characters at most, of which a vCenter writes some as three.
const MAX_NAME: usize = 1024;

/// The managed object that an element refers to.
pub fn reference(element: &Element) -> Result<ManagedObject, String> {
    let kind = &element.kind;
    if kind.is_empty() || kind.len() > MAX_KIND || !kind.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Err(format!("it names an object of the kind {:?}, which is not valid", plain(kind)));
    }
    Ok(ManagedObject {
        kind: kind.clone(),
        id: identifier(&element.text)?,
    })
}

/// An identifier, without the space around it.
pub fn identifier(text: &str) -> Result<String, String> {
    let id = text.trim();
    match !id.is_empty() && id.len() <= MAX_IDENTIFIER && id.chars().all(|c| c.is_ascii_graphic()) {
        true => Ok(id.to_owned()),
        false => Err(format!("it contains the id {:?}, which is not an identifier", plain(id))),
    }
}

/// An identifier, where there is one.
pub fn identifier_or_none(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Ok(String::new()),
        id => identifier(id),
    }
}

/// An identifier that goes into a path.
pub fn segment(id: &str) -> Result<&str, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_' | '.');
    match id.len() < 200 && id.starts_with(|c: char| c.is_ascii_alphanumeric()) && id.chars().all(good) {
        true => Ok(id),
        false => Err(format!("it contains the tag id {:?}, which is not valid", plain(id))),
    }
}

/// What proves a session, as a header that is not shown.
pub fn proof(value: &[u8]) -> Option<HeaderValue> {
    let good = !value.is_empty() && value.len() <= MAX_PROOF && value.iter().all(|b| b.is_ascii_graphic() || *b == b' ');
    let mut value = HeaderValue::from_bytes(value).ok().filter(|_| good)?;
    value.set_sensitive(true);
    Some(value)
}

/// A name, which becomes a part of many paths.
pub fn name(text: String) -> Result<String, String> {
    match text.len() <= MAX_NAME {
        true => Ok(text),
        false => Err(format!("it contains a name of {} bytes, which is too long", text.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echo_identifier_unlike_one_is_refused() {
        let long = "x".repeat(MAX_IDENTIFIER + 1);
        for (text, expected) in [
            ("vm-42", Some("vm-42")),
            (" group-d1\n", Some("group-d1")),
            ("session[52b8]52cf-\"&<>'", Some("session[52b8]52cf-\"&<>'")),
            ("", None),
            (" ", None),
            ("a b", None),
            ("a\r\nHost: evil", None),
            ("a\tb", None),
            ("\u{202e}vm-1", None),
            (&long, None),
        ] {
            let reported = identifier(text);
            assert_eq!(reported.as_deref().ok(), expected, "{text:?}");
            let error = reported.err().unwrap_or_default();
            assert!(error.len() < 400 && !error.contains('\n'), "{error}");
        }
        assert_eq!(identifier_or_none(" "), Ok(String::new()));
        assert!(identifier_or_none("a b").is_err());
    }

    #[test]
    fn echo_reference_of_no_kind_is_refused() {
        for (kind, id, good) in [
            ("Folder", "group-d1", true),
            ("PbmProfileProfileManager", "ProfileManager", true),
            ("", "group-d1", false),
            ("Folder\"><evil x=\"", "group-d1", false),
            ("Folder x", "group-d1", false),
            ("F\u{f6}lder", "group-d1", false),
            ("Folder", "", false),
            ("Folder", "a b", false),
        ] {
            let element = Element {
                kind: kind.into(),
                text: id.into(),
                ..Element::default()
            };
            assert_eq!(reference(&element).is_ok(), good, "{kind:?} {id:?}");
        }
        let element = Element {
            kind: "x".repeat(MAX_KIND + 1),
            text: "id".into(),
            ..Element::default()
        };
        assert!(reference(&element).is_err());
    }

    #[test]
    fn echo_segment_that_leads_elsewhere_is_refused() {
        for (id, good) in [
            ("urn:vmomi:InventoryServiceTag:e5b1-77:GLOBAL", true),
            ("a.b_c-d", true),
            ("", false),
            (".", false),
            ("..", false),
            ("a/../b", false),
            ("a%2fb", false),
            ("a?~action=delete", false),
            ("a#b", false),
            ("a b", false),
            ("a\r\nX: y", false),
            (&"x".repeat(200), false),
        ] {
            assert_eq!(segment(id).is_ok(), good, "{id:?}");
        }
    }

    #[test]
    fn echo_proof_with_line_end_or_of_any_length_is_refused() {
        let long = vec![b'x'; MAX_PROOF + 1];
        for (value, good) in [
            (&b"vmware_soap_session=\"52b8\""[..], true),
            (b"", false),
            (b"a\r\nX: y", false),
            (b"a\tb", false),
            (b"a\xffb", false),
            (&long, false),
        ] {
            let reported = proof(value);
            assert_eq!(reported.is_some(), good, "{value:?}");
            assert!(reported.is_none_or(|value| value.is_sensitive()));
        }
    }

    #[test]
    fn echo_long_name_is_refused() {
        assert!(name("x".repeat(MAX_NAME)).is_ok());
        assert!(name("x".repeat(MAX_NAME + 1)).is_err());
    }
}
