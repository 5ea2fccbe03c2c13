use super::{AFTER, Login, Look, Verdict};
use crate::api::{ConditionType, Conditions, Reason, VsphereCloudConfig, VsphereCloudConfigStatus, chain};
use crate::health::{find_datacenters, match_machines};
use crate::reconcile::login;
use crate::vcenter::SessionError;

/// The stages that need a login.
pub(super) fn within(
    conditions: &mut Conditions,
    status: &mut VsphereCloudConfigStatus,
    verdict: &mut Verdict,
    object: &VsphereCloudConfig,
    look: &Look,
) {
    let inventory = match &look.login {
        Login::In(inventory) => inventory,
        other => {
            let failed = match other {
                Login::Waits(record) => {
                    let (reason, message) = login::waiting(&object.spec.vc_ip, record);
                    if let Some(own) = &mut status.credential {
                        own.attempts = record.attempts;
                        own.last_tried.clone_from(&record.last_tried);
                        own.refused.clone_from(&record.refused);
                        own.verified = own.verified.take().filter(|version| *version != own.version);
                    }
                    Some(Verdict {
                        ready: record.refused.as_ref().map(|_| false),
                        reason,
                        message,
                    })
                }
                Login::Failed(error) => Some(Verdict {
                    ready: matches!(error, SessionError::Forbidden { .. }).then_some(false),
                    reason: login::reason(error),
                    message: format!("{}. {}", chain(error), error.remedy()),
                }),
                _ => Some(Verdict {
                    ready: None,
                    reason: Reason::NotChecked,
                    message: "an earlier check failed, or the login could not be tried yet".into(),
                }),
            };
            // A call that is forbidden shows that the login was not.
            let at = match other {
                Login::Failed(SessionError::Forbidden { .. }) => {
                    conditions.set(ConditionType::Authenticated, Some(true), Reason::Healthy, "the login was accepted");
                    ConditionType::DatacentersFound
                }
                _ => ConditionType::Authenticated,
            };
            for kind in AFTER.into_iter().skip_while(|kind| *kind != at) {
                match &failed {
                    Some(failed) if kind == at => conditions.set(kind, failed.ready, failed.reason, failed.message.clone()),
                    _ => conditions.set(kind, None, Reason::NotChecked, "an earlier check failed"),
                }
            }
            verdict.blame(failed);
            return;
        }
    };
    if let Some(own) = &mut status.credential {
        own.verified = Some(own.version.clone());
        (own.attempts, own.last_tried, own.refused) = (0, None, None);
        let message = format!("{} lets {} in", object.spec.vc_ip, own.user);
        conditions.set(ConditionType::Authenticated, Some(true), Reason::Healthy, message);
    }
    let wanted = &object.spec.datacenters;
    match find_datacenters(wanted, &inventory.datacenters) {
        Ok(()) => {
            let count = inventory.datacenters.len();
            let message = if wanted.is_empty() {
                format!("all {count} datacenters are looked at")
            } else {
                format!("{} of {count} datacenters are looked at", wanted.len())
            };
            conditions.set(ConditionType::DatacentersFound, Some(true), Reason::Healthy, message);
        }
        Err((reason, message)) => {
            conditions.set(ConditionType::DatacentersFound, Some(false), reason, message.clone());
            verdict.blame(Some(Verdict {
                ready: Some(false),
                reason,
                message,
            }));
        }
    }
    let (matches, machines) = match_machines(&look.nodes, &inventory.machines, wanted);
    let message = format!("{} of {} nodes are virtual machines here", machines.found, machines.nodes);
    let named = |names: &[String]| names.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    status.machines = Some(machines);
    let (found, reason, message) = if !matches.ambiguous.is_empty() {
        let text = format!("{message}; not to be told apart: {}", named(&matches.ambiguous));
        (Some(false), Reason::NodeAmbiguous, text)
    } else if look.alone && !matches.missing.is_empty() {
        let text = format!("{message}; not found: {}", named(&matches.missing));
        (Some(false), Reason::NodeNotFound, text)
    } else {
        (Some(true), Reason::Healthy, message)
    };
    conditions.set(ConditionType::NodesFound, found, reason, message);
}
