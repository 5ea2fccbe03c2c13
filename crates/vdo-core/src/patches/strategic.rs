// SPDX-License-Identifier: Apache-2.0
//! Merges a partial object into an object, as `kubectl patch --type=strategic` does, and records the fields that it writes.

use super::patched_fields::{Path, Written, note};
use serde_json::{Map, Value};

/// Says of an item of a list that it is removed.
const DIRECTIVE: &str = "$patch";

/// Merges a part into an object, and notes what it writes.
///
/// # Errors
/// When the part is of another form than the object, or removes what is not there.
pub(super) fn apply(object: &mut Value, kind: &str, part: &Map<String, Value>, written: &mut Vec<Written>) -> Result<(), String> {
    merge_map(object, part, &Path::of_kind(kind), written)
}

fn merge(old: &mut Value, part: &Value, path: &Path, written: &mut Vec<Written>) -> Result<(), String> {
    match (&*old, part) {
        (Value::Object(_), Value::Object(part)) => return merge_map(old, part, path, written),
        (Value::Array(_), Value::Array(items)) if path.merge_key().is_some() => return merge_items(old, items, path, written),
        (Value::Array(_), Value::Array(_)) => {}
        (Value::Object(_), _) => return Err(format!("{path} is a map, but the patch writes a value of another type")),
        (Value::Array(_), _) => return Err(format!("{path} is a list, but the patch writes a value of another type")),
        (_, Value::Object(_) | Value::Array(_)) => return Err(format!("{path} is no map or list, but the patch writes a map or list")),
        _ => {}
    }
    note(path, part, written);
    *old = part.clone();
    Ok(())
}

fn merge_map(old: &mut Value, part: &Map<String, Value>, path: &Path, written: &mut Vec<Written>) -> Result<(), String> {
    let Some(map) = old.as_object_mut() else {
        return Err(format!("{path} is not a map"));
    };
    for (key, value) in part {
        let path = path.field(key);
        if key.starts_with('$') {
            return Err(format!(
                "{path}: the only supported directive is $patch: delete, and only in an item of a list that has a merge key"
            ));
        }
        match (map.get_mut(key), value) {
            (None, Value::Null) => return Err(format!("there is no {path} to remove")),
            (Some(_), Value::Null) => {
                map.shift_remove(key);
                written.push(Written { path, value: None });
            }
            (Some(old), part) => merge(old, part, &path, written)?,
            (None, part) => drop(map.insert(key.clone(), new_field(part, &path, written)?)),
        }
    }
    Ok(())
}

/// A field that was not there. It is merged into nothing, so that what is wrong in it is found.
fn new_field(part: &Value, path: &Path, written: &mut Vec<Written>) -> Result<Value, String> {
    let mut new = match part {
        Value::Object(map) if !map.is_empty() => Value::Object(Map::new()),
        Value::Array(items) if !items.is_empty() && path.merge_key().is_some() => Value::Array(Vec::new()),
        part => {
            note(path, part, written);
            return Ok(part.clone());
        }
    };
    merge(&mut new, part, path, written)?;
    Ok(new)
}

fn merge_items(old: &mut Value, items: &[Value], path: &Path, written: &mut Vec<Written>) -> Result<(), String> {
    let (Some(list), Some(key)) = (old.as_array_mut(), path.merge_key()) else {
        return Err(format!("{path} is not a list with a merge key"));
    };
    for item in items {
        let (Some(part), Some(id)) = (item.as_object(), item.get(key)) else {
            return Err(format!("an item of {path} has no {key}"));
        };
        let at = list.iter().position(|old| old.get(key) == Some(id));
        let path = path.item(item);
        match (part.get(DIRECTIVE).map(|directive| directive == "delete"), at) {
            (Some(true), Some(at)) => {
                list.remove(at);
                written.push(Written { path, value: None });
            }
            (Some(true), None) => return Err(format!("there is no {path} to remove")),
            (Some(false), _) => return Err(format!("{path}: the only supported directive is $patch: delete")),
            (None, Some(at)) => merge_map(&mut list[at], part, &path, written)?,
            (None, None) => list.push(new_field(item, &path, written)?),
        }
    }
    Ok(())
}
