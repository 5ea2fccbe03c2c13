//! Fields of single drivers in the specification of a VDOConfig.

use super::CliError;
use super::error::unknown;
use crate::drivers::{KNOWN, known, short};
use serde_json::{Map, Value, json};

/// The merge patch of a specification that sets these fields of these drivers. Where the specification names no driver, which means all that
/// are known, all stay named: to name one alone would leave the other unmanaged.
///
/// # Errors
/// When it does not ask for a driver.
pub(super) fn patch(spec: &Value, all: &[(String, Value)]) -> Result<Value, CliError> {
    let named = |field: &str| spec.get(field).is_some_and(|value| !value.is_null());
    let default = KNOWN.iter().all(|driver| !named(driver.field));
    let mut patch = json!({});
    if default && all.iter().any(|(name, _)| known(name).is_some()) {
        KNOWN.iter().for_each(|driver| patch[driver.field] = json!({}));
    }
    let mut further: Vec<Value> = spec["drivers"].as_array().cloned().unwrap_or_default();
    for (name, fields) in all {
        let place = match known(name) {
            Some(driver) if default || named(driver.field) => &mut patch[driver.field],
            Some(_) => return Err(not_asked_for(spec, name)),
            None => further
                .iter_mut()
                .find(|driver| driver["name"] == **name)
                .ok_or_else(|| not_asked_for(spec, name))?,
        };
        if place.is_null() {
            *place = json!({});
        }
        let own: Map<String, Value> = fields.as_object().cloned().unwrap_or_default();
        // A list is replaced as a whole, so that null has to be taken out of it here.
        for (field, value) in own {
            match (known(name), value.is_null()) {
                (None, true) => drop(place.as_object_mut().and_then(|place| place.remove(&field))),
                _ => place[field] = value,
            }
        }
    }
    if all.iter().any(|(name, _)| known(name).is_none()) {
        patch["drivers"] = further.into();
    }
    Ok(patch)
}

/// The drivers that a specification asks for.
pub(super) fn asked_for(spec: &Value) -> Vec<String> {
    let named = |field: &str| spec.get(field).is_some_and(|value| !value.is_null());
    let default = KNOWN.iter().all(|driver| !named(driver.field));
    let own = KNOWN
        .iter()
        .filter(|driver| default || named(driver.field))
        .map(|driver| driver.name.to_owned());
    let further = spec["drivers"].as_array().into_iter().flatten();
    own.chain(further.filter_map(|driver| driver["name"].as_str().map(str::to_owned)))
        .collect()
}

/// A driver that a specification asks for, by what was typed.
pub(super) fn typed(spec: &Value, word: &str) -> Result<String, CliError> {
    let lower = word.to_lowercase();
    let all = asked_for(spec);
    let found = all.iter().find(|name| **name == lower || short(name).to_lowercase() == lower);
    found.cloned().ok_or_else(|| not_asked_for(spec, word))
}

fn not_asked_for(spec: &Value, word: &str) -> CliError {
    let all = asked_for(spec);
    let names: Vec<&str> = all.iter().map(String::as_str).collect();
    unknown("driver that the VDOConfig asks for called", word, &names)
}

/// A field of a driver in a specification; null where it is not set.
pub(super) fn field<'a>(spec: &'a Value, driver: &str, field: &str) -> &'a Value {
    match known(driver) {
        Some(known) => &spec[known.field][field],
        None => {
            let mut further = spec["drivers"].as_array().into_iter().flatten();
            further
                .find(|item| item["name"] == *driver)
                .map_or(&Value::Null, |item| &item[field])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_fields_of_one_driver_leave_the_others_named() {
        let pin = json!({"version": "3.7.3"});
        for (spec, driver, expected) in [
            (
                json!({}),
                "vsphere-csi",
                json!({"cloudProvider": {}, "storageProvider": {"version": "3.7.3"}}),
            ),
            (
                json!({"storageProvider": {}}),
                "vsphere-csi",
                json!({"storageProvider": {"version": "3.7.3"}}),
            ),
            (
                json!({"drivers": [{"name": "a"}, {"name": "b", "version": "1.0.0"}]}),
                "b",
                json!({"drivers": [{"name": "a"}, {"name": "b", "version": "3.7.3"}]}),
            ),
        ] {
            assert_eq!(patch(&spec, &[(driver.to_owned(), pin.clone())]).ok(), Some(expected), "{spec}");
        }
        let lifted = patch(
            &json!({"drivers": [{"name": "b", "version": "1"}]}),
            &[("b".into(), json!({"version": null}))],
        );
        assert_eq!(lifted.ok(), Some(json!({"drivers": [{"name": "b"}]})));
        let error = patch(&json!({"storageProvider": {}}), &[("vsphere-cpi".into(), pin)]).expect_err("it is not asked for");
        assert!(error.remedy.contains("vsphere-csi"), "{error:?}");
        assert_eq!(typed(&json!({}), "CSI").ok().as_deref(), Some("vsphere-csi"));
        assert!(typed(&json!({"cloudProvider": {}}), "csi").is_err());
    }
}
