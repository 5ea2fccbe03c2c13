// SPDX-License-Identifier: Apache-2.0
//! `vdoctl deploy -o yaml`: what flags make of the objects, and where a password may come from. No cluster is asked.

use crate::vdoctl;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

const VCENTER: [&str; 6] = [
    "deploy",
    "-o",
    "yaml",
    "--vcenter",
    "vcenter.example.com:8443",
    "--user=k8s@vsphere.local",
];
const THUMBPRINT: &str = "--thumbprint=AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89";
const PASSWORD: &str = "a \"password\" with 'quotes'";

fn written(folder: &Path, mode: u32) -> String {
    let path = folder.join("password");
    std::fs::write(&path, format!("{PASSWORD}\n")).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    path.display().to_string()
}

/// The one object of a kind.
fn one<'a>(all: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = all
        .iter()
        .find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.expect(name)
}

fn objects(stdout: Vec<u8>) -> Vec<Value> {
    vdo_api::yaml::load_all(&String::from_utf8(stdout).expect("text")).expect("YAML")
}

fn ensure_password(all: &[Value]) {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(PASSWORD);
    assert_eq!(one(all, "Secret", "vc1-credentials")["data"]["password"], encoded);
}

#[test]
fn deploy_flags_reach_the_objects() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = written(folder.path(), 0o600);
    let flags = [
        "--password-file",
        &file,
        THUMBPRINT,
        "--datacenter=DC1",
        "--datacenter=/folder/DC2",
        "--image=mirror.example.com/vdo/operator:v9",
        "--image-registry=mirror.example.com/drivers",
        "--cpi-image=mirror.example.com/cpi:own",
        "--csi-image=mirror.example.com/csi:own",
        "--update-policy=Latest",
        "--storage-policy=gold",
    ];
    let output = vdoctl(&[&VCENTER[..], &flags].concat()).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all = objects(output.stdout);
    ensure_password(&all);
    let operator = one(&all, "Deployment", "vdo-operator");
    let image = &operator["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(*image, "mirror.example.com/vdo/operator:v9");
    let connection = &one(&all, "VsphereCloudConfig", "vc1")["spec"];
    assert_eq!(
        (&connection["vcIp"], &connection["port"]),
        (&json!("vcenter.example.com"), &json!(8443))
    );
    assert_eq!(connection["datacenters"], json!(["DC1", "/folder/DC2"]));
    assert!(
        THUMBPRINT.ends_with(connection["thumbprint"].as_str().expect("a thumbprint")),
        "{connection}"
    );
    let overrides = |name: &str, image: &str| json!({"values": {"images": {"overrides": {name: image}}}});
    let mut storage = overrides("driver", "mirror.example.com/csi:own");
    storage["defaultStorageClass"] = json!({"mode": "Auto", "storagePolicy": "gold"});
    storage["defaultVolumeSnapshotClass"] = json!({"mode": "Auto"});
    assert_eq!(
        one(&all, "VDOConfig", "vdo")["spec"],
        json!({"updatePolicy": "Latest", "images": {"registry": "mirror.example.com/drivers"},
            "cloudProvider": overrides("manager", "mirror.example.com/cpi:own"),
            "storageProvider": storage})
    );
    // Without them the operator comes from the registry of the drivers, too, and of drivers only that there is a default class.
    let output = vdoctl(&[&VCENTER[..], &["--password-file", &file, THUMBPRINT]].concat())
        .output()
        .expect("it runs");
    assert_eq!(
        one(&objects(output.stdout), "VDOConfig", "vdo")["spec"],
        json!({"cloudProvider": {}, "storageProvider": {"defaultStorageClass": {"mode": "Auto"},
            "defaultVolumeSnapshotClass": {"mode": "Auto"}}})
    );
}

#[test]
fn deploy_password_from_stdin_or_descriptor_is_taken_and_never_an_argument() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = written(folder.path(), 0o600);
    for (script, source) in [
        ("exec \"$0\" \"$@\" 3<\"$FILE\"", "/dev/fd/3"),
        ("exec \"$0\" \"$@\" <\"$FILE\"", "-"),
        ("cat \"$FILE\" | \"$0\" \"$@\"", "/dev/stdin"),
    ] {
        let mut command = Command::new("sh");
        command
            .args(["-c", script, vdo_testbed::vdoctl()])
            .args(VCENTER)
            .args([THUMBPRINT, "--password-file", source]);
        let output = command.env("FILE", &file).output().expect("sh runs");
        assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
        ensure_password(&objects(output.stdout));
    }
    let output = vdoctl(&[&VCENTER[..], &["--password", PASSWORD]].concat())
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let open = written(folder.path(), 0o640);
    let output = vdoctl(&[&VCENTER[..], &[THUMBPRINT, "--password-file", &open]].concat())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(4) && said.contains("chmod 600"), "{said}");
    assert!(output.stdout.is_empty(), "nothing is printed");
}
