// SPDX-License-Identifier: Apache-2.0
//! Tries the objects of an installation in a dry run of the API server, then applies them in order; only one vdoctl writes at a time.

use super::super::context::Context;
use super::super::matrix::config_maps;
use super::super::progress::{Mark, Progress};
use super::super::vdoctl_lease::{alone, go_on};
use super::super::{CliError, Exit};
use kube::Resource as _;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{sleep, timeout};
use vdo::cluster::{ClusterError, DryRunResult, Permissions, Writer, get, rights, with_managers};
use vdo_api::api::VsphereCloudConfig;
use vdo_api::types::count;
use vdo_core::install::VDOCTL;
use vdo_core::manifest::Object;
use vdo_core::rbac;
use vdo_source::fetch::ConfigMaps;

/// How often a dry run is asked for that the API server does not answer in time: a minute in all.
const TRIES: usize = 4;

/// How long a definition takes until its objects are served.
const SERVED: Duration = Duration::from_secs(30);

/// What would become of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// There is none yet.
    Created,
    /// It is there, and is brought to this state.
    Applied,
    /// It is in this state, by an earlier deployment.
    Unchanged,
}

/// Has the API server try every object. What lives in a namespace, or is of a kind, that is only going to be there cannot be tried: there
/// the rights are asked for.
pub(crate) async fn dry_run(context: &Context, objects: &[Object]) -> Result<Vec<Fate>, CliError> {
    let client = &context.ports.client;
    let writer = Writer::new(client.clone(), |_, _| {}).named(VDOCTL);
    let mut coming: BTreeSet<String> = BTreeSet::new();
    let mut known: BTreeMap<String, Permissions> = BTreeMap::new();
    let (mut fates, mut wrong) = (Vec::new(), Vec::new());
    for object in objects {
        let kind = object.text("/spec/names/kind");
        let later = coming.contains(object.namespace()) || coming.contains(object.kind());
        let result = if later {
            if !known.contains_key(object.namespace()) {
                known.insert(object.namespace().to_owned(), rights(client, object.namespace()).await?);
            }
            let allowed = known.get(object.namespace()).map_or(Ok(()), |rights| {
                rights.require(&["create", "patch"], object.api_version(), object.identity())
            });
            allowed.map(|()| Fate::Created)
        } else {
            match try_out(&writer, object).await {
                Ok(tried) if tried.created => Ok(Fate::Created),
                Ok(tried) => {
                    let live = with_managers(client, object.api_version(), object.identity()).await?;
                    let same = live.is_some_and(|live| unchanged(object, &live, &tried.object));
                    Ok(if same { Fate::Unchanged } else { Fate::Applied })
                }
                Err(error) => Err(error),
            }
        };
        match result {
            Ok(fate) => {
                if fate == Fate::Created && matches!(object.kind(), "Namespace" | "CustomResourceDefinition") {
                    coming.insert(if kind.is_empty() {
                        object.name().to_owned()
                    } else {
                        kind.to_owned()
                    });
                }
                fates.push(fate);
            }
            Err(error @ (ClusterError::Unavailable { .. } | ClusterError::TimedOut { .. })) => return Err(error.into()),
            Err(error) => {
                fates.push(Fate::Created);
                let live = match error {
                    ClusterError::Refused { .. } => get(client, object.api_version(), object.identity()).await?,
                    _ => None,
                };
                let second = live.and_then(|live| second_trust(object, &live));
                wrong.push(second.unwrap_or_else(|| CliError::from(error)));
            }
        }
    }
    refused(wrong).map_or(Ok(fates), Err)
}

