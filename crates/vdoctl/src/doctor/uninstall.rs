// SPDX-License-Identifier: Apache-2.0
//! The doctor checks while a VDOConfig is being deleted: whether an operator runs, and what the removal of the drivers waits for.

use super::super::context::{Context, now};
use super::super::error::CliError;
use super::super::operator_running::Presence;
use super::check::Check;
use kube::ResourceExt;
use vdo_api::api::{DeletionPolicy, Reason, VDOConfig};
use vdo_api::types::count;
use vdo_core::plan::{Plan, Step};

/// What an uninstallation needs, instead of what an installation needs.
pub(super) async fn checks(context: &Context, config: &VDOConfig) -> Vec<Check> {
    let namespace = config.namespace().unwrap_or_default();
    let deleted = config.metadata.deletion_timestamp.is_some();
    let presence = match Presence::find(context, &namespace).await {
        Ok(presence) => presence.confirmed(context, deleted).await,
        Err(error) => Err(error),
    };
    let mut checks = vec![match presence {
        Ok(presence) => operator(&presence, config),
        Err(error) => unknown("OperatorActs", &CliError::from(error)),
    }];
    if deleted && config.spec.deletion_policy == DeletionPolicy::Orphan {
        checks.push(Check::new(
            "Removed",
            None,
            Reason::Progressing,
            "the drivers stay, because deletionPolicy is Orphan",
            "",
        ));
        return checks;
    }
    match context.removal(config).await {
        Ok((_, plan)) => checks.extend(removal(&plan)),
        Err(error) => checks.push(unknown("Removed", &CliError::from(error))),
    }
    checks
}

fn operator(presence: &Presence, config: &VDOConfig) -> Check {
    const NAME: &str = super::operator::ACTS;
    if let Some((what, remedy)) = presence.stuck(config, now()) {
        return Check::new(NAME, Some(false), Reason::OperatorNotRunning, &what, remedy.as_str());
    }
    match presence.absence(now()) {
        None => Check::new(NAME, Some(true), Reason::Healthy, "an operator runs", ""),
        Some(why) => Check::new(
            NAME,
            Some(false),
            Reason::OperatorNotRunning,
            &format!("no operator runs to remove the drivers: {why}"),
            "Check the operator's pods, or apply the operator's manifests again.",
        ),
    }
}

fn removal(plan: &Plan) -> Vec<Check> {
    let blocked = plan
        .blocked
        .iter()
        .map(|wait| Check::new("Removed", Some(false), wait.reason, &wait.message, ""));
    let waits = plan
        .waiting
        .iter()
        .map(|wait| Check::new("Removed", None, wait.reason, &wait.message, ""));
    let mut checks: Vec<Check> = blocked.chain(waits).collect();
    let left = plan.writes().filter(|step| matches!(step, Step::Delete { .. })).count();
    if checks.is_empty() {
        let message = match left {
            0 => "no object of the drivers is left".to_owned(),
            some => format!("{} of the drivers are still to be removed", count(some, "object")),
        };
        checks.push(Check::new(
            "Removed",
            (left == 0).then_some(true),
            Reason::Progressing,
            &message,
            "",
        ));
    }
    checks
}

fn unknown(check: &str, error: &CliError) -> Check {
    Check::new(check, None, Reason::NotChecked, &error.what, error.remedy.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::check::Mark;
    use super::*;
    use vdo_core::plan::Wait;

    #[test]
    fn volumes_that_block_an_uninstallation_are_a_failed_check() {
        let wait = Wait {
            driver: "vsphere-csi".into(),
            reason: Reason::VolumesInUse,
            message: "the storage driver stays, because 1 volume".into(),
        };
        let mut plan = Plan::default();
        plan.blocked.push(wait);
        let found = removal(&plan);
        assert_eq!(
            (found.len(), found[0].status, found[0].reason.as_str()),
            (1, Mark::False, "VolumesInUse")
        );
        let done = removal(&Plan::default());
        assert_eq!(
            (done[0].status, done[0].message.as_str()),
            (Mark::True, "no object of the drivers is left")
        );
    }
}
