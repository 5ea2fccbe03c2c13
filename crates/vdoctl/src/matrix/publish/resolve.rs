// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix publish --resolve-digests`: looks up the images in their registries, and records their digests in the matrix.

use super::super::super::args::Publish;
use super::super::super::digests::{Digests, Resolved, open_images};
use super::super::super::views::publish::MatrixDigestsView;
use super::super::super::{Answer, CliError, Exit, style};
use super::super::publish_target::{Place, Published};
use super::candidate::{Candidate, Checked};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::count;
use vdo_author::publish::Draft;

fn digests(args: &Publish) -> Digests {
    Digests::new(&args.resolving, &args.publishing.registry.reach)
}

/// The images of a version that is to be published: each has to be there, for each platform. What is not keeps it from being published.
pub(super) async fn candidate(args: &Publish, candidate: &Candidate, checked: &mut Checked) {
    let open: BTreeMap<&str, String> = open_images(&candidate.chart)
        .map(|(name, image)| (name, image.reference()))
        .collect();
    let Resolved { found, missing } = digests(args).of(open.values().cloned()).await;
    checked.problems.extend(missing.into_values());
    let stated = open_images(&candidate.chart).filter_map(|(_, image)| Some((image.reference(), image.digest.clone()?)));
    for (reference, stated) in stated {
        if let Some(found) = found.get(&reference).filter(|found| **found != stated) {
            let problem = format!("{reference} has digest {found} in its registry, and {stated} in the chart");
            checked.problems.push(problem);
        }
    }
    let images = checked.entry.as_mut().and_then(|entry| entry.get_mut("images")?.as_array_mut());
    for image in images.into_iter().flatten() {
        let digest = image["ref"].as_str().and_then(|reference| found.get(reference));
        if let Some(digest) = digest {
            image["digest"] = json!(digest);
        }
    }
}

/// The images of every version that the matrix lists.
pub(super) async fn listed(args: &Publish, place: Place, mut draft: Draft) -> Result<Answer, CliError> {
    let entries = draft.index().drivers.values().flat_map(|driver| &driver.versions);
    let references: BTreeSet<String> = entries
        .flat_map(|entry| &entry.images)
        .map(|image| image.reference.clone())
        .collect();
    let asked = references.len();
    let Resolved { found, missing } = digests(args).of(references).await;
    let (written, others) = draft.resolve(&found);
    if !others.is_empty() {
        let what = format!(
            "{} with another digest than the matrix states:\n{}",
            count(others.len(), "image"),
            others.join("\n")
        );
        let remedy = "A tag was moved, or the digest was wrong. Ask the publisher of the image. Nothing was written.";
        return Err(CliError::new(Exit::Refused, what, remedy));
    }
    let changed = draft.is_changed();
    let published = match changed {
        true => Some(place.publish(draft, BTreeMap::new(), &args.publishing).await?),
        false => None,
    };
    let view = MatrixDigestsView {
        dry_run: args.publishing.dry_run,
        asked,
        found: found.len(),
        written,
        missing: missing.into_values().map(|problem| format!("missing: {problem}")).collect(),
        matrix: published.as_ref().map(Published::view),
    };
    let text = || {
        let diff = published.as_ref().and_then(|published| published.diff.clone()).unwrap_or_default();
        let missing: String = view.missing.iter().map(|line| format!("{line}\n")).collect();
        let asked = count(view.asked, "image");
        let sum = format!("{} of {asked} found, {} written\n", view.found, count(view.written, "digest"));
        let line = published.as_ref().map_or_else(
            || format!("{} {}: nothing to publish\n", style::good("✓"), args.publishing.to),
            |published| published.line(),
        );
        diff + &missing + &sum + &line
    };
    let answer = Answer::view(args.publishing.output.or_table(), &view, text)?;
    let answer = match &published {
        Some(published) => published.answer(answer),
        None => answer,
    };
    Ok(answer.exit(if view.missing.is_empty() { Exit::Ok } else { Exit::Differences }))
}
