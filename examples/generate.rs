//! Writes the generated files of the repository: `cargo run --example generate -- matrix`.
//!
//! Generated files are committed, and a test fails when one is out of date.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for people")]

use std::path::Path;
use std::process::ExitCode;

#[path = "generate/matrix.rs"]
mod matrix;
#[path = "generate/renders.rs"]
mod renders;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let what = std::env::args().nth(1);
    let result = match what.as_deref() {
        Some("matrix") => write(root, "matrix-index/index.yaml", matrix::refreshed(root))
            .and_then(|()| write(root, "tests/fixtures/render-digests.yaml", renders::digests(root))),
        _ => Err("write: generate matrix".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn write(root: &Path, file: &str, text: Result<String, Box<dyn std::error::Error>>) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::write(root.join(file), text?)?;
    println!("wrote {file}");
    Ok(())
}
