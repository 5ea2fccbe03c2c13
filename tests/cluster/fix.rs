// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor --fix`, `--undo` and `topology` as their users meet them: what is asked, changed, recorded and taken back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NODES, NS, PATIENCE};
use crate::fixture::{EMPTY, Fixture};
use crate::screen::{COLUMNS, Screen};
use anyhow::{Context as _, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use vdo_testbed::soap::{Act, Rule, SoapOptions, SoapProxy};
use vdo_testbed::{Probe, until};

const FIXTURE: Fixture = EMPTY;
const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";

/// A connection through a proxy, and a folder in which changes are recorded.
struct Place<'a> {
    bed: &'a Bed,
    proxy: SoapProxy,
    folder: tempfile::TempDir,
}

impl<'a> Place<'a> {
    /// A cluster with zones in labels and in its VDOConfig, in a vCenter without tags: w-1 is off and unfit, w-2 runs and is unfit.
    async fn start(bed: &'a Bed) -> Result<Self> {
        let place = Self {
            proxy: SoapProxy::start(&bed.vcenter, SoapOptions::default()).await?,
            folder: tempfile::tempdir()?,
            bed,
        };
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        let mut connection = bed.connection("vc1");
        connection["spec"]["port"] = place.proxy.port().into();
        connection["spec"]["thumbprint"] = place.proxy.thumbprint_sha256().into();
        bed.apply(&connection).await?;
        place.as_if_logged_in().await?;
        let spec = json!({"cloudProvider": {"topology": {"zone": "zone", "region": "region"}}, "storageProvider": {"topologyCategories": ["zone"]}});
        bed.apply(&bed.config(spec)).await?;
        for (node, _) in NODES {
            let labels = json!({"metadata": {"labels": {ZONE: "zone-a", REGION: "eu"}}});
            bed.merge("v1", "Node", "", node, labels).await?;
        }
        let unfit = [("disk-uuid", ""), ("hardware", "vmx-13")];
        bed.vcenter
            .set("VirtualMachine", "w-1", &[unfit[0], unfit[1], ("power", "poweredOff")])
            .await?;
        bed.vcenter.set("VirtualMachine", "w-2", &unfit).await?;
        Ok(place)
    }

