// SPDX-License-Identifier: Apache-2.0
//! What an administrator does after the installation, with `vdoctl`: previews, changes, credentials, pauses, upgrades.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS};
use crate::fixture::INSTALLED;
use crate::page::open;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use vdo_testbed::{Vcenter, VcenterOptions};

const VDO: &str = "vdo.vmware.com/v1alpha1";

/// Runs vdoctl, which ends with this code; stdout and stderr.
fn ends(bed: &Bed, code: i32, args: &[&str]) -> Result<(String, String)> {
    let (found, out, err) = bed.vdoctl(args)?;
    ensure!(
        found == code,
        "vdoctl {} ended with {found} instead of {code}:\n{out}---\n{err}",
        args.join(" ")
    );
    Ok((out, err))
}

/// Whether each of these words is in a text.
fn has(text: &str, words: &[&str]) -> Result<()> {
    for word in words {
        ensure!(text.contains(word), "{word:?} is not in:\n{text}");
    }
    Ok(())
}

async fn spec(bed: &Bed) -> Result<Value> {
    Ok(bed.get(VDO, "VDOConfig", NS, "vdo").await?["spec"].clone())
}

/// The state of what an administrator writes: VDOConfig, connection and Secret.
async fn written(bed: &Bed) -> Result<[Value; 3]> {
    let secret = bed.get("v1", "Secret", NS, "vc1-credentials").await?["metadata"]["resourceVersion"].clone();
    let connection = bed.get(VDO, "VsphereCloudConfig", NS, "vc1").await?["spec"].clone();
    Ok([spec(bed).await?, connection, secret])
}

pub fn private(folder: &Path, name: &str, text: &str) -> Result<String> {
    let path = folder.join(name);
    std::fs::write(&path, text)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(path.display().to_string())
}

/// A plan of a change that was not made: what it would do, driver by driver, and nothing is written.
#[test]
#[ignore = "long"]
fn preview_of_a_change_shows_its_plan_and_writes_nothing() -> Result<()> {
    INSTALLED.run(async |bed| {
        let folder = tempfile::tempdir()?;
        let before = written(bed).await?;
        let pin = ["plan", "--set", "storageProvider.version=3.6.3"];
        let (out, err) = ends(bed, 1, &pin)?;
        has(
            &out,
            &[
                "PREVIEW VDOConfig",
                "spec.storageProvider",
                "CPI stays at 1.34.0",
                "CSI 3.8.0 → 3.6.3 (downgrade)",
                "pods restart:",
                "DaemonSet vsphere-csi-node",
                "only in the version label; -o wide lists them",
            ],
        )?;
        has(&err, &["This is a preview: nothing was changed."])?;
        ensure!(!err.contains("vdoctl approve"), "nothing waits: {err}");
        let (json, _) = ends(bed, 1, &[&pin[..], &["-o", "json"]].concat())?;
        let json: Value = serde_json::from_str(&json)?;
        let csi = json["drivers"]
            .as_array()
            .and_then(|all| all.iter().find(|d| d["driver"] == "vsphere-csi"))
            .context("CSI")?;
        ensure!(
            csi["from"] == "3.8.0" && csi["to"] == "3.6.3" && csi["change"] == "downgrade",
            "{csi}"
        );
        ensure!(json["supposed"][0]["object"]["kind"] == "VDOConfig", "{}", json["supposed"]);
        // Lists are compared by name: a variable is one line.
        let (out, _) = ends(
            bed,
            1,
            &[
                "diff",
                "--set",
                "storageProvider.values.controller.replicas=1",
                "--set",
                "cloudProvider.values.logLevel=7",
            ],
        )?;
        has(
            &out,
            &[
                "spec.template.spec.containers[vsphere-cloud-controller-manager].args[1]",
                "+ desired --v=7",
            ],
        )?;
        let (names, _) = ends(bed, 1, &["diff", "-o", "name", "--set", "cloudProvider.values.logLevel=7"])?;
        ensure!(
            names.lines().all(|line| line.contains('/')) && names.contains("daemonset.apps/"),
            "{names}"
        );

        // As a file, with a field that kubectl would refuse, and of a second VDOConfig.
        let file = private(
            folder.path(),
            "vdo.yaml",
            "apiVersion: vdo.vmware.com/v1alpha1\nkind: VDOConfig\nmetadata: {name: vdo}\nspec: {managementState: Removed}\n",
        )?;
        let (out, err) = ends(bed, 1, &["plan", "-f", &file])?;
        has(&out, &["managementState", "would be removed"])?;
        has(&err, &["The drivers are uninstalled"])?;
        let (_, err) = ends(bed, 2, &["plan", "--set", "storageProvidr.version=1"])?;
        has(
            &err,
            &["a VDOConfig has no field spec.storageProvidr", "Did you mean storageProvider?"],
        )?;
        let (_, err) = ends(bed, 2, &["configure", "drivers", "--set", "storageProvider.versoin=3.6.3"])?;
        has(&err, &["has no field spec.storageProvider.versoin", "Did you mean version?"])?;
        ensure!(err.lines().count() < 8 && !err.contains("apiVersion"), "{err}");
        let (_, err) = ends(
            bed,
            2,
            &[
                "plan",
                "-f",
                &private(
                    folder.path(),
                    "wrong.yaml",
                    "apiVersion: vdo.vmware.com/v1alpha1\nkind: VDOConfig\nmetadata: {name: vdo}\nspec: {storagProvider: {}}\n",
                )?,
            ],
        )?;
        has(&err, &["storagProvider"])?;
        let (_, err) = ends(
            bed,
            4,
            &[
                "plan",
                "-f",
                &private(
                    folder.path(),
                    "other.yaml",
                    "apiVersion: vdo.vmware.com/v1alpha1\nkind: VDOConfig\nmetadata: {name: other}\nspec: {}\n",
                )?,
            ],
        )?;
        has(&err, &["would have no effect"])?;
        ensure!(written(bed).await? == before, "a preview has written");
        Ok(())
    })
}

