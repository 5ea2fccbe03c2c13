use super::args::Format;
use super::{CliError, Exit};
use serde_json::{Map, Value};

/// The `apiVersion` of everything that is printed for programs.
const API_VERSION: &str = "vdoctl/v1";

/// Whom the data is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// People: styled text. It loses its styles where they are not wanted, and what in it would command a terminal is escaped.
    Text,
    /// Programs: JSON.
    Json,
    /// Programs: YAML.
    Yaml,
    /// A file.
    Bytes,
}

/// What a verb has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// For stdout.
    pub data: Vec<u8>,
    /// Whom the data is for.
    pub form: Form,
    /// Lines for stderr.
    pub talk: Vec<String>,
    /// The exit code.
    pub exit: Exit,
}

impl Answer {
    fn new(form: Form, data: Vec<u8>) -> Self {
        Self {
            data,
            form,
            talk: Vec::new(),
            exit: Exit::Ok,
        }
    }

    /// Text for people.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Form::Text, text.into().into_bytes())
    }

    /// The bytes of a file.
    #[must_use]
    pub fn bytes(data: Vec<u8>) -> Self {
        Self::new(Form::Bytes, data)
    }

    /// A JSON document.
    pub(super) fn json(document: &Value) -> Self {
        Self::new(Form::Json, format!("{document:#}\n").into_bytes())
    }

    /// A JSON document on a line of its own, for a stream of them.
    pub(super) fn json_line(document: &Value) -> Self {
        Self::new(Form::Json, format!("{document}\n").into_bytes())
    }

    /// YAML documents.
    pub(super) fn yaml(documents: String) -> Self {
        Self::new(Form::Yaml, documents.into_bytes())
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
            Format::Json => Self::json(&document()),
            Format::Yaml => Self::yaml(crate::yaml::dump(&document()).map_err(|error| CliError::internal(&error))?),
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
