// SPDX-License-Identifier: Apache-2.0
//! The end of the demonstration: a claim that the CSI driver binds.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::agent::launcher;
use crate::{Isolation, workdir};

/// As a user of the cluster writes it: without a class, because there is a default one.
const CLAIM: &str = "\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: demo, namespace: default}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
";
/// What waits until the claim is bound. After a restart the driver's sidecars wait for the leases of those before, for up to two and a half minutes.
pub(super) const WAIT: [&str; 5] = [
    "wait",
    "persistentvolumeclaim/demo",
    "--namespace=default",
    "--for=jsonpath={.status.phase}=Bound",
    "--timeout=300s",
];
/// What shows it.
pub(super) const SHOW: &str = "kubectl get pvc demo -n default \\\n    -o custom-columns=PHASE:.status.phase,VOLUME:.spec.volumeName";

/// Why this machine cannot run the controller of the CSI driver, if it cannot.
pub(super) fn hindered(dir: &Path) -> Result<Option<String>> {
    std::fs::create_dir_all(dir)?;
    Ok(match Isolation::possible(&launcher()?, &dir.canonicalize()?) {
        Isolation::Namespaces => None,
        Isolation::None(problem) => Some(problem),
    })
}

/// Writes the claim, and gives the file.
pub(super) fn write(dir: &Path) -> Result<PathBuf> {
    let file = dir.join("claim.yaml");
    workdir::write_private(&file, CLAIM).with_context(|| format!("file {}", file.display()))?;
    Ok(file)
}
