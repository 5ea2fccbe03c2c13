// SPDX-License-Identifier: Apache-2.0
//! Parses values of flags: `vc1=8.0.3`, `csi=3.7.3`, Secrets (`csi=NAME`), `--set PATH=VALUE`, features and durations.

use k8s_openapi::jiff::SignedDuration;
use serde_json::{Map, Value};
use std::str::FromStr;
use std::time::Duration;
use vdo_api::types::{DriverVersion, VcenterVersion};
use vdo_core::drivers::KNOWN;
use vdo_core::install::{FieldError, typed_spec};
use vdo_vsphere::vsphere::Feature;

/// A vCenter: `8.0.3`, or with the name of its connection `vc1=8.0.3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vcenter {
    /// The name of the connection.
    pub name: Option<String>,
    /// Its version.
    pub version: VcenterVersion,
}

impl FromStr for Vcenter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, version) = match text.split_once('=') {
            Some((name, version)) => (Some(name.trim().to_owned()).filter(|name| !name.is_empty()), version),
            None => (None, text),
        };
        Ok(Self {
            name,
            version: version.parse().map_err(|error| format!("{error}"))?,
        })
    }
}

/// A Secret with credentials: `NAME`, or of one driver `cpi=NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialsSecret {
    /// The field of the specification of the only driver that uses it; `None` for all.
    pub field: Option<&'static str>,
    /// The name of the Secret.
    pub name: String,
}

impl FromStr for CredentialsSecret {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((driver, name)) = text.split_once('=') else {
            return Ok(Self {
                field: None,
                name: text.to_owned(),
            });
        };
        let found = KNOWN.into_iter().find(|known| known.short.eq_ignore_ascii_case(driver));
        match found {
            Some(known) => Ok(Self {
                field: Some(known.field),
                name: name.to_owned(),
            }),
            None => Err(format!("there is no driver {driver:?}; write cpi or csi")),
        }
    }
}

/// Something that the drivers do with a vCenter, as its privileges are listed.
pub(super) fn feature(text: &str) -> Result<Feature, String> {
    const ALL: [(&str, Feature); 5] = [
        ("cloud-provider", Feature::CloudProvider),
        ("block", Feature::Block),
        ("file", Feature::File),
        ("topology", Feature::Topology),
        ("encryption", Feature::Encryption),
    ];
    let found = ALL.into_iter().find(|(name, _)| *name == text);
    found.map(|(_, feature)| feature).ok_or_else(|| {
        let names = ALL.map(|(name, _)| name).join(", ");
        format!("there is no feature {text:?}; the features are {names}")
    })
}

/// A driver that is asked for: `csi`, or pinned `csi=3.7.3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverArg {
    /// The driver as it was typed.
    pub driver: String,
    /// The version it is pinned to.
    pub pin: Option<DriverVersion>,
}

impl FromStr for DriverArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (driver, pin) = match text.split_once('=') {
            Some((driver, pin)) => (driver, Some(pin.parse().map_err(|error| format!("{error}"))?)),
            None => (text, None),
        };
        Ok(Self {
            driver: driver.trim().to_owned(),
            pin,
        })
    }
}

/// A single value: a path of keys and what it is set to. The value is read as YAML, so `true`, `3`, `null`, `[a, b]` and
/// `{a: 1}` mean what they mean in a file. A dot inside a key is written `\.`.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    path: Vec<String>,
    typed: String,
    value: Value,
}

impl Setting {
    /// The values that say only this.
    #[must_use]
    pub fn values(&self) -> Value {
        let wrap = |inner: Value, key: &String| Value::Object(Map::from_iter([(key.clone(), inner)]));
        self.path.iter().rev().fold(self.value.clone(), wrap)
    }

    /// The same in the specification of a VDOConfig, with the types that its definition says: `spec.a=1` and `a=1` are one.
    ///
    /// # Errors
    /// When there is no such field.
    pub fn in_spec(&self) -> Result<Value, FieldError> {
        let path = match &self.path[..] {
            [first, rest @ ..] if first == "spec" && !rest.is_empty() => rest,
            path => path,
        };
        let value = typed_spec(path, &self.typed, self.value.clone())?;
        let wrap = |inner: Value, key: &String| Value::Object(Map::from_iter([(key.clone(), inner)]));
        Ok(path.iter().rev().fold(value, wrap))
    }
}

