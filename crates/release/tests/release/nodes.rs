// SPDX-License-Identifier: Apache-2.0
//! Tests `make deploy-k8s-cluster` (`vdo-load nodes`), with a stub of ssh.
//!
//! The stub runs the product's scripts on this machine, in folders in the places of /run and /var/lib.

use crate::desk::{Desk, said};
use crate::executable::write_program;
use crate::image::build;
use crate::text;
use ring::digest::{SHA256, digest};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Finds the node by the host, records, and runs the last argument as the node does.
const SSH: &str = r#"host= before=
for word; do [ "$before" = -- ] && host=$word; before=$word; command=$word; done
printf '%s\n' "$*" >>"$record/ssh-$host"
node=$NODES_FOLDER/$host
[ -d "$node" ] || { echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255; }
[ ! -e "$node/says" ] || { cat "$node/says" >&2; exit 255; }
command=$(printf '%s' "$command" | sed "s|/run/|$node/run/|g; s|/var/lib/|$node/var/lib/|g; s|:/usr/local/bin:|:$node/bin:|")
PATH=$node/bin:$PATH
export node record host PATH
exec sh -c "$command""#;

/// containerd's client: keeps the digest of what it imports, unless its disk is full.
const CTR: &str = r#"case "$*" in
*"images import -") [ ! -e "$node/full" ] || { echo "ctr: write /var/lib/containerd/x: no space left on device" >&2; exit 1; }
    sha256sum | cut -d ' ' -f 1 >"$record/imported-$host"; echo "$*" >"$record/client-$host" ;;
*"images ls -q") cat "$record/name" ;;
esac"#;

fn executable(file: &Path, lines: &str) {
    write_program(file, format!("#!/bin/sh\n{lines}\n")).expect("a program");
}

struct Nodes {
    desk: Desk,
    folder: tempfile::TempDir,
    /// Sockets are there as long as something listens.
    sockets: Vec<UnixListener>,
}

impl Nodes {
    fn new() -> Self {
        let kubectl = r#"case "$*" in *" -k "*) for folder; do :; done; cat "$folder/operator.yaml" >"$record/operator.yaml" ;; "get --raw "*) echo '"ValidatingAdmissionPolicy"' ;; esac"#;
        let desk = Desk::new()
            .program("ssh", SSH)
            .program("kubectl", kubectl)
            .program("make", "exit 1");
        // The paths of a node have no blanks, and those of its sockets are short.
        let folder = tempfile::tempdir_in("/tmp").expect("a folder");
        let desk = desk
            .with("NODES_FOLDER", text(folder.path()))
            .with("K8S_MASTER_IP", "n1")
            .with("K8S_MASTER_SSH_USER", "root");
        Self {
            desk,
            folder,
            sockets: Vec::new(),
        }
    }

    /// A node: the socket of its runtime, and its programs.
    fn node(mut self, host: &str, socket: &str, machine: &str, programs: &[(&str, &str)]) -> Self {
        let node = self.folder.path().join(host);
        let socket = node.join(socket);
        for folder in [
            socket.parent().expect("a folder"),
            &node.join("bin"),
            &node.join("var/lib/containerd"),
        ] {
            fs::create_dir_all(folder).expect("a folder");
        }
        self.sockets.push(UnixListener::bind(&socket).expect("a socket"));
        executable(&node.join("bin/uname"), &format!("echo {machine}"));
        executable(&node.join("bin/sudo"), "[ \"$1\" != -n ] || shift\nexec \"$@\"");
        for (name, lines) in programs {
            executable(&node.join("bin").join(name), lines);
        }
        symlink(self.desk.at("bin/kubectl"), node.join("bin/kubectl")).expect("a link");
        self
    }

    fn put(self, host: &str, name: &str, content: &str) -> Self {
        fs::write(self.folder.path().join(host).join(name), content).expect("a file");
        self
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.desk = self.desk.with(name, value);
        self
    }
}