/// What is wrong is refused before the first write, and what is right is written as kubectl would.
#[test]
#[ignore = "long"]
fn configure_and_secrets_write_only_what_was_checked() -> Result<()> {
    INSTALLED.run(async |bed| {
        let folder = tempfile::tempdir()?;
        let wrong = private(folder.path(), "wrong", "not-the-p4ssword")?;
        let right = private(folder.path(), "right", bed.vcenter.password())?;
        let before = written(bed).await?;

        let (_, err) = ends(bed, 4, &["configure", "drivers", "--set", "storageProvider.version=9.9.9"])?;
        has(&err, &["9.9.9", "so nothing was written"])?;
        let (out, err) = ends(bed, 1, &["configure", "connection", "vc1", "--datacenter", "DC9"])?;
        has(&format!("{out}{err}"), &["DC9", "so nothing was written"])?;
        let (out, err) = ends(bed, 6, &["secrets", "set", "vc1", "--password-file", &wrong])?;
        has(
            &format!("{out}{err}"),
            &[
                "Authenticated",
                "so nothing was written",
                "Run the command again with the right user name and password",
            ],
        )?;
        ensure!(!format!("{out}{err}").contains("in the Secret"), "{out}{err}");
        let (_, err) = ends(bed, 3, &["secrets", "set", "vc2", "--password-file", &right])?;
        has(&err, &["Did you mean vc1?"])?;
        let (_, err) = ends(bed, 2, &["configure", "drivers"])?;
        has(&err, &["no change is given"])?;
        let (out, err) = ends(
            bed,
            0,
            &["configure", "connection", "vc1", "--fetch-certificate", "--yes", "--dry-run"],
        )?;
        has(&format!("{out}{err}"), &["vc1 is in sync", "Nothing was written."])?;
        let (out, err) = ends(bed, 0, &["configure", "drivers", "--set", "updatePolicy=Disabled", "--dry-run"])?;
        has(
            &format!("{out}{err}"),
            &["would be changed", "spec.updatePolicy", "Nothing was written."],
        )?;
        ensure!(written(bed).await? == before, "something was written");
        bed.until_condition("VsphereCloudConfig", "vc1", "Ready", "Healthy").await?;

        let (out, err) = ends(bed, 0, &["configure", "drivers", "--set", "spec.updatePolicy=Disabled"])?;
        has(&format!("{out}{err}"), &["was changed"])?;
        ensure!(spec(bed).await?["updatePolicy"] == "Disabled");
        ends(bed, 0, &["configure", "drivers", "--set", "updatePolicy=null"])?;
        // A second vCenter, by its name alone: the certificate is confirmed by a flag.
        let address = format!("{}:{}", bed.vcenter.host(), bed.vcenter.port());
        let user = bed.vcenter.user().to_owned();
        let second = [
            "configure",
            "connection",
            "vc2",
            "--vcenter",
            &address,
            "--user",
            &user,
            "--password-file",
            &right,
        ];
        let confirmed = format!("--thumbprint {}", bed.vcenter.thumbprint_sha256());
        let (_, err) = ends(bed, 6, &second)?;
        has(&err, &[&confirmed])?;
        let other = format!("--thumbprint={}", "AB:".repeat(31) + "AB");
        let (out, _) = ends(bed, 6, &[&second[..], &[&other]].concat())?;
        has(&out, &[&confirmed])?;
        ensure!(
            bed.get(VDO, "VsphereCloudConfig", NS, "vc2").await? == Value::Null,
            "it is half done"
        );
        let (out, _) = ends(
            bed,
            0,
            &[&second[..], &["--thumbprint", &bed.vcenter.thumbprint_sha256(), "--ignore-checks"]].concat(),
        )?;
        has(&out, &["Secret", "vc2-credentials", "was created"])?;
        let made = bed.get(VDO, "VsphereCloudConfig", NS, "vc2").await?;
        ensure!(
            made["spec"]["credentials"] == "vc2-credentials" && made["spec"]["thumbprint"] == bed.vcenter.thumbprint_sha256().as_str(),
            "{made}"
        );
        bed.delete(VDO, "VsphereCloudConfig", NS, "vc2").await?;

        // The password is accepted, and is what the Secret has already.
        let (out, err) = ends(bed, 0, &["secrets", "set", "vc1", "--password-file", &right])?;
        has(&format!("{out}{err}"), &["Everything is in sync already."])?;
        let (out, _) = ends(bed, 0, &["secrets", "list"])?;
        has(&out, &["vc1", "vc1-credentials", bed.vcenter.user(), "accepted"])?;
        ensure!(!out.contains(bed.vcenter.password()));
        let (names, _) = ends(bed, 0, &["secrets", "list", "-o", "name"])?;
        ensure!(names == format!("{NS}/vc1-credentials\n"), "{names}");
        bed.until_ready().await?;
        Ok(())
    })
}

