// SPDX-License-Identifier: Apache-2.0
//! The whole life with the operator's image as its users get it: a pull that fails is shown while it is waited for, and `delete` ends it all.

use super::{Deploy, err, out};
use crate::common::{NS, image};
use crate::fixture::IMAGES;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Command;

#[test]
#[ignore = "long"]
fn deploy_with_unavailable_image_shows_it_then_installs_and_delete_leaves_nothing() -> Result<()> {
    IMAGES.run(async |bed| {
        let reference = image::reference()?;
        bed.agent.withdraw_image(&reference);
        let deploy = Deploy::to(bed)?;
        let mut waiting = deploy.command(bed, &["--timeout", "4m"]).spawn()?;
        let lines = waiting.stdout.take().context("an output")?;
        let (shown, rest) = tokio::task::spawn_blocking(move || {
            let mut lines = BufReader::new(lines);
            let mut all = String::new();
            // It ends with the command, whatever is shown.
            while lines.read_line(&mut all)? > 0 && !all.contains("ImagePull") {}
            anyhow::Ok((all, lines))
        })
        .await??;
        ensure!(shown.contains("ImagePull") && shown.contains(&reference), "{shown}");
        // Who looks at the cluster instead sees the same.
        let (code, status, _) = bed.vdoctl(&["status"])?;
        let named = |line: &str| line.trim_start().starts_with('✗') && line.contains("ImagePull") && line.contains(&reference);
        ensure!(code == 1 && status.lines().any(named), "{code}\n{status}");

        bed.agent.serve_image(&reference, &image::layout()?).await?;
        let text = tokio::task::spawn_blocking(move || {
            let (mut text, mut rest) = (shown, rest);
            rest.read_to_string(&mut text)?;
            anyhow::Ok(text)
        })
        .await??;
        let done = waiting.wait_with_output()?;
        ensure!(
            done.status.success() && text.contains("CPI 1.34.0 and CSI 3.8.0 installed and healthy"),
            "{text}{}",
            err(&done)
        );
        let (pod, _) = bed.until_operator_pod_is_ready(0).await?;
        ensure!(pod["spec"]["containers"][0]["image"] == reference.as_str(), "{pod}");

        let mut delete = Command::new(vdo_testbed::vdoctl());
        delete.args(["delete", "--yes"]).env("VDO_KUBECONFIG", bed.cluster.kubeconfig());
        let deleted = tokio::task::spawn_blocking(move || delete.output()).await??;
        ensure!(deleted.status.success(), "{}{}", out(&deleted), err(&deleted));
        for (kind, name) in [("Namespace", NS), ("Namespace", "vmware-system-csi")] {
            ensure!(bed.get("v1", kind, "", name).await? == Value::Null, "{kind} {name} is left");
        }
        Ok(())
    })
}
