// SPDX-License-Identifier: Apache-2.0
//! Tests of `vdo-release` and `vdo-load`, whose output independent readers check: the tar and gzip of another crate, openssl, and the
//! container tools that are installed.

mod bundle;
mod desk;
mod documents;
#[path = "../../../../tests/common/executable.rs"]
mod executable;
#[path = "../../../../tests/common/follow.rs"]
mod follow;
mod image;
mod judges;
mod load;
mod matrix;
mod nodes;
mod program;
mod publish;
mod runtime;
mod signature;
mod twice;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `vdo-release`, at a fixed time.
fn release(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vdo-release"));
    command
        .args(args)
        .current_dir(root())
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .env_remove("VDO_SIGNING_KEY");
    command.output().expect("vdo-release starts")
}

/// Runs `vdo-release`, which succeeds, and returns what it printed.
fn done(args: &[&str]) -> String {
    let output = release(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Runs `vdo-release`, which refuses, and returns why.
fn refused(args: &[&str]) -> String {
    let output = release(args);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8(output.stderr).expect("text")
}

/// The repository.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Runs another tool and returns what it printed, or says which test needs it and returns nothing.
fn judged(test: &str, tool: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(tool).args(args).output();
    if output.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        skipped(test, tool);
        return None;
    }
    let output = output.expect(tool);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{tool} {args:?}: {out}{err}");
    Some(out.into_owned())
}

/// Past the harness, which shows what a test prints only when it fails; tests/run.sh collects these lines.
fn skipped(test: &str, tool: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: needs {tool} ({test})");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
