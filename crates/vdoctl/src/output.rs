// SPDX-License-Identifier: Apache-2.0
//! The answer of a verb (`Answer`) as text, JSON, YAML, names or a file; the trait `View` with `apiVersion` and `kind` of documents.

use super::args::Format;
use super::{CliError, Exit, style};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use vdo_api::yaml::YamlError;

/// The `apiVersion` of everything that is printed for programs.
pub(super) const API_VERSION: &str = "vdoctl/v1";

/// What a verb has to say to programs, as one type: its fields are the document, in their order, behind `apiVersion` and `kind`. A change of
/// one is a change for scripts; `docs/schema` shows it.
pub(super) trait View: Serialize + JsonSchema {
    /// The kind of the document.
    const KIND: &'static str;

    /// What `-o name` prints; `None` where nothing is listed that has a name.
    fn names(&self) -> Option<Vec<String>> {
        None
    }
}

/// A view with what every document begins with.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a, V> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    fields: &'a V,
}

/// Whom the data is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// People: styled text. It loses its styles where they are not wanted, and what in it would command a terminal is escaped.
    Text,
    /// People: text of others, such as a log. It is escaped, and no command in it is changed.
    Foreign,
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

    /// As text of others, where it is for people.
    #[must_use]
    pub(super) fn of_others(mut self) -> Self {
        if self.form == Form::Text {
            self.form = Form::Foreign;
        }
        self
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
    pub(super) fn json_line<V: View>(view: &V) -> Self {
        Self::new(Form::Json, json_line(view).into_bytes())
    }

    /// Names, one a line.
    pub(super) fn names(names: &[String]) -> Self {
        let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
        Self::new(Form::Text, lines.into_bytes())
    }

    /// YAML documents.
    pub(super) fn yaml(documents: String) -> Self {
        Self::new(Form::Yaml, documents.into_bytes())
    }

    /// With a line for stderr.
    #[must_use]
    pub fn note(mut self, line: impl Into<String>) -> Self {
        self.talk.push(line.into());
        self
    }

    /// With an exit code.
    #[must_use]
    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// A view for programs when they asked for it, else the text for people.
    ///
    /// # Errors
    /// When names are asked for where there are none.
    pub(super) fn view<V: View>(format: Format, view: &V, text: impl FnOnce() -> String) -> Result<Self, CliError> {
        Ok(match format {
            Format::Table | Format::Wide => Self::text(text()),
            Format::Json => Self::json(&of_view(view)),
            Format::Name => Self::names(&view.names().ok_or_else(nameless)?),
            Format::Yaml => Self::yaml(yaml_text(view).map_err(|error| CliError::internal(&error))?),
        })
    }
}

/// What programs get of a view.
pub(super) fn of_view<V: View>(view: &V) -> Value {
    let whole = Document {
        api_version: API_VERSION,
        kind: V::KIND,
        fields: view,
    };
    unstyled(serde_json::to_value(whole).unwrap_or_default())
}

/// A view on a line of its own.
pub(super) fn json_line<V: View>(view: &V) -> String {
    format!("{}\n", of_view(view))
}

/// A view in YAML.
pub(super) fn yaml_text<V: View>(view: &V) -> Result<String, YamlError> {
    vdo_api::yaml::dump(&of_view(view))
}

/// A text that is also shown to people loses its styles.
fn unstyled(document: Value) -> Value {
    match document {
        Value::String(text) => style::plain(&text).into(),
        Value::Array(items) => items.into_iter().map(unstyled).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, value)| (key, unstyled(value))).collect(),
        other => other,
    }
}

/// Names were asked for where there are none.
pub(super) fn nameless() -> CliError {
    CliError::new(
        Exit::Usage,
        "this answer lists no objects, so it has no names",
        "Use -o table, wide, json or yaml.",
    )
}

/// `deployment.apps/name`, as kubectl writes it.
pub(super) fn object_name(api_version: &str, kind: &str, name: &str) -> String {
    let group = api_version
        .split_once('/')
        .map(|(group, _)| format!(".{group}"))
        .unwrap_or_default();
    format!("{}{group}/{name}", kind.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Serialize, JsonSchema)]
    struct Styled {
        messages: Vec<String>,
        of: [String; 1],
    }

    impl View for Styled {
        const KIND: &'static str = "Progress";
    }

    /// A text for people has our styles; the same text in a document has none of them, in any form.
    #[test]
    fn document_for_programs_has_no_style_of_ours() {
        let styled = Styled {
            messages: vec![format!("a {}", style::bad("- found  1"))],
            of: [style::good("2")],
        };
        let expected = json!({"apiVersion": "vdoctl/v1", "kind": "Progress", "messages": ["a - found  1"], "of": ["2"]});
        for answer in [Answer::json(&of_view(&styled)), Answer::json_line(&styled)] {
            let read: Value = serde_json::from_slice(&answer.data).expect("JSON");
            assert_eq!(read, expected);
        }
        let yaml = Answer::view(Format::Yaml, &styled, String::new).expect("an answer");
        let yaml = String::from_utf8(yaml.data).expect("text");
        assert_eq!(vdo_api::yaml::load_value(&yaml).ok(), Some(expected), "{yaml}");
        assert!(!yaml_text(&styled).expect("YAML").contains("1b"), "{yaml}");
        let error = Answer::view(Format::Name, &styled, String::new).expect_err("it lists nothing");
        assert_eq!(error.exit, Exit::Usage);
    }

    #[test]
    fn names_are_those_of_kubectl() {
        for (version, kind, expected) in [("apps/v1", "Deployment", "deployment.apps/a"), ("v1", "Secret", "secret/a")] {
            assert_eq!(object_name(version, kind, "a"), expected);
        }
    }
}
