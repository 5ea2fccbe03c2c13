// SPDX-License-Identifier: Apache-2.0
//! Writes gcfg, the INI dialect of the CSI driver (`gopkg.in/gcfg.v1`).
//!
//! Every value is quoted: unquoted, `;` and `#` would end it without an error. Inside quotes the only escapes are
//! `\\`, `\"`, `\n` and `\t`; a NUL is an error and a carriage return vanishes, so both are refused here. A subsection name
//! knows only `\\` and `\"`.

use super::ConfigError;
use std::fmt::{Display, Write as _};

/// A file under construction.
#[derive(Default)]
pub(super) struct File(String);

impl File {
    /// Opens a section.
    pub(super) fn section(&mut self, name: &str) {
        self.blank();
        let _ = writeln!(self.0, "[{name}]");
    }

    /// Opens a section with a subsection. The caller has checked that the name holds no control character.
    pub(super) fn subsection(&mut self, name: &str, sub: &str) {
        self.blank();
        let sub = sub.replace('\\', "\\\\").replace('"', "\\\"");
        let _ = writeln!(self.0, "[{name} \"{sub}\"]");
    }

    /// Writes a value that is free text. `place` and `field` are for the error, which never shows the value.
    pub(super) fn text(&mut self, place: &str, field: &'static str, key: &str, value: &str) -> Result<(), ConfigError> {
        let character = value.chars().find_map(|c| match c {
            '\0' => Some("a NUL character"),
            '\r' => Some("a carriage return"),
            _ => None,
        });
        if let Some(character) = character {
            return Err(ConfigError::Character {
                place: place.to_owned(),
                field,
                character,
            });
        }
        let _ = writeln!(self.0, "{key} = \"{}\"", escape(value));
        Ok(())
    }

    /// Writes a number, a boolean or a word that the caller made itself.
    pub(super) fn plain(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.0, "{key} = \"{value}\"");
    }

    /// The text of the file.
    pub(super) fn finish(self) -> String {
        self.0
    }

    fn blank(&mut self) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
    }
}

fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            other => escaped.push(other),
        }
    }
    escaped
}