/// That a connection would trust its vCenter in two ways, which the API server refuses: what another verb has written is kept by an apply.
fn second_trust(object: &Object, live: &Object) -> Option<CliError> {
    if object.kind() != VsphereCloudConfig::kind(&()) {
        return None;
    }
    let has = |object: &Object, field: &str| object.value()["spec"].get(field).is_some_and(|value| !value.is_null());
    let gets = |new: &str, old: &str| has(object, new) && !has(object, old) && has(live, old);
    let (kept, other, flag) = match (gets("caBundle", "thumbprint"), gets("thumbprint", "caBundle")) {
        (true, _) => ("a thumbprint", "a CA bundle", "--ca-file FILE".to_owned()),
        (_, true) => (
            "a CA bundle",
            "a thumbprint",
            format!("--thumbprint {}", object.text("/spec/thumbprint")),
        ),
        _ => return None,
    };
    let name = object.name();
    Some(CliError::new(
        Exit::Refused,
        format!("vSphere connection {name} has {kept} and cannot also have {other}, so nothing was written"),
        format!("Replace {kept} with {other} first:\nvdoctl configure connection {name} {flag}"),
    ))
}

/// The objects with what other installations have in them, which applying them would take away.
pub(crate) async fn beside_others(context: &Context, objects: Vec<Object>) -> Result<Vec<Object>, CliError> {
    let mut all = Vec::new();
    for object in objects {
        let is_shared = matches!(object.kind(), "ClusterRoleBinding" | "RoleBinding" | "ClusterRole" | "Role");
        let live = match is_shared {
            true => with_managers(&context.ports.client, object.api_version(), object.identity()).await?,
            false => None,
        };
        all.push(rbac::beside_others(object, live.as_ref(), VDOCTL));
    }
    Ok(all)
}

/// Has the API server try an object, again where it does not answer in time.
async fn try_out(writer: &Writer, object: &Object) -> Result<DryRunResult, ClusterError> {
    for _ in 1..TRIES {
        match writer.dry_run(object, true).await {
            Err(ClusterError::TimedOut { .. }) => {}
            result => return result,
        }
    }
    writer.dry_run(object, true).await
}

/// Whether an object that vdoctl has applied before would be the same afterwards.
fn unchanged(wanted: &Object, live: &Object, tried: &Object) -> bool {
    let managers = live.value().pointer("/metadata/managedFields").and_then(Value::as_array);
    let ours = |entry: &Value| entry["manager"] == VDOCTL && entry["operation"] == "Apply";
    let content = |object: &Object| {
        let mut value = object.value().clone();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| !matches!(key.as_str(), "managedFields" | "resourceVersion" | "generation"));
        }
        value
    };
    // Of an object with nothing but a name no field is recorded.
    let mut fields = wanted.value().as_object().into_iter().flatten();
    let bare = fields.all(|(key, _)| matches!(key.as_str(), "apiVersion" | "kind" | "metadata"))
        && wanted.value()["metadata"]
            .as_object()
            .is_some_and(|all| all.keys().all(|key| key == "name" || key == "namespace"));
    (bare || managers.is_some_and(|all| all.iter().any(ours))) && content(live) == content(tried)
}

/// Everything that the API server is against, as one error.
fn refused(mut wrong: Vec<CliError>) -> Option<CliError> {
    if wrong.len() < 2 {
        return wrong.pop();
    }
    let lines: Vec<String> = wrong.iter().map(|error| format!("{}\n{}", error.what, error.remedy)).collect();
    let what = format!(
        "the API server would refuse {}, so nothing was written",
        count(wrong.len(), "object")
    );
    Some(CliError::new(Exit::Refused, what, lines.join("\n")))
}

/// Writes every object, in order. Then deletes what is left of an earlier matrix in the same ConfigMaps, which `matrix` names with the objects
/// that stay.
pub(crate) async fn apply(
    context: &Context,
    objects: &[Object],
    matrix: Option<(&ConfigMaps, &[Object])>,
    progress: &mut Progress,
) -> Result<(), CliError> {
    alone(context, progress, objects.len(), async |alone| {
        for object in objects {
            served(context, object).await?;
            alone.write(async |writer| writer.apply(object, true).await).await?;
            alone.wrote();
        }
        if let Some((place, kept)) = matrix {
            for stale in config_maps::stale(context, place, kept).await? {
                alone.write(async |writer| writer.delete_as_seen("v1", &stale, false).await).await?;
            }
        }
        Ok(())
    })
    .await
}

