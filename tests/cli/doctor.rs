// SPDX-License-Identifier: Apache-2.0
//! Checks of a vCenter that accepts a connection and says nothing.

use crate::terminal::screen;
use crate::vdoctl;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

/// `--timeout` is the time that the vCenter has, and a person sees meanwhile that something goes on.
#[test]
fn doctor_of_vcenter_without_answer_ends_within_timeout_and_shows_that_it_checks() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address").to_string();
    let password = tempfile::NamedTempFile::new().expect("a file");
    std::fs::set_permissions(password.path(), std::fs::Permissions::from_mode(0o600)).expect("its mode");
    std::fs::write(password.path(), "secret").expect("written");
    let file = password.path().display().to_string();
    let arguments = [
        "doctor",
        "--pre",
        "--vcenter",
        &address,
        "--user",
        "k8s@vsphere.local",
        "--password-file",
        &file,
        "--insecure",
        "--timeout",
        "2s",
    ];
    let begun = Instant::now();
    let output = vdoctl(&arguments).output().expect("it runs");
    let (took, text) = (begun.elapsed(), String::from_utf8_lossy(&output.stdout).into_owned());
    assert_eq!(output.status.code(), Some(6), "{text}");
    assert!(text.contains("within 2s"), "{text}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(!text.contains("checking the cluster"), "a pipe gets the result alone: {text}");

    let shown = screen(&arguments, None);
    assert!(shown.contains("checking the cluster and its vCenters"), "{shown}");
    assert!(shown.contains("within 2s"), "{shown}");
}