    /// Writes what an operator writes that has logged in: a password that was never tried is left to it.
    async fn as_if_logged_in(&self) -> Result<()> {
        let secret = self.bed.get("v1", "Secret", NS, "vc1-credentials").await?;
        let version = &secret["metadata"]["resourceVersion"];
        let credential =
            json!({"secret": format!("{NS}/vc1-credentials"), "user": self.bed.vcenter.user(), "version": version, "verified": version});
        let about =
            json!({"version": "8.0.3", "build": "1", "apiType": "VirtualCenter", "instanceUuid": self.bed.vcenter.options().instance_uuid});
        let status = Patch::Merge(json!({"status": {"about": about, "credential": credential}}));
        let connections = self.bed.api("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS);
        connections.patch_status("vc1", &PatchParams::default(), &status).await?;
        Ok(())
    }

    async fn leave(self) -> Result<()> {
        for node in ["w-1", "w-2"] {
            let fit = [("power", "poweredOn"), ("disk-uuid", "true"), ("hardware", "vmx-19")];
            self.bed.vcenter.set("VirtualMachine", node, &fit).await?;
        }
        for (node, _) in NODES {
            let labels = json!({"metadata": {"labels": {ZONE: null, REGION: null}}});
            self.bed.merge("v1", "Node", "", node, labels).await?;
        }
        self.bed.vcenter.deny(self.bed.vcenter.user(), &[]).await?;
        self.bed.vcenter.enforce(false).await?;
        // An administrator wrote, and not the operator.
        self.bed.vcenter.forget_calls("vdo").await
    }

    fn command(&self, verb: &str, more: &[&str]) -> Command {
        let mut command = Command::new(vdo_testbed::vdoctl());
        command
            .env_clear()
            .env("VDO_KUBECONFIG", self.bed.cluster.kubeconfig())
            .current_dir(self.folder.path())
            .args(["doctor", verb, "--user", self.bed.vcenter.user()])
            .args(more);
        command
    }

    /// Starts it with the administrator's password on stdin.
    fn begin(&self, verb: &str, more: &[&str]) -> Result<Child> {
        let mut command = self.command(verb, more);
        command
            .args(["--password-file", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let password = format!("{}\n", self.bed.vcenter.password());
        child.stdin.take().context("stdin")?.write_all(password.as_bytes())?;
        Ok(child)
    }

    /// Runs it to its end: the code, stdout, and both with stderr.
    fn run(&self, verb: &str, more: &[&str]) -> Result<(i32, String, String)> {
        let output = self.begin(verb, more)?.wait_with_output()?;
        let out = String::from_utf8(output.stdout)?;
        let all = format!("{out}{}", String::from_utf8(output.stderr)?);
        ensure!(!all.contains(self.bed.vcenter.password()), "the administrator's password is shown");
        Ok((output.status.code().context("a code")?, out, all))
    }

    /// What would be fixed now: the reason, the steps and whether it is planned, of each.
    fn planned(&self, more: &[&str]) -> Result<Vec<String>> {
        let (code, out, all) = self.run("--fix", &[more, &["--dry-run", "-o", "json"]].concat())?;
        let answer: Value = serde_json::from_str(&out).with_context(|| all.clone())?;
        ensure!(answer["kind"] == "DoctorFixes" && answer["changed"] == false, "{answer}");
        let fixes = answer["fixes"].as_array().context("fixes")?;
        ensure!((code == 1) != fixes.is_empty(), "exit {code}: {all}");
        let short = |fix: &Value| {
            let steps = fix["steps"].as_array().map_or(0, Vec::len);
            format!(
                "{} {steps} {}",
                fix["reason"].as_str().unwrap_or_default(),
                fix["outcome"].as_str().unwrap_or_default()
            )
        };
        Ok(fixes.iter().map(short).collect())
    }

    fn topology(&self, more: &[&str]) -> Result<(i32, String, String)> {
        self.bed.vdoctl(&[&["doctor", "topology"], more].concat())
    }

    fn record(&self) -> Result<Value> {
        let file = std::fs::read_dir(self.folder.path())?.flatten().next().context("no record")?;
        let name = file.file_name().to_string_lossy().into_owned();
        ensure!(name.starts_with("vdo-fixes-") && name.ends_with(".json"), "{name}");
        Ok(serde_json::from_slice(&std::fs::read(file.path())?)?)
    }

    fn has_record(&self) -> Result<bool> {
        Ok(std::fs::read_dir(self.folder.path())?.next().is_some())
    }

    /// Kills it when a call of this method has reached the vCenter, before the answer comes back.
    async fn killed(&self, verb: &str, method: &str) -> Result<()> {
        let calls = async || -> Result<u64> { Ok(self.bed.vcenter.calls("vdo").await?.get(method).copied().unwrap_or_default()) };
        let before = calls().await?;
        self.proxy
            .rule(Rule::on(&method.replace(" ", " /rest/com/vmware/cis/"), Act::Late(PATIENCE)));
        let allow = ["--yes", "--allow", "hardware-version"];
        let mut child = self.begin(verb, if verb == "--fix" { &allow } else { &allow[..1] })?;
        until(&format!("{verb} to call {method}"), PATIENCE, async || {
            if let Some(status) = child.try_wait()? {
                anyhow::bail!("it ended before it called {method}: {status}");
            }
            Ok(Probe::when(calls().await? > before, "it has not"))
        })
        .await?;
        child.kill()?;
        child.wait()?;
        self.proxy.no_more_rules();
        Ok(())
    }
}

#[test]
#[ignore = "long"]
fn fix_asks_changes_records_and_is_undone() -> Result<()> {
    FIXTURE.run(async |bed| {
        let place = Place::start(bed).await?;
        let ended = life(&place).await;
        place.leave().await?;
        ended
    })
}

async fn life(place: &Place<'_>) -> Result<()> {
    let whole = [
        "TopologyCategoryNotFound 3 planned",
        "TopologyCategoryNotFound 3 planned",
        "DiskUuidDisabled 1 planned",
        "HardwareVersionTooOld 1 planned",
        "DiskUuidDisabled 0 byHand",
        "HardwareVersionTooOld 0 byHand",
    ];
    let allow = ["--allow", "hardware-version"];
    ensure!(place.planned(&allow)? == whole, "{:?}", place.planned(&allow)?);
    let unasked = place.planned(&[])?;
    ensure!(
        unasked
            .iter()
            .filter(|fix| fix.starts_with("Hardware"))
            .all(|fix| fix.ends_with("byHand")),
        "{unasked:?}"
    );
    let (code, _, all) = place.run("--fix", &[])?;
    ensure!(
        code == 4 && all.contains("no terminal on which to confirm") && !place.has_record()?,
        "exit {code}\n{all}"
    );
    let (code, _, all) = place.run("--undo", &["--yes"])?;
    ensure!(
        code == 3 && all.contains("there is nothing to undo in vdo-fixes-"),
        "exit {code}\n{all}"
    );
    let (code, out, _) = place.topology(&[])?;
    ensure!(code == 1 && out.contains("✗ CategoryNotFound"), "exit {code}\n{out}");

    failing(place).await?;

    // Killed after each kind of change has reached the vCenter, the next run goes on.
    for method in ["POST tagging/category", "POST tagging/tag", "ReconfigVM_Task", "UpgradeVM_Task"] {
        place.killed("--fix", method).await.with_context(|| format!("killed at {method}"))?;
    }
    let (code, out, all) = place.run("--fix", &["--yes", allow[0], allow[1]])?;
    ensure!(
        code == 1 && out.contains("kubectl drain w-2") && out.contains("govc vm.power -s /DC0/vm/w-2"),
        "exit {code}\n{all}"
    );
    ensure!(place.planned(&allow)? == whole[4..], "{:?}", place.planned(&allow)?);
    let record = place.record()?;
    ensure!(record["steps"].as_array().map(Vec::len) == Some(8), "{record:#}");
    let (code, out, all) = place.topology(&["-o", "json"])?;
    let table: Value = serde_json::from_str(&out).with_context(|| all.clone())?;
    let line = &table["topology"][0];
    ensure!(
        code == 0 && line["tag"] == "eu" && line["tags"][0]["kind"] == "Datacenter" && line["labels"][REGION] == "eu",
        "exit {code}\n{out}"
    );
    bundle(place)?;

    // The way back, killed as well. What another user has done meanwhile stays.
    place.bed.vcenter.tag("zone", "zone-a", "Datacenter", "DC0").await?;
    let (code, _, all) = place.run("--undo", &["--dry-run"])?;
    ensure!(
        code == 1 && all.contains("remove disk.EnableUUID from VirtualMachine /DC0/vm/w-1") && place.record()? == record,
        "exit {code}\n{all}"
    );
    place.killed("--undo", "ReconfigVM_Task").await?;
    let (code, _, all) = place.run("--undo", &["--yes"])?;
    ensure!(
        code == 1 && all.contains("tag zone-a of category zone is attached to 1 object") && all.contains("which cannot be undone"),
        "exit {code}\n{all}"
    );
    ensure!(
        place.record()?["steps"].as_array().map(Vec::len) == Some(2),
        "{:#}",
        place.record()?
    );
    place.bed.vcenter.untag("zone", "zone-a", "Datacenter", "DC0").await?;
    let (code, _, all) = place.run("--undo", &["--yes"])?;
    ensure!(code == 0 && !place.has_record()?, "exit {code}\n{all}");
    // But for the hardware version all is as it was.
    let before: Vec<&str> = whole.into_iter().filter(|fix| *fix != "HardwareVersionTooOld 1 planned").collect();
    ensure!(place.planned(&allow)? == before, "{:?}", place.planned(&allow)?);
    asked(place).await
}

/// After a change that fails everything that does not need it is still done, in both directions, and each failure is reported with its
/// object and privilege. Once the session is gone, nothing more is tried.
async fn failing(place: &Place<'_>) -> Result<()> {
    let (vcenter, allow) = (&place.bed.vcenter, ["--yes", "--allow", "hardware-version"]);
    vcenter.enforce(true).await?;
    vcenter.deny(vcenter.user(), &["InventoryService.Tagging.CreateTag"]).await?;
    vcenter.fail_next("ReconfigVM_Task", "NotAuthenticated", 1).await?;
    let (code, out, all) = place.run("--fix", &[&allow[..], &["-o", "json"]].concat())?;
    let answer: Value = serde_json::from_str(&out).with_context(|| all.clone())?;
    let short = |line: &Value| {
        let steps = line["steps"].as_array().map_or(0, Vec::len);
        format!("{} {steps}", line["outcome"].as_str().unwrap_or_default())
    };
    let lines = answer["fixes"].as_array().context("fixes")?;
    let shown: Vec<String> = lines.iter().map(short).collect();
    // Of each category: it is created, and no tag, so none is attached. Then a machine, at which the session ends, so its hardware is left.
    let expected = [
        "made 1",
        "failed 2",
        "made 1",
        "failed 2",
        "failed 1",
        "notTried 1",
        "byHand 0",
        "byHand 0",
    ];
    ensure!(
        code == 6 && shown == expected && answer["changed"] == true,
        "exit {code}: {shown:?}\n{all}"
    );
    let needed = "needs the privilege InventoryService.Tagging.CreateTag on the root folder";
    ensure!(
        [1, 3]
            .iter()
            .all(|at| lines[*at]["message"].as_str().is_some_and(|message| message.contains(needed)))
            && all.contains("3 changes failed"),
        "{all}"
    );
    // What failed is not recorded, but for the one of which it is not known.
    let steps = |record: Value| record["steps"].as_array().map_or(0, Vec::len);
    ensure!(steps(place.record()?) == 3, "{:#}", place.record()?);
    // A second run goes on there; a person reads it once when it happens and at the end.
    let (code, out, all) = place.run("--fix", &["--yes"])?;
    ensure!(
        code == 4
            && out.matches(needed).count() == 4
            && out.matches("not tried: attach tag").count() == 2
            && out.contains("✓ set disk.EnableUUID"),
        "exit {code}\n{all}"
    );
    vcenter.deny(vcenter.user(), &["InventoryService.Tagging.DeleteCategory"]).await?;
    let (code, out, all) = place.run("--undo", &["--yes"])?;
    let needed = "needs the privilege InventoryService.Tagging.DeleteCategory on the root folder";
    ensure!(
        code == 4 && out.matches(needed).count() == 4 && steps(place.record()?) == 2 && out.contains("✓ remove disk.EnableUUID"),
        "exit {code}\n{all}"
    );
    vcenter.deny(vcenter.user(), &[]).await?;
    vcenter.enforce(false).await?;
    let (code, _, all) = place.run("--undo", &["--yes"])?;
    ensure!(code == 0 && !place.has_record()?, "exit {code}\n{all}");
    Ok(())
}

/// A support bundle has the same table.
fn bundle(place: &Place<'_>) -> Result<()> {
    let file = place
        .folder
        .path()
        .parent()
        .context("a folder")?
        .join(format!("fix-{}.tar.gz", std::process::id()));
    let name = file.display().to_string();
    let (code, _, all) = place.bed.vdoctl(&["support-bundle", "--output", &name])?;
    ensure!(code == 0, "exit {code}\n{all}");
    let live = place.topology(&[])?.1;
    let output = Command::new(vdo_testbed::vdoctl())
        .env_clear()
        .args(["doctor", "topology", "--from", &name])
        .output()?;
    let recorded = String::from_utf8(output.stdout)?;
    std::fs::remove_file(Path::new(&name))?;
    ensure!(recorded == live && recorded.contains("datacenter DC0"), "{recorded}\n{live}");
    Ok(())
}

/// On a terminal each fix is asked about; what is declined stays, and what cannot be undone is asked about in spite of --yes.
async fn asked(place: &Place<'_>) -> Result<()> {
    let file = place.folder.path().with_extension("password");
    std::fs::write(&file, place.bed.vcenter.password())?;
    place.bed.vcenter.set("VirtualMachine", "w-1", &[("hardware", "vmx-13")]).await?;
    let given = ["--password-file", file.to_str().context("a path")?];
    let mut screen = Screen::start(place.command("--fix", &given))?;
    for (question, typed) in [
        ("Make 3 changes?", "n\n"),
        ("attach tag zone-a", "n\n"),
        ("set disk.EnableUUID=TRUE on VirtualMachine", "y\n"),
    ] {
        screen.until(question).await?;
        screen.types(typed)?;
    }
    let (code, shown) = screen.ended().await?;
    ensure!(
        code == 1 && shown.contains("✓ set disk.EnableUUID=TRUE") && shown.contains("- no tag of category zone"),
        "exit {code}\n{shown}"
    );
    ensure!(
        shown
            .lines()
            .filter(|line| !line.starts_with("        "))
            .all(|line| line.chars().count() <= COLUMNS),
        "{shown}"
    );
    let mut screen = Screen::start(place.command("--fix", &[&given[..], &["--yes", "--allow", "hardware-version"]].concat()))?;
    screen.until("(cannot be undone)").await?;
    screen.types("n\n")?;
    let (_, shown) = screen.ended().await?;
    ensure!(!shown.contains("Make 3 changes?"), "--yes asks about what can be undone:\n{shown}");
    std::fs::remove_file(&file)?;
    let (code, _, all) = place.run("--undo", &["--yes"])?;
    ensure!(code == 0, "exit {code}\n{all}");
    Ok(())
}
