// SPDX-License-Identifier: Apache-2.0
//! Tests the import of the image archive into a real containerd, where containerd is installed and the test runs as root.

use crate::image::build;
use crate::{done, judged, skipped, text};
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Runtime(Child);

impl Drop for Runtime {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts containerd and waits until it listens.
fn start(folder: &Path, socket: &Path) -> Runtime {
    let config = format!(
        "version = 2\nroot = \"{0}/root\"\nstate = \"{0}/state\"\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\naddress = \"{1}\"\n",
        folder.display(),
        socket.display()
    );
    fs::write(folder.join("config.toml"), config).expect("a file");
    let mut command = Command::new("containerd");
    command
        .arg("--config")
        .arg(folder.join("config.toml"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let runtime = Runtime(command.spawn().expect("containerd starts"));
    let began = Instant::now();
    while UnixStream::connect(socket).is_err() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "containerd does not listen at {}",
            socket.display()
        );
        std::thread::yield_now();
    }
    runtime
}

#[test]
fn archive_is_imported_by_the_containerd_of_a_node() {
    const TEST: &str = "archive_is_imported_by_the_containerd_of_a_node";
    let Some(_) = judged(TEST, "containerd", &["--version"]) else {
        return;
    };
    if judged(TEST, "id", &["-u"]).is_none_or(|id| id.trim() != "0") {
        skipped(TEST, "containerd as root");
        return;
    }
    let built = build();
    let tar = text(built.folder.path()).to_owned() + "/image.tar";
    let printed = done(&[
        "image-archive",
        "--layout",
        text(&built.layout),
        "--platform",
        "linux/amd64",
        "--name",
        "localhost/vdo-operator",
        "--output",
        &tar,
    ]);
    let name = printed.lines().last().expect("its name");
    let socket = built.folder.path().join("c.sock");
    let _runtime = start(built.folder.path(), &socket);
    let ctr = |args: &[&str]| {
        judged(
            TEST,
            "ctr",
            &[&["--address", text(&socket), "--namespace", "k8s.io", "images"], args].concat(),
        )
    };
    let Some(_) = ctr(&["import", "--snapshotter", "native", &tar]) else {
        return;
    };
    let listed = ctr(&["ls", "--quiet"]).expect("a list");
    assert!(listed.lines().any(|line| line == name), "{name}: {listed}");
    let mounted = built.folder.path().join("mounted");
    fs::create_dir(&mounted).expect("a folder");
    ctr(&["mount", "--snapshotter", "native", name, text(&mounted)]);
    let program = mounted.join("usr/local/bin/vdo-operator");
    let is_there = program.is_file();
    ctr(&["unmount", text(&mounted)]);
    assert!(is_there, "the image has no program");
}
