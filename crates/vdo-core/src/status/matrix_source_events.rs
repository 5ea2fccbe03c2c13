// SPDX-License-Identifier: Apache-2.0
//! The events that a change of the matrix's source or of its trusted keys emits (MatrixSourceChanged).

use super::Note;
use vdo_api::api::{Reason, VDOConfigStatus};

/// The events of another source of the matrix, and of other trusted keys.
#[must_use]
pub fn source_changes(old: &VDOConfigStatus, new: &VDOConfigStatus) -> Vec<Note> {
    let (Some(before), Some(after)) = (&old.matrix, &new.matrix) else {
        return Vec::new();
    };
    let note = |action: &str, message: String| Note {
        warning: false,
        reason: Reason::MatrixSourceChanged.to_string(),
        action: action.into(),
        message,
    };
    let source = (before.source != after.source).then(|| {
        note(
            "ReadMatrix",
            format!("the source of the matrix has changed from {} to {}", before.source, after.source),
        )
    });
    // Where no keys are asked for, as for what is in the program, none were changed.
    let keys = (before.keys != after.keys && before.signer.is_some() == after.signer.is_some()).then(|| {
        note(
            "TrustKeys",
            format!(
                "the trusted keys of the matrix have changed from {} to {}",
                list(&before.keys),
                list(&after.keys)
            ),
        )
    });
    source.into_iter().chain(keys).collect()
}

fn list(keys: &[String]) -> String {
    match keys {
        [] => "none".into(),
        keys => keys.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::api::MatrixStatus;

    #[test]
    fn another_source_and_other_keys_are_events() {
        let status = |source: &str, keys: &[&str]| VDOConfigStatus {
            matrix: Some(MatrixStatus {
                source: source.into(),
                keys: keys.iter().map(|key| (*key).to_owned()).collect(),
                signer: keys.first().map(|key| (*key).to_owned()),
                ..MatrixStatus::default()
            }),
            ..VDOConfigStatus::default()
        };
        let nothing = VDOConfigStatus::default();
        for (old, new, said) in [
            (nothing.clone(), status("embedded", &[]), &[][..]),
            (status("embedded", &[]), nothing, &[]),
            (status("embedded", &[]), status("embedded", &[]), &[]),
            (status("/a", &["a"]), status("/a", &["a"]), &[]),
            (
                status("embedded", &[]),
                status("/a", &["a"]),
                &["source of the matrix has changed from embedded to /a"],
            ),
            (
                status("/a", &["a"]),
                status("/a", &["a", "b"]),
                &["keys of the matrix have changed from a to a, b"],
            ),
            (
                status("/a", &["a"]),
                status("/b", &["b"]),
                &["has changed from /a to /b", "have changed from a to b"],
            ),
        ] {
            let notes = source_changes(&old, &new);
            assert_eq!(notes.len(), said.len(), "{notes:?}");
            for (note, said) in notes.iter().zip(said) {
                assert!(note.message.contains(said) && note.reason == "MatrixSourceChanged", "{note:?}");
            }
        }
    }
}
