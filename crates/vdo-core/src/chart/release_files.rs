// SPDX-License-Identifier: Apache-2.0
//! Reads release files: `releases/3.7.yaml` holds what the versions of a minor share, and for each version its differences.
//!
//! A release is `common`, then the entry of its version merged over it, then the defaults of `release.schema.json` for what neither
//! states. It is put together when a release is packaged; a package holds it whole.

use super::compiled;
use super::opened_chart::Files;
use super::package::PackageError;
use super::schema_errors::{self, Problem};
use super::source::Source;
use super::values::merge;
use serde_json::{Map, Value};
use vdo_api::types::DriverVersion;
use vdo_api::yaml;

/// The path of the file that lists a version.
#[must_use]
pub fn path(version: &DriverVersion) -> String {
    format!("releases/{}.yaml", version.minor())
}

/// A release file, read.
struct File {
    common: Value,
    versions: Map<String, Value>,
}

impl File {
    fn read(files: &Files, path: &str) -> Result<Self, PackageError> {
        let mut fields = map(files, path)?;
        let mut part = |key: &str| match fields.shift_remove(key) {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(fields)) => Ok(fields),
            Some(_) => Err(invalid(path, format!("has {key} that is not a map"))),
        };
        let (common, versions) = (part("common")?, part("versions")?);
        if let Some(key) = fields.keys().next() {
            return Err(invalid(
                path,
                format!("has {key:?}; a release file has only the keys \"common\" and \"versions\""),
            ));
        }
        Ok(Self {
            common: common.into(),
            versions,
        })
    }

    fn entry(&self, version: &DriverVersion) -> Option<(&String, &Value)> {
        self.versions
            .iter()
            .find(|(key, _)| key.parse::<DriverVersion>().as_ref() == Ok(version))
    }
}

impl Source {
    /// The versions that the release files list, oldest first. Those of a file that cannot be read are missing:
    /// [`Source::strangers`] names it.
    #[must_use]
    pub fn versions(&self) -> Vec<DriverVersion> {
        let files = release_files(&self.files).filter_map(|path| File::read(&self.files, path).ok().map(|file| (path, file)));
        let listed = files.flat_map(|(at, file)| {
            let keys = file.versions.keys();
            let listed = keys.filter_map(|key| key.parse().ok()).filter(|version| path(version) == *at);
            listed.collect::<Vec<DriverVersion>>()
        });
        let mut versions: Vec<DriverVersion> = listed.collect();
        versions.sort();
        versions
    }

    /// Whether a release file lists the version.
    #[must_use]
    pub fn has(&self, version: &DriverVersion) -> bool {
        File::read(&self.files, &path(version)).is_ok_and(|file| file.entry(version).is_some())
    }

    /// What is wrong with release files themselves, each as a sentence that begins with the file.
    #[must_use]
    pub fn strangers(&self) -> Vec<String> {
        let mut found = Vec::new();
        for at in self.files.keys().filter(|path| path.starts_with("releases/")) {
            let minor = at.strip_prefix("releases/").and_then(|name| name.strip_suffix(".yaml"));
            let minor = minor.filter(|minor| {
                format!("{minor}.0")
                    .parse::<DriverVersion>()
                    .is_ok_and(|version| path(&version) == **at)
            });
            let Some(minor) = minor else {
                found.push(format!(
                    "{at}: the file name is not a minor version, so VDO uses no release in the file; rename it, for example to releases/1.2.yaml"
                ));
                continue;
            };
            match File::read(&self.files, at) {
                Err(error) => found.push(format!("{at}: {}", problem_of(&error))),
                Ok(file) if file.versions.is_empty() => found.push(format!("{at}: lists no version; write versions: {{{minor}.0: {{…}}}}")),
                Ok(file) => {
                    let text = text(&self.files, at);
                    let wrong = file
                        .versions
                        .keys()
                        .filter(|key| !key.parse().is_ok_and(|version: DriverVersion| path(&version) == *at));
                    found.extend(wrong.map(|key| {
                        let line = yaml::line_of(text, &["versions".to_owned(), key.clone()]).unwrap_or_default();
                        format!("{at}:{line}: {key:?} is not a version of {minor}; write for example {minor}.0")
                    }));
                }
            }
        }
        found
    }

