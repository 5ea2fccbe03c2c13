// SPDX-License-Identifier: Apache-2.0
//! Tries the objects of a chart to publish in a dry run of a cluster's API server, for `vdoctl matrix publish`.

use super::super::super::args::Global;
use super::super::super::context::Context;
use super::super::super::{CliError, Exit};
use super::candidate::{Candidate, Checked};
use std::collections::BTreeMap;
use vdo::cluster::{self, ClusterError, Writer};
use vdo_api::types::{ObjectId, count};
use vdo_author::publish;
use vdo_core::chart;
use vdo_core::install::VDOCTL;
use vdo_core::manifest::Object;

/// A namespace that every cluster has: an object whose own is not there yet is tried in it.
const ELSEWHERE: &str = "default";

/// Adds what the API server refuses to the problems. A cluster of a minor that the version does not support is not asked.
pub(super) async fn dry_run(candidate: &Candidate, checked: &mut Checked, global: &Global) -> Result<(), CliError> {
    let context = Context::open(global).await?;
    let minor = context.kubernetes.minor();
    if !checked.minors.contains(&minor) {
        checked.tried = Some(format!(
            "no dry run in cluster {}: the chart was not rendered for Kubernetes {minor}, which this cluster runs",
            context.name
        ));
        return Ok(());
    }
    let writer = Writer::new(context.ports.client.clone(), |_, _| {}).named(VDOCTL);
    let chart = &candidate.chart;
    let Ok(objects) = publish::rendered(chart, &minor, &chart::everything(chart)) else {
        return Ok(());
    };
    let (mut tried, mut later) = (0, 0);
    let mut namespaces = BTreeMap::new();
    for object in objects {
        let object = Object::new(object).map_err(|error| CliError::of(Exit::Refused, &error))?;
        match writer.dry_run(&at(&context, object, &mut namespaces).await?, true).await {
            Ok(_) => tried += 1,
            // Of a kind that the version itself defines, or another driver.
            Err(ClusterError::NotServed { .. }) => later += 1,
            Err(error @ (ClusterError::Unavailable { .. } | ClusterError::TimedOut { .. })) => return Err(error.into()),
            Err(error) => checked.problems.push(CliError::from(error).what),
        }
    }
    let more = if later > 0 {
        format!(", {later} of kinds that the cluster does not serve")
    } else {
        String::new()
    };
    checked.tried = Some(format!("dry run in cluster {}: {}{more}", context.name, count(tried, "object")));
    Ok(())
}

/// The object, in a namespace that is there. Each is asked for once.
async fn at(context: &Context, object: Object, namespaces: &mut BTreeMap<String, bool>) -> Result<Object, CliError> {
    let name = object.namespace();
    let there = match namespaces.get(name) {
        _ if name.is_empty() => true,
        Some(there) => *there,
        None => {
            let id = ObjectId::new("", "Namespace", "", name);
            let there = cluster::get(&context.ports.client, "v1", &id).await?.is_some();
            namespaces.insert(name.to_owned(), there);
            there
        }
    };
    if there {
        return Ok(object);
    }
    let mut value = object.into_value();
    value["metadata"]["namespace"] = ELSEWHERE.into();
    Object::new(value).map_err(|error| CliError::of(Exit::Refused, &error))
}
