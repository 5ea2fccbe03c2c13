// SPDX-License-Identifier: Apache-2.0
//! Checks with the API server whether the operator has the rights that the charts in use need (effect: reads).

use super::operator_roles::{Places, manage};
use crate::cluster;
use crate::reconcile::Ports;
use crate::reconcile::driver_run::{DriverRun, DriverRuns};
use crate::reconcile::error::ReconcileError;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, PoisonError};
use vdo_api::types::{Digest, DriverName};
use vdo_core::drivers;

/// The charts of which it is known that the operator may manage their objects, by driver.
#[derive(Default)]
pub struct Permitted(Mutex<BTreeMap<DriverName, Digest>>);

/// Fails every driver whose objects the operator may not manage, before it reads them. The charts of the binary are installed together
/// with their rights, so only charts from elsewhere are asked about, and drivers for which these rights come on request, once each.
///
/// # Errors
/// When the rights cannot be asked for.
pub(in crate::reconcile) async fn permitted(ports: &Ports, runs: &mut DriverRuns) -> Result<(), ReconcileError> {
    let embedded = ports.repository.is_embedded();
    let known = || ports.permitted.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut granted: BTreeMap<String, cluster::Permissions> = BTreeMap::new();
    let asked = |run: &&mut DriverRun| !embedded || drivers::has_rights_on_request(&run.name);
    for run in runs.iter_mut().filter(asked) {
        let Some(pick) = run.pick.as_ref().filter(|pick| known().get(&run.name) != Some(&pick.chart.digest)) else {
            continue;
        };
        let mut places = Places::new();
        manage(&mut places, &run.objects);
        let mut lacking = Vec::new();
        for (namespace, rules) in &places {
            let granted = match granted.entry(namespace.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(cluster::rights(&ports.client, namespace).await?),
            };
            lacking.extend(rules.single().filter_map(|rule| {
                let refused = granted.refused(&rule.verbs, rule.group, rule.resource, rule.name)?;
                let place = if namespace.is_empty() {
                    String::new()
                } else {
                    format!(" in namespace {namespace}")
                };
                Some(format!("{refused}{place}"))
            }));
        }
        match lacking.first() {
            None => drop(known().insert(run.name.clone(), pick.chart.digest.clone())),
            Some(first) => {
                let more = match lacking.len() - 1 {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                let error = ReconcileError::RightsMissing {
                    driver: run.name.clone(),
                    version: pick.version.to_string(),
                    lacking: format!("{first}{more}"),
                    matrix: (!embedded).then(|| ports.repository.to_string()),
                };
                run.fail(error);
            }
        }
    }
    Ok(())
}
