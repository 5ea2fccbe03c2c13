// SPDX-License-Identifier: Apache-2.0
//! Tests `make deploy` (`vdo-load cluster`), with stubs that record the calls of kubectl, kind, k3d, minikube and docker.

use crate::desk::{Desk, said};
use crate::image::build;
use crate::text;
use ring::digest::{SHA256, digest};
use std::fs;
use std::path::Path;

/// A kubectl whose cluster has one node, and which keeps what is applied.
fn kubectl(context: &str, node: &str) -> String {
    format!(
        r#"case "$*" in
"config current-context") echo '{context}' ;;
"get nodes "*) echo '{node}' ;;
"get --raw "*) echo '"ValidatingAdmissionPolicy"' ;;
*" -k "*) for folder; do :; done; cp "$folder/operator.yaml" "$record/operator.yaml" ;;
esac"#
    )
}

/// Keeps the digest of the file that is its last but N arguments, and what kind reads from its environment.
const LOADS: &str = r#"for word; do case $word in *.tar) sha256sum "$word" | cut -d ' ' -f 1 >"$record/loaded" ;; esac; done
echo "$KIND_EXPERIMENTAL_PROVIDER" >"$record/provider""#;

fn sha256(file: &Path) -> String {
    hex::encode(digest(&SHA256, &fs::read(file).expect("a file")))
}

/// The image and the pull policy of what was applied.
fn applied(desk: &Desk) -> (String, String) {
    let text = desk.recorded("operator.yaml");
    let of = |key: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": "));
        line.unwrap_or_default().to_owned()
    };
    (of("image"), of("imagePullPolicy"))
}

/// Programs with what they do.
type Programs<'a> = &'a [(&'a str, &'a str)];

