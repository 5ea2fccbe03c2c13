// SPDX-License-Identifier: Apache-2.0
//! The pages that are made from code: one for each chart with every value, one for each kind, one for vdoctl, the schemas of its documents, and the pictures of the matrix.

use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The schemas of what vdoctl prints for programs.
pub(crate) const SCHEMAS: &str = "docs/schema/vdoctl-v1";

pub(crate) type Failure = Box<dyn std::error::Error>;

/// Writes them below docs.
#[allow(dead_code, reason = "the test that compares the files includes this module and writes nothing")]
pub(crate) fn docs() -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["docs/values", "docs/reference", "docs/pictures", SCHEMAS] {
        fs::create_dir_all(root.join(folder))?;
    }
    for (file, text) in files(root)? {
        fs::write(root.join(file), text)?;
    }
    Ok(())
}

/// The path of every page, schema and picture, with its content.
pub(crate) fn files(root: &Path) -> Result<Vec<(String, String)>, Failure> {
    let mut all = super::crd_pages::files()?;
    all.push(super::conditions::file()?);
    all.push(super::commands::file()?);
    all.push(super::conformance::file(root)?);
    all.extend(super::pictures::files(root)?);
    let schemas = vdoctl::schemas().into_iter();
    all.extend(schemas.map(|(kind, schema)| (format!("{SCHEMAS}/{kind}.json"), format!("{schema:#}\n"))));
    for entry in fs::read_dir(root.join("charts"))? {
        let folder = entry?.path();
        if folder.is_dir() {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            all.push((format!("docs/values/{name}.md"), page(&name, &folder)?));
        }
    }
    all.sort();
    Ok(all)
}

fn page(name: &str, folder: &Path) -> Result<String, Failure> {
    Ok(format!(
        "# Values of {name}\n\n\
         Generated from charts/{name} by `make generate`. Do not edit.\n\n\
         Set a value in the field `values` of the driver in a VDOConfig, or with `vdoctl chart render {name} --version … --set key=value`.\n\n{}",
        table(folder)?
    ))
}

/// The values of the chart in this folder, as a table; what their lists and maps hold is a second one.
pub(crate) fn table(folder: &Path) -> Result<String, Failure> {
    let defaults = vdo_api::yaml::load_value(&fs::read_to_string(folder.join("values.yaml"))?)?;
    let schema: Value = serde_json::from_str(&fs::read_to_string(folder.join("values.schema.json"))?)?;
    let mut page = Page {
        schema: &schema,
        defaults: String::new(),
        items: String::new(),
    };
    page.object("", &schema, Some(&defaults));
    let mut text = format!("| value | default | allowed | meaning |\n|---|---|---|---|\n{}", page.defaults);
    if !page.items.is_empty() {
        write!(
            text,
            "\nFields in the items of lists and maps:\n\n| value | allowed | meaning |\n|---|---|---|\n{}",
            page.items
        )?;
    }
    Ok(text)
}

struct Page<'a> {
    schema: &'a Value,
    defaults: String,
    items: String,
}

impl<'a> Page<'a> {
    /// The rows of all fields of an object; without defaults it is an item of a list or a part of one.
    fn object(&mut self, path: &str, schema: &'a Value, defaults: Option<&Value>) {
        for (key, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            self.field(&path, field, defaults.and_then(|d| d.get(key)));
        }
    }

    fn field(&mut self, path: &str, written: &'a Value, default: Option<&Value>) {
        let field = self.resolved(written);
        let required = field.get("required").is_some();
        if field.get("properties").is_some() && required && default.is_some() {
            return self.object(path, field, default);
        }
        let what = cell(field.get("description").and_then(Value::as_str).unwrap_or_default());
        let allowed = cell(&self.allowed(field));
        let _ = match default {
            Some(default) => writeln!(self.defaults, "| `{path}` | `{default}` | {allowed} | {what} |"),
            None => writeln!(self.items, "| `{path}` | {allowed} | {what} |"),
        };
        if let Some(items) = field.get("items").map(|items| self.resolved(items)) {
            self.object(&format!("{path}[]"), items, None);
        }
        // What many fields share is the part of Kubernetes that its description names.
        if written.get("$ref").is_none() {
            self.object(path, field, None);
        }
    }

    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let reference = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        reference.and_then(|pointer| self.schema.pointer(pointer)).unwrap_or(schema)
    }

    fn allowed(&self, schema: &'a Value) -> String {
        let list = |values: &Vec<Value>| values.iter().map(|v| format!("`{v}`")).collect::<Vec<_>>().join(", ");
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return list(values);
        }
        if let Some(value) = schema.get("const") {
            return format!("`{value}`");
        }
        if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
            return choices.iter().map(|choice| self.allowed(choice)).collect::<Vec<_>>().join(" or ");
        }
        // of several rules the last one says the whole
        let whole = schema.get("allOf").and_then(Value::as_array).and_then(|parts| parts.last());
        let title = whole.unwrap_or(schema).get("title").and_then(Value::as_str);
        if let Some(title) = title {
            return title.to_owned();
        }
        if let Some(names) = schema.pointer("/propertyNames/enum").and_then(Value::as_array) {
            return format!("map with the keys {}", list(names));
        }
        let kind = match schema.get("type") {
            Some(Value::String(kind)) => kind.replace("array", "list").replace("object", "map"),
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
            _ => String::new(),
        };
        let number = |key: &str| schema.get(key).map(ToString::to_string);
        match (number("minimum"), number("maximum"), schema.get("pattern").and_then(Value::as_str)) {
            (Some(least), Some(most), _) => format!("{kind} from {least} to {most}"),
            (_, _, Some(pattern)) => format!("{kind} like `{pattern}`"),
            _ => kind,
        }
    }
}

/// Text that stays inside its cell, and in which angle brackets are not tags.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "\\<")
}
