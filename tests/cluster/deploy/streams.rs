// SPDX-License-Identifier: Apache-2.0
//! Output that cannot be written ends no installation, and two installations at once are one.

use super::{ADMIN, Deploy, err, out};
use crate::common::{Bed, NS};
use crate::fixture::BARE;
use anyhow::{Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::process::Stdio;

const VDO: &str = "vdo.vmware.com/v1alpha1";

async fn is_configured(bed: &Bed) -> Result<bool> {
    Ok(bed.get(VDO, "VDOConfig", NS, "vdo").await? != Value::Null)
}

#[test]
#[ignore = "long"]
fn deploy_whose_output_finds_no_room_or_no_reader_goes_on() -> Result<()> {
    BARE.run(async |bed| {
        let deploy = Deploy::to(bed)?;
        let full = || File::options().write(true).open("/dev/full");
        // What is asked for is the output: nothing is written without it.
        let output = deploy.command(bed, &["-o", "yaml"]).stdout(full()?).output()?;
        ensure!(output.status.code() == Some(4), "{}", err(&output));
        ensure!(err(&output).contains("No space left on device"), "{}", err(&output));
        ensure!(bed.get("v1", "Namespace", "", NS).await? == Value::Null, "a namespace was made");

        // What is asked for is the installation: it is made, and the exit code says that the output is not whole.
        let output = deploy.command(bed, &["--no-wait"]).stdout(full()?).output()?;
        ensure!(output.status.code() == Some(4), "{}", err(&output));
        ensure!(
            err(&output).contains("the output cannot be written: No space left on device"),
            "{}",
            err(&output)
        );
        ensure!(is_configured(bed).await?, "the installation was not made");

        bed.delete(VDO, "VDOConfig", NS, "vdo").await?;
        let (reader, writer) = std::io::pipe()?;
        drop(reader);
        let output = deploy.command(bed, &["--no-wait"]).stdout(Stdio::from(writer)).output()?;
        ensure!(
            output.status.success(),
            "a reader that left is not a failure: {:?} {}",
            output.status,
            err(&output)
        );
        ensure!(is_configured(bed).await?, "the installation was not made");
        Ok(())
    })
}

/// Each object is created once, both processes succeed, and the installation is what one would have made.
#[test]
#[ignore = "long"]
fn deploy_twice_at_once_installs_once() -> Result<()> {
    BARE.run(async |bed| {
        let deploy = Deploy::to(bed)?;
        let yaml = deploy.run(bed, &["-o", "yaml"])?;
        let mark = bed.cluster.audit().mark().await?;
        let both = [
            deploy.command(bed, &["--no-wait"]).spawn()?,
            deploy.command(bed, &["--no-wait"]).spawn()?,
        ];
        for child in both {
            let output = child.wait_with_output()?;
            ensure!(output.status.success(), "{}{}", out(&output), err(&output));
        }
        let wanted = super::stored(bed, &out(&yaml)).await?;
        ensure!(wanted.len() > 10, "only {} objects", wanted.len());
        let mut created: BTreeMap<String, usize> = BTreeMap::new();
        for entry in bed.cluster.audit().since(mark).await?.of(ADMIN).writes().0 {
            if entry.code == 201 && entry.resource != "leases" {
                *created.entry(format!("{} {}", entry.resource, entry.object())).or_default() += 1;
            }
        }
        ensure!(created.len() == wanted.len(), "{} objects, created were {created:#?}", wanted.len());
        ensure!(created.values().all(|times| *times == 1), "{created:#?}");
        Ok(())
    })
}
