use super::args::Format;
use super::{CliError, Exit, style};
use serde_json::{Map, Value};
use vdo_api::yaml::YamlError;

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
        Self::new(Form::Json, format!("{:#}\n", unstyled(document)).into_bytes())
    }

    /// A JSON document on a line of its own, for a stream of them.
    pub(super) fn json_line(document: &Value) -> Self {
        Self::new(Form::Json, json_line(document).into_bytes())
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

    /// A document for programs when they asked for one, else the text for people.
    ///
    /// # Errors
    /// When names are asked for where there are none.
    pub(super) fn formatted(format: Format, document: impl FnOnce() -> Value, text: impl FnOnce() -> String) -> Result<Self, CliError> {
        Ok(match format {
            Format::Table | Format::Wide => Self::text(text()),
            Format::Json => Self::json(&document()),
            Format::Name => names_of(&document())?,
            Format::Yaml => Self::yaml(yaml_text(&document()).map_err(|error| CliError::internal(&error))?),
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

/// A document on a line of its own.
pub(super) fn json_line(document: &Value) -> String {
    format!("{}\n", unstyled(document))
}

/// A document in YAML.
pub(super) fn yaml_text(document: &Value) -> Result<String, YamlError> {
    vdo_api::yaml::dump(&unstyled(document))
}

/// What programs get of a document: a text in it that is also shown to people loses its styles.
fn unstyled(document: &Value) -> Value {
    match document {
        Value::String(text) => style::plain(text).into(),
        Value::Array(items) => items.iter().map(unstyled).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), unstyled(value))).collect(),
        other => other.clone(),
    }
}

/// The names of what a document lists, one a line.
fn names_of(document: &Value) -> Result<Answer, CliError> {
    let names = names(document).ok_or_else(|| {
        CliError::new(
            Exit::Usage,
            "this answer lists no objects, so it has no names",
            "Take -o table, wide, json or yaml.",
        )
    })?;
    Ok(Answer::new(
        Form::Text,
        names.iter().map(|name| format!("{name}\n")).collect::<String>().into_bytes(),
    ))
}

/// The lists of documents, and what the items are called there.
fn names(document: &Value) -> Option<Vec<String>> {
    const LISTS: [(&str, &str, &[&str]); 9] = [
        ("objects", "", &[]),
        ("versions", "", &["driver", "version"]),
        ("secrets", "", &["secret"]),
        ("reasons", "", &["reason"]),
        ("subjects", "", &["subject", "name"]),
        ("revisions", "", &["driver", "revision"]),
        ("drivers", "driver", &["name"]),
        ("items", "", &[]),
        ("images", "", &[]),
    ];
    // A status has several lists; what it is about is one object.
    if let Some(name) = document["config"]["name"].as_str() {
        return Some(vec![format!(
            "vdoconfig.{}/{}",
            vdo_api::api::GROUP,
            name.rsplit('/').next().unwrap_or(name)
        )]);
    }
    let (list, lead, keys) = LISTS.into_iter().find(|(list, ..)| document[*list].is_array())?;
    let name = |item: &Value| match keys {
        [] => Some(item.as_str().map_or_else(|| object_name(item), str::to_owned)),
        keys => {
            let text = |key: &&str| item[*key].as_str().map_or_else(|| item[*key].to_string(), str::to_owned);
            let lead = Some(lead.to_owned()).filter(|lead| !lead.is_empty());
            Some(lead.into_iter().chain(keys.iter().map(text)).collect::<Vec<_>>().join("/"))
        }
    };
    document[list].as_array().into_iter().flatten().map(name).collect()
}

/// `deployment.apps/name`, as kubectl writes it.
fn object_name(item: &Value) -> String {
    let object = if item["object"].is_object() { &item["object"] } else { item };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = if object["name"].is_string() {
        text(&object["name"])
    } else {
        text(&object["metadata"]["name"])
    };
    let group = text(&object["apiVersion"])
        .split_once('/')
        .map(|(group, _)| format!(".{group}"))
        .unwrap_or_default();
    format!("{}{group}/{name}", text(&object["kind"]).to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A text for people has our styles; the same text in a document has none of them, in any form.
    #[test]
    fn document_for_programs_has_no_style_of_ours() {
        let styled = document(
            "Progress",
            json!({"messages": [format!("a {}", style::bad("- found  1"))], "of": {"b": style::good("2")}}),
        );
        let expected = document("Progress", json!({"messages": ["a - found  1"], "of": {"b": "2"}}));
        for answer in [Answer::json(&styled), Answer::json_line(&styled)] {
            let read: Value = serde_json::from_slice(&answer.data).expect("JSON");
            assert_eq!(read, expected);
        }
        let yaml = Answer::formatted(Format::Yaml, || styled.clone(), String::new).expect("an answer");
        let yaml = String::from_utf8(yaml.data).expect("text");
        assert_eq!(vdo_api::yaml::load_value(&yaml).ok(), Some(expected), "{yaml}");
        assert!(!yaml_text(&styled).expect("YAML").contains("1b"), "{yaml}");
    }

    #[test]
    fn names_are_those_of_kubectl_or_of_the_matrix() {
        let deployment =
            json!({"action": "apply", "object": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "n", "name": "a"}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        for (document, expected) in [
            (json!({"objects": [deployment]}), Some(vec!["deployment.apps/a"])),
            (json!({"items": [secret]}), Some(vec!["secret/s"])),
            (
                json!({"versions": [{"driver": "vsphere-csi", "version": "3.7.3"}]}),
                Some(vec!["vsphere-csi/3.7.3"]),
            ),
            (
                json!({"config": {"name": "n/vdo"}, "drivers": []}),
                Some(vec!["vdoconfig.vdo.vmware.com/vdo"]),
            ),
            (json!({"objects": []}), Some(vec![])),
            (json!({"fits": true}), None),
        ] {
            assert_eq!(
                names(&document),
                expected.map(|all| all.into_iter().map(str::to_owned).collect::<Vec<_>>()),
                "{document}"
            );
        }
    }
}
