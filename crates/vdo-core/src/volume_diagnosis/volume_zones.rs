// SPDX-License-Identifier: Apache-2.0
//! Describes the zones that a volume requests, and for each zone the nodes, their hosts and the datastores that all of these hosts reach.

use super::Observed;
use super::objects::{Label, Term};
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::{count, name_list};

/// Zones that a message shows.
const SHOWN: usize = 8;

/// A zone: the labels that nodes share.
type Zone<'a> = Vec<(&'a str, &'a str)>;

/// What is asked for, and what there is. With nothing asked for, all zones of the driver; empty where the nodes are not known.
pub(super) fn described(observed: &Observed, asked: &[Term]) -> String {
    let Some(nodes) = &observed.nodes else { return String::new() };
    let keys = keys(observed, asked);
    let mut zones: BTreeMap<Zone<'_>, Vec<&str>> = BTreeMap::new();
    for node in nodes {
        let labels = &node.metadata.labels;
        let zone: Option<Zone<'_>> = keys.iter().map(|key| Some((*key, labels.get(*key)?.as_str()))).collect();
        if let Some(zone) = zone.filter(|zone| !zone.is_empty()) {
            zones.entry(zone).or_default().push(&node.metadata.name);
        }
    }
    let is_asked = |zone: &Zone<'_>| asked.is_empty() || asked.iter().any(|term| allows(term, zone));
    let (wanted, others): (Vec<_>, Vec<_>) = zones.iter().partition(|(zone, _)| is_asked(zone));
    // Where no node is in a zone that is asked for, the others are what can be asked for.
    let shown = if wanted.is_empty() { others } else { wanted };
    let mut parts: Vec<String> = (!asked.is_empty())
        .then(|| format!("requested: {}", labels(asked)))
        .into_iter()
        .collect();
    let most = shown.len().saturating_sub(SHOWN);
    parts.extend(shown.into_iter().take(SHOWN).map(|(zone, nodes)| of_zone(observed, zone, nodes)));
    if most > 0 {
        parts.push(format!("and {}", count(most, "more zone")));
    }
    parts.join("; ")
}

/// The labels by which zones differ: those that are asked for, or those with which the driver has registered.
fn keys<'a>(observed: &'a Observed, asked: &'a [Term]) -> BTreeSet<&'a str> {
    let named = asked.iter().flat_map(Term::labels).map(|label| &*label.key);
    let keys: BTreeSet<&str> = named.collect();
    if !keys.is_empty() {
        return keys;
    }
    let nodes = observed.csi_nodes.iter().flatten();
    nodes.flat_map(|node| node.topology_keys()).collect()
}

fn allows(term: &Term, zone: &Zone<'_>) -> bool {
    let has = |label: &Label| {
        zone.iter()
            .any(|(key, value)| *key == label.key && label.values.iter().any(|one| one == value))
    };
    term.labels().all(has)
}

/// `zone=a|b, region=c; or zone=d`.
pub(super) fn labels(terms: &[Term]) -> String {
    let label = |label: &Label| format!("{}={}", label.key, label.values.join("|"));
    let term = |term: &Term| term.labels().map(label).collect::<Vec<_>>().join(", ");
    terms.iter().map(term).collect::<Vec<_>>().join("; or ")
}

/// `zone=a: nodes w-1, w-2 on hosts esx-1, esx-2, which share datastores fast, slow`.
fn of_zone(observed: &Observed, zone: &Zone<'_>, nodes: &[&str]) -> String {
    let labels: Vec<String> = zone.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut text = format!("{}: nodes {}", labels.join(", "), name_list(nodes));
    let machines = |node: &&str| Some(observed.machines.get(*node)?.host.as_str());
    let hosts: Option<BTreeSet<&str>> = nodes.iter().map(machines).collect();
    // Of hosts that are not all known nothing is concluded.
    let Some(hosts) = hosts.filter(|hosts| !hosts.contains("")) else {
        return text + ", whose hosts are not known";
    };
    text.push_str(&format!(" on hosts {}", name_list(&hosts.iter().collect::<Vec<_>>())));
    let Some(reached) = &observed.reached else { return text };
    let shared = reached.iter().filter(|one| hosts.iter().all(|host| one.hosts.contains(*host)));
    let shared: Vec<&str> = shared.map(|one| one.datastore.as_str()).collect();
    match shared.is_empty() {
        true => text + ", which share no datastore",
        false => format!("{text}, which share datastores {}", name_list(&shared)),
    }
}
