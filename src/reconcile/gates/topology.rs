// SPDX-License-Identifier: Apache-2.0
//! Holds the CSI driver back while a vCenter lacks a tag category, and orders controller and node plugin for new categories (pure).

use crate::reconcile::driver_run::DriverRuns;
use std::collections::BTreeSet;
use vdo_api::api::Reason;
use vdo_api::facts::Connection;
use vdo_api::types::{ById, DriverName, ObjectId, name_list};
use vdo_core::drivers::{STORAGE, categories, topology_keys};
use vdo_core::health::{Verdict, assess};
use vdo_core::manifest::Object;
use vdo_core::plan::{Closed, Desired, Plan, Wait};

/// Holds back a driver that would begin to read tag categories which a vCenter does not have, or has not been asked for yet: with them its
/// controller fails, and a node does not register. A driver that reads them already is not held back.
pub(super) fn unknown_categories(runs: &DriverRuns, connections: &[Connection], live: &ById<Object>) -> Vec<Closed> {
    let closed = runs.iter().filter_map(|run| {
        let wanted = run.objects.iter().flat_map(|d| categories(&d.object));
        let read: BTreeSet<String> = run
            .objects
            .iter()
            .filter_map(|d| live.get(&d.object.id()))
            .flat_map(categories)
            .collect();
        let new: BTreeSet<String> = wanted.filter(|category| !read.contains(category)).collect();
        let used = connections.iter().filter(|connection| run.uses(&connection.name));
        let waits = used.filter_map(|connection| unknown(&run.name, connection, &new));
        // That one is missing is worth more than that another one has not been asked for yet.
        let (missing, other): (Vec<_>, Vec<_>) = waits.partition(|wait| wait.reason == Reason::TopologyCategoryNotFound);
        let missing = missing.into_iter().next().map(Closed::refused);
        missing.or_else(|| other.into_iter().next().map(Closed::changes))
    });
    closed.collect()
}

fn unknown(driver: &DriverName, connection: &Connection, new: &BTreeSet<String>) -> Option<Wait> {
    let known = connection.tag_categories.as_ref()?;
    let missing: Vec<&String> = new.iter().filter(|category| known.get(*category) == Some(&false)).collect();
    if !missing.is_empty() {
        return Some(Wait {
            driver: driver.clone(),
            reason: Reason::TopologyCategoryNotFound,
            message: format!(
                "{driver} waits for tag categories that the vCenter of vSphere connection {} does not have: {}",
                connection.name,
                name_list(&missing)
            ),
        });
    }
    let category = new.iter().find(|category| !known.contains_key(*category))?;
    Some(Wait {
        driver: driver.clone(),
        reason: Reason::Progressing,
        message: format!(
            "the operator checks whether the vCenter of vSphere connection {} has tag category {category}",
            connection.name
        ),
    })
}

/// The node plugins that have to register once more, with other categories, and what they wait for: a controller that answers with the
/// tags of the new ones.
pub(in crate::reconcile) fn node_plugins(plan: &Plan, desired: &[Desired], live: &ById<Object>) -> Option<(Wait, Vec<ObjectId>)> {
    let of_storage = || desired.iter().filter(|d| *d.driver == *STORAGE.name);
    let plugins: Vec<ObjectId> = of_storage()
        .filter(|d| {
            live.get(&d.object.id())
                .is_some_and(|live| topology_keys(live) != topology_keys(&d.object))
        })
        .map(|d| d.object.id())
        .collect();
    if plugins.is_empty() {
        return None;
    }
    let mut controllers = of_storage().filter(|d| d.object.kind() == "Deployment").map(|d| &d.object);
    let message = controllers.find_map(|controller| {
        let id = controller.id();
        let changes = plan.writes().any(|step| step.is_transition() && step.id().as_ref() == Some(&id));
        match live.get(&id).map(assess) {
            Some((Verdict::Current, _)) if !changes => None,
            Some((Verdict::Waiting(_, message), _)) if !changes => Some(message),
            _ => Some(format!("{controller} is changed first")),
        }
    })?;
    let wait = Wait {
        driver: STORAGE.name.into(),
        reason: Reason::Progressing,
        message: format!("the node plugin gets the new topology categories after the controller: {message}"),
    };
    Some((wait, plugins))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::driver_run::DriverRun;
    use crate::reconcile::site::tests::connection;
    use serde_json::json;
    use std::collections::BTreeMap;
    use vdo_core::drivers::CSI;
    use vdo_core::plan::Gate;

    fn plugin(categories: &str) -> Object {
        let annotations = match categories {
            "" => json!({}),
            some => json!({"topology.csi.vmware.com/categories": some}),
        };
        let value = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "node", "namespace": "n"},
            "spec": {"template": {"metadata": {"annotations": annotations}}}});
        Object::new(value).expect("an object")
    }

    #[test]
    fn gate_new_tag_categories_wait_for_every_vcenter() {
        let known = |all: &[(&str, bool)]| {
            Some(
                all.iter()
                    .map(|(name, found)| ((*name).to_owned(), *found))
                    .collect::<BTreeMap<_, _>>(),
            )
        };
        let both = || known(&[("a", true), ("b", true)]);
        for (live, wanted, vc1, vc2, expected) in [
            ("", "a,b", both(), both(), None),
            ("", "", known(&[]), known(&[]), None),
            ("", "a", both(), known(&[("a", false)]), Some(("TopologyCategoryNotFound", true))),
            (
                "",
                "a",
                known(&[]),
                known(&[("a", false)]),
                Some(("TopologyCategoryNotFound", true)),
            ),
            ("", "a", both(), known(&[]), Some(("Progressing", false))),
            // What is read already is no news, and what cannot be known holds nothing back.
            ("a", "a", known(&[("a", false)]), both(), None),
            ("a", "a,b", known(&[("a", false), ("b", true)]), both(), None),
            ("", "a", None, both(), None),
        ] {
            let mut runs = DriverRuns::default();
            let run = runs.of(CSI);
            *run = DriverRun::using(CSI, &["vc1", "vc2"]);
            let object = plugin(wanted);
            let id = object.id();
            run.objects.push(Desired {
                driver: CSI.into(),
                object,
                wave: 5,
            });
            let connections = [("vc1", &vc1), ("vc2", &vc2)].map(|(name, known)| Connection {
                tag_categories: known.clone(),
                ..connection(name)
            });
            let live: ById<Object> = (!live.is_empty()).then(|| (id, plugin(live))).into_iter().collect();
            let closed = unknown_categories(&runs, &connections, &live);
            let reported = closed.first().map(|closed| match &closed.gate {
                Gate::Refused(wait) => (wait.reason.as_str(), true),
                Gate::Waits(wait) => (wait.reason.as_str(), false),
                other => panic!("{other:?}"),
            });
            assert_eq!(reported, expected, "{wanted} {vc1:?} {vc2:?}");
        }
    }
}