    /// One release, whole: as its package holds it.
    ///
    /// # Errors
    /// When no file lists it, its file or `release.schema.json` cannot be read, or the schema does not allow what the file says.
    pub fn release(&self, version: &DriverVersion) -> Result<Value, PackageError> {
        let path = path(version);
        let unknown = || PackageError::NoRelease {
            version: version.clone(),
            known: self.versions().iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        };
        if !self.files.contains_key(&path) {
            return Err(unknown());
        }
        let file = File::read(&self.files, &path)?;
        let (key, entry) = file.entry(version).ok_or_else(unknown)?;
        if ![&file.common, entry]
            .into_iter()
            .all(|part| part.is_object() && part.get("version").is_none())
        {
            return Err(invalid(
                &path,
                format!("has an entry {key} that is not a map, or that names its version a second time"),
            ));
        }
        let mut release = Value::Object(Map::from_iter([("version".to_owned(), version.to_string().into())]));
        if let (Value::Object(release), Value::Object(common)) = (&mut release, &file.common) {
            release.extend(common.clone());
        }
        merge(&mut release, entry);
        if self.files.contains_key("release.schema.json") {
            let schema = Value::Object(map(&self.files, "release.schema.json")?);
            fill(&mut release, &schema, &schema);
            let problems = problems(&schema, &release).map_err(|problem| invalid("release.schema.json", problem))?;
            if !problems.is_empty() {
                let places = yaml::lines(text(&self.files, &path));
                let line = |problem: &Problem| {
                    let own = ["versions".to_owned(), key.clone()];
                    let said = (1..=problem.path.len()).rev().find_map(|steps| {
                        let at = |base: &[String]| places.get(&[base, &problem.path[..steps]].concat()).copied();
                        at(&own).or_else(|| at(&["common".to_owned()]))
                    });
                    said.or_else(|| places.get(&own[..]).copied()).unwrap_or_default()
                };
                let problems = problems.iter().map(|problem| format!("{path}:{}: {problem}", line(problem)));
                return Err(PackageError::Refused {
                    version: version.clone(),
                    problems: problems.collect(),
                });
            }
        }
        Ok(release)
    }
}

fn release_files(files: &Files) -> impl Iterator<Item = &String> {
    files.keys().filter(|path| path.starts_with("releases/") && path.ends_with(".yaml"))
}

/// Writes the defaults of a schema where a map has nothing, as deep as the schema describes it.
pub(super) fn fill(value: &mut Value, schema: &Value, whole: &Value) {
    let Value::Object(fields) = value else { return };
    for (key, inner) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let described = schema_errors::resolved(inner, whole);
        let default = inner.get("default").or_else(|| described.get("default"));
        if !fields.contains_key(key) {
            match default {
                Some(default) => drop(fields.insert(key.clone(), default.clone())),
                None => {
                    let mut below = Value::Object(Map::new());
                    fill(&mut below, described, whole);
                    if below.as_object().is_some_and(|below| !below.is_empty()) {
                        fields.insert(key.clone(), below);
                    }
                    continue;
                }
            }
        }
        if let Some(value) = fields.get_mut(key) {
            fill(value, described, whole);
        }
    }
}

/// What a schema does not allow in a release; an error when it is not a schema.
pub(super) fn problems(schema: &Value, release: &Value) -> Result<Vec<Problem>, String> {
    let validator = compiled::compiled(schema).map_err(|error| format!("is not a JSON schema: {error}"))?;
    Ok(schema_errors::all(&validator, schema, release, &Value::Null))
}

/// A file of the source as a map.
pub(super) fn map(files: &Files, file: &str) -> Result<Map<String, Value>, PackageError> {
    let bytes = files.get(file).map_or(&[][..], Vec::as_slice);
    let text = std::str::from_utf8(bytes).map_err(|_| invalid(file, "is not UTF-8 text"))?;
    match yaml::load_value(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(invalid(file, "is not a map")),
        Err(source) => Err(PackageError::Yaml {
            file: file.to_owned(),
            source,
        }),
    }
}

