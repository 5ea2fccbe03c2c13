// SPDX-License-Identifier: Apache-2.0
//! Decides which source of the matrix counts: flag, Secret `vdo-matrix`, ConfigMaps, CompatibilityConfig, or the binary (pure).

use super::MatrixSource;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use vdo_api::types::{Remedy, shell_word};

/// The Secret that names a source. A Secret, because who may write ConfigMaps shall not choose what runs.
pub const SOURCE_SECRET: &str = "vdo-matrix";
/// The ConfigMaps that named a source: that of operators before this one, and those of the original operator. The first one that does counts,
/// and only as long as it names the source that was in use before.
pub const CONFIG_MAPS: [&str; 3] = [SOURCE_SECRET, "comp-matrix-config", "compat-matrix-config"];

/// Their keys.
const OWN_SOURCE: &str = "source";
const SOURCE: &str = "versionConfigURL";
/// The field of a CompatibilityConfig.
const FIELD: &str = "spec.matrixURL";

/// What the cluster says of the source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Named {
    /// The content of the Secret.
    pub secret: BTreeMap<String, String>,
    /// The ConfigMaps with these names, each by its data.
    pub maps: BTreeMap<String, BTreeMap<String, String>>,
    /// The CompatibilityConfigs of the original operator with what they name, the oldest first.
    pub objects: Vec<(String, String)>,
    /// The source that was in use last, by the word of the status.
    pub used: Option<String>,
}

/// A place that may name a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naming {
    /// It.
    pub origin: Origin,
    /// What it names.
    pub text: Option<String>,
    /// Whether it may: a ConfigMap may only name what was in use before.
    pub may: bool,
}

fn value(map: &BTreeMap<String, String>, key: &str) -> Option<String> {
    let value = map.get(key)?.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

impl Named {
    pub(super) fn value(&self, name: &str, key: &str) -> Option<String> {
        value(self.maps.get(name)?, key)
    }

    /// Every place that may name a source, in the order in which they count, with what it names.
    #[must_use]
    pub fn places(&self) -> Vec<Naming> {
        let secret = Naming {
            origin: Origin::Secret,
            text: value(&self.secret, OWN_SOURCE),
            may: true,
        };
        let maps = CONFIG_MAPS.iter().map(|name| {
            let key = if *name == SOURCE_SECRET { OWN_SOURCE } else { SOURCE };
            let text = self.value(name, key);
            let source = text.as_deref().and_then(|text| text.parse::<MatrixSource>().ok());
            let used = self.used.as_deref();
            Naming {
                origin: Origin::ConfigMap((*name).to_owned()),
                may: source.is_some_and(|source| used == Some(source.to_string().as_str())),
                text,
            }
        });
        let objects = self.objects.iter().map(|(name, url)| {
            let url = url.trim();
            Naming {
                origin: Origin::Object(name.clone()),
                text: (!url.is_empty()).then(|| url.to_owned()),
                may: true,
            }
        });
        std::iter::once(secret).chain(maps).chain(objects).collect()
    }

    /// The place whose source counts, with the source as it is written there.
    fn counts(&self) -> Option<(Origin, String)> {
        let mut places = self.places().into_iter().filter(|place| place.may);
        places.find_map(|place| Some((place.origin, place.text?)))
    }

    /// A ConfigMap that names another source than the one that counts, with what a person does to follow it.
    #[must_use]
    pub fn unheard(&self) -> Option<String> {
        let (_, counts) = self.counts().unzip();
        let place = self.places().into_iter().find(|place| !place.may && place.text.is_some())?;
        let text = place.text.filter(|text| counts.as_ref() != Some(text))?;
        Some(format!(
            "{} names the source {text}, but VDO ignores this source, because a user who may only write ConfigMaps must not choose the \
             software that runs; to use this source: vdoctl configure matrix {}",
            place.origin,
            shell_word(&text)
        ))
    }
}

/// Where a source is named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origin {
    /// By the flag of the program.
    Flag,
    /// In the Secret.
    Secret,
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
            Self::Secret => write!(f, "Secret {SOURCE_SECRET}"),
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
            Self::Secret => format!("{self}, key {OWN_SOURCE}"),
            Self::ConfigMap(name) if name == SOURCE_SECRET => format!("{self}, key {OWN_SOURCE}"),
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
        Some(format!("Correct the source in {}; the operator reads the source again at once.", self.place).into())
    }
}

/// The source that counts.
///
/// # Errors
/// When what counts is not a source.
pub fn settings(named: &Named) -> Result<MatrixSource, SettingsError> {
    let Some((origin, text)) = named.counts() else {
        return Ok(MatrixSource::Embedded);
    };
    named_source(&text).map_err(|problem| SettingsError {
        place: origin.whole(),
        problem,
    })
}

