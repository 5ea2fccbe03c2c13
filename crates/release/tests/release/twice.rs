//! `make release` as it is called: the commit gives the same bytes wherever it is built, and each program starts on its processor.

use crate::{root, skipped};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const TEST: &str = "release_built_twice_is_the_same_and_its_programs_start";

/// Runs a command to its end and returns what it printed.
fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// Builds the release of a repository's current commit in a folder of this name, with a target folder of its own; what the script printed,
/// and every file of the release and of the image.
fn built(repository: &Path, base: &Path, name: &str) -> (String, BTreeMap<String, Vec<u8>>) {
    let (source, target) = (base.join(name), base.join(format!("{name} target")));
    run(Command::new("git").args(["clone", "--quiet"]).arg(repository).arg(&source));
    let mut command = Command::new("bash");
    command.arg(source.join("crates/release/build.sh")).arg("release");
    command
        .env("CARGO_TARGET_DIR", &target)
        .env_remove("VDO_SIGNING_KEY")
        .env_remove("SOURCE_DATE_EPOCH");
    let said = run(&mut command);
    let mut files = BTreeMap::new();
    read(&target, &target, &mut files);
    // The second build finds room where the first was.
    fs::remove_dir_all(&target).expect("the target folder");
    (said, files)
}

/// The files below `image` and `release-VERSION`, by their paths.
fn read(target: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = path.strip_prefix(target).expect("below it").display().to_string();
        if !name.starts_with("image") && !name.starts_with("release-") {
            continue;
        }
        match path.is_dir() {
            true => read(target, &path, files),
            false => drop(files.insert(name, fs::read(&path).expect("a file"))),
        }
    }
}

#[test]
#[ignore = "needs four optimised builds, an hour: `make test-all` makes them"]
fn release_built_twice_is_the_same_and_its_programs_start() {
    let base = tempfile::tempdir().expect("a folder");
    let (said, first) = built(root(), base.path(), "one");
    // Of the first folder, because the commit of this one may be another one an hour later.
    let (again, second) = built(&base.path().join("one"), base.path(), "another place");
    assert!(first.len() > 8, "{:?}", first.keys());
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (name, bytes) in &first {
        assert!(
            *bytes == second[name],
            "{name} differs: {} and {} bytes",
            bytes.len(),
            second[name].len()
        );
    }
    let mut stderr = std::io::stderr();
    let _ = std::io::Write::write_all(&mut stderr, again.as_bytes());
    for architecture in ["amd64", "arm64"] {
        let line = |text: &str| said.lines().any(|line| line.contains(&format!("linux/{architecture}: {text}")));
        if line("NOT built") {
            skipped(TEST, &format!("a compiler for {architecture}"));
        } else if line("NOT started") {
            skipped(TEST, &format!("qemu-user for {architecture}"));
        } else {
            assert!(line("the image's program says: vdo-operator "), "{architecture}: {said}");
        }
    }
}
