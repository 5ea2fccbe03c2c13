// SPDX-License-Identifier: Apache-2.0
//! Deletes the listed objects for `vdoctl delete`, kind by kind, and waits until each object is deleted.

use super::kept_namespaces_and_roles::{kept_binding, kept_namespace, kept_role};
use super::objects_to_delete::{Target, by_kind, rank};
use super::{PACE, transient};
use crate::CliError;
use crate::context::Context;
use crate::progress::{Mark, Progress};
use std::time::Duration;
use vdo::cluster::{ClusterError, get};
use vdo_api::types::{ObjectId, count};
use vdo_core::manifest::Object;

/// How long after a delete it is looked for the first time.
const FIRST: Duration = Duration::from_millis(200);
/// How many of the objects that are left are named.
const NAMED: usize = 3;

/// What is not removed, and why.
pub(super) type Stays = Vec<(ObjectId, String)>;

/// Removes these objects, which are in the order of their ranks. Namespaces with anything else in them stay, and rights that others use, without
/// our accounts.
pub(super) async fn all(context: &Context, target: &Target, progress: &mut Progress) -> Result<Stays, CliError> {
    let Target { objects, desired, .. } = target;
    let mut stays = Stays::new();
    for wave in objects.chunk_by(|one, other| rank(one.kind()) == rank(other.kind())) {
        let mut removed = Vec::new();
        for object in wave {
            let because = match object.kind() {
                "Namespace" => kept_namespace(context, object).await?,
                "ClusterRoleBinding" | "RoleBinding" => kept_binding(context, object, desired).await?,
                "ClusterRole" | "Role" => kept_role(context, object, target, &stays).await?,
                _ => None,
            };
            match because {
                Some(because) => stays.push((object.id(), because)),
                None => removed.push(object.clone()),
            }
        }
        gone(context, &removed, progress).await?;
    }
    Ok(stays)
}

/// Deletes these objects and waits for their end.
pub(super) async fn gone(context: &Context, objects: &[Object], progress: &mut Progress) -> Result<(), CliError> {
    if objects.is_empty() {
        return Ok(());
    }
    let mut left: Vec<&Object> = objects.iter().collect();
    // Most objects are gone at once, and are not worth a line.
    let mut pause = FIRST;
    loop {
        let mut still = Vec::new();
        let mut lines = Vec::new();
        for object in left {
            match step(context, object).await {
                Ok(None) => {}
                Ok(Some(line)) => {
                    lines.push(line);
                    still.push(object);
                }
                Err(error) if transient(&error) => {
                    lines.push(error.what);
                    still.push(object);
                }
                Err(error) => return Err(error),
            }
        }
        left = still;
        if left.is_empty() {
            break;
        }
        if lines.len() > NAMED {
            let more = lines.len() - NAMED;
            lines.truncate(NAMED);
            lines.push(format!("and {}", count(more, "further object")));
        }
        if pause == PACE {
            progress.waiting(&lines);
        }
        tokio::time::sleep(pause).await;
        pause = PACE;
    }
    progress.step(Mark::Done, &deleted(objects));
    Ok(())
}

/// Deletes an object unless it is being deleted. What is waited for; `None` when it is gone.
async fn step(context: &Context, object: &Object) -> Result<Option<String>, CliError> {
    let id = object.id();
    let live = match get(&context.ports.client, object.api_version(), &id).await {
        Err(ClusterError::NotServed { .. }) => None,
        found => found?,
    };
    let Some(live) = live.filter(|live| live.uid() == object.uid()) else {
        return Ok(None);
    };
    if !live.is_terminating() {
        context.ports.writer.delete_as_seen(object.api_version(), &live, false).await?;
    }
    Ok(Some(vdo_core::plan::blocker(&live)).map(|why| format!("{id} {why}")))
}

fn deleted(objects: &[Object]) -> String {
    format!("deleted {}", by_kind(objects).join(", "))
}
