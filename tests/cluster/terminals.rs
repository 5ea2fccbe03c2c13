// SPDX-License-Identifier: Apache-2.0
//! What `vdoctl` shows of a cluster where it is shown: on terminals of 80 and 40 columns, in a pipe that no one reads, on a full disk, and in a
//! browser.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS};
use crate::fixture::INSTALLED;
use crate::operation::private;
use crate::pty::{screen_of, too_wide};
use crate::screen::Screen;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// The command with these words, as a shell reads them.
pub fn vdoctl(bed: &Bed, line: &str) -> Result<Command> {
    let mut command = Command::new(vdo_testbed::vdoctl());
    command
        .env_clear()
        .env("TERM", "xterm")
        .env("VDO_KUBECONFIG", bed.cluster.kubeconfig());
    command.args(shlex::split(line).context("a command line")?);
    Ok(command)
}

/// `users list` as the vCenter's administrator.
fn users(bed: &Bed, folder: &Path) -> Result<String> {
    let file = private(folder, "password", bed.vcenter.password())?;
    let file = shlex::try_quote(&file)?;
    Ok(format!("users list --user {} --password-file {file}", bed.vcenter.user()))
}

/// A support bundle, as a word of a command line.
fn bundle(bed: &Bed, folder: &Path) -> Result<String> {
    let path = folder.join("support.tar.gz").display().to_string();
    let (code, _, err) = bed.vdoctl(&["support-bundle", "-o", &path])?;
    ensure!(code == 0, "{err}");
    Ok(shlex::try_quote(&path)?.into_owned())
}

#[test]
#[ignore = "long"]
fn screen_of_every_verb_of_a_cluster_fits_the_terminal() -> Result<()> {
    INSTALLED.run(async |bed| {
        let folder = tempfile::tempdir()?;
        let bundle = bundle(bed, folder.path())?;
        let from = ["status --from", "doctor --from"].map(|verb| format!("{verb} {bundle}"));
        let verbs = [
            "status",
            "status -o wide",
            "doctor",
            "doctor -o wide",
            "doctor nodes",
            "doctor connection vc1",
            "doctor connection vc2",
            "doctor privileges",
            "doctor privileges --required",
            "plan --set storageProvider.version=3.6.3",
            "plan --set storageProvider.version=3.9.9",
            "diff --set cloudProvider.values.logLevel=7",
            "history",
            "history csi",
            "upgrade plan",
            "upgrade plan --kubernetes 1.36",
            "secrets list",
            "configure drivers --set updatePolicy=Disabled --dry-run",
            "configure drivers --set storageProvider.version=9.9.9",
            "configure matrix embedded --dry-run",
            "matrix source",
            "matrix resolve",
            "matrix explain",
            "matrix why-not csi 3.5.1",
            "rights --missing",
            "render -o table",
            "version",
            "wait",
            "pause antrea",
            "rollback csi 99",
            "approve",
        ];
        let mut all = Vec::new();
        let users = users(bed, folder.path())?;
        for verb in verbs.into_iter().chain(from.iter().map(String::as_str)).chain([users.as_str()]) {
            for columns in [80, 40] {
                let shown = screen_of(vdoctl(bed, verb)?, columns);
                ensure!(!shown.contains("Usage:"), "{verb}: {shown}");
                ensure!(!shown.trim().is_empty() || verb == "rights --missing", "{verb} shows nothing");
                let wide = too_wide(&shown, columns);
                all.extend(wide.into_iter().map(|line| format!("vdoctl {verb}, {columns} columns: {line}")));
            }
        }
        ensure!(all.is_empty(), "{}", all.join("\n"));
        // `users list` asks as the administrator.
        bed.vcenter.forget_calls("vdo").await
    })
}

