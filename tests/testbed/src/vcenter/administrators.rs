// SPDX-License-Identifier: Apache-2.0
//! What administrators do in a simulated vCenter, and what accounts made use of.

use super::{Vcenter, query};
use anyhow::{Context as _, Result};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// What became of the changes that an administrator makes.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Gate {
    /// How many were made.
    pub passed: usize,
    /// How many wait.
    pub waiting: usize,
}

impl Vcenter {
    /// The privileges that calls of an account needed and had since its start.
    pub async fn used(&self, user: &str) -> Result<BTreeSet<String>> {
        let request = http::Request::get(format!("/ctl/used?user={}", query(user))).body(Vec::new())?;
        let found: Option<BTreeMap<String, bool>> = serde_json::from_str(&self.http()?.request_text(request).await?)?;
        Ok(found.into_iter().flatten().map(|(privilege, _)| privilege).collect())
    }

    /// Lets so many changes of an administrator pass, and keeps the next one waiting until [`Vcenter::open_gate`], or until its client ends.
    pub async fn close_gate(&self, after: usize) -> Result<()> {
        self.control(&format!("gate?after={after}")).await
    }

    /// Lets all changes pass again.
    pub async fn open_gate(&self) -> Result<()> {
        self.control("gate?open=true").await
    }

    /// How many changes passed since the gate was closed, and how many wait now.
    pub async fn gate(&self) -> Result<Gate> {
        let request = http::Request::get("/ctl/gate").body(Vec::new())?;
        Ok(serde_json::from_str(&self.http()?.request_text(request).await?)?)
    }

    /// The only datastores that meet a storage policy, both by their identifiers; without any all do again.
    pub async fn place(&self, policy: &str, datastores: &[&str]) -> Result<()> {
        let datastores: String = datastores.iter().map(|datastore| format!("&datastore={datastore}")).collect();
        self.control(&format!("placement?policy={policy}{datastores}")).await
    }

    /// Adds a datastore that one host alone has; gives its URL.
    pub async fn add_datastore(&self, host: &str, name: &str) -> Result<String> {
        let folder = self.dir().join(name);
        std::fs::create_dir_all(&folder)?;
        let url = folder.display().to_string();
        let session = self.soap_session().await?;
        let host = self.id("HostSystem", host).await?;
        let asked = format!(
            "<RetrieveProperties xmlns=\"urn:vim25\"><_this type=\"PropertyCollector\">propertyCollector</_this><specSet><propSet>\
             <type>HostSystem</type><pathSet>configManager.datastoreSystem</pathSet></propSet><objectSet>\
             <obj type=\"HostSystem\">{}</obj></objectSet></specSet></RetrieveProperties>",
            host.trim()
        );
        let (_, answer) = self.soap("/sdk", &session, &asked).await?;
        let system = answer.split_once("<val").and_then(|(_, rest)| rest.split_once('>'));
        let (system, _) = system.and_then(|(_, rest)| rest.split_once('<')).context(answer.clone())?;
        let create = format!(
            "<CreateLocalDatastore xmlns=\"urn:vim25\"><_this type=\"HostDatastoreSystem\">{system}</_this><name>{name}</name>\
             <path>{url}</path></CreateLocalDatastore>"
        );
        self.soap("/sdk", &session, &create).await?;
        self.end_soap_session(&session).await?;
        Ok(url)
    }

    /// Locks an account of the vCenter's own domain as too many wrong passwords do, or unlocks it.
    pub async fn lock(&self, user: &str, on: bool) -> Result<()> {
        self.control(&format!("directory?lock={}&on={on}", query(user))).await
    }
}
