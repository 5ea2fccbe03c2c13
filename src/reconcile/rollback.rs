// SPDX-License-Identifier: Apache-2.0
//! Rolls a driver back to a revision after a failed change, or pins it to one by the annotation `revision.vdo.vmware.com/DRIVER`.
//!
//! The decisions are pure; the only effect is the check in `served.rs` that the API server serves the kinds of the revision.

use super::choose::Choice;
use super::driver_run::{DriverRun, DriverRuns, Source};
use super::dry_run::DryRun;
use super::error::ReconcileError;
use super::observe::ClusterState;
use super::phase::{Collect, Phase};
use super::planned::Planned;
use super::render::{RenderInput, ordered};
use super::{Ports, ReconcileInput, revision_kinds_served};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_api::api::{
    APPLIED_ANNOTATION, CONFIG_CHECKSUM_ANNOTATION, Class, Classify as _, MatrixStatus, RETRY_AT, REVISION_PREFIX, Reason, RollbackPolicy,
    VDOConfig, chain,
};
use vdo_api::facts::Connection;
use vdo_api::types::{Digest, DriverName, DriverVersion, ObjectId};
use vdo_core::drivers::{self, Material, SERVED, short};
use vdo_core::manifest::{ManifestError, Object, stamp};
use vdo_core::matrix::{Pick, State};
use vdo_core::plan::{
    Desired, Revision, RevisionFailure, Rollback, Sight, Wait, brought_back, given_up_at, needed_images, verdict, wave, way_back,
};
use vdo_core::status::{Failure, Report};

/// A revision that a driver is brought back to, or kept at.
pub(super) struct Back {
    /// It, with its objects.
    pub revision: Revision,
    /// What it brings back, and why.
    pub rollback: Rollback,
}

impl Back {
    /// Why this version, for the status.
    pub fn because(&self, driver: &str) -> String {
        let to = self.rollback.to;
        match &self.rollback.from {
            Some(from) => format!("rolled back to revision {to}, because {} {} failed", short(driver), from.version),
            None => format!("kept at revision {to} by the annotation {REVISION_PREFIX}{driver}"),
        }
    }

    /// Says of a choice that this is chosen instead.
    fn picked(&self, driver: &str, pick: &mut Pick) {
        let about = &self.revision.about;
        if let (Ok(version), Ok(digest)) = (about.version.parse(), about.chart.parse()) {
            pick.version = version;
            pick.chart.digest = digest;
            pick.because = self.because(driver);
        }
    }

    /// The namespace of the webhook's certificate, where the revision has one.
    pub fn webhook(&self) -> Option<String> {
        let all = self.revision.objects.objects();
        let served = all.iter().find(|object| object.is_secret() && object.name() == SERVED)?;
        Some(served.namespace().to_owned())
    }

    /// What there is to report: a change that failed waits for a person. `waited_for` are the images that pods of the driver cannot pull.
    pub fn failure(&self, driver: &str, waited_for: Option<&BTreeMap<String, ObjectId>>) -> Option<Failure> {
        let from = self.rollback.from.as_ref()?;
        let (name, revision) = (short(driver), &self.revision);
        let mut message = format!(
            "{name} {0} (revision {1}) failed: {4}; revision {2} ({name} {3}) is installed again, with the current configuration and credentials; \
             the operator does not retry the failed version until you change the specification, or the matrix or the platform changes; to retry now: vdoctl upgrade retry",
            from.version, from.revision, self.rollback.to, revision.about.version, from.failure.message
        );
        let lost = waited_for.filter(|images| !images.is_empty()).and_then(|images| {
            let needed = needed_images(&revision.objects.objects());
            images.iter().find(|(image, _)| needed.contains(*image))
        });
        if let Some((image, pod)) = lost {
            message.push_str(&format!(
                "; revision {} needs image {image}, which {pod} cannot pull",
                self.rollback.to
            ));
        }
        Some(Failure::new(Reason::RolledBack, Class::Terminal, message))
    }
}

/// The changes that failed and that only a person may take back.
fn left_to_people(config: &VDOConfig, state: &ClusterState) -> Vec<Failure> {
    if config.spec.rollback != RollbackPolicy::Manual {
        return Vec::new();
    }
    let failed = state.inventory.history.iter().filter_map(|(driver, revisions)| {
        let newest = revisions.last()?;
        let failure = newest.failure.as_ref()?;
        let (name, back) = (short(driver), way_back(revisions)?);
        let message = format!(
            "{name} {} (revision {}) failed: {}; the operator restores no revision, because spec.rollback is Manual; \
             vdoctl rollback {name} {} restores {name} {}",
            newest.about.version, newest.number, failure.message, back.number, back.about.version
        );
        Some(Failure::new(Reason::RollbackAvailable, Class::Wait, message))
    });
    failed.collect()
}