/// A reader that ends early is no error, and a disk that is full is one; neither leaves a message of the machine.
#[test]
#[ignore = "long"]
fn full_disk_and_closed_pipe_end_every_verb_of_a_cluster_as_they_should() -> Result<()> {
    INSTALLED.run(async |bed| {
        let folder = tempfile::tempdir()?;
        let bundle = bundle(bed, folder.path())?;
        // Each with whether it writes to stdout.
        for (verb, writes) in [
            ("status", true),
            ("doctor", true),
            ("history", true),
            ("configure drivers --set updatePolicy=Disabled --dry-run", true),
            ("configure connection vc1 --datacenter DC0 --dry-run -o json", true),
            ("configure matrix embedded --dry-run", true),
            ("secrets list", true),
            ("upgrade plan --kubernetes 1.36", true),
            ("upgrade plan -o json", true),
            ("pause csi", false),
            ("resume csi", false),
            ("reconcile", false),
            ("wait --timeout 4m -o json", true),
            ("support-bundle -o -", true),
            ("report --html -", true),
            (&format!("report --html - --from {bundle}"), true),
            (&users(bed, folder.path())?, true),
            ("completion fish", true),
        ] {
            let full = File::options().write(true).open("/dev/full")?;
            let output = vdoctl(bed, verb)?.stdout(full).output()?;
            let said = String::from_utf8(output.stderr)?;
            if writes {
                let right = output.status.code() == Some(4) && said.contains("the output cannot be written: No space left on device");
                ensure!(right, "full disk, {verb}: {:?} {said}", output.status);
            } else {
                ensure!(output.status.success(), "full disk, {verb}: {said}");
            }
            let (reader, writer) = std::io::pipe()?;
            drop(reader);
            let output = vdoctl(bed, verb)?.stdout(writer).stderr(Stdio::piped()).output()?;
            let said = String::from_utf8(output.stderr)?;
            let quiet = !["error:", "panicked", "Broken pipe"].iter().any(|word| said.contains(word));
            ensure!(output.status.success() && quiet, "closed pipe, {verb}: {:?} {said}", output.status);
        }
        for verb in ["support-bundle -o /dev/full", "report --html /dev/full"] {
            let (code, _, said) = bed.vdoctl(&verb.split(' ').collect::<Vec<_>>())?;
            let right = code == 4 && said.contains("/dev/full cannot be written: No space left on device");
            ensure!(right && Path::new("/dev/full").exists(), "{verb}: {code} {said}");
        }
        bed.until_ready().await?;
        // `users list` asks as the administrator.
        bed.vcenter.forget_calls("vdo").await
    })
}

/// What is typed counts like a flag, and Enter keeps what is there.
#[test]
#[ignore = "long"]
fn configure_connection_asks_for_each_value_on_a_terminal() -> Result<()> {
    INSTALLED.run(async |bed| {
        let before = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?["spec"].clone();
        let address = format!("[{}:{}]:", bed.vcenter.host(), bed.vcenter.port());
        for (datacenters, expected, words) in [
            ("DC9 - Rhein, Hessen\n\n", 1, &["DC9", "Hessen", "so nothing was written"][..]),
            ("\n", 0, &["Everything is in sync already."]),
        ] {
            let mut screen = Screen::start(vdoctl(bed, "configure connection --interactive")?)?;
            screen.until(&address).await?;
            screen.types("\n")?;
            screen.until(&format!("User [{}]:", bed.vcenter.user())).await?;
            screen.types("\n")?;
            screen.until("Datacenter, by name or path").await?;
            screen.types(datacenters)?;
            let (code, shown) = screen.ended().await?;
            ensure!(code == expected && words.iter().all(|word| shown.contains(word)), "{code}\n{shown}");
        }
        let print = bed.vcenter.thumbprint_sha256();
        for (answer, expected) in [("n\n", 4), ("y\n", 0)] {
            let mut screen = Screen::start(vdoctl(bed, "configure connection vc1 --fetch-certificate --dry-run")?)?;
            screen.until("Does vCenter show this thumbprint").await?;
            let asked = screen.shown().replace("\n    ", "").replace('\n', "");
            screen.types(answer)?;
            let (code, shown) = screen.ended().await?;
            ensure!(code == expected && asked.contains(&print), "{code}\n{shown}");
        }
        let after = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?["spec"].clone();
        ensure!(before == after, "{before} became {after}");
        Ok(())
    })
}

