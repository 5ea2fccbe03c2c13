// SPDX-License-Identifier: Apache-2.0
//! Finds ResourceQuotas of storage that have no room for a claim, and StatefulSets whose claims they refuse.

use super::attachments::in_quotes;
use super::index::Index;
use super::objects::{Claim, Event, Meta, Quota};
use super::quantity::Quantity;
use super::{Cause, Finding, Names, Observed};

/// The sum of the sizes that claims ask for.
const SIZES: &str = "requests.storage";
/// The number of claims.
const CLAIMS: &str = "persistentvolumeclaims";
/// Between the name of a class and one of the two, where only claims of the class count.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";

pub(super) fn findings<'a>(observed: &'a Observed, index: &Index<'a>) -> Vec<Finding> {
    let quotas = observed.quotas.iter().flatten();
    let sets = observed.events.iter().flatten();
    quotas
        .filter_map(|quota| of_quota(index, quota))
        .chain(sets.filter_map(|event| of_stateful_set(index, event)))
        .collect()
}

/// What of claims a resource of a quota limits, with the class whose claims alone count.
fn limited(resource: &str) -> Option<(Option<&str>, &str)> {
    let (class, counted) = match resource.split_once(OF_CLASS) {
        Some((class, counted)) => (Some(class), counted),
        None => (None, resource),
    };
    [SIZES, CLAIMS].contains(&counted).then_some((class, counted))
}

/// What a quota has no room for.
fn of_quota<'a>(index: &Index<'a>, quota: &'a Quota) -> Option<Finding> {
    let waiting = index.waiting(&quota.metadata.namespace);
    let status = &quota.status;
    let lines = status.hard.iter().filter_map(|(resource, hard)| {
        let used = status.used.get(resource)?;
        short(resource, hard, used, &waiting)
    });
    let detail = lines.collect::<Vec<_>>().join("; ");
    (!detail.is_empty()).then(|| Finding::new(Cause::QuotaReached, "ResourceQuota", &quota.metadata, &detail, Names::default()))
}

/// What is left of a resource is nothing, or too little for another claim such as one that waits. That one is counted itself.
fn short(resource: &str, hard: &str, used: &str, waiting: &[&Claim]) -> Option<String> {
    let (class, counted) = limited(resource)?;
    let (most, now) = (Quantity::parse(hard)?, Quantity::parse(used)?);
    let is_at = format!("{resource} is at {used} of {hard}");
    if now >= most {
        return Some(is_at);
    }
    let of_class = waiting.iter().filter(|claim| class.is_none() || claim.class() == class);
    let is_too_large = |claim: &&&Claim| match counted {
        CLAIMS => now.plus(Quantity::ONE) > most,
        _ => claim.asked().and_then(Quantity::parse).is_some_and(|asked| now.plus(asked) > most),
    };
    let claim = of_class.copied().find(|claim| is_too_large(&claim))?;
    let size = claim.asked().unwrap_or_default();
    Some(format!(
        "{is_at}; a further claim of {size}, the size of claim {}, is refused",
        claim.metadata.name
    ))
}

/// A StatefulSet that gets no further claim. What Kubernetes writes has the figures.
fn of_stateful_set(index: &Index<'_>, event: &Event) -> Option<Finding> {
    let about = &event.involved_object;
    let message = event.message.as_str();
    let is_refused = message.contains("exceeded quota") && (message.contains(SIZES) || message.contains(CLAIMS));
    if about.kind != "StatefulSet" || !is_refused {
        return None;
    }
    // The event stays for an hour after the claim was created.
    let is_there = |claim: &str| index.claims.contains_key(&(&*about.namespace, claim));
    if in_quotes(message).next().is_some_and(is_there) {
        return None;
    }
    let meta = Meta {
        name: about.name.clone(),
        namespace: about.namespace.clone(),
        ..Meta::default()
    };
    Some(Finding::new(Cause::QuotaReached, "StatefulSet", &meta, message, Names::default()))
}
