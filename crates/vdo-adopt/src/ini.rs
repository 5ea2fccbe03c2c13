// SPDX-License-Identifier: Apache-2.0
//! Parses a gcfg file (INI) for an adoption, and refuses an empty file and sections or keys that occur twice.

use crate::error::AdoptError;
use crate::origin::Origin;
use vdo_core::driverconfig::gcfg_reader::{Contents, Entry, Section, read};

/// Reads a file.
///
/// # Errors
/// Where the driver refuses it, where it is empty, and where a section or a key stands twice: which of the two was meant is not known.
pub(crate) fn ini(bytes: &[u8], file: &Origin) -> Result<Contents, AdoptError> {
    let contents = read(bytes).map_err(|source| AdoptError::Grammar {
        origin: file.clone(),
        source,
    })?;
    if contents.entries.is_empty() {
        return Err(AdoptError::Empty { origin: file.clone() });
    }
    let twice = |what: String, first: usize, line: usize| AdoptError::Twice {
        origin: file.line(line),
        what,
        first,
    };
    for (at, section) in contents.sections.iter().enumerate() {
        let same = |other: &&_| same_section(section, other);
        if let Some(first) = contents.sections.iter().take(at).find(same) {
            return Err(twice(
                header(&section.name, section.subsection.as_deref()),
                first.line,
                section.line,
            ));
        }
    }
    for (at, entry) in contents.entries.iter().enumerate() {
        let mut before = contents.entries.iter().take(at);
        if let Some(first) = before.find(|other| name(other) == name(entry)) {
            return Err(twice(format!("the key {}", entry.key), first.line, entry.line));
        }
    }
    Ok(contents)
}

fn same_section(one: &Section, other: &Section) -> bool {
    (&one.name, &one.subsection) == (&other.name, &other.subsection)
}

fn name(entry: &Entry) -> (&str, Option<&str>, &str) {
    (&entry.section, entry.subsection.as_deref(), &entry.key)
}

/// The header of a section, as it is written.
pub(crate) fn header(name: &str, subsection: Option<&str>) -> String {
    match subsection {
        Some(subsection) => format!("[{name} {subsection:?}]"),
        None => format!("[{name}]"),
    }
}