/// The source is read and planned with before it is written, and written as kubectl would.
#[test]
#[ignore = "long"]
fn configure_matrix_writes_a_source_only_after_it_was_read() -> Result<()> {
    INSTALLED.run(async |bed| {
        let source = async || -> Result<Value> { Ok(bed.get("v1", "Secret", NS, "vdo-matrix").await?["data"]["source"].clone()) };
        let (code, out, err) = bed.vdoctl(&["configure", "matrix", "https://127.0.0.1:1/index.yaml"])?;
        ensure!(code != 0 && err.contains("so nothing was written"), "{code} {out}{err}");
        let (code, out, err) = bed.vdoctl(&["configure", "matrix", "embedded", "--dry-run"])?;
        ensure!(
            code == 0 && err.contains("Nothing was written.") && out.contains("would be created"),
            "{code} {out}{err}"
        );
        ensure!(source().await? == Value::Null, "something was written");
        let (code, out, err) = bed.vdoctl(&["configure", "matrix", "embedded"])?;
        ensure!(code == 0 && out.contains("was created"), "{code} {out}{err}");
        ensure!(source().await? == "ZW1iZWRkZWQ=");
        let (code, out, err) = bed.vdoctl(&["configure", "matrix", "embedded"])?;
        ensure!(code == 0 && out.contains("is in sync"), "{code} {out}{err}");
        let (_, out, _) = bed.vdoctl(&["matrix", "source"])?;
        ensure!(out.contains("embedded") && out.contains("vdo-matrix"), "{out}");
        bed.until_ready().await?;
        Ok(())
    })
}

/// The page in a real browser: nothing is blocked or wrong in it, it fits a phone, and what is planted is not in it.
#[test]
#[ignore = "needs chromium"]
fn report_in_chromium_fits_a_phone_without_errors() -> Result<()> {
    INSTALLED.run(async |bed| {
        let folder = tempfile::tempdir()?;
        let page = folder.path().join("report.html");
        let (code, _, err) = bed.vdoctl(&["report", "--html", &page.display().to_string()])?;
        ensure!(code == 0, "{err}");
        let page = std::fs::read_to_string(page)?;
        ensure!(!page.contains(bed.vcenter.password()), "the password is in the page");
        let quoted = page.replace('&', "&amp;").replace('"', "&quot;");
        for width in [390, 1280] {
            let wrapper = folder.path().join(format!("{width}.html"));
            std::fs::write(
                &wrapper,
                format!(
                    "<!doctype html><meta charset=\"utf-8\"><pre id=\"seen\"></pre>\n\
                     <iframe id=\"page\" style=\"width:{width}px;height:844px;border:0\" srcdoc=\"{quoted}\"></iframe>\n\
                     <script>const page = document.getElementById('page');\n\
                     page.addEventListener('load', () => {{ const all = page.contentDocument;\n\
                     document.getElementById('seen').textContent = ['needs', all.documentElement.scrollWidth, 'letters', all.body.innerText.length].join(' ');\n\
                     }});</script>"
                ),
            )?;
            let output = Command::new("chromium")
                .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--enable-logging=stderr"])
                .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
                .arg("--dump-dom")
                .arg(format!("file://{}", wrapper.display()))
                .output()
                .context("chromium")?;
            let (shown, said) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
            let console: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
            ensure!(console.is_empty(), "{width} pixels: {console:?}");
            let seen = shown.split_once("<pre id=\"seen\">").and_then(|(_, rest)| rest.split_once("</pre>"));
            let seen = seen.with_context(|| format!("chromium shows nothing:\n{said}"))?.0;
            let numbers: Vec<usize> = seen.split(' ').filter_map(|word| word.parse().ok()).collect();
            ensure!(
                matches!(numbers[..], [needs, letters] if needs <= width && letters > 1000),
                "{width} pixels: {seen:?}"
            );
        }
        Ok(())
    })
}
