//! What follows from what the server would not accept: for whom it is asked again, and who waits (pure, but for the memory).

use super::prepare::Prepared;
use super::rehearsals::{Refusal, Refusals, Rehearsals, fingerprint};
use super::survey::Survey;
use super::{Occasion, World};
use crate::api::{Failure as _, Reason, chain};
use crate::plan::{Held, Plan, Step, Wait};
use crate::types::{Digest, DriverName, ObjectId};
use kube::ResourceExt;
use std::collections::BTreeMap;

/// What the server is asked about each driver: the same question has the same answer for a while.
pub(super) fn questions(whole: &Plan, survey: &Survey, world: &World, occasion: &Occasion<'_>) -> BTreeMap<DriverName, Digest> {
    let config = occasion.config;
    // A person who has put something right says so by an annotation, see `api::RECONCILE_AT`.
    let asked = format!("{:?} {:?}", config.metadata.generation, config.annotations());
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    for step in whole.steps.iter().filter(|step| step.is_transition()) {
        let Some(id) = step.id() else { continue };
        let text = texts.entry(step.driver(&survey.inventory)).or_insert_with(|| asked.clone());
        let found = match step {
            Step::Apply { change, .. } => format!("{change:?}"),
            _ => String::new(),
        };
        // Whether pods are let in hangs on them.
        let home = ObjectId::new("", "Namespace", "", id.namespace.clone());
        let home = world.reader.cache().and_then(|cache| cache.get(&home));
        let labels = home.map(|home| home.value()["metadata"]["labels"].to_string());
        text.push_str(&format!("\n{id} {} {found} {labels:?}", fingerprint(step)));
    }
    let digests = texts
        .into_iter()
        .map(|(driver, text)| (driver.to_owned(), Digest::of(text.as_bytes())));
    digests.collect()
}

/// Remembers what was refused. Of who waits because of it nothing is written, so the next attempt begins before the first write again.
/// What a server accepted while it was overloaded still counts: else a plan of many steps would hardly ever be accepted as a whole.
pub(super) fn keep(
    memory: &Rehearsals,
    whole: &Plan,
    survey: &Survey,
    prepared: &Prepared,
    asked: impl Fn() -> BTreeMap<DriverName, Digest>,
    refusals: &[Refusal],
) {
    let about_the_step = |(_, error): &&Refusal| !matches!(error.reason(), Reason::ApiUnavailable | Reason::ApplyFailed);
    let mut refused = by_driver(whole, survey, refusals.iter().filter(about_the_step));
    let waiting = prepared.held_with(whole, survey, waits(&refused));
    memory.forget(
        whole
            .steps
            .iter()
            .filter(|step| waiting.contains_key(step.driver(&survey.inventory))),
    );
    let asked = if refused.is_empty() { BTreeMap::new() } else { asked() };
    let same = asked.into_iter().filter_map(|(driver, what)| {
        let refusals = refused.remove(&driver)?;
        Some((driver, (what, refusals)))
    });
    memory.refuse(same.collect());
}

/// The refusals of each driver.
pub(super) fn by_driver<'a>(whole: &Plan, survey: &Survey, refusals: impl Iterator<Item = &'a Refusal>) -> Refusals {
    let mut drivers = Refusals::new();
    for (id, refusal) in refusals {
        let step = whole.steps.iter().find(|step| step.id().as_ref() == Some(id));
        let driver = step.map_or("", |step| step.driver(&survey.inventory)).to_owned();
        drivers.entry(driver).or_default().push((id.clone(), refusal.clone()));
    }
    drivers
}

/// What each of these drivers waits for: that the first of its refusals is taken back.
pub(super) fn waits(refused: &Refusals) -> Held {
    let wait = |(driver, refusals): (&DriverName, &Vec<Refusal>)| {
        let (_, refusal) = refusals.first()?;
        let wait = Wait {
            driver: driver.clone(),
            reason: refusal.reason(),
            message: chain(refusal.as_ref()),
        };
        Some((driver.clone(), wait))
    };
    refused.iter().filter_map(wait).collect()
}

/// Refusals in the order of the steps.
pub(super) fn in_order(whole: &Plan, mut refusals: Vec<Refusal>) -> Vec<Refusal> {
    if refusals.len() > 1 {
        let steps = whole.steps.iter().enumerate();
        let places: BTreeMap<ObjectId, usize> = steps.filter_map(|(place, step)| Some((step.id()?, place))).collect();
        refusals.sort_by_key(|(id, _)| places.get(id).copied());
    }
    refusals
}
