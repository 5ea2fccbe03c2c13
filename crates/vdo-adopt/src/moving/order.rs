// SPDX-License-Identifier: Apache-2.0
//! Decides the next step of `vdoctl adopt --move` and of `--undo`, and finds what blocks the move (pure).

use super::node_by_node::OnNode;
use super::{Config, New, Next, Old, Pod, State, Step, Wait};
use crate::workload::Role;
use vdo_core::drivers::Driver;
use vdo_core::installed::{GO_ON, MOVED, Moving, Phase, has_node_port};
use vdo_core::manifest::Object;

impl State {
    /// What comes next on the way to the drivers of the operator.
    #[must_use]
    pub fn next(&self) -> Next {
        if let Some(blocked) = self.blocked() {
            return blocked;
        }
        if let Some(first) = self.not_installable() {
            return first;
        }
        let mut old: Vec<&Old> = self.taken().collect();
        // A node plugin keeps its pods, so it comes last.
        old.sort_by_key(|old| old.is_left_by_node());
        let unsaved = self.shared.iter().filter(|shared| shared.saved.is_none() && !shared.is_ours);
        if let Some(live) = unsaved.filter_map(|shared| shared.live.as_ref()).next() {
            return Next::Do(Step::Save(live.clone()));
        }
        if let Some(first) = old.iter().find(|old| old.mark().is_none()) {
            let object = first.object.clone();
            return Next::Do(if first.is_left_by_node() {
                Step::Hold(object)
            } else {
                Step::Stop(object)
            });
        }
        let phase = |wanted: Phase| old.iter().filter(move |old| old.mark().is_some_and(|mark| mark.phase == wanted));
        if let Some(stopping) = phase(Phase::Stopping).next() {
            return match stopping.pods.len() {
                0 => Next::Do(Step::Confirm(stopping.object.clone())),
                pods => Next::Wait(Wait::Gone(stopping.object.clone(), pods)),
            };
        }
        if let Some(waits) = old.iter().find_map(|old| self.uninstalled(old.driver)) {
            return Next::Wait(waits);
        }
        if let Some(leaving) = phase(Phase::Leaving).next() {
            return match self.on_nodes(leaving) {
                OnNode::Settled => Next::Do(Step::Confirm(leaving.object.clone())),
                OnNode::Untouched(node) => Next::Do(Step::Take(node.object.clone())),
                OnNode::Waits(wait) => Next::Wait(wait),
            };
        }
        match self.nodes.iter().find(|node| node.is_moved()) {
            Some(node) => Next::Do(Step::Unlabel(node.object.clone())),
            None => Next::Done,
        }
    }

    /// What comes next on the way back. The drivers of the operator go before the old ones come.
    #[must_use]
    pub fn back(&self) -> Next {
        if let Some(unreadable) = self.old.iter().find(|old| old.is_marked() && old.mark().is_none()) {
            return unreadable.unreadable();
        }
        let marked: Vec<&Old> = self.old.iter().filter(|old| old.is_marked()).collect();
        let labelled = self.nodes.iter().find(|node| node.is_moved());
        let saved = || self.shared.iter().filter_map(|shared| shared.saved.as_ref());
        if marked.is_empty() && labelled.is_none() && saved().next().is_none() {
            return Next::Done;
        }
        match &self.config {
            Config::Managed { object, .. } => return Next::Do(Step::Pause(object.clone())),
            Config::Paused { is_observed: false } => return Next::Wait(Wait::Observed),
            Config::Paused { is_observed: true } | Config::Missing => {}
        }
        let is_of_marked = |driver: &Driver| marked.iter().any(|old| old.driver.name == driver.name);
        let mut new: Vec<&New> = self.new.iter().filter(|new| is_of_marked(new.driver)).collect();
        new.sort_by_key(|new| new.object.kind() == "DaemonSet");
        if let Some(first) = new.iter().find(|new| !new.object.is_terminating()) {
            return Next::Do(Step::Remove(first.object.clone()));
        }
        let mut pods = new.iter().flat_map(|new| &new.pods);
        if let Some(pod) = pods.find(|pod| !self.is_lost(pod)) {
            return Next::Wait(Wait::Left(pod.name.clone()));
        }
        if let Some(node) = labelled {
            return Next::Do(Step::Unlabel(node.object.clone()));
        }
        if let Some(changed) = self.shared.iter().find(|shared| shared.differs())
            && let Some(saved) = &changed.saved
        {
            return Next::Do(Step::PutBack(saved.clone(), changed.live.clone()));
        }
        if let Some(first) = marked.first() {
            return Next::Do(Step::Restore(first.object.clone()));
        }
        saved().next().map_or(Next::Done, |saved| Next::Do(Step::Discard(saved.clone())))
    }

    /// Whether there is an old workload that is moved, or shall be.
    #[must_use]
    pub fn has_old(&self) -> bool {
        self.taken().next().is_some()
    }

