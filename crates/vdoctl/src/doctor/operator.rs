// SPDX-License-Identifier: Apache-2.0
//! The doctor checks of the operator: whether an operator holds the Lease, whether management is paused, whether a plan waits for approval.

use super::super::context::{Context, now};
use super::super::error::CliError;
use super::super::operator_running::{Deployment, Lease, Presence};
use super::check::{Check, Subject, Topic};
use kube::ResourceExt;
use vdo::cluster::{LEASE_NAME, LEASE_NAMESPACE};
use vdo_api::api::{ConditionType, Conditions, ManagementState, Reason, VDOConfig};
use vdo_core::install::operator_version;

/// The name of the check that an operator acts.
pub(super) const ACTS: &str = "OperatorActs";

pub(super) async fn subject(context: &Context, config: &VDOConfig) -> Subject {
    let namespace = config.namespace().unwrap_or_default();
    let found = match Presence::find(context, &namespace).await {
        Ok(presence) => presence.confirmed(context, config.metadata.deletion_timestamp.is_some()).await,
        Err(error) => Err(error),
    };
    let (about, acts) = match found {
        Ok(presence) => (version(&presence), acts(&presence, config)),
        Err(error) => {
            let error = CliError::from(error);
            let check = Check::new(ACTS, None, Reason::NotChecked, &error.what, error.remedy.as_str());
            (None, check)
        }
    };
    Subject {
        subject: Topic::Operator,
        name: format!("{namespace}/{}", vdo_core::install::OPERATOR),
        about: about.into_iter().collect(),
        checks: [Some(acts), managed(config), approved(config)].into_iter().flatten().collect(),
    }
}

fn version(presence: &Presence) -> Option<String> {
    match &presence.deployment {
        Deployment::Unknown => None,
        Deployment::Missing => Some("no Deployment".into()),
        Deployment::Found(found) => Some(operator_version(found).unwrap_or_else(|| "latest".into())),
    }
}

fn acts(presence: &Presence, config: &VDOConfig) -> Check {
    let status = config.status.as_ref();
    let confirmed = status.and_then(|status| status.last_confirmed.as_ref()).map(|at| at.0);
    if let Some(silence) = presence.silence(confirmed, now()) {
        let message = format!("{}; nothing is repaired or updated, and the status is old", silence.what(now()));
        return Check::new(ACTS, Some(false), Reason::OperatorNotRunning, &message, silence.remedy.as_str());
    }
    match (&presence.lease, &presence.deployment) {
        (Lease::Held { holder, .. }, Deployment::Found(_)) => {
            let failure = presence.deployment.failure(&presence.whole());
            let failure = failure.map(|failure| format!(", and {failure}")).unwrap_or_default();
            let message = format!("{holder} holds the Lease {LEASE_NAMESPACE}/{LEASE_NAME}{failure}");
            Check::new(ACTS, Some(true), Reason::Healthy, &message, "")
        }
        (Lease::Held { holder, .. }, _) => {
            let message = format!("{holder} holds the Lease {LEASE_NAMESPACE}/{LEASE_NAME}");
            Check::new(ACTS, Some(true), Reason::Healthy, &message, "")
        }
        (Lease::Free { .. }, _) => Check::new(ACTS, None, Reason::NotChecked, "the operator is starting", ""),
        (Lease::Unknown, _) => Check::new(
            ACTS,
            None,
            Reason::NotChecked,
            &format!("you lack the right to get Lease {LEASE_NAMESPACE}/{LEASE_NAME}"),
            "",
        ),
    }
}

/// That management is paused, which is what was asked for and no failure.
fn managed(config: &VDOConfig) -> Option<Check> {
    (config.spec.management_state == ManagementState::Paused).then(|| {
        Check::new(
            "Managed",
            Some(true),
            Reason::Paused,
            "management is paused by spec.managementState: nothing is written or repaired",
            "vdoctl diff shows the pending changes. To continue, set spec.managementState to Managed.",
        )
    })
}

/// That a plan waits for a person, as the operator has published it.
fn approved(config: &VDOConfig) -> Option<Check> {
    let ready = Conditions::find(&config.status.as_ref()?.conditions, ConditionType::Ready)?;
    let waits = ready.reason == Reason::ApprovalRequired.as_str();
    waits.then(|| Check::new("Approved", Some(false), Reason::ApprovalRequired, &ready.message, ""))
}
