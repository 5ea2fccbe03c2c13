// SPDX-License-Identifier: Apache-2.0
//! What is written arrives whole, or it is said that it did not.

use crate::vdoctl;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output};

fn ended(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

const PACKAGE: [&str; 6] = ["chart", "package", "csi", "--version", "3.7.3", "-o"];

#[test]
fn full_disk_below_stdout_is_an_error() {
    for arguments in [
        &["matrix", "list"][..],
        &["matrix", "list", "-o", "json"],
        &["chart", "render", "csi", "--version", "3.7.3"],
        &["--help"],
        &["completion", "zsh"],
        &["explain"],
        &[&PACKAGE[..], &["-"]].concat(),
    ] {
        let full = File::options().write(true).open("/dev/full").expect("a full device");
        let mut command = Command::new(vdo_testbed::vdoctl());
        let (code, said) = ended(&command.env_clear().args(arguments).stdout(full).output().expect("it runs"));
        assert_eq!(code, Some(4), "{arguments:?}: {said}");
        assert!(
            said.contains("error: the output cannot be written: No space left on device"),
            "{said}"
        );
    }
}

#[test]
fn full_disk_below_a_package_is_an_error_with_the_name_of_the_file() {
    let (code, said) = ended(&vdoctl(&[&PACKAGE[..], &["/dev/full"]].concat()).output().expect("it runs"));
    assert_eq!(code, Some(4), "{said}");
    assert!(
        said.starts_with("error: /dev/full cannot be written: No space left on device"),
        "{said}"
    );
    assert!(Path::new("/dev/full").exists(), "and the device is still there");
}

/// A limit of the shell stops the package in the middle, as a full disk does.
#[test]
fn package_that_finds_no_room_leaves_nothing_behind_and_the_old_file_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("csi.tgz");
    let package = || {
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"trap "" XFSZ; ulimit -f 4; exec "$0" "$@""#, vdo_testbed::vdoctl()]);
        ended(&shell.args(PACKAGE).arg(&path).output().expect("sh runs"))
    };
    let left = || {
        std::fs::read_dir(folder.path())
            .expect("a folder")
            .flatten()
            .map(|entry| entry.file_name())
            .collect::<Vec<_>>()
    };
    let (code, said) = package();
    assert_eq!(code, Some(4), "{said}");
    assert!(
        said.starts_with(&format!("error: {} cannot be written: File too large", path.display())),
        "{said}"
    );
    assert!(left().is_empty(), "{:?}", left());
    std::fs::write(&path, "old").expect("written");
    assert_eq!(package().0, Some(4));
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "old");
    assert_eq!(left(), ["csi.tgz"]);
    assert!(vdoctl(&PACKAGE).arg(&path).output().expect("it runs").status.success());
    let through_stdout = vdoctl(&PACKAGE).arg("-").output().expect("it runs").stdout;
    assert_eq!(
        std::fs::read(&path).expect("it is there"),
        through_stdout,
        "with room it is replaced"
    );
    assert_eq!(left(), ["csi.tgz"]);
}