    /// The old workloads that the operator's drivers take the place of. Those in their own place are adopted as they run.
    pub(super) fn taken(&self) -> impl Iterator<Item = &Old> {
        self.old.iter().filter(|old| self.config.asks_for(old.driver) || old.is_marked())
    }

    /// What keeps a move from going on before a person acts.
    fn blocked(&self) -> Option<Next> {
        let blocked = |what: String, remedy: String| Some(Next::Blocked { what, remedy });
        for old in self.taken() {
            let object = &old.object;
            match (old.mark(), &old.owner) {
                (None, _) if old.is_marked() => return Some(old.unreadable()),
                (Some(mark), _) if !mark.is_kept(object) => {
                    let who = if old.writers.is_empty() {
                        "another manager".to_owned()
                    } else {
                        old.writers.join(", ")
                    };
                    return blocked(
                        format!("{object} was stopped for the move, but {who} started it again"),
                        format!("Make {who} stop managing the object, then repeat: {GO_ON}\nTo undo the move: {GO_ON} --undo"),
                    );
                }
                (None, Some(who)) => {
                    return blocked(
                        format!("{object} belongs to {who}, which would undo the move"),
                        format!("Make {who} stop managing the object, or remove the driver from its configuration, then repeat: {GO_ON}"),
                    );
                }
                _ => {}
            }
        }
        match &self.config {
            Config::Missing => blocked(
                "no VDOConfig requests a driver, so nothing would replace the old driver".to_owned(),
                "Adopt the settings of the old driver first: vdoctl adopt --write".to_owned(),
            ),
            Config::Paused { .. } => blocked(
                "the VDOConfig is paused, so nothing would be installed".to_owned(),
                "Resume the operator: vdoctl resume".to_owned(),
            ),
            Config::Managed { .. } => None,
        }
    }

    /// Why the operator could not install a driver once the old one is stopped; asked before anything is stopped.
    fn not_installable(&self) -> Option<Next> {
        let untouched: Vec<&Old> = self.taken().filter(|old| !old.is_marked()).collect();
        if !untouched.is_empty() && matches!(self.config, Config::Managed { is_observed: false, .. }) {
            return Some(Next::Wait(Wait::Observed));
        }
        let obstacle = |old: &&Old| self.obstacles.get(old.driver.name).map(|why| (old.driver, why));
        let (driver, why) = untouched.iter().find_map(obstacle)?;
        Some(Next::Blocked {
            what: format!(
                "the operator would not be able to install {} after the old driver is stopped: {why}",
                driver.name
            ),
            remedy: format!("See the problem: vdoctl status\nThen repeat: {GO_ON}"),
        })
    }

    /// What is missing of a driver before nodes are moved to it.
    fn uninstalled(&self, driver: &'static Driver) -> Option<Wait> {
        let waits = |why: String| Some(Wait::Installed(driver, why));
        let is_by_node = self.taken().any(|old| old.driver.name == driver.name && old.is_leaving());
        let new: Vec<&New> = self.new.iter().filter(|new| new.driver.name == driver.name).collect();
        let daemons = new.iter().any(|new| new.object.kind() == "DaemonSet");
        if new.is_empty() || is_by_node && !daemons {
            return waits(self.condition.clone());
        }
        // Its pods on nodes wait for the old ones.
        let needed = new.iter().filter(|new| !(is_by_node && new.object.kind() == "DaemonSet"));
        needed.filter_map(|new| new.waits.clone()).find_map(waits)
    }

    /// Whether a pod is on a node that does not answer, and will be deleted when that comes back.
    fn is_lost(&self, pod: &Pod) -> bool {
        let node = self.nodes.iter().find(|node| node.object.name() == pod.node);
        !pod.node.is_empty() && node.is_none_or(|node| !node.is_ready())
    }
}

impl Old {
    pub(super) fn mark(&self) -> Option<Moving> {
        Moving::of(&self.object)
    }

    fn is_leaving(&self) -> bool {
        self.mark().is_some_and(|mark| mark.phase == Phase::Leaving)
    }

    /// Whether its pods make room on one node after the other: those of a node plugin whose port keeps the new one waiting.
    fn is_left_by_node(&self) -> bool {
        let is_plugin = self.object.kind() == "DaemonSet" && Role::of(&self.object, self.driver.name) == Some(Role::Node);
        is_plugin && has_node_port(&self.object)
    }

    fn unreadable(&self) -> Next {
        let object: &Object = &self.object;
        let (namespace, kind, name) = (object.namespace(), object.kind().to_lowercase(), object.name());
        Next::Blocked {
            what: format!("the annotation {MOVED} of {object} cannot be read, so the state before the move is unknown"),
            remedy: format!(
                "Restore the replicas or the affinity of {object}, then remove the annotation: \
                 kubectl --namespace {namespace} annotate {kind} {name} {MOVED}-"
            ),
        }
    }
}
