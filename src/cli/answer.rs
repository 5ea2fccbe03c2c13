use super::args::Format;
use super::{CliError, Exit};
use serde_json::{Map, Value};

/// The `apiVersion` of everything that is printed for programs.
const API_VERSION: &str = "vdoctl/v1";

/// What a verb has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// For stdout, as it is; styled text loses its styles where they are not wanted.
    pub data: Vec<u8>,
    /// Lines for stderr.
    pub talk: Vec<String>,
    /// The exit code.
    pub exit: Exit,
}

impl Answer {
    /// Text for stdout.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            data: text.into().into_bytes(),
            talk: Vec::new(),
            exit: Exit::Ok,
        }
    }

    /// Bytes for stdout.
    #[must_use]
    pub fn bytes(data: Vec<u8>) -> Self {
        Self {
            data,
            talk: Vec::new(),
            exit: Exit::Ok,
        }
    }

    /// With a line for stderr.
    #[must_use]
    pub fn say(mut self, line: impl Into<String>) -> Self {
        self.talk.push(line.into());
        self
    }

    /// With an exit code.
    #[must_use]
    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// A document for programs when they asked for one, else the text for people.
    ///
    /// # Errors
    /// Never in practice: only when a value has no YAML form.
    pub(super) fn formatted(format: Format, document: impl FnOnce() -> Value, text: impl FnOnce() -> String) -> Result<Self, CliError> {
        Ok(match format {
            Format::Table | Format::Wide => Self::text(text()),
            Format::Json => Self::text(format!("{:#}\n", document())),
            Format::Yaml => Self::text(crate::yaml::dump(&document()).map_err(|error| CliError::internal(&error))?),
        })
    }
}

/// A document of this kind: `apiVersion` and `kind` first.
pub(super) fn document(kind: &str, fields: Value) -> Value {
    let mut all = Map::new();
    all.insert("apiVersion".into(), API_VERSION.into());
    all.insert("kind".into(), kind.into());
    if let Value::Object(fields) = fields {
        all.extend(fields);
    }
    all.into()
}
