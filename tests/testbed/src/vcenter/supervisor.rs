// SPDX-License-Identifier: Apache-2.0
//! What Workload Management adds to the inventory of a simulated vCenter.

use super::Vcenter;
use anyhow::Result;

const SHARE: &str = "<reservation>0</reservation><expandableReservation>true</expandableReservation><limit>-1</limit>\
                     <shares><shares>0</shares><level>normal</level></shares>";

impl Vcenter {
    /// Makes the folder and the resource pool `Namespaces`, as a Supervisor does, and moves these machines into a folder of a namespace there.
    pub async fn add_supervisor(&self, machines: &[&str]) -> Result<()> {
        let session = self.soap_session().await?;
        let pools = self.id("ResourcePool", "Resources").await?;
        let pool = format!(
            "<CreateResourcePool xmlns=\"urn:vim25\"><_this type=\"ResourcePool\">{pools}</_this><name>Namespaces</name><spec>\
             <cpuAllocation>{SHARE}</cpuAllocation><memoryAllocation>{SHARE}</memoryAllocation></spec></CreateResourcePool>"
        );
        self.soap("/sdk", &session, &pool).await?;
        let mut folder = self.id("Folder", "vm").await?;
        for name in ["Namespaces", "team-a"] {
            let create =
                format!("<CreateFolder xmlns=\"urn:vim25\"><_this type=\"Folder\">{folder}</_this><name>{name}</name></CreateFolder>");
            self.soap("/sdk", &session, &create).await?;
            folder = self.id("Folder", name).await?;
        }
        let mut list = String::new();
        for machine in machines {
            list += &format!("<list type=\"VirtualMachine\">{}</list>", self.id("VirtualMachine", machine).await?);
        }
        let into = format!("<MoveIntoFolder_Task xmlns=\"urn:vim25\"><_this type=\"Folder\">{folder}</_this>{list}</MoveIntoFolder_Task>");
        self.soap("/sdk", &session, &into).await?;
        self.end_soap_session(&session).await
    }
}
