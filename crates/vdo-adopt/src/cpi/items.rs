// SPDX-License-Identifier: Apache-2.0
//! Parses the cloud provider's file, in YAML or INI, into keys with values and lines; all keys get the spelling of the INI file.

use crate::error::AdoptError;
use crate::ini::ini;
use crate::origin::Origin;
use crate::text::list;
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_api::yaml::{YamlError, lines, load_value};

/// A key and its value.
#[derive(Debug)]
pub(super) struct Item {
    /// `global`, `vcenter`, `labels`, `nodes`, or another name in lower case.
    pub section: String,
    pub subsection: Option<String>,
    /// The key in the spelling of the INI file; a key that the driver would not take in this grammar stays as it is.
    pub key: String,
    /// The key as it is written.
    written: String,
    /// One text, or the items of a list.
    pub texts: Vec<String>,
    /// Whether the key stands alone.
    pub is_bare: bool,
    pub line: usize,
}

impl Item {
    pub(super) fn text(&self) -> String {
        self.texts.join(",")
    }

    pub(super) fn list(&self) -> Vec<String> {
        list(&self.text())
    }

    /// The key with its section, for people.
    pub(super) fn path(&self) -> String {
        match &self.subsection {
            Some(subsection) => format!("{}[{subsection}]/{}", self.section, self.written),
            None => format!("{}/{}", self.section, self.written),
        }
    }
}

/// A whole file.
#[derive(Debug, Default)]
pub(super) struct Items {
    pub is_yaml: bool,
    /// The vCenters, each with its line.
    pub vcenters: Vec<(String, usize)>,
    pub all: Vec<Item>,
}

impl Items {
    /// Reads YAML, and INI where it is none: the driver does the same.
    pub(super) fn read(bytes: &[u8], file: &Origin) -> Result<Self, AdoptError> {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        // An INI file begins with a header, which YAML takes for a list.
        let mut statements = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = statements.find(|line| !line.starts_with(['#', ';']));
        let is_ini = text.is_empty() || first.is_none_or(|line| line.starts_with('['));
        match is_ini || text.starts_with('\u{feff}') || text.contains('\0') {
            true => Self::of_ini(bytes, file),
            false => Self::of_yaml(text, file),
        }
    }

    fn of_ini(bytes: &[u8], file: &Origin) -> Result<Self, AdoptError> {
        let contents = ini(bytes, file)?;
        let section = |name: &str| match name {
            "virtualcenter" => "vcenter".to_owned(),
            other => other.to_owned(),
        };
        let vcenters = contents.sections.iter().filter(|one| one.name == "virtualcenter");
        let vcenters = vcenters.filter_map(|one| Some((one.subsection.clone()?, one.line))).collect();
        let all = contents.entries.into_iter().map(|entry| Item {
            section: section(&entry.section),
            subsection: entry.subsection,
            written: entry.key.clone(),
            key: entry.key,
            is_bare: entry.value.is_none(),
            texts: vec![entry.value.unwrap_or_default()],
            line: entry.line,
        });
        Ok(Self {
            is_yaml: false,
            vcenters,
            all: all.collect(),
        })
    }

    fn of_yaml(text: &str, file: &Origin) -> Result<Self, AdoptError> {
        let value = load_value(text).map_err(|error| match error {
            YamlError::Read { line, message, .. } => AdoptError::Yaml {
                origin: file.line(usize::try_from(line).unwrap_or_default()),
                problem: message,
            },
            YamlError::Write(problem) => AdoptError::Yaml {
                origin: file.clone(),
                problem,
            },
        })?;
        let Value::Object(sections) = value else {
            return Err(AdoptError::Yaml {
                origin: file.clone(),
                problem: "it is not a map of sections".to_owned(),
            });
        };
        let mut items = Self {
            is_yaml: true,
            ..Self::default()
        };
        let lines = Lines(lines(text));
        for (section, content) in &sections {
            items.section(section, content, &lines);
        }
        match items.all.is_empty() && items.vcenters.is_empty() {
            true => Err(AdoptError::Empty { origin: file.clone() }),
            false => Ok(items),
        }
    }

    fn section(&mut self, section: &str, content: &Value, lines: &Lines) {
        let Value::Object(fields) = content else {
            if !content.is_null() {
                self.push((section, None), section, content, lines.of(&[section]));
            }
            return;
        };
        for (key, value) in fields {
            match (section, value) {
                ("vcenter" | "loadBalancerClass", Value::Object(inner)) => {
                    if section == "vcenter" {
                        self.vcenters.push((key.clone(), lines.of(&[section, key])));
                    }
                    for (field, value) in inner {
                        self.push((section, Some(key)), field, value, lines.of(&[section, key, field]));
                    }
                }
                _ => self.push((section, None), key, value, lines.of(&[section, key])),
            }
        }
    }

    fn push(&mut self, (section, subsection): (&str, Option<&str>), key: &str, value: &Value, line: usize) {
        let texts = match value {
            Value::Null => return,
            Value::Array(items) => items.iter().map(scalar).collect(),
            other => vec![scalar(other)],
        };
        // Names of sections and keys have one spelling; the driver ignores any other.
        let known = ["global", "vcenter", "labels", "nodes"];
        let section = match section {
            "loadBalancer" | "loadBalancerClass" => section.to_lowercase(),
            other if known.contains(&other.to_lowercase().as_str()) && !known.contains(&other) => format!("{other} in YAML"),
            other => other.to_owned(),
        };
        self.all.push(Item {
            section,
            subsection: subsection.map(str::to_owned),
            key: ini_spelling(key),
            written: key.to_owned(),
            texts,
            is_bare: false,
            line,
        });
    }
}

struct Lines(BTreeMap<Vec<String>, u64>);

impl Lines {
    fn of(&self, path: &[&str]) -> usize {
        let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
        self.0.get(&path).and_then(|line| usize::try_from(*line).ok()).unwrap_or_default()
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `caFile` is `ca-file`. A key with a dash is none of YAML's.
fn ini_spelling(key: &str) -> String {
    if key.contains('-') {
        return format!("{key} in YAML");
    }
    let mut spelt = String::new();
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            spelt.push('-');
        }
        spelt.extend(c.to_lowercase());
    }
    spelt
}

#[cfg(test)]
mod tests {
    use super::ini_spelling;

    #[test]
    fn yaml_key_is_known_in_its_own_spelling_only() {
        for (key, spelt) in [
            ("caFile", "ca-file"),
            ("soapRoundtripCount", "soap-roundtrip-count"),
            ("excludeInternalNetworkSubnetCidr", "exclude-internal-network-subnet-cidr"),
            ("cafile", "cafile"),
            ("ca-file", "ca-file in YAML"),
        ] {
            assert_eq!(ini_spelling(key), spelt);
        }
    }
}
