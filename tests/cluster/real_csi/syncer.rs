// SPDX-License-Identifier: Apache-2.0
//! The syncer's connection to the vCenter, which it opens on two roads at once: each must know whom to trust.

use super::{Trust, install, with_driver};
use crate::common::{Bed, PATIENCE, sample};
use anyhow::{Context, Result, ensure};
use vdo_testbed::{ContainerRun, CsiVersion, Probe, until};

/// With a certificate that one of the roads alone knows, two to four of ten starts fail.
const STARTS: usize = 10;
#[test]
#[ignore = "long"]
fn real_csi_syncer_with_a_thumbprint_starts_each_time() -> Result<()> {
    with_driver(&[CsiVersion::Newer], Trust::Thumbprint, async |bed| starts(bed).await)
}

#[test]
#[ignore = "long"]
fn real_csi_syncer_with_an_authority_starts_each_time() -> Result<()> {
    with_driver(&[CsiVersion::Newer], Trust::Authority, async |bed| starts(bed).await)
}

async fn starts(bed: &Bed) -> Result<()> {
    install(bed, "3.7.0").await?;
    let starts = if sample::all_wanted() { STARTS } else { STARTS / 2 };
    for start in 1..=starts {
        let run = until_synced(bed).await.with_context(|| format!("start {start} of the syncer"))?;
        // An end for another reason, such as a lost election on a busy machine, is the driver's own, and the log has it.
        let log = std::fs::read_to_string(&run.log)?;
        ensure!(
            !log.contains("x509"),
            "start {start}: a road to the vCenter does not know its certificate; log {}",
            run.log.display()
        );
        // The next one need not wait until the Lease of this one has expired.
        bed.delete("coordination.k8s.io/v1", "Lease", "vmware-system-csi", "vsphere-syncer")
            .await?;
        bed.delete("v1", "Pod", "vmware-system-csi", &run.pod).await?;
        until("the pod to be deleted", PATIENCE, async || {
            Ok(Probe::when(syncer(bed).is_none_or(|next| next.pod != run.pod), &run.pod))
        })
        .await?;
    }
    Ok(())
}

fn syncer(bed: &Bed) -> Option<ContainerRun> {
    bed.agent.containers().into_iter().find(|run| run.container == "vsphere-syncer")
}

/// Waits until the syncer has compared its volumes with the vCenter's for the first time.
async fn until_synced(bed: &Bed) -> Result<ContainerRun> {
    until("the syncer's first full sync", PATIENCE, async || {
        let Some(run) = syncer(bed) else {
            return Ok(Probe::not_yet("there is none"));
        };
        let log = std::fs::read_to_string(&run.log).unwrap_or_default();
        let synced = log.contains("FullSync for VC") && log.contains(": end\"");
        // A refused certificate need not be waited for.
        let refused = log.contains("x509");
        Ok(if synced || refused {
            Probe::Ready(run)
        } else {
            Probe::not_yet(bed.agent.logs())
        })
    })
    .await
}
