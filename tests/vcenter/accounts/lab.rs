// SPDX-License-Identifier: Apache-2.0
//! A vCenter that enforces privileges, and an administrator in it.

use anyhow::Result;
use std::collections::BTreeSet;
use std::sync::Arc;
use vdo::reconcile::connection::examine;
use vdo_admin::accounts::{
    Authorization, ChangeError, Consent, Grant, Mark, Principal, Review, Step, Unused, grants, plan_create, plan_delete, review,
};
use vdo_admin::administrator::Administrator;
use vdo_api::facts::{Credentials, Node};
use vdo_api::types::{Secret, Trust};
use vdo_core::drivers::{CPI, CSI};
use vdo_testbed::{Vcenter, VcenterOptions};
use vdo_vsphere::vcenter::{Budget, Endpoint};
use vdo_vsphere::vsphere::{
    ConnectionReport, Feature, InspectionRequest, Inventory, ManagedObject, RequiredPrivilege, Requirements, SessionError, match_vms,
    required_privileges,
};

pub const NODES: [(&str, &str); 3] = [("n-1", "10.0.0.1"), ("n-2", "10.0.0.2"), ("n-3", "10.0.0.3")];
pub const NOW: jiff::Timestamp = jiff::Timestamp::UNIX_EPOCH;

/// A vCenter that enforces privileges, with an administrator logged in.
pub struct Lab {
    pub vcenter: Vcenter,
    pub admin: Administrator,
    pub inventory: Inventory,
    pub nodes: Vec<Arc<Node>>,
    pub password: Secret,
}

pub fn endpoint(vcenter: &Vcenter) -> Endpoint {
    Endpoint {
        server: vcenter.host().into(),
        port: vcenter.port(),
        trust: Trust::CaBundle(vcenter.ca_pem().into()),
    }
}

pub async fn administrator(vcenter: &Vcenter, user: &str, password: &str) -> Result<Administrator, SessionError> {
    let credentials = Credentials {
        user: user.into(),
        password: Secret::new(password),
    };
    Administrator::open(endpoint(vcenter), credentials, &Consent::given()).await
}

pub fn requirements(features: &[Feature]) -> Requirements {
    Requirements {
        drivers: [CPI, CSI].map(Into::into).into(),
        features: features.iter().copied().collect(),
        ..Requirements::default()
    }
}

pub fn user(name: &str) -> Principal {
    Principal::user(name, "vsphere.local")
}

pub fn mark() -> Mark {
    Mark {
        cluster: "0c9c2a4e-7d1b-4a7e-9a50-3f5d1f2e7b11".into(),
        vcenter: "8b1f2c9e-6a55-4c8e-9d43-0f6f3a1c7e11".into(),
        drivers: ["csi".to_owned()].into(),
    }
}

impl Lab {
    pub async fn start(options: VcenterOptions, nodes: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let vcenter = Vcenter::start(options).await?;
        vcenter.enforce(true).await?;
        let admin = administrator(&vcenter, vcenter.user(), vcenter.password()).await?;
        let inventory = admin.inventory().await?;
        let node = |(name, address): (String, String)| {
            Arc::new(Node {
                name,
                addresses: vec![address],
                ..Node::default()
            })
        };
        Ok(Self {
            inventory,
            admin,
            vcenter,
            nodes: nodes.into_iter().map(node).collect(),
            password: Secret::new("Aa1-Aa1-Aa1-Aa1-Aa1"),
        })
    }

    pub async fn small() -> Result<Self> {
        let options = VcenterOptions {
            hosts: 2,
            more_users: [("half@vsphere.local".to_owned(), "half".to_owned())].into(),
            // A machine that is not a node.
            ..VcenterOptions::with_vms(NODES.into_iter().chain([("other", "10.0.0.9")]))
        };
        Self::start(options, NODES.map(|(name, address)| (name.to_owned(), address.to_owned()))).await
    }

    pub fn needs(&self, features: &[Feature]) -> Result<(Vec<RequiredPrivilege>, Vec<Grant>)> {
        let requirements = requirements(features);
        let found = match_vms(&self.nodes, &self.inventory, &[], &requirements);
        let required = required_privileges(&requirements, false, (&self.inventory, &found), None);
        let all = grants(&required, &self.inventory, &found, &BTreeSet::new())?;
        Ok((required, all))
    }

    pub async fn plan(&self, principal: &Principal, features: &[Feature], known: bool) -> Result<Vec<Step>> {
        let person = self.admin.person(principal, NOW).await?;
        let live = self.admin.authorization().await?;
        Ok(plan_create(
            principal,
            Some(&mark()),
            person.as_ref(),
            known,
            &self.needs(features)?.1,
            &live,
        )?)
    }

    pub async fn carry_out(&self, steps: &[Step]) -> Result<(), ChangeError> {
        for step in steps {
            self.admin.carry_out(step, &self.password, NOW).await?;
        }
        Ok(())
    }

    /// Everything that the operator checks, as this account.
    pub async fn examined(&self, principal: &Principal, features: &[Feature]) -> ConnectionReport {
        let credentials = Credentials {
            user: principal.to_string(),
            password: self.password.clone(),
        };
        let request = InspectionRequest {
            requirements: requirements(features),
            nodes: self.nodes.clone(),
            alone: true,
            ..InspectionRequest::default()
        };
        examine(&endpoint(&self.vcenter), &credentials, request, NOW, &Budget::default()).await
    }

    pub async fn review(&self, principal: &Principal, features: &[Feature]) -> Result<Review> {
        let (required, granted) = self.needs(features)?;
        let live = self.admin.authorization().await?;
        let own = live.of(principal).map(|(permission, _)| permission.object.clone());
        let objects: BTreeSet<ManagedObject> = required.iter().map(|one| one.object.clone()).chain(own).collect();
        let effective = self.admin.effective(principal, &objects.into_iter().collect::<Vec<_>>()).await?;
        Ok(review(principal, &required, &granted, &effective, &live, &self.inventory))
    }

    pub async fn delete(&self, principal: &Principal) -> Result<Vec<Step>> {
        let live = self.admin.authorization().await?;
        Ok(plan_delete(principal, true, &live, Unused::Deleted, |object| {
            self.inventory.path_of(object).to_owned()
        }))
    }

    pub async fn all(&self) -> Result<Authorization> {
        let mut all = self.admin.authorization().await?;
        all.permissions
            .sort_by(|a, b| (&a.object, &a.principal).cmp(&(&b.object, &b.principal)));
        Ok(all)
    }
}