/// Under which specification, matrix and platform a change is made; `None` while that is not known.
pub(super) fn basis(config: &VDOConfig, matrix: Option<&MatrixStatus>, kubernetes: &str, connections: &[Connection]) -> Option<String> {
    let vcenters: Option<Vec<String>> = connections
        .iter()
        .map(|c| Some(format!("{} {} {:?}", c.name, c.version.as_ref()?.raw(), c.build)))
        .collect();
    let asked = config.annotations().get(RETRY_AT);
    let spec = serde_json::to_string(&config.spec).ok()?;
    let text = format!("{spec}\n{}\n{kubernetes}\n{:?}\n{asked:?}", matrix?.digest, vcenters?);
    Some(Digest::of(text.as_bytes()).hex()[..16].to_owned())
}

/// Takes a revision instead of a version for the drivers that are brought back to one, or kept at one.
pub(super) async fn roll_back(
    input: &ReconcileInput<'_>,
    ports: &Ports,
    state: &ClusterState,
    basis: Option<&str>,
    runs: &mut DriverRuns,
) -> Phase<()> {
    let mut found = Report::default();
    find(input.config, state, basis, runs); // pure
    found.or_stop(revision_kinds_served::keep_served(ports, state, runs).await)?; // effect
    found.failures.extend(left_to_people(input.config, state)); // pure
    found.failures.extend(settle(state, runs)); // pure
    Ok(((), found))
}

/// Finds the drivers that are asked for and brought back to a revision, or kept at one.
fn find(config: &VDOConfig, state: &ClusterState, basis: Option<&str>, runs: &mut DriverRuns) {
    for run in runs.iter_mut().filter(|run| run.asked.is_some() && !run.is_unusable()) {
        let revisions = state.inventory.history.get(&run.name).map_or(&[][..], Vec::as_slice);
        let back = match pinned(config, &run.name, revisions) {
            Ok(None) if config.spec.rollback == RollbackPolicy::Automatic => {
                brought_back(revisions, basis).map(|(revision, rollback)| Back {
                    revision: revision.clone(),
                    rollback,
                })
            }
            Ok(back) => back,
            Err(error) => {
                run.fail(error);
                None
            }
        };
        run.source = back.map(|back| Source::Revision(Box::new(back)));
    }
}

/// Puts the revisions that are brought back into the choice, and gives what there is to report of them.
fn settle(state: &ClusterState, runs: &mut DriverRuns) -> Vec<Failure> {
    let mut failures = Vec::new();
    for run in runs.iter_mut() {
        let Some(Source::Revision(back)) = &run.source else { continue };
        failures.extend(back.failure(&run.name, state.unpullable.get(&run.name)));
        if let Some(pick) = &mut run.pick {
            back.picked(&run.name, pick);
        }
    }
    failures
}

/// The revision that a person keeps a driver at.
fn pinned(config: &VDOConfig, driver: &str, revisions: &[Revision]) -> Result<Option<Back>, ReconcileError> {
    let Some(text) = config.annotations().get(&format!("{REVISION_PREFIX}{driver}")) else {
        return Ok(None);
    };
    let unusable = || ReconcileError::RevisionUnusable {
        driver: driver.to_owned(),
        revision: text.clone(),
        problem: format!("it is not in the history; the history contains: {}", numbers(revisions)),
    };
    let to: u64 = text.trim().parse().map_err(|_| unusable())?;
    let brings = |revision: &&Revision| {
        let rollback = revision.about.rollback.as_ref();
        rollback.is_some_and(|rollback| rollback.to == to && rollback.from.is_none())
    };
    // What is kept may be trimmed from the history; what runs is not.
    let found = revisions
        .last()
        .filter(brings)
        .or_else(|| revisions.iter().find(|revision| revision.number == to));
    let revision = found.ok_or_else(unusable)?.clone();
    Ok(Some(Back {
        revision,
        rollback: Rollback { to, from: None },
    }))
}