/// From an older version to the newest one, which stays without a pin; and the verbs around it.
#[test]
#[ignore = "long"]
fn upgrade_apply_reaches_the_newest_version_and_lifts_its_pin() -> Result<()> {
    INSTALLED.run(async |bed| {
        let (_, err) = ends(bed, 0, &["upgrade", "plan"])?;
        has(&err, &["Every driver has the newest version that fits."])?;
        // The other driver stays asked for.
        ends(bed, 0, &["configure", "drivers", "--set", "storageProvider.version=3.6.3"])?;
        ensure!(spec(bed).await?["cloudProvider"].is_object());
        ends(bed, 0, &["wait", "--timeout", "4m"])?;
        ends(bed, 0, &["configure", "drivers", "--set", "storageProvider.version=null"])?;
        ends(bed, 0, &["wait", "--timeout", "4m"])?;

        // Paused, one driver and all: nothing is written, and an upgrade does not come through.
        ends(bed, 0, &["pause", "csi"])?;
        ensure!(spec(bed).await?["storageProvider"]["managementState"] == "Paused");
        let (_, err) = ends(bed, 0, &["pause", "csi"])?;
        has(&err, &["is paused already"])?;
        ends(bed, 0, &["resume", "csi"])?;
        ends(bed, 0, &["pause"])?;
        ensure!(spec(bed).await?["managementState"] == "Paused");
        let (_, err) = ends(bed, 0, &["resume", "cpi"])?;
        has(&err, &["The whole VDOConfig is paused"])?;
        ends(bed, 0, &["resume"])?;
        let (_, err) = ends(bed, 3, &["pause", "antrea"])?;
        has(&err, &["vsphere-csi"])?;
        ends(bed, 0, &["reconcile"])?;

        ends(bed, 0, &["wait", "--for", "UpgradeAvailable", "--timeout", "1m"])?;
        let (out, err) = ends(bed, 1, &["upgrade", "plan"])?;
        has(
            &out,
            &[
                "CSI 3.6.3 → 3.8.0 (upgrade): newest that supports Kubernetes 1.34 and vCenter 8.0.3",
                "pods restart:",
                "CPI stays at 1.34.0",
            ],
        )?;
        has(&err, &["vdoctl upgrade apply"])?;
        let (_, err) = ends(bed, 4, &["upgrade", "apply"])?;
        has(&err, &["--yes"])?;
        let (out, _) = ends(bed, 1, &["upgrade", "plan", "--kubernetes", "1.37"])?;
        has(&out, &["Now:", "Then:"])?;
        let (out, _) = ends(bed, 0, &["upgrade", "apply", "--yes", "--timeout", "4m"])?;
        has(&out, &["CSI 3.6.3 → 3.8.0 (upgrade)"])?;
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        ensure!(
            config["spec"]["storageProvider"]["version"] == Value::Null,
            "a pin is left: {}",
            config["spec"]
        );
        ensure!(
            config["metadata"]["annotations"]["vdo.vmware.com/upgrade-pins"] == Value::Null,
            "{}",
            config["metadata"]
        );
        let csi = bed
            .get("apps/v1", "Deployment", "vmware-system-csi", "vsphere-csi-controller")
            .await?;
        ensure!(csi["spec"]["template"].to_string().contains("driver:v3.8.0"));
        let (_, err) = ends(bed, 7, &["wait", "--for", "deleted", "--timeout", "2s"])?;
        has(&err, &["not reached after 2 s"])?;

        Ok(())
    })
}

