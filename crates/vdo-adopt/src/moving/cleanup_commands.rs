// SPDX-License-Identifier: Apache-2.0
//! The commands for a person after a finished move: they delete the old workloads, the copies and the Secrets of the Helm release.

use super::step::COPIED;
use super::{Next, State};
use vdo_core::installed::MOVED;
use vdo_core::manifest::Object;
use vdo_core::plan::{Adoption, Ownership, ownership};

impl State {
    /// The commands that delete what is left of the old drivers; after them no way leads back. `None` before the move is done.
    #[must_use]
    pub fn last_step(&self) -> Option<Vec<String>> {
        if !matches!(self.next(), Next::Done) {
            return None;
        }
        let old: Vec<&Object> = self.taken().map(|old| &old.object).collect();
        let mut all: Vec<String> = old.iter().filter_map(|object| forgotten(object)).collect();
        all.sort();
        all.dedup();
        all.extend(old.iter().map(|object| {
            let (namespace, kind, name) = (object.namespace(), object.kind().to_lowercase(), object.name());
            format!("kubectl --namespace {namespace} delete {kind} {name}")
        }));
        let copies = self.shared.iter().filter_map(|shared| shared.saved.as_ref());
        let mut namespaces: Vec<&str> = copies.filter(|copy| copy.name().ends_with(COPIED)).map(Object::namespace).collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        let discard = |namespace: &str| format!("kubectl --namespace {namespace} delete configmap,secret --selector {MOVED}");
        all.extend(namespaces.into_iter().map(discard));
        Some(all)
    }
}

/// The command with which Helm forgets a release. `helm uninstall` would delete what the operator's driver shares with it: its CSIDriver, and
/// roles of the same names.
fn forgotten(object: &Object) -> Option<String> {
    let Ownership::Adoptable {
        how: Adoption::Helm { release },
    } = ownership(object, "")
    else {
        return None;
    };
    let (namespace, release) = release.split_once('/')?;
    Some(format!(
        "kubectl --namespace {namespace} delete secret --selector owner=helm,name={release}"
    ))
}
