// SPDX-License-Identifier: Apache-2.0
//! Decides the order in which the files of a published matrix folder are written, so that an interruption leaves a valid, signed matrix.

use std::collections::BTreeMap;
use std::path::Path;
use vdo_source::signature::{Form, Signature};

/// A version of a matrix, as it lies in a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Release {
    /// The bytes of the index.
    pub index: Vec<u8>,
    /// What signs exactly these bytes, by form; empty when it is not signed.
    pub signatures: BTreeMap<Form, String>,
    /// Chart packages by their paths.
    pub charts: BTreeMap<String, Vec<u8>>,
}

/// The name of the index in a folder.
pub const INDEX: &str = "index.yaml";

/// One file, by its path in the folder; without content it is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The path.
    pub path: String,
    /// What stands there then.
    pub content: Option<Vec<u8>>,
}

impl Release {
    /// All files of it.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = self.charts.clone();
        files.insert(INDEX.to_owned(), self.index.clone());
        files.extend(
            self.signatures
                .iter()
                .map(|(form, text)| (beside(*form), text.clone().into_bytes())),
        );
        files
    }
}

/// Replaces what lies there, of which only the signature is needed. Charts come first, because the last index names none of them; then a
/// signature that holds for both versions, then the index, then what signs it alone.
#[must_use]
pub fn writes(old: Option<&Signature>, new: &Release) -> Vec<Write> {
    let write = |path: String, content: Vec<u8>| Write {
        path,
        content: Some(content),
    };
    let mut all: Vec<Write> = new.charts.iter().map(|(path, bytes)| write(path.clone(), bytes.clone())).collect();
    let bare = new.signatures.get(&Form::Bare);
    if let (Some(bare), Some(old)) = (bare, old) {
        all.push(write(beside(Form::Bare), old.joined(bare).into_bytes()));
    }
    all.push(write(INDEX.to_owned(), new.index.clone()));
    for form in Form::ALL {
        all.push(Write {
            path: beside(form),
            content: new.signatures.get(&form).map(|text| text.clone().into_bytes()),
        });
    }
    all
}

fn beside(form: Form) -> String {
    form.file_of(Path::new(INDEX)).display().to_string()
}
