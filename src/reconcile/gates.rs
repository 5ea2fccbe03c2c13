//! Which waves must wait, and what the finished state still waits for (pure).

use crate::api::Reason;
use crate::facts::{Cluster, Node};
use crate::health::DriverHealth;
use crate::plan::{Desired, Hold, Wait};
use crate::types::{CPI, CSI, DriverName};
use std::collections::BTreeMap;

/// How long the workloads of a driver that needs initialised nodes wait for the last of them, in seconds since the cloud
/// provider was installed. A node whose machine is missing must not keep volumes from all others for ever.
const PATIENCE: i64 = 300;

/// Holds back the workloads of the CSI driver until the nodes are initialised, as its controller would stay pending and
/// its node plugin could not be matched to a machine. A driver that runs already is never held back.
#[must_use]
pub fn hold(desired: &[Desired], cluster: &Cluster, running: &BTreeMap<DriverName, DriverHealth>, cpi_age: Option<i64>) -> Option<Hold> {
    let with_cpi = desired.iter().any(|d| d.driver == CPI);
    if !with_cpi || running.contains_key(CSI) {
        return None;
    }
    let lacking: Vec<&Node> = cluster.nodes.iter().filter(|n| n.lacks().is_some()).collect();
    let from = desired
        .iter()
        .filter(|d| d.driver == CSI && d.object.pod_spec().is_some())
        .map(|d| d.wave)
        .min()?;
    let usable = cluster.nodes.iter().any(|n| n.control_plane && n.lacks().is_none());
    if lacking.is_empty() && cpi_age.is_some() || (usable && cpi_age.is_some_and(|age| age > PATIENCE)) {
        return None;
    }
    let first = lacking.first().map_or_else(
        || "the cloud provider is not there yet".to_owned(),
        |n| format!("{} waits for {}", n.name, n.lacks().unwrap_or_default()),
    );
    let message = format!(
        "CSI waits for initialised nodes: {} of {} are ({first})",
        cluster.nodes.len() - lacking.len(),
        cluster.nodes.len()
    );
    Some(Hold {
        from,
        waits: vec![Wait {
            driver: CSI.into(),
            reason: Reason::WaitingForNodes,
            message,
        }],
    })
}

/// What each driver that is not healthy waits for.
#[must_use]
pub fn unproven(running: &BTreeMap<DriverName, DriverHealth>) -> Vec<Wait> {
    running
        .iter()
        .filter(|(_, health)| !health.ready)
        .map(|(driver, health)| Wait {
            driver: driver.clone(),
            reason: health.reason,
            message: health.message.clone(),
        })
        .collect()
}
