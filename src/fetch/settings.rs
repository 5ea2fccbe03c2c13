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
/// The field of a CompatibilityConfig.
const FIELD: &str = "spec.matrixURL";

/// What the cluster says of the source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Named {
    /// The ConfigMaps with these names, each by its data.
    pub maps: BTreeMap<String, BTreeMap<String, String>>,
    /// The CompatibilityConfigs of the original operator with what they name, the oldest first.
    pub objects: Vec<(String, String)>,
}

impl Named {
    fn value(&self, name: &str, key: &str) -> Option<String> {
        let value = self.maps.get(name)?.get(key)?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// Every place that may name a source, in the order in which they count, with what it names.
    #[must_use]
    pub fn places(&self) -> Vec<(Origin, Option<String>)> {
        let maps = CONFIG_MAPS.iter().map(|name| {
            let key = if *name == OWN { OWN_SOURCE } else { SOURCE };
            (Origin::ConfigMap((*name).to_owned()), self.value(name, key))
        });
        let objects = self.objects.iter().map(|(name, url)| {
            let url = url.trim();
            (Origin::Object(name.clone()), (!url.is_empty()).then(|| url.to_owned()))
        });
        maps.chain(objects).collect()
    }

    /// The ConfigMap of the original operator that switches upgrades off, if one does.
    #[must_use]
    pub fn frozen_by(&self) -> Option<&'static str> {
        let disables = |name: &str| {
            self.value(name, UPGRADE)
                .is_some_and(|value| value.eq_ignore_ascii_case("disabled"))
        };
        CONFIG_MAPS.into_iter().find(|name| *name != OWN && disables(name))
    }

    /// Whether upgrades are switched off.
    #[must_use]
    pub fn frozen(&self) -> bool {
        self.frozen_by().is_some()
    }
}

/// Where a source is named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origin {
    /// By the flag of the program.
    Flag,
    /// In a ConfigMap.
    ConfigMap(String),
    /// In a CompatibilityConfig.
    Object(String),
    /// Nowhere: it is what is in the program.
    #[default]
    Program,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("--matrix"),
            Self::ConfigMap(name) => write!(f, "ConfigMap {name}"),
            Self::Object(name) => write!(f, "CompatibilityConfig {name}"),
            Self::Program => f.write_str("this program"),
        }
    }
}

impl Origin {
    /// It with its key or field.
    fn whole(&self) -> String {
        match self {
            Self::ConfigMap(name) if name == OWN => format!("{self}, key {OWN_SOURCE}"),
            Self::ConfigMap(_) => format!("{self}, key {SOURCE}"),
            Self::Object(_) => format!("{self}, {FIELD}"),
            Self::Flag | Self::Program => self.to_string(),
        }
    }
}

/// What the cluster names cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct SettingsError {
    /// Where it is named.
    pub place: String,
    /// What is wrong.
    pub problem: String,
}

impl Remedy for SettingsError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("Correct it there; it is read again at once.".into())
    }
}

/// The source that counts.
///
/// # Errors
/// When what counts is no source.
pub fn settings(named: &Named) -> Result<MatrixSource, SettingsError> {
    let first = named.places().into_iter().find_map(|(origin, text)| Some((origin, text?)));
    let Some((origin, text)) = first else {
        return Ok(MatrixSource::Embedded);
    };
    text.parse().map_err(|problem| SettingsError {
        place: origin.whole(),
        problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_first_place_that_names_a_source_counts() {
        const URL: &str = "https://a.test/index.yaml";
        const OBJECT: &str = "CompatibilityConfig";
        for (places, expected, frozen) in [
            (&[][..], "embedded", false),
            (&[("vdo-matrix", "source", URL)], URL, false),
            (&[("vdo-matrix", "source", "embedded\n")], "embedded", false),
            (&[("vdo-matrix", "source", " ")], "embedded", false),
            (
                &[
                    ("comp-matrix-config", "versionConfigURL", URL),
                    ("compat-matrix-config", "versionConfigURL", "file:///b"),
                ],
                URL,
                false,
            ),
            (
                &[
                    ("compat-matrix-config", "versionConfigURL", "file:///b"),
                    ("vdo-matrix", "source", URL),
                ],
                URL,
                false,
            ),
            (&[(OBJECT, "a", URL), (OBJECT, "b", "embedded")], URL, false),
            (&[(OBJECT, "a", ""), (OBJECT, "b", URL)], URL, false),
            (
                &[(OBJECT, "a", "file:///c"), ("compat-matrix-config", "versionConfigURL", URL)],
                URL,
                false,
            ),
            (&[("comp-matrix-config", "auto-upgrade", "disabled"), (OBJECT, "a", URL)], URL, true),
            (&[("comp-matrix-config", "auto-upgrade", "enabled")], "embedded", false),
            (&[("vdo-matrix", "auto-upgrade", "disabled")], "embedded", false),
            (
                &[("vdo-matrix", "source", "http://a.test/")],
                "ConfigMap vdo-matrix, key source: http:// is no source of a matrix",
                false,
            ),
            (
                &[(OBJECT, "a", "http://a.test/"), (OBJECT, "b", URL)],
                "CompatibilityConfig a, spec.matrixURL: http:// is no source of a matrix",
                false,
            ),
            (&[("another", "source", URL)], "embedded", false),
        ] {
            let mut named = Named::default();
            for (place, key, value) in places {
                if *place == OBJECT {
                    named.objects.push(((*key).to_owned(), (*value).to_owned()));
                } else {
                    let map = named.maps.entry((*place).to_owned()).or_default();
                    map.insert((*key).to_owned(), (*value).to_owned());
                }
            }
            let found = settings(&named).map_or_else(|error| error.to_string(), |source| source.to_string());
            assert!(found.starts_with(expected), "{places:?}: {found}");
            assert_eq!(named.frozen(), frozen, "{places:?}");
        }
    }
}