fn numbers(revisions: &[Revision]) -> String {
    let all: Vec<String> = revisions
        .iter()
        .map(|revision| format!("{} ({})", revision.number, revision.about.version))
        .collect();
    match all.is_empty() {
        true => "none".into(),
        false => all.join(", "),
    }
}

/// Why the matrix has withdrawn the version that leads back, if it has: then nothing leads back to it.
fn withdrawn(driver: &str, back: &Revision, choice: &Choice) -> Option<String> {
    match &choice.entry(driver, &back.about.version.parse().ok()?)?.state {
        State::Withdrawn(verdict) => Some(verdict.reason.clone()),
        State::Good | State::Deprecated(_) => None,
    }
}

/// The objects of a revision, with the configuration and the credentials of now.
pub(super) fn objects(input: &RenderInput<'_>, run: &DriverRun, back: &Back) -> Result<Vec<Desired>, ReconcileError> {
    let (driver, about) = (&*run.name, &back.revision.about);
    let unusable = |problem: String| ReconcileError::RevisionUnusable {
        driver: driver.to_owned(),
        revision: back.rollback.to.to_string(),
        problem,
    };
    let version: DriverVersion = about.version.parse().map_err(|_| unusable("its version is not known".into()))?;
    let mut objects = back.revision.objects.objects();
    let is_written = |object: &&Object| {
        let written = drivers::known(driver).map(|known| known.written).unwrap_or_default();
        written.contains(&(object.kind(), object.name()))
    };
    let namespace = objects.iter().find(is_written).map(|object| object.namespace().to_owned());
    let written = input.configuration(run, &version, &namespace.unwrap_or_default())?;
    for object in &mut objects {
        if let Some(now) = written.iter().find(|now| now.id() == object.id()) {
            *object = now.clone();
        } else if object.is_secret() {
            return Err(unusable(format!(
                "the history does not contain the content of {object}, and the current configuration does not contain this object"
            )));
        }
        *object = fresh(object, input.webhook)?;
    }
    stamp(&mut objects, &input.owner(driver, about.version.clone()));
    let role = drivers::role(driver);
    Ok(ordered(objects, driver, |object| wave(object.kind(), role)))
}

/// An object without what earlier runs noted in it, and with the authorities of now.
fn fresh(object: &Object, webhook: Option<&Material>) -> Result<Object, ManifestError> {
    let mut value = object.value().clone();
    for metadata in ["/metadata", "/spec/template/metadata"] {
        let Some(metadata) = value.pointer_mut(metadata).and_then(Value::as_object_mut) else {
            continue;
        };
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            // It would go into the digest, which would be another one each time.
            annotations.shift_remove(APPLIED_ANNOTATION);
            annotations.shift_remove(CONFIG_CHECKSUM_ANNOTATION);
            if annotations.is_empty() {
                metadata.shift_remove("annotations");
            }
        }
    }
    if let (Some(material), "ValidatingWebhookConfiguration") = (webhook, object.kind()) {
        for webhook in value.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
            webhook["clientConfig"]["caBundle"] = STANDARD.encode(&material.bundle).into();
        }
    }
    Object::new(value)
}

/// A change that is not healthy in time, or that is refused halfway, with the way back.
pub(super) struct GivenUp<'a> {
    driver: DriverName,
    /// What failed.
    reason: Reason,
    message: String,
    /// Under which specification, matrix and platform.
    basis: String,
    /// The revision that comes back.
    pub back: &'a Revision,
    /// Why it cannot.
    pub unusable: Option<String>,
}