fn text<'a>(files: &'a Files, file: &str) -> &'a str {
    files
        .get(file)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .unwrap_or_default()
}

/// What is wrong with a file whose name is in the message already.
fn problem_of(error: &PackageError) -> String {
    match error {
        PackageError::Yaml { source, .. } => source.to_string(),
        PackageError::Invalid { problem, .. } => problem.clone(),
        other => other.to_string(),
    }
}

pub(super) fn invalid(file: &str, problem: impl Into<String>) -> PackageError {
    PackageError::Invalid {
        file: file.to_owned(),
        problem: problem.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SCHEMA: &str = r##"{"type": "object", "additionalProperties": false, "required": ["version", "safe", "flags", "probe", "limit"], "properties": {
        "version": {"type": "string"}, "date": {"type": "string"},
        "safe": {"description": "Whether it is safe.", "type": "boolean", "default": true},
        "states": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "flags": {"$ref": "#/$defs/flags"},
        "limit": {"type": ["integer", "null"], "default": null},
        "probe": {"type": "object", "additionalProperties": false, "properties": {"delay": {"type": "integer", "default": 10}, "period": {"type": "integer", "default": 5}}}
    }, "$defs": {"flags": {"type": "array", "default": []}}}"##;

    fn source(release: &str) -> Source {
        let files = [("releases/1.2.yaml", release), ("release.schema.json", SCHEMA)];
        Source::new(files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())))
    }

    #[test]
    fn release_common_entry_and_defaults_make_one() {
        let text = "common:\n  safe: false\n  states: {a: true, b: true}\n  probe: {delay: 30}\n  limit: 59\nversions:\n  1.2.0: {}\n  1.2.1:\n    states: {b: null, c: false}\n    flags: [--x]\n    limit: null\n";
        for (version, expected) in [
            (
                "1.2.0",
                json!({"version": "1.2.0", "safe": false, "states": {"a": true, "b": true}, "probe": {"delay": 30, "period": 5}, "limit": 59, "flags": []}),
            ),
            (
                "1.2.1",
                json!({"version": "1.2.1", "safe": false, "states": {"a": true, "c": false}, "probe": {"delay": 30, "period": 5}, "limit": null, "flags": ["--x"]}),
            ),
        ] {
            assert_eq!(
                source(text).release(&version.parse().expect("a version")).expect("a release"),
                expected
            );
        }
        let unknown = source(text)
            .release(&"1.3.0".parse().expect("a version"))
            .expect_err("no such release");
        assert_eq!(unknown.to_string(), "the chart has no release 1.3.0; it has 1.2.0, 1.2.1");
    }

    #[test]
    fn release_mistake_is_reported_with_file_and_line() {
        for (text, expected) in [
            (
                "common:\n  safe: 1\nversions:\n  1.2.0: {}\n",
                "the release 1.2.0 is not accepted: releases/1.2.yaml:2: safe: found 1, expected true or false (Whether it is safe)",
            ),
            (
                "common:\n  probe:\n    delay: 1\nversions:\n  1.2.0:\n    probe:\n      dealy: 1\n",
                "the release 1.2.0 is not accepted: releases/1.2.yaml:7: probe.dealy: there is no such value; did you mean delay? Known values: delay, period",
            ),
            (
                "versions:\n  1.2.0:\n    version: 1.2.0\n",
                "releases/1.2.yaml of the chart source has an entry 1.2.0 that is not a map, or that names its version a second time",
            ),
            (
                "versions: {1.2.0: {}}\nimages: {}\n",
                "releases/1.2.yaml of the chart source has \"images\"; a release file has only the keys \"common\" and \"versions\"",
            ),
        ] {
            let error = source(text).release(&"1.2.0".parse().expect("a version")).expect_err(text);
            assert_eq!(error.to_string(), expected, "{text}");
        }
    }
}