fn sha256(file: &Path) -> String {
    hex::encode(digest(&SHA256, &fs::read(file).expect("a file")))
}

/// The name that the image will have.
fn name_of(layout: &Path) -> String {
    let top: serde_json::Value = serde_json::from_slice(&fs::read(layout.join("index.json")).expect("a file")).expect("JSON");
    let digest = top["manifests"][0]["digest"].as_str().expect("a digest").replace("sha256:", "");
    format!("localhost/vdo-operator:v1-{}", &digest[..12])
}

#[test]
fn nodes_each_gets_the_image_of_its_processor_into_its_runtime() {
    let built = build();
    let podman = r#"case "$*" in "load "*) for file; do :; done; sha256sum "$file" | cut -d ' ' -f 1 >"$record/imported-$host" ;; esac"#;
    let skopeo = r#"case "$*" in "copy "*) file=${3#docker-archive:}; sha256sum "$file" | cut -d ' ' -f 1 >"$record/imported-$host"; echo "$4" >"$record/client-$host" ;; esac"#;
    let nodes = Nodes::new()
        .node("n1", "run/containerd/containerd.sock", "x86_64", &[("ctr", CTR)])
        .node("n2", "run/k3s/containerd/containerd.sock", "aarch64", &[("k3s", CTR)])
        .node("n3", "run/crio/crio.sock", "x86_64", &[("podman", podman)])
        .node("n4", "run/crio/crio.sock", "aarch64", &[("skopeo", skopeo)])
        .with("VDO_NODES", "root@n1 ubuntu@n2 root@n3 root@n4")
        .with("VDO_IMAGE_LAYOUT", text(&built.layout));
    let name = name_of(&built.layout);
    fs::write(nodes.desk.at("record/name"), format!("docker.io/other:v1\n{name}\n")).expect("a file");
    let output = nodes.desk.load("nodes");
    assert!(output.status.success(), "{}", said(&output));
    let of = |architecture: &str| sha256(&built.layout.with_file_name(format!("image-{architecture}.tar")));
    for (host, architecture) in [("n1", "amd64"), ("n2", "arm64"), ("n3", "amd64"), ("n4", "arm64")] {
        assert_eq!(nodes.desk.recorded(&format!("imported-{host}")).trim(), of(architecture), "{host}");
    }
    assert!(
        nodes
            .desk
            .recorded("client-n2")
            .contains("/run/k3s/containerd/containerd.sock -n k8s.io")
    );
    assert_eq!(nodes.desk.recorded("client-n4").trim(), format!("containers-storage:{name}"));
    for host in ["n1", "n2"] {
        let calls = nodes.desk.recorded(&format!("ssh-{host}"));
        assert!(
            calls.contains("BatchMode=yes") && calls.contains("StrictHostKeyChecking=yes"),
            "{calls}"
        );
    }
    let operator = nodes.desk.recorded("operator.yaml");
    assert!(
        operator.contains(&format!("image: {name}\n")) && operator.contains("imagePullPolicy: Never"),
        "{operator}"
    );
}