#[test]
fn load_into_kind_k3d_and_minikube_then_deployment_has_that_image() {
    let kind = r#"case "$*" in "get clusters") printf 'other\ndev\n' ;; load*) "#;
    let kind = format!("{kind}{LOADS} ;; esac");
    let k3d = format!(r#"case "$*" in "cluster list"*) echo "dev 1/1 0/0 true" ;; image*) {LOADS} ;; esac"#);
    let minikube = format!(r#"case "$*" in *load*) {LOADS} ;; esac"#);
    for (node, programs, command, provider) in [
        (
            "n|amd64|kind://docker/dev/n|",
            ["kind", "docker"],
            "kind load image-archive ARCHIVE --name dev",
            "docker",
        ),
        (
            "n|amd64|kind://podman/dev/n|",
            ["kind", "podman"],
            "kind load image-archive ARCHIVE --name dev",
            "podman",
        ),
        (
            "n|arm64|kind://nerdctl/dev/n|",
            ["kind", "nerdctl"],
            "kind load image-archive ARCHIVE --name dev",
            "nerdctl",
        ),
        (
            "k3d-dev-server-0|amd64||",
            ["k3d", "docker"],
            "k3d image import ARCHIVE --cluster dev",
            "",
        ),
        (
            "minikube|amd64||dev",
            ["minikube", "docker"],
            "minikube --profile dev image load ARCHIVE",
            "",
        ),
    ] {
        let built = build();
        let desk = Desk::new()
            .program("kubectl", &kubectl("mine", node))
            .with("VDO_IMAGE_LAYOUT", text(&built.layout));
        let desk = programs.into_iter().fold(desk, |desk, name| {
            let lines = match name {
                "kind" => kind.as_str(),
                "k3d" => k3d.as_str(),
                "minikube" => minikube.as_str(),
                _ => "",
            };
            desk.program(name, lines)
        });
        let output = desk.load("cluster");
        assert!(output.status.success(), "{node}: {}", said(&output));
        let architecture = node.split('|').nth(1).expect("an architecture");
        let archive = built.layout.with_file_name(format!("image-{architecture}.tar"));
        let command = command.replace("ARCHIVE", text(&archive));
        assert!(desk.calls().contains(&command), "{command}: {:#?}", desk.calls());
        assert_eq!(desk.recorded("loaded").trim(), sha256(&archive), "{node}: another file was loaded");
        assert_eq!(desk.recorded("provider").trim(), provider, "{node}");
        let (image, policy) = applied(&desk);
        assert!(
            image.starts_with("localhost/vdo-operator:v1-") && policy == "Never",
            "{node}: {image} {policy}"
        );
        assert!(
            said(&output).contains(&format!("vdoctl deploy --image {image}")),
            "{}",
            said(&output)
        );
    }
}

#[test]
fn load_named_image_is_not_built_and_is_pulled_as_usual() {
    let desk = Desk::new()
        .program("kubectl", &kubectl("prod", "n|amd64|vsphere://1|"))
        .with("VDO_IMAGE", "registry.example.com/vdo-operator:v9");
    let output = desk.load("cluster");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(applied(&desk), ("registry.example.com/vdo-operator:v9".into(), String::new()));
}

/// Nothing is built in any of these: `make` would be recorded.
#[test]
fn load_what_is_missing_is_said_before_anything_is_built() {
    let on_kind = "n|amd64|kind://docker/dev/n|";
    let no_context = r#"case "$*" in "config current-context") echo "error: current-context is not set" >&2; exit 1 ;; esac"#;
    let silent = r#"case "$*" in "config current-context") echo kind-dev ;; *) echo "connection refused" >&2; exit 1 ;; esac"#;
    let clusters = r#"case "$*" in "get clusters") echo dev ;; esac"#;
    let down = r#"echo "Cannot connect to the Docker daemon" >&2; exit 1"#;
    let cases: [(Programs<'_>, &[&str]); 9] = [
        (&[], &["kubectl is missing", "https://kubernetes.io"]),
        (&[("kubectl", no_context)], &["no current context", "KUBECONFIG"]),
        (
            &[("kubectl", no_context), ("kind", "")],
            &["no current context", "kind create cluster"],
        ),
        (
            &[("kubectl", &kubectl("mine", on_kind))],
            &["kind is missing", "https://kind.sigs.k8s.io"],
        ),
        (
            &[("kubectl", &kubectl("mine", on_kind)), ("kind", "")],
            &["docker is missing", "https://docs.docker.com"],
        ),
        (
            &[("kubectl", &kubectl("mine", on_kind)), ("kind", clusters), ("docker", down)],
            &["Cannot connect to the Docker daemon", "Start docker"],
        ),
        (
            &[("kubectl", silent), ("kind", ""), ("docker", "")],
            &["kind has no cluster dev in docker", "kind create cluster --name dev"],
        ),
        (
            &[("kubectl", silent), ("kind", clusters), ("docker", "")],
            &["context kind-dev does not list its nodes: connection refused", "kubectl get nodes"],
        ),
        (
            &[("kubectl", &kubectl("prod", "n|amd64|vsphere://1|"))],
            &[
                "context prod is not a kind, k3d or minikube cluster",
                "VDO_IMAGE=",
                "VDO_REGISTRY=",
                "deploy-k8s-cluster",
            ],
        ),
    ];
    for (programs, parts) in cases {
        let desk = programs.iter().fold(Desk::new().program("make", "exit 1"), |desk, (name, lines)| {
            desk.program(name, lines)
        });
        let output = desk.load("cluster");
        let all = said(&output);
        assert!(!output.status.success(), "{parts:?}");
        for part in parts {
            assert!(all.contains(part), "{part} is missing in: {all}");
        }
        assert!(
            !desk.calls().iter().any(|call| call.starts_with("make")),
            "something was built: {all}"
        );
        assert!(
            !desk.calls().iter().any(|call| call.contains(" apply ")),
            "something was applied: {all}"
        );
    }
}

#[test]
fn load_that_fails_installs_nothing() {
    let built = build();
    let kind = r#"case "$*" in "get clusters") echo dev ;; load*) echo "no space left on device" >&2; exit 1 ;; esac"#;
    let desk = Desk::new()
        .program("kubectl", &kubectl("mine", "n|amd64|kind://docker/dev/n|"))
        .program("docker", "")
        .program("kind", kind)
        .with("VDO_IMAGE_LAYOUT", text(&built.layout));
    let output = desk.load("cluster");
    let all = said(&output);
    assert_eq!(output.status.code(), Some(3), "{all}");
    assert!(
        all.contains("no space left on device") && all.contains("nothing was installed"),
        "{all}"
    );
    assert!(!desk.calls().iter().any(|call| call.contains(" apply ")), "{:#?}", desk.calls());
}
