// SPDX-License-Identifier: Apache-2.0
//! WebhookCertificateValid: creates and renews the certificate of the CSI driver's validating webhook in a Secret.
//!
//! The Secret is beside the VDOConfig; the chart's Secret and the `caBundle` of the webhook are rendered from it. The decision is pure
//! (state × time → action); the effects are the creation of keys and one write.

use vdo_core::certificate::{Action, Known, Pair, SECRET, State, decide, issue, verify, verify_pair};

use super::driver_run::{DriverRun, DriverRuns};
use super::error::ReconcileError;
use super::observe::ClusterState;
use super::observe::cluster::by_name;
use super::{Mode, Ports, ReconcileInput};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::json;
use vdo_api::api::{API_VERSION, ConditionType, ManagementState, Reason};
use vdo_core::drivers::{Material, SERVED, STORAGE};
use vdo_core::health::DriverHealth;
use vdo_core::manifest::Object;
use vdo_core::plan::Step;
use vdo_core::status::Precondition;

/// The Service that the chart puts before the webhook.
const SERVICE: &str = "vsphere-webhook-svc";

const CONDITION: ConditionType = ConditionType::WebhookCertificateValid;

/// The webhook is not asked for, or the chart has none.
fn not_asked_for() -> Precondition {
    Precondition {
        kind: CONDITION,
        holds: None,
        reason: Reason::NotRequested,
        message: "the webhook of CSI is not requested".into(),
    }
}

/// What the webhook serves with, and the write of it, if one is due.
pub(super) struct Served {
    /// The certificate, for what is rendered.
    pub material: Material,
    /// The state of the certificate, where it has to be written before what is rendered from it.
    pub store: Option<Step>,
}

/// The certificate of the webhook, where that is asked for and the chart has one. Without a certificate the CSI driver fails.
pub(super) async fn serve(
    input: &ReconcileInput<'_>,
    ports: &Ports,
    state: &ClusterState,
    runs: &mut DriverRuns,
) -> (Option<Served>, Option<Precondition>) {
    let run = runs.get_mut(STORAGE.name);
    let Some((namespace, run)) = run.and_then(|run| Some((place(input, run)?, run))) else {
        return (None, Some(not_asked_for()));
    };
    match material(input, ports, state, &namespace).await {
        Ok((material, store, precondition)) => (Some(Served { material, store }), Some(precondition)),
        Err(error) => {
            run.source = None;
            run.fail(error);
            (None, None)
        }
    }
}

/// The namespace of the webhook, where it is asked for and the chart or the revision has one.
fn place(input: &ReconcileInput<'_>, run: &DriverRun) -> Option<String> {
    let storage = input.config.spec.storage_provider.as_ref().filter(|storage| storage.webhook)?;
    if let Some(back) = run.back() {
        return back.webhook();
    }
    let chart = run.chart().filter(|chart| chart.values.get("webhook").is_some())?;
    let namespace = storage.values.get("namespace").or_else(|| chart.values.get("namespace"))?;
    Some(namespace.as_str()?.to_owned())
}

/// The certificate to render, after the next step of its life; the write of that step, if it is due; and what there is to say of the one
/// in use.
///
/// # Errors
/// When the Secret cannot be read, or no keys can be drawn.
async fn material(
    input: &ReconcileInput<'_>,
    ports: &Ports,
    state: &ClusterState,
    namespace: &str,
) -> Result<(Material, Option<Step>, Precondition), ReconcileError> {
    let own = input.config.namespace().unwrap_or_default();
    let watch = by_name("Secret", &own, SECRET);
    let found = ports.reader.load([watch.clone()]).await?.one(&watch);
    let certificates = found.as_ref().and_then(State::read);
    let live = Live::of(state);
    let name = format!("{SERVICE}.{namespace}.svc");
    let known = certificates.as_ref().map(|certificates| {
        let trusted = |pair: &Pair| live.bundle.as_deref().is_some_and(|bundle| bundle.contains(pair.authority.trim()));
        Known {
            current: verify_pair(&certificates.current, &name, input.now),
            next: certificates.next.as_ref().map(|next| verify_pair(next, &name, input.now)),
            next_trusted: certificates.next.as_ref().is_some_and(trusted),
            previous: certificates.previous.is_some(),
            since: certificates.since,
            rolled_out: state.running.get(STORAGE.name).is_some_and(|health: &DriverHealth| health.ready),
        }
    });
    let action = decide(known.as_ref(), input.now);
    // A command writes nothing, and neither does an operator that is paused.
    let acts = input.mode == Mode::Operator && input.config.spec.management_state == ManagementState::Managed;
    let first = certificates.is_none();
    let certificates = match (certificates, acts || matches!(action, Action::Issue(_))) {
        (Some(certificates), false) => certificates,
        (certificates, _) => act(certificates, &action, live.works(&name, input.now), namespace, input.now)?,
    };
    let store = match acts && action != Action::Keep {
        true => {
            let owner = json!({"apiVersion": API_VERSION, "kind": "VDOConfig", "name": input.config.name_any(), "uid": input.config.uid()});
            Some(Step::Store {
                object: Object::new(certificates.write(&own, &owner))?,
                driver: STORAGE.name.to_owned(),
                first,
            })
        }
        false => None,
    };
    let precondition = live.verdict(&name, input.now);
    let material = Material {
        bundle: certificates.bundle(),
        certificate: certificates.current.certificate,
        key: certificates.current.key,
    };
    Ok((material, store, precondition))
}

