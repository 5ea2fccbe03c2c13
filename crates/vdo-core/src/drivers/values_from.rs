// SPDX-License-Identifier: Apache-2.0
//! Merges the values of `valuesFrom` (ConfigMaps and Secrets) into the specification, and lists the sources that cannot be read (pure).

use crate::drivers::{CLOUD_PROVIDER, STORAGE, field};
use serde_json::{Map, Value};
use vdo_api::api::{VDOConfigSpec, ValuesFrom};
use vdo_api::types::DriverName;
use vdo_api::yaml;

/// Why the values of a driver are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The driver.
    pub driver: DriverName,
    /// Where the specification names the source.
    pub field: String,
    /// What is wrong with the source, as the end of a sentence that begins with its name. Nothing of its content.
    pub problem: String,
}

/// All sources that a specification names.
#[must_use]
pub fn values_sources(spec: &VDOConfigSpec) -> Vec<&ValuesFrom> {
    let cloud = spec.cloud_provider.iter().flat_map(|cpi| &cpi.values_from);
    let storage = spec.storage_provider.iter().flat_map(|csi| &csi.values_from);
    let further = spec.drivers.iter().flat_map(|driver| &driver.values_from);
    cloud.chain(storage).chain(further).collect()
}

/// The specification with the values that its sources bring, each over the ones before, and the values of the specification over all; and
/// the drivers of which a source cannot be read. `read` gives the text of a source; `None` where there is no such object or key.
pub fn with_values_from(spec: &VDOConfigSpec, read: impl Fn(&ValuesFrom) -> Option<String>) -> (VDOConfigSpec, Vec<Unread>) {
    let mut spec = spec.clone();
    let mut unread = Vec::new();
    let mut fill = |driver: &str, sources: &[ValuesFrom], values: &mut Map<String, Value>| {
        let mut all = Value::Object(Map::new());
        for (place, source) in sources.iter().enumerate() {
            match values_of(source, read(source)) {
                Ok(found) => put_over(&mut all, found),
                Err(problem) => unread.push(Unread {
                    driver: driver.to_owned(),
                    field: format!("{}.valuesFrom[{place}]", field(driver)),
                    problem,
                }),
            }
        }
        put_over(&mut all, Value::Object(std::mem::take(values)));
        if let Value::Object(all) = all {
            *values = all;
        }
    };
    if let Some(cpi) = &mut spec.cloud_provider {
        fill(CLOUD_PROVIDER.name, &cpi.values_from, &mut cpi.values);
    }
    if let Some(csi) = &mut spec.storage_provider {
        fill(STORAGE.name, &csi.values_from, &mut csi.values);
    }
    for driver in &mut spec.drivers {
        fill(&driver.name, &driver.values_from, &mut driver.values);
    }
    (spec, unread)
}

/// Merges maps key by key. A `null` stays until the chart sees it, because it takes a default value away.
pub fn put_over(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                put_over(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

/// The values of one source. A message repeats nothing of them: the source may be a Secret.
fn values_of(source: &ValuesFrom, text: Option<String>) -> Result<Value, String> {
    let named = format!("{} {}", source.kind, source.name);
    let text = text.ok_or_else(|| format!("{named}, which does not exist or has no key {}", source.key))?;
    match yaml::load_value(&text) {
        Ok(found @ Value::Object(_)) => Ok(found),
        Ok(Value::Null) => Ok(Value::Object(Map::new())),
        Ok(_) => Err(format!("{named}, whose key {} is not a map of values", source.key)),
        Err(_) => Err(format!("{named}, whose key {} is not YAML", source.key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(spec: Value, texts: &[(&str, &str)]) -> String {
        let spec: VDOConfigSpec = serde_json::from_value(spec).expect("a specification");
        let (spec, unread) = with_values_from(&spec, |source| {
            let found = texts.iter().find(|(name, _)| *name == source.name)?;
            Some(found.1.to_owned())
        });
        let values = spec.storage_provider.map(|csi| Value::Object(csi.values)).unwrap_or_default();
        let problems = unread
            .into_iter()
            .map(|one| format!("; {} {} names {}", one.driver, one.field, one.problem));
        std::iter::once(values.to_string()).chain(problems).collect()
    }

    fn storage(values: Value, names: &[&str]) -> Value {
        let sources: Vec<Value> = names.iter().map(|name| json!({"kind": "ConfigMap", "name": name})).collect();
        json!({"storageProvider": {"values": values, "valuesFrom": sources}})
    }

    #[test]
    fn values_from_sources_are_merged_in_their_order_below_those_of_the_specification() {
        let texts = [
            ("a", "x: 1\ny: {a: 1, b: 1}\n"),
            ("b", "y: {b: 2, c: 2}\n"),
            ("list", "[1]"),
            ("bad", "a: [hunter2"),
            ("empty", ""),
        ];
        for (spec, expected) in [
            (storage(json!({}), &["a"]), r#"{"x":1,"y":{"a":1,"b":1}}"#),
            (storage(json!({}), &["a", "b"]), r#"{"x":1,"y":{"a":1,"b":2,"c":2}}"#),
            (storage(json!({"y": {"c": 3}}), &["b", "a"]), r#"{"y":{"b":1,"c":3,"a":1},"x":1}"#),
            (storage(json!({"x": 1}), &["empty"]), r#"{"x":1}"#),
            (storage(json!({"x": null}), &["a"]), r#"{"x":null,"y":{"a":1,"b":1}}"#),
            (
                storage(json!({"x": 1}), &["a", "gone"]),
                r#"{"x":1,"y":{"a":1,"b":1}}; vsphere-csi spec.storageProvider.valuesFrom[1] names ConfigMap gone, which does not exist or has no key values.yaml"#,
            ),
            (
                storage(json!({}), &["list", "bad"]),
                "{}; vsphere-csi spec.storageProvider.valuesFrom[0] names ConfigMap list, whose key values.yaml is not a map of values; \
                 vsphere-csi spec.storageProvider.valuesFrom[1] names ConfigMap bad, whose key values.yaml is not YAML",
            ),
        ] {
            assert_eq!(shown(spec.clone(), &texts), expected, "{spec}");
        }
    }
}
