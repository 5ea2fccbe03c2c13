// SPDX-License-Identifier: Apache-2.0
//! `vdoctl rollback`: pins a driver to an earlier revision, or ends this with `--lift`; first checks kinds and images of the revision.

use super::args::{Global, Rollback as Args};
use super::context::{Context, id};
use super::history::{Histories, revision};
use super::status::{Kind, handed, needed};
use super::{Answer, CliError, Exit};
use kube::ResourceExt;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use vdo::cluster::{Select, Watch, list};
use vdo::reconcile::unserved_kinds;
use vdo_api::api::REVISION_PREFIX;
use vdo_api::types::ObjectId;
use vdo_core::drivers::short;
use vdo_core::manifest::Object;
use vdo_core::plan::{Revision, images_on, needed_images, unpullable, way_back};

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let all = Histories::read(global).await?;
    let (driver, revisions) = all.driver(&args.driver)?;
    let (name, config) = (short(driver).to_lowercase(), id(&all.config));
    let key = format!("{REVISION_PREFIX}{driver}");
    let held = all.config.annotations().get(&key);
    if args.lift {
        let Some(held) = held else {
            return Ok(Answer::text("").note(format!("VDOConfig {config}: {driver} is not kept at any revision")));
        };
        all.annotate(&key, Value::Null).await?;
        let done = format!("VDOConfig {config}: {driver} is no longer kept at revision {held}");
        return Ok(handed(&done, needed(&all.context).await, &[Kind::Fault]));
    }
    let to = match args.revision {
        Some(number) => revision(driver, revisions, number)?,
        None => way_back(revisions).ok_or_else(|| {
            CliError::new(
                Exit::NotFound,
                format!("{driver} has no earlier revision that worked and that a rollback can restore"),
                format!(
                    "To list the revisions: vdoctl history {name}. If you name a revision, VDO does not check whether it worked, nor whether \
                     the upgrades after it can be rolled back."
                ),
            )
        })?,
    };
    let mut answer = Answer::text("");
    for warning in checked(&all.context, driver, revisions, to).await? {
        answer = answer.note(warning);
    }
    all.annotate(&key, to.number.to_string().into()).await?;
    let done = format!(
        "VDOConfig {config}: {driver} is rolled back to revision {} ({}), and kept there until vdoctl rollback {name} --lift",
        to.number, to.about.version
    );
    // What failed may be what is rolled back.
    let handed = handed(&done, needed(&all.context).await, &[Kind::Fault]);
    Ok(handed.talk.into_iter().fold(answer, Answer::note).exit(handed.exit))
}

/// What there is to say before a driver goes back to a revision.
///
/// # Errors
/// When it certainly cannot: the API server does not serve a kind of it, or no node has an image of it and a pod waits for that in vain.
async fn checked(context: &Context, driver: &str, revisions: &[Revision], to: &Revision) -> Result<Vec<String>, CliError> {
    let client = &context.ports.client;
    let name = short(driver).to_lowercase();
    let refused = |problem: String, remedy: String| {
        let what = format!(
            "{driver} cannot be rolled back to revision {} ({}): {problem}",
            to.number, to.about.version
        );
        CliError::new(Exit::Refused, what, format!("Nothing was changed. {remedy}"))
    };
    let objects = to.objects.objects();
    if let Some(problem) = unserved_kinds(client, to).await? {
        let remedy = format!("Choose a revision without this kind (vdoctl history {name}), or install the definition of the kind again.");
        return Err(refused(problem, remedy));
    }
    // What is installed needs the others, too.
    let installed = revisions.last().map(|newest| needed_images(&newest.objects.objects()));
    let needed: BTreeSet<String> = needed_images(&objects)
        .difference(&installed.unwrap_or_default())
        .cloned()
        .collect();
    let present = images_on(&list(client, &Watch::new("v1", "Node", "", Select::All)).await?);
    let absent: BTreeSet<&str> = needed.difference(&present).map(String::as_str).collect();
    let waiting = waiting_for(context, &objects).await?;
    if let Some((image, pod)) = absent.iter().find_map(|image| Some((image, waiting.get(*image)?))) {
        return Err(refused(
            format!("{pod} cannot pull image {image}, and no node has this image"),
            "Make the image available, or choose another revision.".to_owned(),
        ));
    }
    let mut said = Vec::new();
    if let Some(failure) = &to.failure {
        said.push(format!(
            "Note: revision {} failed when it was applied: {}",
            to.number, failure.message
        ));
    }
    if !absent.is_empty() && !present.is_empty() {
        let images: Vec<&str> = absent.into_iter().collect();
        said.push(format!(
            "Note: no node reports these images, so they have to be pulled: {}",
            images.join(", ")
        ));
    }
    Ok(said)
}

/// The images that pods wait for in vain in the namespaces of these objects.
async fn waiting_for(context: &Context, objects: &[Object]) -> Result<BTreeMap<String, ObjectId>, CliError> {
    let workloads = objects.iter().filter(|object| object.pod_spec().is_some());
    let namespaces: BTreeSet<&str> = workloads.map(Object::namespace).collect();
    let mut pods = Vec::new();
    for namespace in namespaces {
        pods.extend(list(&context.ports.client, &Watch::new("v1", "Pod", namespace, Select::All)).await?);
    }
    Ok(unpullable(&pods))
}