/// The state after an action. When our own state was lost or is no good, what the cluster serves with may still work: then its
/// authorities stay trusted until nothing serves with it any more, as in a rotation.
fn act(
    certificates: Option<State>,
    action: &Action,
    works: Option<&str>,
    namespace: &str,
    now: Timestamp,
) -> Result<State, ReconcileError> {
    let issue = || issue(SERVICE, namespace, now).map_err(ReconcileError::Certificate);
    let fresh = |current: Pair| State {
        current,
        next: None,
        previous: None,
        since: now,
    };
    Ok(match (certificates, action) {
        (None, _) | (Some(_), Action::Issue(_)) => State {
            previous: works.map(str::to_owned),
            ..fresh(issue()?)
        },
        (Some(certificates), Action::Keep) => certificates,
        (Some(certificates), Action::Stage) => State {
            next: Some(issue()?),
            since: now,
            ..certificates
        },
        (
            Some(State {
                current, next: Some(next), ..
            }),
            Action::Promote,
        ) => State {
            previous: Some(current.authority),
            ..fresh(next)
        },
        (Some(certificates), Action::Promote) => certificates,
        (Some(certificates), Action::Retire) => fresh(certificates.current),
    })
}

/// What is in the cluster.
struct Live {
    bundle: Option<String>,
    certificate: Option<String>,
}

impl Live {
    fn of(state: &ClusterState) -> Self {
        let find = |kind: &str, test: &dyn Fn(&Object) -> bool| state.live.values().find(|o| o.kind() == kind && test(o));
        let decoded = |text: &str| String::from_utf8(STANDARD.decode(text).ok()?).ok().filter(|text| !text.is_empty());
        let webhook = find("ValidatingWebhookConfiguration", &|_| true);
        let served = find("Secret", &|o| o.name() == SERVED);
        Self {
            bundle: webhook.and_then(|o| decoded(o.text("/webhooks/0/clientConfig/caBundle"))),
            certificate: served.and_then(|o| decoded(o.text("/data/tls.crt"))),
        }
    }

    /// The authorities that are trusted, if what is served works with them.
    fn works(&self, name: &str, now: Timestamp) -> Option<&str> {
        let (certificate, bundle) = (self.certificate.as_ref()?, self.bundle.as_deref()?);
        verify(certificate, bundle, name, now).is_ok().then_some(bundle)
    }

