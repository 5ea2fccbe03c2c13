// SPDX-License-Identifier: Apache-2.0
//! On a terminal a person is asked before a cluster gets something that it does not have.

use super::{ADMIN, Deploy, command, vdoctl};
use crate::common::{NS, PATIENCE};
use crate::fixture::BARE;
use crate::screen::Screen;
use anyhow::{Result, ensure};
use serde_json::Value;
use vdo_testbed::{Cluster, ClusterOptions, NodeOptions, Probe, until};

/// The question names the context and the address. No is what Enter says. The cluster of last time, which has the operator, is not asked
/// about again; another one is.
#[test]
#[ignore = "long"]
fn deploy_on_a_terminal_asks_for_each_cluster_and_enter_says_no() -> Result<()> {
    BARE.run(async |bed| {
        let deploy = Deploy::to(bed)?;
        let mark = bed.cluster.audit().mark().await?;
        for answer in ["\n", "n\n", "nonsense\n"] {
            let mut screen = Screen::start(deploy.command(bed, &["--no-wait"]))?;
            screen.until("[y/N]").await?;
            let shown = screen.shown();
            let question = format!("Deploy to cluster testbed at {}?", bed.cluster.server_url());
            ensure!(shown.replace('\n', "").contains(&question), "{question:?} is not in\n{shown}");
            screen.types(answer)?;
            let (code, shown) = screen.ended().await?;
            ensure!(
                code == 4 && shown.contains("nothing was written to cluster testbed"),
                "{code}\n{shown}"
            );
        }
        let writes = bed.cluster.audit().since(mark).await?.of(ADMIN).writes();
        ensure!(writes.is_empty(), "something was written: {writes}");

        let mut screen = Screen::start(deploy.command(bed, &["--no-wait"]))?;
        screen.until("[y/N]").await?;
        screen.types("y\n")?;
        let (code, shown) = screen.ended().await?;
        ensure!(code == 0, "{code}\n{shown}");
        let (code, shown) = Screen::start(deploy.command(bed, &["--no-wait"]))?.ended().await?;
        ensure!(code == 0 && !shown.contains("[y/N]"), "the cluster of last time: {code}\n{shown}");

        let other = Cluster::start(ClusterOptions::default()).await?;
        other.add_node(NodeOptions::worker("w-1").uninitialized()).await?;
        let kubeconfig = other.kubeconfig().display().to_string();
        let mut screen = Screen::start(deploy.command(bed, &["--no-wait", "--kubeconfig", &kubeconfig]))?;
        screen.until("[y/N]").await?;
        let shown = screen.shown();
        ensure!(shown.replace('\n', "").contains(&other.server_url()), "{shown}");
        screen.types("\n")?;
        let (code, shown) = screen.ended().await?;
        ensure!(code == 4, "{code}\n{shown}");
        ensure!(
            bed.get("v1", "Namespace", "", NS).await? != Value::Null,
            "the first one lost its namespace"
        );
        let writes = other
            .audit()
            .requests(|entry| entry.user == ADMIN && entry.writes() && entry.namespace == NS)
            .await?;
        ensure!(writes.is_empty(), "something was written to the other cluster: {writes}");
        Ok(())
    })
}

/// The password is typed unseen, and the certificate is trusted by a person who compares its fingerprint. Interrupted in the middle, the
/// terminal shows again what is typed, and nothing was sent or written.
#[test]
#[ignore = "long"]
fn deploy_on_a_terminal_asks_for_password_and_certificate_and_restores_the_terminal() -> Result<()> {
    BARE.run(async |bed| {
        let deploy = Deploy::to(bed)?;
        let mark = bed.cluster.audit().mark().await?;
        let asked = deploy.without(&["--password-file", "--thumbprint"]);
        let start = || Screen::start_controlled(&command(bed, &asked, &["--no-wait", "--yes"]));
        let until_asked = async |screen: &mut Screen| -> Result<()> {
            screen.until(&format!("Password for {}:", bed.vcenter.user())).await?;
            until("the terminal to hide what is typed", PATIENCE, async || {
                Ok(Probe::when(!screen.echoes()?, screen.shown()))
            })
            .await
        };
        let mut screen = start()?;
        until_asked(&mut screen).await?;
        screen.types("\u{3}")?;
        let code = screen.code().await?;
        ensure!(
            code == 130 && screen.echoes()?,
            "{code}, echo {}\n{}",
            screen.echoes()?,
            screen.shown()
        );

        let question = "Does vCenter show this thumbprint";
        for (answer, expected) in [("n\n", 4), ("y\n", 0)] {
            let mut screen = start()?;
            until_asked(&mut screen).await?;
            screen.types(&format!("{}\n", bed.vcenter.password()))?;
            screen.until(question).await?;
            ensure!(screen.echoes()?, "the answer is not shown");
            let shown = screen.shown().replace("\n    ", "").replace('\n', "");
            ensure!(shown.contains(&bed.vcenter.thumbprint_sha256()), "{shown}");
            if expected != 0 {
                let writes = bed.cluster.audit().since(mark).await?.of(ADMIN).writes();
                ensure!(writes.is_empty(), "something was written: {writes}");
            }
            screen.types(answer)?;
            let (code, shown) = screen.ended().await?;
            ensure!(code == expected, "{code}\n{shown}");
            ensure!(!shown.contains(bed.vcenter.password()), "the password is on the screen");
        }
        let connection = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
        ensure!(
            connection["spec"]["thumbprint"] == bed.vcenter.thumbprint_sha256().as_str(),
            "{}",
            connection["spec"]
        );
        Ok(())
    })
}

/// `doctor --pre` asks the same question; where there is no terminal, the flag with its value stands below the check.
#[test]
fn doctor_before_an_installation_asks_about_the_certificate() -> Result<()> {
    BARE.run(async |bed| {
        let file = bed.cluster.dir().join("password-of-doctor");
        std::fs::write(&file, bed.vcenter.password())?;
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let file = file.display().to_string();
        let address = bed.vcenter.address();
        let args = [
            "doctor",
            "--pre",
            "--vcenter",
            &address,
            "--user",
            bed.vcenter.user(),
            "--password-file",
            &file,
        ];
        let print = bed.vcenter.thumbprint_sha256();
        let (code, out, said) = bed.vdoctl(&args)?;
        let flag = format!("--thumbprint {print}");
        ensure!(code == 6 && out.lines().any(|line| line.trim() == flag), "{code}\n{out}{said}");
        let line: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        for (answer, expected) in [("n\n", 4), ("y\n", 0)] {
            let mut screen = Screen::start(vdoctl(bed, &line))?;
            screen.until("Does vCenter show this thumbprint").await?;
            let shown = screen.shown().replace("\n    ", "").replace('\n', "");
            ensure!(shown.contains(&print), "{shown}");
            screen.types(answer)?;
            let (code, shown) = screen.ended().await?;
            ensure!(code == expected, "{code}\n{shown}");
        }
        Ok(())
    })
}