/// What a shell offers of a cluster.
#[test]
fn completion_offers_connections_and_namespaces_of_the_cluster() -> Result<()> {
    INSTALLED.run(async |bed| {
        let kubeconfig = bed.cluster.kubeconfig().display().to_string();
        let asked = |words: &[&str]| -> Result<String> {
            let output = std::process::Command::new(vdo_testbed::vdoctl())
                .arg("__complete")
                .args(["--kubeconfig", &kubeconfig])
                .args(words)
                .output()?;
            Ok(String::from_utf8(output.stdout)?)
        };
        let connections = asked(&["doctor", "connection", ""])?;
        ensure!(connections.starts_with(&format!("vc1\t{}", bed.vcenter.host())), "{connections}");
        has(&asked(&["status", "-n", "vmware-system-"])?, &["vmware-system-csi\n", NS, ":4"])?;
        ensure!(asked(&["secrets", "set", "vc"])?.starts_with("vc1"));
        for verb in ["rollback", "history"] {
            let revisions = asked(&[verb, "csi", ""])?;
            let first = revisions.lines().next().unwrap_or_default();
            ensure!(
                first.ends_with("\t3.8.0 Deployed") && !first.starts_with('\t'),
                "{verb}: {revisions}"
            );
        }
        ensure!(asked(&["rollback", "no-driver", ""])? == ":4\n");
        let (out, _) = ends(bed, 0, &["version"])?;
        has(&out, &["vdoctl ", "operator  unknown: the operator is not installed"])?;
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn pages_about_passwords_and_trouble_work_as_written() -> Result<()> {
    INSTALLED.run(async |bed| {
        open(bed, "passwords.md")?.run_all()?;
        bed.until_ready().await?;
        open(bed, "troubleshooting.md")?.run_all()?;
        open(bed, "doctor.md")?.run_all()
    })
}

#[test]
#[ignore = "long"]
fn pages_about_monitoring_availability_and_distributions_work_as_written() -> Result<()> {
    INSTALLED.run(async |bed| {
        let page = open(bed, "monitoring.md")?.set("VDO", env!("CARGO_MANIFEST_DIR"));
        page.run_but(&["helm upgrade"])?;
        open(bed, "ha.md")?.run_all()?;
        open(bed, "distributions.md")?.run_all()
    })
}

/// In a vCenter with the tags of the page, and with a second one that has machines of no node.
#[test]
#[ignore = "long"]
fn page_topology_works_as_written() -> Result<()> {
    INSTALLED.run(async |bed| {
        let second = Vcenter::start(VcenterOptions::with_vms([])).await?;
        ensure!((second.user(), second.password()) == (bed.vcenter.user(), bed.vcenter.password()));
        for vcenter in [&bed.vcenter, &second] {
            vcenter.tag("k8s-region", "region-1", "Datacenter", "DC0").await?;
            vcenter.tag("k8s-zone", "zone-a", "Datacenter", "DC0").await?;
        }
        // Both simulators listen on one address; a driver tells its vCenters apart by their names.
        let (address, thumbprint) = (format!("localhost:{}", second.port()), second.thumbprint_sha256());
        let page = open(bed, "topology.md")?.set("VC2", address).set("VC2_THUMBPRINT", thumbprint);
        page.run_all()?;
        bed.until_ready().await?;
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn page_upgrade_works_as_written() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"version": "3.6.3"}})))
            .await?;
        ends(bed, 0, &["wait", "--timeout", "4m"])?;
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {}}))).await?;
        ends(bed, 0, &["wait", "--timeout", "4m"])?;
        open(bed, "upgrade.md")?.run_all()
    })
}