/// Writes an object that is made once no other vdoctl writes to the cluster, from what is there then.
pub(crate) async fn apply_alone(
    context: &Context,
    made: impl AsyncFnOnce() -> Result<Object, CliError>,
    progress: &mut Progress,
) -> Result<(), CliError> {
    alone(context, progress, 1, async |alone| {
        let object = made().await?;
        alone.write(async |writer| writer.apply(&object, true).await).await?;
        alone.wrote();
        Ok(())
    })
    .await
}

/// Waits until objects of ours are served whose definition was applied just now.
async fn served(context: &Context, object: &Object) -> Result<(), CliError> {
    let client = &context.ports.client;
    let look = async {
        loop {
            match get(client, object.api_version(), object.identity()).await {
                Err(ClusterError::NotServed { .. }) => {
                    go_on()?;
                    sleep(Duration::from_millis(100)).await;
                }
                Err(error) => return Err(CliError::from(error)),
                Ok(_) => return Ok(()),
            }
        }
    };
    if !object.api_version().starts_with(vdo_api::api::GROUP) {
        return Ok(());
    }
    timeout(SERVED, look).await.unwrap_or_else(|_| {
        Err(CliError::new(
            Exit::TimedOut,
            format!(
                "the API server does not serve {} {} s after its definition was applied",
                object.kind(),
                SERVED.as_secs()
            ),
            "Run the same command again; it continues where it stopped.",
        ))
    })
}

/// How many objects of a kind a dry run names; more are counted. A matrix is in dozens of ConfigMaps.
const NAMED: usize = 10;

/// What a dry run shows.
pub(crate) fn shown(objects: &[Object], fates: &[Fate], progress: &mut Progress) {
    would(objects, fates).iter().for_each(|line| progress.step(Mark::Note, line));
}

fn would(objects: &[Object], fates: &[Fate]) -> Vec<String> {
    let mut groups: Vec<(&str, &str, Vec<String>)> = Vec::new();
    let mut same = 0;
    for (object, fate) in objects.iter().zip(fates) {
        let word = match fate {
            Fate::Created => "would be created",
            Fate::Applied => "would be changed",
            Fate::Unchanged => {
                same += 1;
                continue;
            }
        };
        match groups.iter_mut().find(|(kind, known, _)| (*kind, *known) == (object.kind(), word)) {
            Some((_, _, names)) => names.push(object.to_string()),
            None => groups.push((object.kind(), word, vec![object.to_string()])),
        }
    }
    let lines = |(kind, word, names): (&str, &str, Vec<String>)| match names.len() {
        1..=NAMED => names.into_iter().map(|name| format!("{name} {word}")).collect(),
        many => vec![format!("{many} {kind} objects {word}")],
    };
    let mut all: Vec<String> = groups.into_iter().flat_map(lines).collect();
    all.extend((same > 0).then(|| kept(same)));
    all
}

/// Objects of which nothing is written.
pub(crate) fn kept(number: usize) -> String {
    match number {
        1 => "1 object is in sync".to_owned(),
        number => format!("{number} objects are in sync"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dry_run_counts_objects_of_a_kind_that_are_many() {
        let object = |kind: &str, name: usize| {
            Object::new(json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": format!("x{name}"), "namespace": "n"}}))
                .expect("an object")
        };
        let mut objects: Vec<Object> = (0..=NAMED).map(|name| object("ConfigMap", name)).collect();
        objects.extend([object("Secret", 0), object("Secret", 1)]);
        let mut fates = vec![Fate::Created; objects.len()];
        assert_eq!(
            would(&objects, &fates),
            [
                "11 ConfigMap objects would be created",
                "Secret n/x0 would be created",
                "Secret n/x1 would be created"
            ]
        );
        fates[0] = Fate::Unchanged;
        let lines = would(&objects, &fates);
        assert_eq!((lines.len(), lines[0].as_str()), (13, "ConfigMap n/x1 would be created"));
        assert_eq!(lines[12], "1 object is in sync");
    }
}
