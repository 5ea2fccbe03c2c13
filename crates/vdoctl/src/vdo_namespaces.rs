// SPDX-License-Identifier: Apache-2.0
//! Finds the namespaces of the operator and drivers, and filters objects and events there, for `logs`, `events` and `support-bundle`.

use super::context::Context;
use std::collections::BTreeSet;
use vdo_core::drivers::KNOWN;
use vdo_core::manifest::Object;

/// A namespace of others as well: of it only what is called like the drivers.
const SHARED: &str = "kube-system";

/// The namespaces of the operator and of the drivers.
pub(super) fn namespaces(context: &Context) -> BTreeSet<String> {
    let drivers = KNOWN.iter().map(|driver| driver.namespace.to_owned());
    drivers.chain([context.namespace().to_owned(), SHARED.to_owned()]).collect()
}

/// Whether an object of one of these namespaces, or an event about one, is of the operator or a driver.
pub(super) fn is_ours(namespace: &str, object: &Object) -> bool {
    let text = format!("{} {}", object.name(), object.text("/involvedObject/name"));
    namespace != SHARED || text.contains("vsphere") || text.contains("vdo-")
}
