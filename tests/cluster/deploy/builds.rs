// SPDX-License-Identifier: Apache-2.0
//! Two builds of VDO, of which the older one has an older matrix inside: the newer vdoctl brings its operator, then its matrix, then the
//! drivers, and the older one leads back.

use super::upgrade::{ensure_ended, until_runs, workloads};
use super::{Deploy, err, out, vdoctl_of};
use crate::common::{Bed, PATIENCE, image};
use crate::fixture::IMAGES;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Output;
use vdo_testbed::{Probe, until};

const OWN: &str = env!("CARGO_PKG_VERSION");
/// Its newest CSI driver is the one before the newest of this build.
const OLDER: &str = "0.0.9";

/// What `tests/older-build.sh` has built.
struct Older {
    folder: PathBuf,
    /// The image of its operator.
    reference: String,
}

impl Older {
    fn find() -> Result<Self> {
        let program = Path::new(env!("CARGO_BIN_EXE_vdo-operator"));
        let target = program.ancestors().nth(2).context("the target folder")?;
        let usual = image::reference()?;
        let (name, _) = usual.rsplit_once(':').context("a tag")?;
        let older = Self {
            folder: target.join("older").join("target"),
            reference: format!("{name}:v{OLDER}"),
        };
        ensure!(older.vdoctl().is_file(), "there is no older build: make test-builds");
        Ok(older)
    }

    fn vdoctl(&self) -> PathBuf {
        self.folder.join("debug").join("vdoctl")
    }

    async fn run(&self, bed: &Bed, args: &[String]) -> Result<Output> {
        run(&self.vdoctl(), bed, args).await
    }
}

async fn run(program: &Path, bed: &Bed, args: &[String]) -> Result<Output> {
    let mut command = vdoctl_of(program, bed, args);
    Ok(tokio::task::spawn_blocking(move || command.output()).await??)
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

/// The version of the matrix that the operator decides with, and that of the CSI driver, in the status.
async fn decided(bed: &Bed) -> Result<(u64, String)> {
    let status = bed.status().await?;
    let drivers = status["drivers"].as_array().cloned().unwrap_or_default();
    let csi = drivers
        .iter()
        .find(|driver| driver["name"] == "vsphere-csi")
        .cloned()
        .unwrap_or_default();
    Ok((
        status["matrix"]["version"].as_u64().unwrap_or_default(),
        csi["version"].as_str().unwrap_or_default().to_owned(),
    ))
}

async fn until_decided(bed: &Bed, matrix: u64, csi: &str) -> Result<()> {
    until(&format!("matrix {matrix} and CSI driver {csi}"), 2 * PATIENCE, async || {
        let now = decided(bed).await?;
        Ok(Probe::when(now == (matrix, csi.to_owned()), format!("{now:?}")))
    })
    .await
}

/// The matrix of this build: its version, and the two newest versions of the CSI driver, newest first.
fn own_matrix() -> Result<(u64, [String; 2])> {
    let index = crate::matrix_source::embedded_index()?;
    let versions = index["drivers"]["vsphere-csi"]["versions"].as_array().context("versions")?;
    let version = |at: usize| versions[at]["version"].as_str().map(str::to_owned).context("a version");
    Ok((index["version"].as_u64().context("a version")?, [version(0)?, version(1)?]))
}

#[test]
#[ignore = "needs an older build of VDO (make test-builds)"]
fn builds_with_different_matrices_upgrade_in_order_and_go_back_without_loss() -> Result<()> {
    IMAGES.run(async |bed| {
        let older = Older::find()?;
        let own = Path::new(vdo_testbed::vdoctl());
        let (matrix, [newest, before]) = own_matrix()?;
        bed.agent.serve_image(&older.reference, &older.folder.join("testbed-image")).await?;
        let deploy = Deploy::to(bed)?;

        // The older build knows nothing newer, whatever its policy.
        let args = [
            words(&["deploy", "--update-policy", "Latest", "--timeout", "4m"]),
            deploy.args.clone(),
        ]
        .concat();
        ensure_ended(&older.run(bed, &args).await?, 0, &["installed and healthy"])?;
        until_runs(bed, &older.reference).await?;
        until_decided(bed, matrix - 1, &before).await?;

        // Each verb of the newer one decides with the matrix that the operator keeps in the cluster, or says that it does not.
        let output = run(own, bed, &words(&["version"])).await?;
        let skew = format!("operator {OLDER} is older than this vdoctl ({OWN})");
        ensure_ended(&output, 0, &[&skew, "vdoctl deploy upgrades the operator"])?;
        let output = run(own, bed, &words(&["plan"])).await?;
        agrees_or_warns(&output, matrix - 1)?;

        // Operator, matrix, drivers, in this order.
        let mark = bed.cluster.audit().mark().await?;
        let output = run(own, bed, &words(&["deploy", "--timeout", "4m"])).await?;
        ensure_ended(
            &output,
            0,
            &[&format!("operator {OLDER} will be upgraded to {OWN}"), "installed and healthy"],
        )?;
        until_runs(bed, &image::reference()?).await?;
        until_decided(bed, matrix, &newest).await?;
        bed.until_ready().await?;
        let writes = bed.cluster.audit().since(mark).await?.writes();
        let first = |resource: &str, name: &str| writes.0.iter().position(|write| write.resource == resource && write.name == name);
        let (operator, driver) = (first("deployments", "vdo-operator"), first("deployments", "vsphere-csi-controller"));
        ensure!(operator.is_some() && operator < driver, "{operator:?} {driver:?}");

        // And back: the older one does not know what runs, and leaves it alone.
        let running = workloads(bed).await?;
        let output = older.run(bed, &words(&["deploy", "--timeout", "2m"])).await?;
        ensure_ended(
            &output,
            4,
            &[&format!(
                "the operator in the cluster has version {OWN}, which is newer than this vdoctl"
            )],
        )?;
        let unknown = format!("vsphere-csi {newest} is installed, and the matrix does not list that version");
        let output = older.run(bed, &words(&["deploy", "--allow-downgrade", "--timeout", "2m"])).await?;
        ensure_ended(&output, 7, &[&unknown, &format!("Use a matrix that lists {newest}")])?;
        until_runs(bed, &older.reference).await?;
        // Every verb says the same.
        for verb in ["status", "plan"] {
            let output = older.run(bed, &words(&[verb])).await?;
            let text = format!("{}{}", out(&output), err(&output));
            ensure!(
                text.contains(&unknown) && !output.status.success(),
                "{verb}: {:?} {text}",
                output.status
            );
        }
        ensure!(workloads(bed).await? == running, "the drivers were touched");

        // The newer one again: nothing is written to the drivers.
        let output = run(own, bed, &words(&["deploy", "--timeout", "4m"])).await?;
        ensure_ended(&output, 0, &["installed and healthy"])?;
        until_decided(bed, matrix, &newest).await?;
        ensure!(workloads(bed).await? == running, "the drivers were touched");
        Ok(())
    })
}

/// Either the answer is that of the operator's matrix, or the warning says that it is not and what to do.
fn agrees_or_warns(output: &Output, matrix: u64) -> Result<()> {
    let text = format!("{}{}", out(output), err(output));
    let agrees = text.contains(&format!("version {matrix}, ")) && text.contains("the operator of cluster");
    let warns =
        text.contains("this answer does not use the matrix of the operator") && text.contains("vdoctl deploy upgrades the operator");
    ensure!(agrees || warns, "{:?} {text}", output.status);
    Ok(())
}
