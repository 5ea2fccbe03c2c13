// SPDX-License-Identifier: Apache-2.0
//! Applies the operations of a JSON patch (RFC 6902) to an object, and records the fields that they write.

use super::patched_fields::{Path, Written, forbidden, note, note_removed};
use crate::manifest::pointer::steps;
use json_patch::{PatchErrorKind, PatchOperation};
use serde_json::{Value, json};
use vdo_api::api::{JsonOperation, JsonOperationKind};

/// Makes the operations, and notes what they write.
///
/// # Errors
/// When an operation does not apply, or names what no patch may change.
pub(super) fn apply(object: &mut Value, kind: &str, operations: &[JsonOperation], written: &mut Vec<Written>) -> Result<(), String> {
    for (at, operation) in operations.iter().enumerate() {
        make(object, kind, operation, written).map_err(|problem| format!("jsonPatch[{at}]: {problem}"))?;
    }
    Ok(())
}

fn make(object: &mut Value, kind: &str, operation: &JsonOperation, written: &mut Vec<Written>) -> Result<(), String> {
    use JsonOperationKind::{Add, Copy, Move, Remove, Replace, Test};
    let takes = (operation.op == Move).then_some(()).and(operation.from.as_deref());
    for pointer in [Some(operation.path.as_str()), takes].into_iter().flatten() {
        // What is forbidden is so also where there is nothing.
        if let Some(problem) = Some(typed(kind, pointer))
            .filter(|_| operation.op != Test)
            .and_then(|path| forbidden(&path))
        {
            return Err(problem);
        }
    }
    let before = object.clone();
    run(object, operation)?;
    let path = operation.path.as_str();
    match operation.op {
        Test => {}
        Remove => removed(&before, kind, path, written),
        Add | Replace | Copy | Move => {
            if let Some(from) = takes {
                removed(&before, kind, from, written);
            }
            set(&before, object, kind, path, written);
        }
    }
    Ok(())
}

/// Makes one operation, as the library does.
fn run(object: &mut Value, operation: &JsonOperation) -> Result<(), String> {
    use JsonOperationKind::{Add, Replace, Test};
    if matches!(operation.op, Add | Replace | Test) && operation.value.is_none() {
        return Err("the operation has no value".into());
    }
    let text = json!({"op": operation.op, "path": operation.path, "from": operation.from, "value": operation.value});
    let operation: PatchOperation = vdo_api::types::from_json(text.to_string()).map_err(|_| "it is not an operation".to_owned())?;
    json_patch::patch(object, std::slice::from_ref(&operation)).map_err(|error| match error.kind {
        PatchErrorKind::TestFailed => format!("the value at {} differs from the value of the operation test", operation.path()),
        PatchErrorKind::InvalidFromPointer => "there is no value at the path that the field \"from\" of the operation contains".to_owned(),
        PatchErrorKind::CannotMoveInsideItself => "a value cannot be moved into itself".to_owned(),
        // The library may know more one day.
        _ => format!("there is no {}", operation.path()),
    })
}

/// A field that is no longer.
fn removed(before: &Value, kind: &str, pointer: &str, written: &mut Vec<Written>) {
    let (path, _) = walk(before, kind, pointer);
    written.push(Written { path, value: None });
}

/// A field that has a value now. In a list, the item before stays unless it was replaced.
fn set(before: &Value, after: &Value, kind: &str, pointer: &str, written: &mut Vec<Written>) {
    let (path, Some(new)) = walk(after, kind, pointer) else { return };
    let mut fields = Vec::new();
    note(&path, new, &mut fields);
    let (old_path, old) = walk(before, kind, pointer);
    let grown = |value: &Value| above(value, pointer).and_then(Value::as_array).map(Vec::len);
    if let Some(old) = old.filter(|_| grown(before) == grown(after)) {
        note_removed(&old_path, old, &mut fields);
    }
    written.append(&mut fields);
}

/// The map or list that holds the field.
fn above<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    value.pointer(pointer.rsplit_once('/')?.0)
}

/// The path as it is typed.
fn typed(kind: &str, pointer: &str) -> Path {
    steps(pointer).fold(Path::of_kind(kind), |path, token| path.field(&token))
}

/// The path with its items by their keys, and what is there. `-` is the last item.
fn walk<'a>(object: &'a Value, kind: &str, pointer: &str) -> (Path, Option<&'a Value>) {
    let (mut path, mut here) = (Path::of_kind(kind), Some(object));
    for token in steps(pointer) {
        let items = here.and_then(Value::as_array);
        (path, here) = match items {
            Some(items) => {
                let item = match token.as_str() {
                    "-" => items.last(),
                    index => index.parse::<usize>().ok().and_then(|index| items.get(index)),
                };
                (item.map_or_else(|| path.field(&token), |item| path.item(item)), item)
            }
            None => (path.field(&token), here.and_then(|value| value.get(&token))),
        };
    }
    (path, here)
}