    /// What is to be said of the certificate in use.
    fn verdict(&self, name: &str, now: Timestamp) -> Precondition {
        let (Some(certificate), Some(bundle)) = (&self.certificate, &self.bundle) else {
            return Precondition {
                kind: CONDITION,
                holds: None,
                reason: Reason::Progressing,
                message: "the webhook is not installed yet".into(),
            };
        };
        match verify(certificate, bundle, name, now) {
            Ok(validity) => Precondition::holds(
                CONDITION,
                format!(
                    "the certificate is valid until {}; the operator renews it from {} on",
                    validity.until,
                    validity.renewal()
                ),
            ),
            Err(why) => Precondition::fails(
                CONDITION,
                Reason::WebhookCertificateInvalid,
                format!("the certificate of the webhook {why}; the operator replaces it"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "vsphere-webhook-svc.ns.svc";

    fn at(day: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + day * 86_400).expect("a time")
    }

    /// Two years, looked at every six hours, with a cluster that is one look behind: whatever is served, as it was or as it
    /// will be, is trusted by whatever is trusted, as it was or as it will be. An authority is never made twice.
    #[test]
    fn webhook_certificate_rotation_two_years_has_no_trust_gap() {
        let (mut certificates, mut live): (Option<State>, Option<State>) = (None, None);
        let mut steps = Vec::new();
        for look in 0..2 * 365 * 4 {
            let now = Timestamp::from_second(at(0).as_second() + look * 6 * 3600).expect("a time");
            let known = certificates.as_ref().map(|s| Known {
                current: verify_pair(&s.current, NAME, now),
                next: s.next.as_ref().map(|next| verify_pair(next, NAME, now)),
                next_trusted: s
                    .next
                    .as_ref()
                    .is_some_and(|next| live.as_ref().is_some_and(|l| l.bundle().contains(next.authority.trim()))),
                previous: s.previous.is_some(),
                since: s.since,
                rolled_out: live == certificates,
            });
            let action = decide(known.as_ref(), now);
            let next = act(certificates.clone(), &action, None, "ns", now).expect("certificates");
            for served in live.iter().chain([&next]) {
                for trusting in live.iter().chain([&next]) {
                    verify(&served.current.certificate, &trusting.bundle(), NAME, now).expect("no gap");
                }
            }
            if action != Action::Keep {
                steps.push(format!("{action:?}"));
            }
            (live, certificates) = (Some(next.clone()), Some(next));
        }
        let turn = ["Stage", "Promote", "Retire"];
        assert_eq!(steps.len(), 1 + 12 * turn.len(), "{steps:?}");
        assert!(steps.remove(0).starts_with("Issue"));
        assert!(
            steps.iter().zip(turn.iter().cycle()).all(|(step, wanted)| step == wanted),
            "{steps:?}"
        );
    }

    /// A new pair, made because our state was lost, is served beside the old one until all pods have it.
    #[test]
    fn webhook_certificate_state_lost_keeps_old_authority_trusted() {
        let old = issue(SERVICE, "ns", at(0)).expect("a pair");
        let live = |bundle: &str| Live {
            bundle: Some(bundle.to_owned()),
            certificate: Some(old.certificate.clone()),
        };
        let action = Action::Issue("there is none yet".into());
        for (live, day, trusted) in [
            (live(&old.authority), 1, true),
            (live(&old.authority), 91, false),
            (live("nonsense"), 1, false),
        ] {
            let certificates = act(None, &action, live.works(NAME, at(day)), "ns", at(day)).expect("certificates");
            assert!(verify(&certificates.current.certificate, &certificates.bundle(), NAME, at(day)).is_ok());
            assert_eq!(
                verify(&old.certificate, &certificates.bundle(), NAME, at(day)).is_ok(),
                trusted,
                "on day {day}"
            );
        }
    }

    /// What is reported of a certificate that is in use; the time is an argument.
    #[test]
    fn webhook_certificate_expired_or_wrong_is_reported() {
        let pair = issue(SERVICE, "ns", at(0)).expect("a pair");
        let other = issue("other", "ns", at(0)).expect("a pair");
        let say = |certificate: &str, bundle: &str, day: i64| {
            let live = Live {
                bundle: Some(bundle.to_owned()),
                certificate: Some(certificate.to_owned()),
            };
            let found = live.verdict(NAME, at(day));
            format!("{:?} {}: {}", found.holds, found.reason, found.message)
        };
        let (own, theirs) = (pair.authority.as_str(), other.authority.as_str());
        assert!(
            say(&pair.certificate, own, 1).starts_with(
                "Some(true) Healthy: the certificate is valid until 2027-04-15T08:00:00Z; the operator renews it from 2027-03-16"
            ),
            "{}",
            say(&pair.certificate, own, 1)
        );
        for (found, expected) in [
            (say(&pair.certificate, own, 91), "expired at 2027-04-15T08:00:00Z"),
            (say(&pair.certificate, own, -1), "is not valid before 2027-01-15T07:00:00Z"),
            (say(&pair.certificate, theirs, 1), "is not signed by an authority in caBundle"),
            (
                say(&other.certificate, theirs, 1),
                "is not for vsphere-webhook-svc.ns.svc but for other, other.ns, other.ns.svc",
            ),
            (say("nonsense", own, 1), "is not a certificate in PEM form"),
            (
                say(&pair.certificate, "nonsense", 1),
                "is not trusted by the API server: caBundle is empty or unusable",
            ),
        ] {
            let expected =
                format!("Some(false) WebhookCertificateInvalid: the certificate of the webhook {expected}; the operator replaces it");
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn webhook_certificate_without_bundle_is_unknown() {
        let pair = issue(SERVICE, "ns", at(0)).expect("a pair");
        let nothing = Live {
            bundle: None,
            certificate: Some(pair.certificate),
        };
        assert_eq!(nothing.verdict(NAME, at(1)).holds, None);
    }
}
