// SPDX-License-Identifier: Apache-2.0
//! Writes the generated files of the repository: `cargo run --example generate -- crds matrix rbac chart docs`.
//!
//! Generated files are committed, and a test fails when one is out of date.
#![allow(clippy::print_stdout, reason = "a tool for people")]

#[path = "parts.rs"]
mod parts;

use parts::{chart, crds, docs, matrix, rbac, renders};
use std::error::Error;
use std::path::Path;

type Outcome = Result<(), Box<dyn Error>>;
type Part = (&'static str, fn() -> Outcome);

/// What can be generated, by the word on the command line, in the order in which one needs the other.
const PARTS: [Part; 5] = [
    ("crds", crds::crds),
    ("matrix", write_matrix),
    ("rbac", rbac::rbac),
    ("chart", chart::chart),
    ("docs", docs::docs),
];

fn main() -> Outcome {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if wanted.is_empty() || wanted.iter().any(|word| !PARTS.iter().any(|(name, _)| name == word)) {
        let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
        return Err(format!("name what to generate: {}", names.join(", ")).into());
    }
    PARTS
        .iter()
        .filter(|(name, _)| wanted.iter().any(|word| word == name))
        .try_for_each(|(_, write)| write())
}

fn write_matrix() -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (file, text) in [
        ("matrix-index/index.yaml", matrix::refreshed(root)?),
        ("tests/fixtures/render-digests.yaml", renders::digests(root)?),
    ] {
        std::fs::write(root.join(file), text)?;
        println!("wrote {file}");
    }
    Ok(())
}
