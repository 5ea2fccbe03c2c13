// SPDX-License-Identifier: Apache-2.0
//! `--for-cluster` and `mirror verify --cluster`: the versions that a cluster needs, and whether its registries have the images.

use super::super::args::{Global, MirrorVerify};
use super::super::context::{Context, Deployed};
use super::super::matrix::question_of;
use super::super::{CliError, registry as login};
use super::registries::Substitutes;
use super::verify::{Fault, Report, missing};
use std::collections::BTreeMap;
use vdo_api::types::{DriverName, DriverVersion};
use vdo_author::mirror::Versions;
use vdo_core::chart;
use vdo_core::manifest::Object;
use vdo_core::matrix::{self, Query, UpdatePolicy};
use vdo_source::fetch::LoadedIndex;

/// What runs, what would be chosen, and what lies on the way there: now, and with the next minor of Kubernetes.
pub(super) async fn versions(loaded: &LoadedIndex, global: &Global) -> Result<Versions, CliError> {
    let (question, index) = (question_of(loaded, global).await?, &loaded.index);
    let mut versions = Versions::new();
    let mut add = |driver: &DriverName, version: &DriverVersion| {
        versions.entry(driver.clone()).or_default().insert(version.clone());
    };
    question.installed.iter().for_each(|(driver, version)| add(driver, version));
    for policy in [UpdatePolicy::Compatible, UpdatePolicy::Latest] {
        let query = Query {
            policy,
            ..question.query()
        };
        if let Ok(resolution) = matrix::resolve(index, &query) {
            for (driver, pick) in &resolution.picks {
                add(driver, &pick.version);
                add(driver, &pick.target);
                pick.path.iter().for_each(|step| add(driver, &step.version));
            }
        }
        let next = matrix::next_minor(query.kubernetes);
        for stage in matrix::outlook(index, &query, Some(&next), &[]).stages {
            stage.runs.iter().for_each(|(driver, version)| add(driver, version));
            for change in &stage.changes {
                change.path.iter().for_each(|step| add(&change.driver, &step.version));
            }
        }
    }
    Ok(versions)
}

/// Looks up every image of the drivers that run and of those that are wanted, where their pods take it from.
pub(super) async fn verify(args: &MirrorVerify, global: &Global) -> Result<Report, CliError> {
    let context = Context::open(global).await?;
    let deployed = context.find_config().await?;
    if !matches!(deployed, Deployed::Config(_)) {
        return Err(context.no_config_error(&deployed));
    }
    let context = context.like_the_operator(global).await?;
    let decided = context.decide().await?;
    let mut images: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |object: &Object, driver: &str| {
        for image in chart::images(std::slice::from_ref(object.value())) {
            let needed = images.entry(image).or_default();
            if !needed.iter().any(|known| known == driver) {
                needed.push(driver.to_owned());
            }
        }
    };
    decided
        .planned
        .desired
        .iter()
        .for_each(|desired| add(&desired.object, &desired.driver));
    decided.state.live.values().for_each(|object| add(object, "an installed driver"));
    let mut report = Report {
        place: format!("cluster {}", context.name),
        versions: decided
            .state
            .installed
            .iter()
            .map(|(driver, version)| format!("{driver} {version}"))
            .collect(),
        images: images.len(),
        ..Report::default()
    };
    for (image, needed) in images {
        let at = Substitutes::default().source(&image)?;
        let registry = login::open(&args.registry, &at).await?;
        if let Err(problem) = missing(&registry, &at).await {
            report.faults.push(Fault {
                what: image,
                problem,
                versions: needed,
            });
        }
    }
    Ok(report)
}
