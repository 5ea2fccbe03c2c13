// SPDX-License-Identifier: Apache-2.0
//! An inspection in which everything is asked.

use super::evil::endpoint;
use std::sync::Arc;
use vdo::reconcile::connection::collect;
use vdo_api::facts::{Credentials, Node};
use vdo_api::types::Secret;
use vdo_vsphere::vcenter::{Budget, Session, facts};
use vdo_vsphere::vsphere::{Feature, Requirements, SessionError, WantedPolicy};
use vdo_vsphere::vsphere::{InspectionRequest, Readings};

pub(crate) fn credentials() -> Credentials {
    Credentials {
        user: "u".into(),
        password: Secret::new("p"),
    }
}

/// Everything that can be asked of a vCenter.
pub(crate) fn question() -> InspectionRequest {
    InspectionRequest {
        requirements: Requirements {
            features: [Feature::CloudProvider, Feature::Block, Feature::Topology].into(),
            zone_and_region: Some(("zone".into(), "region".into())),
            policies: vec![WantedPolicy {
                name: "gold".into(),
                named_in: "the test".into(),
            }],
            ..Requirements::default()
        },
        nodes: vec![Arc::new(Node {
            name: "machine-of-someone-000001".into(),
            system_uuid: "42110001-0000-1111-2222-000000000001".into(),
            ..Node::default()
        })],
        alone: true,
        surplus: true,
        ..InspectionRequest::default()
    }
}

/// One inspection, from the first question to the last answer.
pub(crate) async fn inspect(port: u16, budget: &Budget) -> Result<Readings, SessionError> {
    let endpoint = endpoint(port);
    facts(&endpoint, budget).await?;
    let session = Session::open(endpoint, credentials(), budget).await?;
    collect(&session, &question(), true, budget).await
}
