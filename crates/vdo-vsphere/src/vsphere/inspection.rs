// SPDX-License-Identifier: Apache-2.0
//! The request of an inspection (address, requirements, nodes) and its raw results from the probe, the login and the reads.

use super::{
    Claim, Finding, Granted, Inventory, NodeReport, Policy, ProbeError, RegisteredVolumes, RequiredPrivilege, Requirements, SessionError,
    Tagging, VcenterFacts,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use vdo_api::api::CredentialStatus;
use vdo_api::facts::Node;
use vdo_core::matrix::Index;

/// What a vCenter is inspected for.
#[derive(Debug, Clone, Default)]
pub struct InspectionRequest {
    /// The address of the vCenter, for messages.
    pub server: String,
    /// The datacenters to look in, by name or path; empty means all.
    pub datacenters: Vec<String>,
    /// What the drivers require of this connection.
    pub requirements: Requirements,
    /// The nodes of the cluster.
    pub nodes: Vec<Arc<Node>>,
    /// Whether this is the only connection, so that every node must be found here.
    pub alone: bool,
    /// Whether privileges that no driver needs are read, too.
    pub surplus: bool,
    /// Whether the tags of machines are read, too, which no driver reads.
    pub machine_tags: bool,
    /// The matrix, where there is one, to tell whether any driver supports this vCenter.
    pub index: Option<Arc<Index>>,
    /// The cluster id that is about to be used for the first time, if the storage driver uses this connection.
    pub claim: Option<Arc<Claim>>,
    /// The cluster id whose volumes are counted by kind, for figures; `None` where they are not.
    pub counted: Option<String>,
}

/// The result of asking a vCenter who it is.
#[derive(Debug)]
pub enum ProbeOutcome {
    /// It was not asked, because of this; or because there is nothing to ask with.
    NotAsked(Finding),
    /// It was asked.
    Asked(Box<Result<VcenterFacts, ProbeError>>),
}

/// The result of a login and of what was read after it.
#[derive(Debug)]
pub enum LoginOutcome {
    /// There was no vCenter to log in to, or there were no credentials.
    NotTried,
    /// Not tried now, or refused just now; the record has the reason and the time of the next attempt.
    Postponed(CredentialStatus),
    /// The session or a read failed, and not because of the credentials.
    Failed(SessionError),
    /// The login succeeded, and this was read.
    Succeeded(Box<Readings>),
}

/// What was read of a vCenter with a login. A part that no driver needs is empty; one that failed has its error.
#[derive(Debug)]
pub struct Readings {
    /// What is there.
    pub inventory: Inventory,
    /// The nodes with their machines.
    pub nodes: Vec<NodeReport>,
    /// The storage policies.
    pub policies: Result<Vec<Policy>, SessionError>,
    /// The privileges that are required.
    pub required_privileges: Vec<RequiredPrivilege>,
    /// The privileges that are granted.
    pub granted: Result<Granted, SessionError>,
    /// The tags of zones and regions.
    pub tagging: Result<Tagging, SessionError>,
    /// Whether a cluster has the file service of vSAN; `None` where no driver needs it.
    pub file_service: Option<Result<Option<bool>, SessionError>>,
    /// The volumes registered under the cluster id; `None` where there was nothing to ask.
    pub volumes: Option<Result<RegisteredVolumes, SessionError>>,
    /// How many volumes of which kind are registered for the cluster; `None` where they were not counted.
    pub volume_kinds: Option<Result<BTreeMap<&'static str, u64>, SessionError>>,
}

impl Readings {
    /// Whether the service for tags refused the login.
    #[must_use]
    pub fn tags_refused(&self) -> bool {
        matches!(self.tagging, Err(SessionError::TagsRefused { .. }))
    }
}

/// Everything that one inspection of a vCenter found.
#[derive(Debug)]
pub struct Inspection {
    /// What it was inspected for.
    pub request: InspectionRequest,
    /// Without a login.
    pub probe: ProbeOutcome,
    /// With a login.
    pub login: LoginOutcome,
}

impl Inspection {
    /// What the vCenter reports about itself, if it answered.
    #[must_use]
    pub fn facts(&self) -> Option<&VcenterFacts> {
        match &self.probe {
            ProbeOutcome::Asked(answer) => answer.as_ref().as_ref().ok(),
            ProbeOutcome::NotAsked(..) => None,
        }
    }
}
