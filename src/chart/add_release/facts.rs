//! A version in the facts of the matrix: a patch release joins the line of its minor, whose ranges hold for it too.

use super::line;
use crate::types::DriverVersion;
use crate::yaml;
use serde_json::Value;

/// The text of the facts with the version in the line that lists the other one. Nothing where that one is of another minor or not
/// listed, or its line is not written as `versions: ["3.7.2"]`: then a person has to state what the version works with.
#[must_use]
pub fn with_version(text: &str, driver: &str, from: &DriverVersion, version: &DriverVersion) -> Option<String> {
    let facts = yaml::load_value(text).ok()?;
    let groups = facts.pointer(&format!("/drivers/{driver}/lines"))?.as_array()?;
    let lists = |group: &Value, version: &DriverVersion| {
        let listed = group["versions"].as_array().into_iter().flatten().filter_map(Value::as_str);
        listed.into_iter().any(|listed| listed.parse().as_ref() == Ok(version))
    };
    let group = groups
        .iter()
        .position(|group| from.minor() == version.minor() && lists(group, from))?;
    let at = line(text, &["drivers", driver, "lines", &group.to_string(), "versions"])?;
    let changed: String = text
        .split_inclusive('\n')
        .enumerate()
        .map(|(number, line)| match number == at {
            true => line.replacen("versions: [", &format!("versions: [\"{version}\", "), 1),
            false => line.to_owned(),
        })
        .collect();
    let after = yaml::load_value(&changed).ok()?;
    lists(after.pointer(&format!("/drivers/{driver}/lines/{group}"))?, version).then_some(changed)
}