/// A source as an object of the cluster names it. Which file of this machine is read, only the one who starts the program decides.
///
/// # Errors
/// When it is not a source, or a path.
pub fn named_source(text: &str) -> Result<MatrixSource, String> {
    match text.parse()? {
        MatrixSource::Local(_) => Err(format!(
            "{text} is a path, which only the flag --matrix may name; write embedded, or an address with https://, oci:// or configmap://"
        )),
        source => Ok(source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://a.test/index.yaml";
    const OBJECT: &str = "CompatibilityConfig";
    const SECRET: &str = "Secret";

    fn named(places: &[(&str, &str, &str)], used: &str) -> Named {
        let mut named = Named {
            used: Some(used.to_owned()),
            ..Named::default()
        };
        for (place, key, value) in places {
            let (key, value) = ((*key).to_owned(), (*value).to_owned());
            match *place {
                OBJECT => named.objects.push((key, value)),
                SECRET => drop(named.secret.insert(key, value)),
                map => drop(named.maps.entry(map.to_owned()).or_default().insert(key, value)),
            }
        }
        named
    }

    #[test]
    fn settings_first_place_that_names_a_source_counts() {
        for (places, expected) in [
            (&[][..], "embedded"),
            (&[(SECRET, "source", URL)], URL),
            (&[(SECRET, "source", "embedded\n")], "embedded"),
            (&[(SECRET, "source", " ")], "embedded"),
            (&[("vdo-matrix", "source", URL)], URL),
            (
                &[
                    ("comp-matrix-config", "versionConfigURL", URL),
                    ("compat-matrix-config", "versionConfigURL", "file:///b"),
                ],
                URL,
            ),
            (
                &[("compat-matrix-config", "versionConfigURL", URL), (SECRET, "source", "embedded")],
                "embedded",
            ),
            (&[(OBJECT, "a", URL), (OBJECT, "b", "embedded")], URL),
            (&[(OBJECT, "a", ""), (OBJECT, "b", URL)], URL),
            (
                &[(OBJECT, "a", "file:///c"), ("compat-matrix-config", "versionConfigURL", URL)],
                URL,
            ),
            (&[("comp-matrix-config", "auto-upgrade", "disabled"), (OBJECT, "a", URL)], URL),
            (&[("comp-matrix-config", "auto-upgrade", "enabled")], "embedded"),
            (&[("vdo-matrix", "auto-upgrade", "disabled")], "embedded"),
            (
                &[(SECRET, "source", "http://a.test/")],
                "Secret vdo-matrix, key source: http:// is not a source of a matrix",
            ),
            (
                &[(OBJECT, "a", "http://a.test/"), (OBJECT, "b", URL)],
                "CompatibilityConfig a, spec.matrixURL: http:// is not a source of a matrix",
            ),
            (&[("another", "source", URL)], "embedded"),
            // No path of the machine on which the operator runs.
            (
                &[(SECRET, "source", "/proc/self/fd/1")],
                "Secret vdo-matrix, key source: /proc/self/fd/1 is a path, which only the flag --matrix may name",
            ),
            (&[(SECRET, "source", "matrix")], "Secret vdo-matrix, key source: matrix is a path"),
            (
                &[(SECRET, "source", "./embedded")],
                "Secret vdo-matrix, key source: ./embedded is a path",
            ),
            (
                &[(SECRET, "source", "file:///etc/passwd")],
                "Secret vdo-matrix, key source: file:///etc/passwd is a path",
            ),
            (
                &[(OBJECT, "a", "/dev/zero")],
                "CompatibilityConfig a, spec.matrixURL: /dev/zero is a path",
            ),
        ] {
            let named = named(places, URL);
            let found = settings(&named).map_or_else(|error| error.to_string(), |source| source.to_string());
            assert!(found.starts_with(expected), "{places:?}: {found}");
        }
    }

    /// Who may write ConfigMaps cannot choose: neither a source that was never used, nor one instead of another that is named.
    #[test]
    fn settings_config_map_names_nothing_but_what_was_in_use() {
        const EVIL: &str = "https://evil.test/index.yaml";
        for map in CONFIG_MAPS {
            let key = if map == SOURCE_SECRET { OWN_SOURCE } else { SOURCE };
            for (others, used, expected) in [
                (&[][..], "embedded", "embedded"),
                (&[(SECRET, "source", URL)], URL, URL),
                (&[(OBJECT, "a", URL)], URL, URL),
            ] {
                for evil in [EVIL, "configmap://vmware-system-vdo/evil", "/proc/self/fd/1", "http://a.test/"] {
                    let places: Vec<_> = others.iter().copied().chain([(map, key, evil)]).collect();
                    let named = named(&places, used);
                    assert_eq!(settings(&named).expect("a source").to_string(), expected, "{places:?}");
                    let said = named.unheard().expect("it is said");
                    assert!(said.contains(map) && said.contains("vdoctl configure matrix"), "{said}");
                }
            }
            // Not even where the flag has named it before.
            let path = named(&[(map, key, "/proc/self/fd/1")], "/proc/self/fd/1");
            assert!(settings(&path).is_err_and(|error| error.to_string().contains("is a path")), "{map}");
            let same = [(map, key, URL)];
            assert_eq!(named(&same, URL).unheard(), None);
        }
    }
}
