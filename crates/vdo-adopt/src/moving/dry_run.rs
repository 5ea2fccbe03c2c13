// SPDX-License-Identifier: Apache-2.0
//! Simulates a move in a cluster in which every step succeeds: the dry run of `vdoctl adopt --move` and `--undo` lists all steps.

use super::{Config, New, Next, Node, Pod, State, Step, Write};
use serde_json::json;
use vdo_core::chart::values::merge;
use vdo_core::drivers::{CLOUD_PROVIDER, Driver, KNOWN};
use vdo_core::installed::{MOVED, Moving, Phase};
use vdo_core::manifest::Object;

/// More steps than any move has: a dry run ends.
const MOST: usize = 100_000;

impl State {
    /// All that comes next if everything succeeds, to the end or to what blocks it.
    #[must_use]
    pub fn outline(mut self, next: impl Fn(&Self) -> Next) -> Vec<Next> {
        let mut all = Vec::new();
        while all.len() < MOST {
            let step = next(&self);
            match &step {
                Next::Do(step) => self.take(step),
                Next::Wait(wait) => {
                    // Something that cannot be foreseen.
                    if matches!(all.last(), Some(Next::Wait(last)) if last.to_string() == wait.to_string()) {
                        break;
                    }
                    self.converge(|| true);
                }
                Next::Blocked { .. } | Next::Done => {
                    all.push(step);
                    break;
                }
            }
            all.push(step);
        }
        all
    }

    /// Takes a step.
    pub(super) fn take(&mut self, step: &Step) {
        match step.write() {
            Write::Merge(object, patch) => {
                let mut value = object.value().clone();
                merge(&mut value, &patch);
                let Ok(changed) = Object::new(value) else { return };
                self.put(&object, &changed);
            }
            Write::Apply(value) => {
                let Ok(object) = Object::new(value) else { return };
                match step {
                    Step::Save(live) => {
                        let shared = self.shared.iter_mut();
                        let mut of = shared.filter(|shared| shared.live.as_ref().is_some_and(|one| one.id() == live.id()));
                        if let Some(shared) = of.next() {
                            shared.saved = Some(object);
                        }
                    }
                    _ => {
                        if let Some(shared) = self.shared.iter_mut().find(|shared| shared.live.is_none()) {
                            shared.live = Some(object);
                        }
                    }
                }
            }
            Write::Delete(object) => {
                self.new.retain(|new| new.object.id() != object.id());
                for shared in &mut self.shared {
                    if shared.saved.as_ref().is_some_and(|saved| saved.id() == object.id()) {
                        shared.saved = None;
                    }
                }
            }
        }
    }

    fn put(&mut self, object: &Object, changed: &Object) {
        let old = self.old.iter_mut().map(|old| &mut old.object);
        let nodes = self.nodes.iter_mut().map(|node| &mut node.object);
        let shared = self.shared.iter_mut().filter_map(|shared| shared.live.as_mut());
        for one in old.chain(nodes).chain(shared).filter(|one| one.id() == object.id()) {
            *one = changed.clone();
        }
        if matches!(&self.config, Config::Managed { object: config, .. } if config.id() == object.id()) {
            self.config = Config::Paused { is_observed: false };
        }
    }

    /// What controllers and the operator do then, as far as each thing is allowed to happen.
    pub(super) fn converge(&mut self, mut allow: impl FnMut() -> bool) {
        let nodes = self.nodes.clone();
        for old in &mut self.old {
            let mark = Moving::of(&old.object);
            old.pods.retain(|pod| wants(mark.as_ref(), &nodes, pod) || !allow());
        }
        if let Config::Paused { is_observed } | Config::Managed { is_observed, .. } = &mut self.config {
            *is_observed = *is_observed || allow();
        }
        let is_free = self
            .taken()
            .all(|old| old.mark().is_some_and(|mark| mark.is_out_of_the_way(&old.object)));
        for driver in KNOWN {
            let is_there = self.new.iter().any(|new| new.driver.name == driver.name);
            if is_free && self.config.asks_for(driver) && !is_there && allow() {
                self.install(driver);
            }
        }
        self.start(&mut allow);
    }

    fn install(&mut self, driver: &'static Driver) {
        let kinds: &[&str] = if driver.name == CLOUD_PROVIDER.name {
            &["DaemonSet"]
        } else {
            &["Deployment", "DaemonSet"]
        };
        for kind in kinds {
            let metadata = json!({"namespace": driver.namespace, "name": format!("new-{}", kind.to_lowercase())});
            let object = Object::new(json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata}));
            self.new.extend(object.map(|object| New {
                driver,
                object,
                waits: None,
                pods: Vec::new(),
            }));
        }
        for shared in &mut self.shared {
            shared.is_ours = true;
            let live = shared.live.clone().map(Object::into_value);
            if let Some(mut value) = live {
                value["data"] = json!({"written": "by the operator"});
                shared.live = Object::new(value).ok();
            }
        }
    }

    /// Pods of the operator's drivers start; those of node plugins where no old one is.
    fn start(&mut self, allow: &mut impl FnMut() -> bool) {
        let taken = |driver: &Driver, node: &str| {
            let mut old = self
                .old
                .iter()
                .filter(|old| old.driver.name == driver.name && old.object.kind() == "DaemonSet");
            old.any(|old| old.pods.iter().any(|pod| pod.node == node))
        };
        for new in &mut self.new {
            let is_on_nodes = new.object.kind() == "DaemonSet";
            let places: Vec<String> = match is_on_nodes {
                true => self.nodes.iter().map(|node| node.object.name().to_owned()).collect(),
                false => vec![String::new()],
            };
            for place in places {
                let ready = !is_on_nodes || !taken(new.driver, &place);
                let pod = new.pods.iter_mut().find(|pod| pod.node == place);
                match pod {
                    Some(pod) => pod.ready = pod.ready || (ready && allow()),
                    None if allow() => new.pods.push(Pod {
                        name: format!("{}-{place}", new.object.name()),
                        node: place.clone(),
                        ready,
                    }),
                    None => {}
                }
            }
            let ready = |node: &Node| new.pods.iter().any(|pod| pod.ready && pod.node == node.object.name());
            for node in self.nodes.iter_mut().filter(|node| ready(node)) {
                node.is_registered = true;
            }
        }
    }
}

/// Whether a workload that is moved so far keeps a pod.
pub(super) fn wants(mark: Option<&Moving>, nodes: &[Node], pod: &Pod) -> bool {
    match mark.map(|mark| mark.phase) {
        None => true,
        Some(Phase::Leaving) => nodes
            .iter()
            .any(|node| node.object.name() == pod.node && node.object.label(MOVED).is_none()),
        Some(Phase::Stopping | Phase::Stopped) => false,
    }
}
