// SPDX-License-Identifier: Apache-2.0
//! The whole life on a terminal of 80 columns: installed from an empty cluster, killed twice, and removed; what kubectl lists afterwards is
//! what it listed before. docs/install.md shows this recording.

use super::{Deploy, administrator, err, out};
use crate::common::{Bed, PATIENCE, image};
use crate::fixture::IMAGES;
use crate::screen::{COLUMNS, Screen};
use anyhow::{Result, ensure};
use std::collections::BTreeSet;
use std::process::Command;
use vdo_testbed::{Act, Binaries, Part, Probe, until};

/// What Kubernetes, the kubelets and the drivers' sidecars write by themselves: what happened, who leads, which node has which driver.
const EXCEPTIONS: [&str; 3] = ["Event", "Lease", "CSINode"];

/// Every object of every kind that can be listed, as `kubectl get --all-namespaces` lists them.
fn listed(bed: &Bed) -> Result<BTreeSet<String>> {
    let kubectl = Binaries::ensure(&[Part::Kubectl])?.path(Part::Kubectl);
    let run = |args: &[&str]| -> Result<String> {
        let mut command = Command::new(&kubectl);
        command.arg("--kubeconfig").arg(bed.cluster.kubeconfig());
        let output = command
            .arg("--cache-dir")
            .arg(bed.cluster.dir().join("kubectl"))
            .args(args)
            .output()?;
        ensure!(output.status.success(), "kubectl {args:?}: {}", err(&output));
        Ok(out(&output))
    };
    let kinds = run(&["api-resources", "--verbs=list", "--output=name", "--cached=false"])?;
    let kinds: Vec<&str> = kinds.lines().collect();
    let columns = "--output=custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name";
    let text = run(&[
        "get",
        "--all-namespaces",
        "--no-headers",
        "--ignore-not-found",
        columns,
        &kinds.join(","),
    ])?;
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let lasts = |line: &String| !EXCEPTIONS.iter().any(|kind| line.starts_with(&format!("{kind} ")));
    Ok(lines.filter(lasts).collect())
}

/// The screens of the runs, each below what was typed.
#[derive(Default)]
struct Recording(Vec<String>);

impl Recording {
    fn add(&mut self, bed: &Bed, shown: &str) -> Result<()> {
        let wide = shown.lines().find(|line| line.chars().count() > COLUMNS);
        ensure!(wide.is_none(), "wider than the terminal: {wide:?}");
        ensure!(!shown.contains(bed.vcenter.password()), "the password is on the screen");
        self.0.push(format!("$ vdoctl deploy …\n{}", shown.trim_end()));
        Ok(())
    }
}

#[test]
#[ignore = "long"]
fn deploy_killed_twice_on_a_terminal_and_delete_leave_what_kubectl_listed_before() -> Result<()> {
    IMAGES.run(async |bed| {
        let (proxy, through) = administrator(bed).await?;
        let deploy = Deploy::to(bed)?;
        let before = listed(bed)?;
        ensure!(before.len() > 50, "kubectl lists {before:?}");
        let mut recording = Recording::default();

        // Killed in the middle of its writes.
        proxy.begin(|call| if call.write == Some(9) { Act::StopAfter } else { Act::Pass });
        let mut screen = Screen::start(deploy.command(bed, &["--kubeconfig", &through]))?;
        screen.until("[y/N]").await?;
        screen.types("y\n")?;
        proxy.stopped(PATIENCE).await?;
        recording.add(bed, &screen.kill()?)?;
        proxy.resume();
        proxy.begin(|_| Act::Pass);
        // And while it waits for an operator whose image cannot be pulled.
        let reference = image::reference()?;
        bed.agent.withdraw_image(&reference);
        let mut screen = Screen::start(deploy.command(bed, &["--timeout", "4m", "--yes"]))?;
        screen.until("ImagePull").await?;
        recording.add(bed, &screen.kill()?)?;
        bed.agent.serve_image(&reference, &image::layout()?).await?;
        let screen = Screen::start(deploy.command(bed, &["--timeout", "4m"]))?;
        let (code, shown) = screen.ended().await?;
        recording.add(bed, &shown)?;
        let text = recording.0.join("\n\n");
        ensure!(code == 0 && shown.contains("installed and healthy"), "{code}\n{text}");
        println!("{text}");
        let installed = listed(bed)?;
        ensure!(installed.len() > before.len() + 40, "nothing was installed");

        let mut delete = Command::new(vdo_testbed::vdoctl());
        delete.args(["delete", "--yes"]).env("VDO_KUBECONFIG", bed.cluster.kubeconfig());
        let deleted = tokio::task::spawn_blocking(move || delete.output()).await??;
        ensure!(deleted.status.success(), "{}{}", out(&deleted), err(&deleted));
        until("kubectl to list what it listed before", PATIENCE, async || {
            let after = listed(bed)?;
            let (left, lost): (Vec<_>, Vec<_>) = (after.difference(&before).collect(), before.difference(&after).collect());
            Ok(Probe::when(
                left.is_empty() && lost.is_empty(),
                format!("left {left:?}, lost {lost:?}"),
            ))
        })
        .await?;
        println!(
            "{} objects before, {} installed, {} afterwards",
            before.len(),
            installed.len(),
            before.len()
        );
        Ok(())
    })
}