/// The changes to be given up, and the time at which the next one is if it is not healthy by then.
fn given_up<'a>(
    config: &VDOConfig,
    state: &'a ClusterState,
    planned: &Planned,
    dry_run: Option<&DryRun>,
    now: Timestamp,
) -> (Vec<GivenUp<'a>>, Option<Timestamp>) {
    let (mut all, mut next): (Vec<GivenUp<'_>>, Option<Timestamp>) = (Vec::new(), None);
    if config.spec.rollback == RollbackPolicy::Disabled {
        return (all, next);
    }
    for (driver, revisions) in &state.inventory.history {
        if planned.is_apart(driver) {
            continue;
        }
        let refusal = dry_run.and_then(|dry_run| {
            dry_run
                .refusals
                .iter()
                .find(|(id, error)| planned.writes(driver, id) && error.is_lasting())
        });
        let refused = refusal.map(|(_, error)| (error.reason(), chain(error.as_ref())));
        // Nodes that are not alive, or on which the driver did not work before, say nothing about the change.
        let before = revisions.last().map_or(&[][..], |newest| &newest.about.ill);
        let as_before = state
            .running
            .get(driver)
            .is_some_and(|health| !health.ready && health.nodes.is_as_before(before));
        let lacks = planned
            .plan
            .waiting
            .iter()
            .find(|wait| wait.driver == *driver)
            .map(|wait| wait.message.clone());
        let lacks = lacks.or_else(|| {
            planned
                .plan
                .is_unfinished(driver)
                .then(|| "its objects are not in the desired state".to_owned())
        });
        let sight = Sight {
            lacks: lacks.as_deref().filter(|_| !as_before),
            refused: refused.as_ref().map(|(reason, said)| (*reason, said.as_str())),
            progress: state.progress.get(driver).copied(),
            now,
            deadline: config.spec.deadline(),
        };
        let (Some((reason, message)), Some(basis), Some(back)) = (verdict(revisions, &sight), &planned.choice.basis, way_back(revisions))
        else {
            let due = given_up_at(revisions, sight.progress, sight.deadline).filter(|due| *due > now);
            next = next.into_iter().chain(due).min();
            continue;
        };
        let withdrawn = withdrawn(driver, back, &planned.choice);
        all.push(GivenUp {
            driver: driver.clone(),
            reason,
            message,
            basis: basis.clone(),
            back,
            unusable: withdrawn.map(|why| format!("the matrix has withdrawn {} {} ({why})", short(driver), back.about.version)),
        });
    }
    (all, next)
}

/// Gives up the changes that do not get healthy in time, or that are refused halfway.
pub(super) async fn give_up(
    input: &ReconcileInput<'_>,
    ports: &Ports,
    state: &ClusterState,
    planned: &mut Planned,
    tried: Option<&DryRun>,
) -> Phase<()> {
    let mut found = Report::default();
    let (mut all, look_again) = given_up(input.config, state, planned, tried, input.now); // pure
    found.look_again = look_again;
    found.or_stop(revision_kinds_served::check(ports, &mut all).await)?; // effect: asks
    found.failures.extend(take_back(all, planned)); // pure
    Ok(((), found))
}

/// They are recorded as failed in this run, and brought back in the next. Gives what there is to report of those that nothing leads back from.
fn take_back(all: Vec<GivenUp<'_>>, planned: &mut Planned) -> Vec<Failure> {
    let mut failures = Vec::new();
    for one in all {
        if let Some(problem) = one.unusable {
            failures.push(Failure::from(&ReconcileError::RevisionUnusable {
                driver: one.driver,
                revision: one.back.number.to_string(),
                problem: format!("{problem}; the installed version failed: {}", one.message),
            }));
            continue;
        }
        let message = format!(
            "the change of {} has failed ({}): {}; the operator now installs revision {} again",
            short(&one.driver),
            one.reason,
            one.message,
            one.back.number
        );
        let wait = Wait {
            driver: one.driver.clone(),
            reason: Reason::Progressing,
            message,
        };
        let failure = RevisionFailure {
            reason: one.reason.to_string(),
            message: one.message,
            basis: one.basis,
        };
        planned.give_up(&one.driver, failure, wait);
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vdo_core::plan::{Failed, PackedObjects};

    #[test]
    fn rolled_back_names_image_that_the_revision_needs_and_a_pod_cannot_pull() {
        let spec = json!({"template": {"spec": {"containers": [{"name": "c", "image": "r/c:1"}]}}});
        let set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "n"}, "spec": spec});
        let set = Object::new(set).expect("an object");
        let failure = RevisionFailure {
            reason: "DeadlineExceeded".into(),
            message: "not healthy".into(),
            basis: "b".into(),
        };
        let from = Failed {
            revision: 2,
            version: "2.0.0".into(),
            failure,
        };
        let back = Back {
            revision: Revision::of(1, PackedObjects::of([set].iter())),
            rollback: Rollback { to: 1, from: Some(from) },
        };
        let images = |image: &str| BTreeMap::from([(image.to_owned(), ObjectId::new("", "Pod", "n", "p"))]);
        let (own, other) = (images("r/c:1"), images("r/c:2"));
        for (waited_for, expected) in [(None, false), (Some(&own), true), (Some(&other), false)] {
            let message = back.failure("d", waited_for).expect("a failure").message;
            let named = message.ends_with("; revision 1 needs image r/c:1, which Pod n/p cannot pull");
            assert_eq!(named, expected, "{message}");
        }
    }
}