#[test]
fn nodes_that_ask_or_lack_something_are_named_before_anything_is_built() {
    let good = "run/containerd/containerd.sock";
    let little = "printf '%s\\n' 'Filesystem 1024-blocks Used Available Capacity Mounted' '/dev/sda1 100 1 4096 99%% /'";
    let nodes = Nodes::new()
        .node("n1", good, "x86_64", &[("ctr", CTR)])
        .node("n2", good, "x86_64", &[("ctr", CTR)])
        .put("n2", "says", "Host key verification failed.")
        .node("n3", good, "x86_64", &[("ctr", CTR)])
        .put("n3", "says", "root@n3: Permission denied (publickey).")
        .node("n4", good, "x86_64", &[("ctr", CTR), ("df", little)])
        .node("n5", "run/other.sock", "x86_64", &[])
        .node("n6", good, "s390x", &[("ctr", CTR)])
        .node("n7", good, "x86_64", &[("ctr", CTR), ("id", "echo 1000"), ("sudo", "exit 1")])
        .with("VDO_NODES", "root@n1 root@n2 root@n3 root@n4 root@n5 root@n6 root@n7 root@n8");
    let output = nodes.desk.load("nodes");
    let all = said(&output);
    assert_eq!(output.status.code(), Some(3), "{all}");
    for part in [
        "Node root@n2: the host key is unknown or has changed",
        "ssh root@n2",
        "Node root@n3: no key is accepted",
        "ssh-copy-id root@n3",
        "Node root@n4: 4 MB are free",
        "Node root@n5: no socket of containerd or CRI-O was found",
        "Node root@n6: the node has the architecture \"s390x\", but images are built only",
        "Node root@n7: user root is not root",
        "Node root@n8: the node cannot be reached",
        "Nothing was built and nothing was changed.",
    ] {
        assert!(all.contains(part), "{part} is missing in: {all}");
    }
    assert!(!all.contains("root@n1"), "{all}");
    let calls = nodes.desk.calls();
    assert!(
        !calls.iter().any(|call| call.starts_with("make") || call.starts_with("kubectl")),
        "{calls:#?}"
    );
}

#[test]
fn nodes_of_the_control_plane_are_all_named_and_have_kubectl() {
    let socket = "run/containerd/containerd.sock";
    let kubectl = r#"case "$*" in "get nodes "*"/control-plane "*) printf 'node/cp1\nnode/cp2\n' ;; esac"#;
    let nodes = Nodes::new().node("n1", socket, "x86_64", &[("ctr", CTR)]);
    let nodes = Nodes {
        desk: nodes.desk.program("kubectl", kubectl),
        ..nodes
    };
    let output = nodes.desk.load("nodes");
    let all = said(&output);
    assert!(
        !output.status.success() && all.contains("(cp1, cp2)") && all.contains("VDO_NODES="),
        "{all}"
    );
    for program in [nodes.desk.at("bin/kubectl"), nodes.folder.path().join("n1/bin/kubectl")] {
        fs::remove_file(program).expect("a program");
    }
    let output = nodes.desk.load("nodes");
    let all = said(&output);
    assert!(all.contains("Node root@n1: kubectl is missing on the node"), "{all}");
    assert!(!nodes.desk.calls().iter().any(|call| call.starts_with("make")), "{all}");
}

#[test]
fn nodes_one_whose_disk_fills_up_is_named_and_nothing_is_installed() {
    let built = build();
    let socket = "run/containerd/containerd.sock";
    let nodes = Nodes::new()
        .node("n1", socket, "x86_64", &[("ctr", CTR)])
        .node("n2", socket, "x86_64", &[("ctr", CTR)])
        .put("n2", "full", "")
        .with("VDO_NODES", "root@n1 root@n2")
        .with("VDO_IMAGE_LAYOUT", text(&built.layout));
    fs::write(nodes.desk.at("record/name"), name_of(&built.layout)).expect("a file");
    let output = nodes.desk.load("nodes");
    let all = said(&output);
    assert_eq!(output.status.code(), Some(3), "{all}");
    assert!(
        all.contains("Node root@n2: ctr: write") && all.contains("no space left on device"),
        "{all}"
    );
    assert!(all.contains("nothing was installed"), "{all}");
    assert_eq!(nodes.desk.recorded("operator.yaml"), "", "it was installed");
    // A runtime that takes an archive and has no such image afterwards is another failure.
    fs::remove_file(nodes.folder.path().join("n2/full")).expect("a file");
    fs::write(nodes.desk.at("record/name"), "docker.io/other:v1").expect("a file");
    let output = nodes.desk.load("nodes");
    assert!(
        said(&output).contains("Node root@n1: ") && said(&output).contains("has not imported localhost/"),
        "{}",
        said(&output)
    );
}
