// SPDX-License-Identifier: Apache-2.0
//! Merges the values of `--values` and `--set` of `vdoctl chart`, and names the origin of each value that the chart refuses.

use super::super::args::ChartWith;
use super::super::{CliError, Exit};
use super::file;
use serde_json::{Value, json};
use vdo_api::yaml;
use vdo_core::chart::values::ValuesError;
use vdo_core::chart::{Problem, RenderError};
use vdo_core::drivers::put_over;

/// What the user asks for.
pub(super) struct Values {
    /// All of it, the last word last.
    pub(super) all: Value,
    /// In the order in which they were said.
    sources: Vec<Source>,
}

/// A file, or a single setting.
struct Source {
    name: String,
    /// Of a file.
    text: Option<String>,
    value: Value,
}

impl Values {
    /// The values of all files in their order, then the single settings.
    pub(super) fn read(args: &ChartWith) -> Result<Self, CliError> {
        let mut sources = Vec::new();
        for path in &args.values {
            let text = file::text("the values file", path)?;
            let wrong = |problem: String, remedy| {
                Err(CliError::new(
                    Exit::Refused,
                    format!("the values file {}: {problem}", path.display()),
                    remedy,
                ))
            };
            let value = if text.trim().is_empty() {
                Ok(Value::Null)
            } else {
                yaml::load_value(&text)
            };
            let value = match value {
                Ok(Value::Null) => json!({}),
                Ok(value @ Value::Object(_)) => value,
                Ok(_) => {
                    return wrong(
                        "it is not a map".into(),
                        "Write the values as a map, with lines such as key: value.",
                    );
                }
                Err(error) => return wrong(error.to_string(), "Correct the file; a values file is one YAML document."),
            };
            sources.push(Source {
                name: path.display().to_string(),
                text: Some(text),
                value,
            });
        }
        sources.extend(args.set.iter().map(|setting| Source {
            name: "--set".to_owned(),
            text: None,
            value: setting.values(),
        }));
        let mut all = json!({});
        for source in &sources {
            put_over(&mut all, source.value.clone());
        }
        Ok(Self { all, sources })
    }

    /// Why a chart was not rendered with them. Each problem stands on a line of its own, after the place where it was said.
    pub(super) fn refused(&self, error: &RenderError) -> CliError {
        match error {
            RenderError::Values {
                source: ValuesError::Invalid(problems),
                ..
            } => {
                let lines: Vec<String> = problems.iter().map(|problem| self.line(problem)).collect();
                CliError::new(Exit::Refused, error.to_string(), lines.join("\n"))
            }
            _ => CliError::of(Exit::Refused, error),
        }
    }

    fn line(&self, problem: &Problem) -> String {
        let said = (1..=problem.path.len()).rev().find_map(|steps| {
            let path = &problem.path[..steps];
            let source = self.sources.iter().rev().find(|source| holds(&source.value, path))?;
            let name = &source.name;
            Some(match source.text.as_deref().map(|text| yaml::line_of(text, path)) {
                None => format!("{name} "),
                Some(None) => format!("{name}: "),
                Some(Some(line)) => format!("{name}:{line}: "),
            })
        });
        format!("{}{problem}", said.unwrap_or_default())
    }
}

fn holds(value: &Value, path: &[String]) -> bool {
    fn below<'a>(at: &'a Value, step: &str) -> Option<&'a Value> {
        match at {
            Value::Object(fields) => fields.get(step),
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            _ => None,
        }
    }
    path.iter().try_fold(value, |at, step| below(at, step)).is_some()
}
