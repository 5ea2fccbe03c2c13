// SPDX-License-Identifier: Apache-2.0
//! Parses single values of the drivers' files as the drivers do: lists, booleans, numbers, ports, thumbprints.

use crate::error::AdoptError;
use crate::origin::Origin;
use vdo_api::types::Thumbprint;

/// The items of a list that commas separate.
pub(crate) fn list(text: &str) -> Vec<String> {
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The words of gcfg; a key that stands alone is true.
pub(crate) fn boolean(value: Option<&str>, key: &str, origin: &Origin) -> Result<bool, AdoptError> {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("true" | "yes" | "on" | "1") => Ok(true),
        Some("false" | "no" | "off" | "0") => Ok(false),
        Some(_) => Err(wrong(key, "true or false", origin)),
    }
}

/// A number; in hexadecimal with `0x`.
pub(crate) fn number(text: &str, key: &str, origin: &Origin) -> Result<i64, AdoptError> {
    let text = text.trim();
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| wrong(key, "a number", origin))
}

pub(crate) fn port(text: &str, key: &str, origin: &Origin) -> Result<u16, AdoptError> {
    let port = number(text, key, origin).ok().and_then(|port| u16::try_from(port).ok());
    port.filter(|port| *port > 0).ok_or_else(|| wrong(key, "a port", origin))
}

pub(crate) fn thumbprint(text: &str, key: &str, origin: &Origin) -> Result<Thumbprint, AdoptError> {
    text.parse().map_err(|_| wrong(key, "a thumbprint", origin))
}

pub(crate) fn wrong(key: &str, expected: &'static str, origin: &Origin) -> AdoptError {
    AdoptError::Value {
        origin: origin.clone(),
        key: key.to_owned(),
        expected,
    }
}
