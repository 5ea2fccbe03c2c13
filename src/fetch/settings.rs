//! Which source counts, of those that are named (pure).

use super::MatrixSource;
use crate::types::Remedy;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The ConfigMaps that name a source, the first one that does counts: ours, and those of the original operator.
pub const CONFIG_MAPS: [&str; 3] = [OWN, "comp-matrix-config", "compat-matrix-config"];

const OWN: &str = "vdo-matrix";
/// Their keys.
const OWN_SOURCE: &str = "source";
const SOURCE: &str = "versionConfigURL";
const UPGRADE: &str = "auto-upgrade";

/// Where a source is named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origin {
    /// By the flag of the program.
    Flag,
    /// In a ConfigMap.
    ConfigMap(String),
    /// Nowhere: it is what is in the program.
    #[default]
    Program,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("--matrix"),
            Self::ConfigMap(name) => write!(f, "ConfigMap {name}"),
            Self::Program => f.write_str("this program"),
        }
    }
}

/// What counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The source.
    pub source: MatrixSource,
    /// Where it is named.
    pub origin: Origin,
    /// Whether upgrades are switched off, as the original operator was told to.
    pub frozen: bool,
}

/// What a ConfigMap says cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ConfigMap {name}, key {key}: {problem}")]
pub struct SettingsError {
    /// The ConfigMap.
    pub name: String,
    /// The key in it.
    pub key: String,
    /// What is wrong.
    pub problem: String,
}

impl Remedy for SettingsError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("Correct it there; it is read again at once.".into())
    }
}

/// What the ConfigMaps with these names say, each by its data.
///
/// # Errors
/// When the one that counts names no source.
pub fn settings(maps: &BTreeMap<String, BTreeMap<String, String>>) -> Result<Settings, SettingsError> {
    let value = |name: &str, key: &str| {
        let value = maps.get(name)?.get(key)?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    let key = |name: &str| if name == OWN { OWN_SOURCE } else { SOURCE };
    let original = CONFIG_MAPS.iter().filter(|name| **name != OWN);
    let frozen = original
        .filter_map(|name| value(name, UPGRADE))
        .any(|value| value.eq_ignore_ascii_case("disabled"));
    let named = CONFIG_MAPS.iter().find_map(|name| Some((*name, value(name, key(name))?)));
    let Some((name, text)) = named else {
        return Ok(Settings {
            source: MatrixSource::Embedded,
            origin: Origin::Program,
            frozen,
        });
    };
    let wrong = |problem: String| SettingsError {
        name: name.to_owned(),
        key: key(name).to_owned(),
        problem,
    };
    Ok(Settings {
        source: text.parse().map_err(wrong)?,
        origin: Origin::ConfigMap(name.to_owned()),
        frozen,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_first_map_that_names_a_source_counts() {
        const URL: &str = "https://a.test/index.yaml";
        for (maps, expected) in [
            (&[][..], "embedded this program false"),
            (
                &[("vdo-matrix", "source", URL)],
                "https://a.test/index.yaml ConfigMap vdo-matrix false",
            ),
            (&[("vdo-matrix", "source", "embedded\n")], "embedded ConfigMap vdo-matrix false"),
            (&[("vdo-matrix", "source", " ")], "embedded this program false"),
            (
                &[
                    ("comp-matrix-config", "versionConfigURL", URL),
                    ("compat-matrix-config", "versionConfigURL", "file:///b"),
                ],
                "https://a.test/index.yaml ConfigMap comp-matrix-config false",
            ),
            (
                &[
                    ("compat-matrix-config", "versionConfigURL", "file:///b"),
                    ("vdo-matrix", "source", URL),
                ],
                "https://a.test/index.yaml ConfigMap vdo-matrix false",
            ),
            (&[("comp-matrix-config", "auto-upgrade", "disabled")], "embedded this program true"),
            (&[("comp-matrix-config", "auto-upgrade", "enabled")], "embedded this program false"),
            (&[("vdo-matrix", "auto-upgrade", "disabled")], "embedded this program false"),
            (
                &[("vdo-matrix", "source", "http://a.test/")],
                "ConfigMap vdo-matrix, key source: http:// is no source of a matrix; write embedded, a path, or an address with https:// or oci://",
            ),
            (&[("another", "source", URL)], "embedded this program false"),
        ] {
            let mut all: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
            for (name, key, value) in maps {
                all.entry((*name).to_owned())
                    .or_default()
                    .insert((*key).to_owned(), (*value).to_owned());
            }
            let found = match settings(&all) {
                Ok(found) => format!("{} {} {}", found.source, found.origin, found.frozen),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected, "{maps:?}");
        }
    }
}
