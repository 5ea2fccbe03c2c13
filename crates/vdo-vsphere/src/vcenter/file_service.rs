// SPDX-License-Identifier: Apache-2.0
//! Reads whether clusters have the file service of vSAN enabled, which file volumes need (vSAN Management API, `VsanClusterGetConfig`).

use super::call::Caller;
use super::requests::{Method, refer};
use crate::vsphere::{Inventory, ManagedObject, SessionError};

/// Clusters that are asked. Where none of so many has the service, the others are not known.
const MOST: usize = 64;

/// Whether one of the clusters has the file service switched on; `None` where not all of them were asked.
pub(super) async fn read(caller: &mut Caller<'_>, inventory: &Inventory) -> Result<Option<bool>, SessionError> {
    let manager = ManagedObject {
        kind: "VsanVcClusterConfigSystem".into(),
        id: "vsan-cluster-config-system".into(),
    };
    let all = inventory.places.values().map(|place| &place.object);
    let clusters: Vec<&ManagedObject> = all.filter(|object| object.kind == "ClusterComputeResource").collect();
    for cluster in clusters.iter().take(MOST) {
        let answer = caller
            .call(Method::VsanClusterGetConfig, &manager, &refer("cluster", cluster))
            .await?;
        let service = answer.child("returnval").and_then(|config| config.child("fileServiceConfig"));
        if service.is_some_and(|service| service.text_of("enabled") == "true") {
            return Ok(Some(true));
        }
    }
    Ok((clusters.len() <= MOST).then_some(false))
}