impl Setting {
    /// A field with a text, whatever the text looks like.
    pub(crate) fn text(path: Vec<String>, text: &str) -> Self {
        Self {
            path,
            typed: text.to_owned(),
            value: text.into(),
        }
    }
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is not a setting; write for example controller.replicas=1");
        let (path, value) = text.split_once('=').ok_or_else(wrong)?;
        let path = keys(path);
        if path.iter().any(String::is_empty) {
            return Err(wrong());
        }
        let typed = value.to_owned();
        let value = match value {
            "" => Value::String(String::new()),
            text => vdo_api::yaml::load_value(text).map_err(|error| format!("the value of {} cannot be read: {error}", path.join(".")))?,
        };
        Ok(Self { path, typed, value })
    }
}

/// The keys of a path.
fn keys(path: &str) -> Vec<String> {
    let mut keys = vec![String::new()];
    let mut letters = path.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some('.')) => keys.last_mut().unwrap_or(&mut String::new()).push(letters.next().unwrap_or('.')),
            ('.', _) => keys.push(String::new()),
            _ => keys.last_mut().unwrap_or(&mut String::new()).push(letter),
        }
    }
    keys
}

/// A duration: numbers with units. Always a unit, because the unit of a bare number is a guess.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    vdo_api::types::interval(text)
}

/// How long a request may take, in the forms of kubectl: numbers with units (`1m30s`) or a number of seconds; 0 means no limit.
pub(super) fn request_timeout(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u32>().ok().map(|seconds| Duration::from_secs(seconds.into()));
    let read = || text.parse::<SignedDuration>().ok().and_then(|read| read.try_into().ok());
    seconds
        .or_else(read)
        .ok_or_else(|| format!("{text:?} is not a duration; write numbers with units, for example 5s or 2m, or 0 for no limit"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn set_flag_key_and_value_parses_to_nested_values() {
        for (text, expected) in [
            ("a=1", json!({"a": 1})),
            ("a.b=true", json!({"a": {"b": true}})),
            ("a.b\\.c/d=x", json!({"a": {"b.c/d": "x"}})),
            ("a=", json!({"a": ""})),
            ("a=null", json!({"a": null})),
            ("a=[u, v]", json!({"a": ["u", "v"]})),
            ("a=x=y", json!({"a": "x=y"})),
        ] {
            assert_eq!(text.parse::<Setting>().map(|s| s.values()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn request_timeout_is_read_as_kubectl_reads_it() {
        for (text, expected) in [
            ("0", Some(0)),
            ("7", Some(7_000)),
            ("500ms", Some(500)),
            ("5s", Some(5_000)),
            ("1h30m", Some(5_400_000)),
            ("-1", None),
            ("-5s", None),
            ("soon", None),
        ] {
            assert_eq!(request_timeout(text).ok(), expected.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn set_flag_path_may_repeat_its_root() {
        for (text, expected) in [
            ("spec.updatePolicy=Latest", json!({"updatePolicy": "Latest"})),
            ("updatePolicy=Latest", json!({"updatePolicy": "Latest"})),
            ("storageProvider.version=3.7", json!({"storageProvider": {"version": "3.7"}})),
        ] {
            assert_eq!(text.parse::<Setting>().map(|s| s.in_spec()), Ok(Ok(expected)), "{text}");
        }
        assert!("spec=1".parse::<Setting>().is_ok_and(|setting| setting.in_spec().is_err()));
    }

    #[test]
    fn set_flag_malformed_text_is_rejected() {
        for text in ["a", "=1", "a..b=1", "a=[x"] {
            assert!(text.parse::<Setting>().is_err(), "{text} was accepted");
        }
    }

    #[test]
    fn vcenter_flag_with_or_without_name_parses() {
        assert_eq!("vc1=8.0.3".parse::<Vcenter>().map(|v| v.name), Ok(Some("vc1".into())));
        assert_eq!("8.0.3".parse::<Vcenter>().map(|v| v.name), Ok(None));
        assert!("vc1=".parse::<Vcenter>().is_err());
    }

    #[test]
    fn driver_flag_with_version_parses_to_pin() {
        assert_eq!("csi=3.7.3".parse::<DriverArg>().map(|a| a.pin.is_some()), Ok(true));
    }
}
