// SPDX-License-Identifier: Apache-2.0
//! Volumes in the simulated vCenter's service for container volumes (CNS), registered as a CSI driver does.

use anyhow::Result;

use crate::vcenter::Vcenter;
use crate::wait::{PATIENCE, Probe, until};

const MANAGER: &str = r#"<_this type="CnsVolumeManager">cns-volume-manager</_this>"#;

impl Vcenter {
    /// Registers a volume under a cluster id; gives its identifier, which is the handle of a PersistentVolume.
    pub async fn register_volume(&self, cluster_id: &str, name: &str) -> Result<String> {
        let session = self.soap_session().await?;
        let datastore = self.id("Datastore", "LocalDS_0").await?;
        let create = format!(
            "<CnsCreateVolume xmlns=\"urn:vsan\">{MANAGER}<createSpecs><name>{name}</name><volumeType>BLOCK</volumeType>\
             <datastores type=\"Datastore\">{}</datastores><metadata><containerCluster><clusterType>KUBERNETES</clusterType>\
             <clusterId>{cluster_id}</clusterId><vSphereUser>csi</vSphereUser></containerCluster></metadata>\
             <backingObjectDetails xsi:type=\"CnsBlockBackingDetails\"><capacityInMb>1</capacityInMb></backingObjectDetails>\
             </createSpecs></CnsCreateVolume>",
            datastore.trim()
        );
        self.soap("/vsanHealth", &session, &create).await?;
        // Without its type the filter would end the service, which then answers no one.
        let query = format!(
            "<CnsQueryVolume xmlns=\"urn:vsan\">{MANAGER}<filter xsi:type=\"CnsQueryFilter\"><names>{name}</names>\
             <containerClusterIds>{cluster_id}</containerClusterIds></filter></CnsQueryVolume>"
        );
        let id = until(&format!("volume {name} to be registered"), PATIENCE, async || {
            let (_, answer) = self.soap("/vsanHealth", &session, &query).await?;
            let id = answer.split_once("<volumeId><id>").and_then(|(_, rest)| rest.split_once("</id>"));
            Ok(match id {
                Some((id, _)) => Probe::Ready(id.to_owned()),
                None => Probe::not_yet(answer),
            })
        })
        .await?;
        self.end_soap_session(&session).await?;
        Ok(id)
    }

    /// Removes a volume and its registration.
    pub async fn delete_volume(&self, id: &str) -> Result<()> {
        let session = self.soap_session().await?;
        let delete = format!(
            "<CnsDeleteVolume xmlns=\"urn:vsan\">{MANAGER}<volumeIds><id>{id}</id></volumeIds><deleteDisk>true</deleteDisk></CnsDeleteVolume>"
        );
        self.soap("/vsanHealth", &session, &delete).await?;
        self.end_soap_session(&session).await?;
        Ok(())
    }
}
