// SPDX-License-Identifier: Apache-2.0
//! Reads the operator's Lease (holder, renewal, expiry), and compares readings, so that wrong clocks do not mislead.

use super::super::context::now;
use super::{MARGIN, Presence};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use vdo::cluster::{ClusterError, LEASE_NAME, LEASE_NAMESPACE, get};
use vdo_api::types::ObjectId;
use vdo_core::manifest::Object;

/// The Lease by which one operator of several acts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Lease {
    /// It may not be seen.
    #[default]
    Unknown,
    /// No one holds it.
    Free {
        /// When its last holder renewed it last.
        renewed: Option<Timestamp>,
    },
    /// It is held.
    Held {
        /// By whom.
        holder: String,
        /// When it was renewed last.
        renewed: Timestamp,
        /// For how many seconds.
        lasts: i64,
    },
}

impl Lease {
    fn of(lease: Option<&Object>) -> Self {
        let Some(lease) = lease else { return Self::Free { renewed: None } };
        let holder = lease.text("/spec/holderIdentity");
        match lease.text("/spec/renewTime").parse().ok() {
            Some(renewed) if !holder.is_empty() => Self::Held {
                holder: holder.to_owned(),
                renewed,
                lasts: lease.number("/spec/leaseDurationSeconds").unwrap_or(MARGIN),
            },
            renewed => Self::Free { renewed },
        }
    }

    /// Reads it.
    pub(super) async fn read(client: &Client) -> Result<Self, ClusterError> {
        let id = ObjectId::new("coordination.k8s.io", "Lease", LEASE_NAMESPACE, LEASE_NAME);
        let lease = seen(client, "coordination.k8s.io/v1", &id).await?;
        Ok(lease.map_or(Self::Unknown, |lease| Self::of(lease.as_ref())))
    }

    /// Whether its holder has not renewed it in time, by the clock of this machine.
    pub(super) fn has_lapsed(&self, now: Timestamp) -> bool {
        matches!(self, Self::Held { renewed, lasts, .. } if renewed.as_second().saturating_add(*lasts).saturating_add(MARGIN) < now.as_second())
    }
}

/// What earlier looks saw of the Lease. Only a holder that renews it while it is watched is known to be there, whatever the clocks say.
#[derive(Debug, Default)]
pub(crate) struct Sight {
    last: Option<Lease>,
    renewed: Option<Timestamp>,
}

impl Sight {
    /// Looks at it once more.
    pub(crate) fn compare(&mut self, presence: &mut Presence) {
        if self.last.as_ref().is_some_and(|last| *last != presence.lease) {
            self.renewed = Some(now());
        }
        self.last = Some(presence.lease.clone());
        if let (Lease::Held { renewed, .. }, Some(at)) = (&mut presence.lease, self.renewed) {
            *renewed = at;
            presence.renews = true;
        }
    }
}

/// An object, if there is one; `None` where it may not be seen.
pub(super) async fn seen(client: &Client, api_version: &str, id: &ObjectId) -> Result<Option<Option<Object>>, ClusterError> {
    match get(client, api_version, id).await {
        Ok(found) => Ok(Some(found)),
        Err(ClusterError::Forbidden { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
