// SPDX-License-Identifier: Apache-2.0
//! Embeds `charts/` and `matrix-index` in the binary, as a table of `include_bytes!`.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script its folders through the environment"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?);
    let root = own.ancestors().nth(2).ok_or(io::ErrorKind::NotFound)?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    let charts = root.join("charts");
    let index = root.join("matrix-index").join("index.yaml");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", index.display());
    println!("cargo::rerun-if-changed={}", charts.display());

    let mut files = Vec::new();
    collect(&charts, &mut files)?;
    files.sort();
    let mut code = String::from("pub(super) static CHARTS: &[(&str, &[u8])] = &[\n");
    for file in &files {
        let name = file
            .strip_prefix(&charts)
            .map_err(io::Error::other)?
            .to_string_lossy()
            .replace('\\', "/");
        writeln!(code, "    ({name:?}, include_bytes!({:?})),", file.display().to_string()).map_err(io::Error::other)?;
    }
    let index = index.display().to_string();
    write!(code, "];\npub(super) static INDEX: &[u8] = include_bytes!({index:?});\n").map_err(io::Error::other)?;
    fs::write(out.join("embedded.rs"), code)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if hidden {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
