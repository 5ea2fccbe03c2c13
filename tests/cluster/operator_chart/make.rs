// SPDX-License-Identifier: Apache-2.0
//! `make deploy`, `make undeploy` and `make deploy-k8s-cluster`: the real kubectl, and for SSH a program that does what ssh does with the
//! password and runs the command here.

use super::{Kubectl, NAMESPACE, root};
use crate::common::image::layout;
use crate::fixture::BARE;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;
use vdo_testbed::{Binaries, LOGIN, Part, RegistryAuth, RegistryKind, RegistryServer, write_program};

/// A password that a shell, make and printf would each spoil in another way.
const PASSWORD: &str = r#"Zq7!hunter"w\or d#;%$$HOME'`x`"#;
const IMAGE: &str = "registry.example.com:5000/vsphere/vdo-operator:v9";
/// Asks for the password as OpenSSH does, keeps what can be seen meanwhile, and runs the command.
const SSH: &str = r#"#!/bin/sh
record=$(dirname "$0")/../record
printf '%s\n' "$@" >"$record/arguments"
cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' >"$record/processes"
[ "$SSH_ASKPASS_REQUIRE" = force ] && [ -n "$DISPLAY" ] || exit 9
"$SSH_ASKPASS" "password:" >"$record/password"
for command; do :; done
exec sh -c "$command"
"#;

/// What kind asks of docker, for a cluster of one node. It keeps what the node's containerd gets.
const DOCKER: &str = r#"#!/bin/sh
record=$(dirname "$0")/../record
printf '%s\n' "$*" >>"$record/docker"
case "$*" in
*"--format {{.Names}}") echo vdo-control-plane ;;
"ps "*) echo vdo ;;
"inspect "*) echo control-plane ;;
*"containerd config dump") printf 'version = 3\n[plugins."io.containerd.cri.v1.images"]\nsnapshotter = "overlayfs"\n' ;;
*"images import"*) cat >"$record/image.tar" ;;
esac
"#;

/// A machine with make and kubectl, the cluster in its current context, and a home folder of its own.
struct Desk {
    folder: TempDir,
    kubeconfig: String,
}

impl Desk {
    fn new(kubeconfig: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for name in ["bin", "record", "home"] {
            std::fs::create_dir(folder.path().join(name))?;
        }
        let kubectl = Binaries::ensure(&[Part::Kubectl])?.path(Part::Kubectl);
        symlink(kubectl, folder.path().join("bin/kubectl"))?;
        for (name, text) in [("ssh", SSH), ("docker", DOCKER)] {
            write_program(&folder.path().join("bin").join(name), text)?;
        }
        Ok(Self {
            folder,
            kubeconfig: kubeconfig.to_string_lossy().into_owned(),
        })
    }

    #[expect(clippy::disallowed_methods, reason = "make finds its programs there")]
    fn make(&self, args: &[&str], environment: &[(&str, &str)]) -> Result<Output> {
        let path = std::env::var("PATH")?;
        let mut command = Command::new("make");
        for variable in [
            "MAKEFLAGS",
            "MAKELEVEL",
            "VDO_IMAGE",
            "VDO_IMAGE_LAYOUT",
            "VDO_REGISTRY",
            "VDO_NODES",
            "KIND_EXPERIMENTAL_PROVIDER",
            "K8S_MASTER_IP",
            "K8S_MASTER_SSH_USER",
            "K8S_MASTER_SSH_PWD",
        ] {
            command.env_remove(variable);
        }
        // cargo is asked for by make, and looks for itself in a home folder.
        for (variable, name) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            if std::env::var_os(variable).is_none() {
                command.env(variable, std::env::home_dir().context("a home folder")?.join(name));
            }
        }
        command
            .env("PATH", format!("{}:{path}", self.folder.path().join("bin").display()))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.folder.path().join("home"))
            .envs(environment.iter().copied())
            .args(args)
            .current_dir(root());
        command.output().context("make")
    }

    fn record(&self, name: &str) -> Result<String> {
        let file = self.folder.path().join("record").join(name);
        std::fs::read_to_string(&file).with_context(|| format!("{}", file.display()))
    }
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn image(kubectl: &Kubectl) -> Result<Value> {
    Ok(kubectl.get("deployment", "vdo-operator")?["spec"]["template"]["spec"]["containers"][0]["image"].clone())
}

