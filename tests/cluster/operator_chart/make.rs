//! `make deploy`, `make undeploy` and `make deploy-k8s-cluster`: the real kubectl, and for SSH a program that does what ssh does with the
//! password and runs the command here.

use super::{Kubectl, NAMESPACE, root};
use crate::fixture::BARE;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;
use vdo_testbed::{Binaries, Part};

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
cat "$SSH_ASKPASS" >"$record/asks"
for command; do :; done
exec sh -c "$command"
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
        let ssh = folder.path().join("bin/ssh");
        std::fs::write(&ssh, SSH)?;
        std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755))?;
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
            "K8S_MASTER_IP",
            "K8S_MASTER_SSH_USER",
            "K8S_MASTER_SSH_PWD",
        ] {
            command.env_remove(variable);
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

        let again = desk.make(&["deploy"], &[])?;
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
        for place in ["arguments", "processes", "asks"] {
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
fn make_deploy_over_ssh_names_what_is_missing_or_wrong() -> Result<()> {
    let desk = Desk::new(Path::new("/dev/null"))?;
    let all = [
        ("K8S_MASTER_IP", "192.0.2.10"),
        ("K8S_MASTER_SSH_USER", "ubuntu"),
        ("K8S_MASTER_SSH_PWD", PASSWORD),
    ];
    for (left_out, _) in all {
        let rest: Vec<_> = all.into_iter().filter(|(name, _)| *name != left_out).collect();
        let output = desk.make(&["deploy-k8s-cluster"], &rest)?;
        let text = said(&output);
        ensure!(
            !output.status.success() && text.contains(&format!("Not set in the environment: {left_out}\n")),
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
