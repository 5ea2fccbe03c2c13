// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor --pre` without a readable cluster: runs the checks of the vCenter only, and reports that no version was chosen.

use super::super::super::CliError;
use super::super::super::args::{Doctor as Args, Global};
use super::super::super::context::now;
use super::super::super::deploy::vcenter::{Account, Login};
use super::super::super::matrix::Choice;
use super::super::check::{Check, Subject};
use super::super::{Findings, connection_subject};
use std::sync::Arc;
use vdo::reconcile::connection::examine;
use vdo_api::api::{ConditionType, Reason};
use vdo_api::facts::{Credentials, Node};
use vdo_core::drivers::KNOWN;
use vdo_vsphere::vcenter::Budget;
use vdo_vsphere::vsphere::{Feature, InspectionRequest, Requirements};

/// The checks of the vCenter.
pub(super) async fn inspect(
    args: &Args,
    global: &Global,
    account: Account,
    nodes: &[Arc<Node>],
    found: &mut Findings,
) -> Result<(), CliError> {
    let choice = Choice::at_desk(&args.index, global).await?;
    found.talk.extend(choice.used.warning());
    let Account {
        endpoint,
        login,
        datacenters,
        ..
    } = account;
    let Login::Typed(user, password) = login else { return Ok(()) };
    let request = InspectionRequest {
        server: endpoint.server.clone(),
        datacenters,
        requirements: Requirements {
            drivers: KNOWN.map(|driver| driver.name.into()).into(),
            features: [Feature::CloudProvider, Feature::Block].into(),
            ..Requirements::default()
        },
        nodes: nodes.to_vec(),
        alone: true,
        surplus: args.surplus(),
        machine_tags: false,
        index: Some(choice.loaded.index.clone()),
        claim: None,
        counted: None,
    };
    let budget = Budget::for_person(global.timeout);
    let reported = examine(&endpoint, &Credentials { user, password }, request, now(), &budget).await;
    let mut subject = connection_subject(&endpoint.address(), &reported);
    subject.lead_to_thumbprint(&reported);
    for check in &mut subject.checks {
        check.without_secret();
        if nodes.is_empty() && check.check == ConditionType::NodesFound.as_str() {
            let why = "the nodes of the cluster are not known";
            *check = Check::new(&*check.check, None, Reason::NotChecked, why, "");
        }
    }
    let undecided = not_chosen("no version was chosen, because the cluster could not be read completely");
    found.view.subjects.push(Subject::of_drivers(vec![undecided]));
    found.take(&endpoint.address(), subject, reported);
    Ok(())
}

/// That no versions can be chosen, and why.
pub(super) fn not_chosen(why: &str) -> Check {
    Check::new("VersionsFit", None, Reason::NotChecked, why, "")
}