#[test]
#[ignore = "long"]
fn make_undeploy_keeps_what_a_vdoconfig_or_drivers_need() -> Result<()> {
    BARE.run(async |bed| {
        let cluster = &bed.cluster;
        let (desk, kubectl) = (Desk::new(&cluster.kubeconfig())?, Kubectl::of(cluster)?);
        let nothing = desk.make(&["undeploy"], &[])?;
        ensure!(nothing.status.success(), "undeploy where nothing is: {}", said(&nothing));

        let bad = desk.make(&["deploy", "VDO_IMAGE=no image;id"], &[])?;
        ensure!(
            !bad.status.success() && said(&bad).contains("VDO_IMAGE is not a reference"),
            "{}",
            said(&bad)
        );
        let deployed = desk.make(&["deploy", &format!("VDO_IMAGE={IMAGE}")], &[])?;
        ensure!(deployed.status.success(), "{}", said(&deployed));
        ensure!(said(&deployed).contains("context "), "{}", said(&deployed));
        ensure!(image(&kubectl)? == IMAGE, "{}", image(&kubectl)?);

        cluster.apply_file(root().join("deploy/samples/vdoconfig.yaml")).await?;
        let refused = desk.make(&["undeploy"], &[])?;
        let text = said(&refused);
        ensure!(!refused.status.success() && text.contains("Error 4"), "{text}");
        ensure!(
            text.contains("vmware-system-vdo/vdo exists") && text.contains("vdoctl delete"),
            "{text}"
        );
        ensure!(image(&kubectl)? == IMAGE, "the operator is still there");

        // Drivers that `vdoctl delete --keep-drivers` left.
        kubectl.run(&["delete", "vdoconfig", "vdo", "-n", NAMESPACE])?;
        kubectl.run(&[
            "create",
            "deployment",
            "vsphere-csi-controller",
            "-n",
            "vmware-system-csi",
            "--image=example.com/csi",
        ])?;
        let removed = desk.make(&["undeploy"], &[])?;
        ensure!(removed.status.success(), "{}", said(&removed));
        ensure!(
            said(&removed).contains("deployment.apps/vsphere-csi-controller"),
            "{}",
            said(&removed)
        );
        ensure!(kubectl.get("namespace", NAMESPACE)?.is_null(), "the operator's namespace is left");
        ensure!(kubectl.get("clusterrole", "vdo-operator")?.is_null(), "the operator's role is left");
        for (kind, name) in [
            ("clusterrole", "system:cloud-controller-manager"),
            ("namespace", "vmware-system-csi"),
        ] {
            ensure!(
                kubectl.get(kind, name)?["metadata"]["deletionTimestamp"].is_null(),
                "{kind} {name} is deleted"
            );
            ensure!(!kubectl.get(kind, name)?.is_null(), "{kind} {name} is deleted");
        }

        let nowhere = desk.make(&["deploy"], &[])?;
        ensure!(
            !nowhere.status.success() && said(&nowhere).contains("make deploy VDO_REGISTRY="),
            "{}",
            said(&nowhere)
        );
        let again = desk.make(&["deploy", &format!("VDO_IMAGE={IMAGE}")], &[])?;
        ensure!(again.status.success(), "{}", said(&again));
        kubectl.run(&["delete", "deployment", "vsphere-csi-controller", "-n", "vmware-system-csi"])?;
        let removed = desk.make(&["undeploy"], &[])?;
        ensure!(removed.status.success(), "{}", said(&removed));
        for (kind, name) in [
            ("clusterrole", "system:cloud-controller-manager"),
            ("namespace", "vmware-system-csi"),
            ("namespace", NAMESPACE),
            ("crd", "vdoconfigs.vdo.vmware.com"),
        ] {
            ensure!(kubectl.get(kind, name)?.is_null(), "{kind} {name} is left");
        }
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn make_deploy_over_ssh_password_is_in_no_argument() -> Result<()> {
    BARE.run(async |bed| {
        let cluster = &bed.cluster;
        let (desk, kubectl) = (Desk::new(&cluster.kubeconfig())?, Kubectl::of(cluster)?);
        let environment = [
            ("K8S_MASTER_IP", "192.0.2.10"),
            ("K8S_MASTER_SSH_USER", "ubuntu"),
            ("K8S_MASTER_SSH_PWD", PASSWORD),
        ];
        let deployed = desk.make(&["deploy-k8s-cluster", &format!("VDO_IMAGE={IMAGE}")], &environment)?;
        ensure!(deployed.status.success(), "{}", said(&deployed));
        ensure!(image(&kubectl)? == IMAGE, "{}", image(&kubectl)?);
        // The shape of the answer proves that ssh would have got it whole; nothing else has it.
        ensure!(desk.record("password")? == format!("{PASSWORD}\n"), "ssh gets another password");
        let processes = desk.record("processes")?;
        ensure!(
            processes.contains("192.0.2.10"),
            "the arguments of ssh are not among those of all processes"
        );
        for place in ["arguments", "processes"] {
            ensure!(!desk.record(place)?.contains("Zq7!hunter"), "the password is in {place}");
        }
        ensure!(!said(&deployed).contains("Zq7!hunter"), "the password is shown");
        let arguments = desk.record("arguments")?;
        for option in ["StrictHostKeyChecking=yes", "NumberOfPasswordPrompts=1", "PubkeyAuthentication=no"] {
            ensure!(arguments.contains(option), "{option} is missing: {arguments}");
        }
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn make_deploy_over_ssh_names_what_is_missing_or_wrong() -> Result<()> {
    let desk = Desk::new(Path::new("/dev/null"))?;
    let all = [
        ("K8S_MASTER_IP", "192.0.2.10"),
        ("K8S_MASTER_SSH_USER", "ubuntu"),
        ("K8S_MASTER_SSH_PWD", PASSWORD),
    ];
    for left_out in ["K8S_MASTER_IP", "K8S_MASTER_SSH_USER"] {
        let rest: Vec<_> = all.into_iter().filter(|(name, _)| *name != left_out).collect();
        let output = desk.make(&["deploy-k8s-cluster"], &rest)?;
        let text = said(&output);
        ensure!(
            !output.status.success() && text.contains(&format!("These variables are not set in the environment: {left_out}\n")),
            "{text}"
        );
    }
    for (name, wrong) in [
        ("K8S_MASTER_IP", "-oProxyCommand=id"),
        ("K8S_MASTER_IP", "a b"),
        ("K8S_MASTER_SSH_USER", "-l root"),
    ] {
        let given: Vec<_> = all
            .into_iter()
            .map(|(other, value)| (other, if other == name { wrong } else { value }))
            .collect();
        let output = desk.make(&["deploy-k8s-cluster"], &given)?;
        ensure!(
            !output.status.success() && said(&output).contains(name),
            "{wrong}: {}",
            said(&output)
        );
    }
    let visible = desk.make(&["deploy-k8s-cluster", "K8S_MASTER_SSH_PWD=visible"], &all[..2])?;
    ensure!(
        !visible.status.success() && said(&visible).contains("into the environment"),
        "{}",
        said(&visible)
    );
    ensure!(desk.record("arguments").is_err(), "ssh was started");
    Ok(())
}

/// The real kind and the real kubectl; docker is recorded.
#[test]
#[ignore = "long"]
fn make_deploy_loads_the_image_into_a_cluster_of_kind() -> Result<()> {
    BARE.run(async |bed| {
        let cluster = &bed.cluster;
        let (desk, kubectl) = (Desk::new(&cluster.kubeconfig())?, Kubectl::of(cluster)?);
        symlink(Binaries::ensure(&[Part::Kind])?.path(Part::Kind), desk.folder.path().join("bin/kind"))?;
        let node = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "vdo-control-plane"}, "spec": {"providerID": "kind://docker/vdo/vdo-control-plane"}}"#;
        let created = kubectl.try_run(&["create", "-f", "-"], node)?;
        ensure!(created.status.success(), "{}", said(&created));
        let layout = crate::common::image::layout()?;
        let deployed = desk.make(&["deploy", &format!("VDO_IMAGE_LAYOUT={}", layout.display())], &[])?;
        kubectl.run(&["delete", "node", "vdo-control-plane"])?;
        ensure!(deployed.status.success(), "{}", said(&deployed));

        let name = image(&kubectl)?.as_str().unwrap_or_default().to_owned();
        ensure!(name.starts_with("localhost/vdo-operator:v"), "{name}");
        let container = kubectl.get("deployment", "vdo-operator")?["spec"]["template"]["spec"]["containers"][0].clone();
        ensure!(container["imagePullPolicy"] == "Never", "{container}");
        let calls = desk.record("docker")?;
        ensure!(
            calls.contains("vdo-control-plane ctr --namespace=k8s.io images import --all-platforms"),
            "{calls}"
        );
        // What the node's containerd got is an image of that name, by a reader that shares nothing with its writer.
        let archive = desk.folder.path().join("record/image.tar");
        let crane = Binaries::ensure(&[Part::Crane])?.path(Part::Crane);
        let judged = Command::new(crane).args(["validate", "--tarball"]).arg(&archive).output()?;
        ensure!(judged.status.success(), "{}", said(&judged));
        let index = vdo_oci::layout::Layout::open(&archive)?.index()?;
        let named = index.manifests.first().and_then(|one| one.annotations.get("io.containerd.image.name"));
        ensure!(named == Some(&name), "{index:?}");
        Ok(())
    })
}

/// Where no image can be loaded into the cluster, it is pushed to a registry, once, and the cluster is given its name there.
#[test]
#[ignore = "long"]
fn make_deploy_with_a_registry_pushes_the_image_that_the_cluster_runs() -> Result<()> {
    BARE.run(async |bed| {
        let server = RegistryServer::start(RegistryKind::Distribution, RegistryAuth::Basic).await?;
        let (desk, kubectl) = (Desk::new(&bed.cluster.kubeconfig())?, Kubectl::of(&bed.cluster)?);
        let config = json!({"auths": {server.host(): {"username": LOGIN.0, "password": LOGIN.1}}}).to_string();
        let (ca, login) = (desk.folder.path().join("ca.crt"), desk.folder.path().join("config.json"));
        std::fs::write(&ca, server.ca())?;
        std::fs::write(&login, config)?;
        let layout = layout()?.display().to_string();
        let (ca, login) = (ca.display().to_string(), login.display().to_string());
        let settings = [
            ("VDO_IMAGE_LAYOUT", layout.as_str()),
            ("VDO_REGISTRY_CA_FILE", ca.as_str()),
            ("VDO_REGISTRY_CONFIG", login.as_str()),
        ];
        let registry = format!("VDO_REGISTRY={}/site", server.host());

        let stranger = desk.make(&["deploy", &registry], &settings[..2])?;
        ensure!(
            !stranger.status.success() && said(&stranger).contains("The cluster is unchanged"),
            "{}",
            said(&stranger)
        );
        ensure!(
            kubectl.get("deployment", "vdo-operator")?.is_null(),
            "the operator was deployed without its image"
        );

        for time in ["first", "again"] {
            let log = server.log().len();
            let deployed = desk.make(&["deploy", &registry], &settings)?;
            ensure!(deployed.status.success(), "{}", said(&deployed));
            let image = image(&kubectl)?;
            let named = image
                .as_str()
                .and_then(|image| image.strip_prefix(&format!("{}/site/vdo-operator:", server.host())));
            let tag = named.with_context(|| format!("{image}"))?;
            let asked = server.log()[log..].to_owned();
            let pushes = asked.contains(&format!("manifests/{tag}")) && asked.contains("method=PUT");
            ensure!(pushes == (time == "first"), "{time}: {asked}");
        }
        let removed = desk.make(&["undeploy"], &[])?;
        ensure!(removed.status.success(), "{}", said(&removed));
        Ok(())
    })
}
