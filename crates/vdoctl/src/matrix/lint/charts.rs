// SPDX-License-Identifier: Apache-2.0
//! Checks the charts of an index for `vdoctl matrix lint`: existence, digest, name and version, rendering, and the listed images.

use super::super::super::error::sentence;
use serde_json::Value;
use std::path::Path;
use vdo_core::chart::{self, Context};
use vdo_core::matrix::lint::{Promise, Report};
use vdo_source::fetch::{Access, FetchError, MatrixSource, embedded};

/// How many charts were looked at, and how many only a network could bring.
#[derive(Default)]
pub(super) struct Checked {
    pub here: usize,
    pub elsewhere: usize,
}

/// Looks for each chart beside the index and in this binary.
pub(super) async fn check(folder: Option<&Path>, report: &mut Report) -> Checked {
    let mut checked = Checked::default();
    for promise in std::mem::take(&mut report.charts) {
        let mut found = match folder {
            Some(folder) => {
                MatrixSource::Local(folder.to_owned())
                    .chart(&Access::default(), &promise.chart)
                    .await
            }
            None => embedded::chart(&promise.chart),
        };
        if folder.is_some() && matches!(found, Err(FetchError::NotFound { .. })) {
            found = embedded::chart(&promise.chart);
        }
        let problems = match found {
            Ok(bytes) => contents(&promise, &bytes),
            Err(FetchError::NotFound { .. }) if promise.chart.urls.iter().any(|url| url.contains("://")) => {
                checked.elsewhere += 1;
                continue;
            }
            Err(error) => vec![unread(error)],
        };
        checked.here += 1;
        for (field, problem) in problems {
            report.add(&promise.place, &field, problem);
        }
    }
    checked
}

type Problem = (String, String);

fn unread(error: FetchError) -> Problem {
    match error {
        FetchError::NotFound { locations, .. } => (
            "chart.urls".to_owned(),
            format!("there is no chart at {locations}, neither next to the index nor in this vdoctl"),
        ),
        FetchError::DigestMismatch { what, found, .. } => (
            "chart.sha256".to_owned(),
            format!(
                "{what} has the SHA-256 {}; write this value if the package is the published one, otherwise replace the \
                 package with the published package",
                found.hex()
            ),
        ),
        error => ("chart".to_owned(), sentence(&error)),
    }
}

/// What a package is, against what the entry says it is.
fn contents(promise: &Promise, bytes: &[u8]) -> Vec<Problem> {
    let chart = match chart::open(bytes) {
        Ok(chart) => chart,
        Err(error) => return vec![("chart".to_owned(), format!("the package cannot be opened: {}", sentence(&error)))],
    };
    let metadata = &chart.metadata;
    if metadata.name != promise.driver || metadata.version != promise.version {
        let problem = format!(
            "the package is the chart of {}, not of {} {}",
            chart.label(),
            promise.driver,
            promise.version
        );
        return vec![("chart.urls".to_owned(), problem)];
    }
    let objects = match chart::render(&chart, &Value::Null, &Context::default()) {
        Ok(objects) => objects,
        Err(error) => {
            return vec![(
                "chart".to_owned(),
                format!("the chart does not render with default values: {}", sentence(&error)),
            )];
        }
    };
    images(promise, &chart::images(&objects), &chart.release.images)
}

fn images(promise: &Promise, rendered: &[String], known: &std::collections::BTreeMap<String, chart::ImageSource>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let listed = &promise.images;
    for missing in rendered.iter().filter(|image| !listed.iter().any(|own| own.reference == **image)) {
        problems.push((
            "images".to_owned(),
            format!("the chart renders {missing}, which is not listed; add this image"),
        ));
    }
    for (i, image) in listed.iter().enumerate() {
        let field = format!("images.{i}");
        if !rendered.contains(&image.reference) {
            let problem = format!("the chart does not render {}; remove this image", image.reference);
            problems.push((format!("{field}.ref"), problem));
            continue;
        }
        match known.get(&image.name) {
            None => {
                let names: Vec<&str> = known.keys().map(String::as_str).collect();
                let problem = format!("the chart has no image {:?}; it has {}", image.name, names.join(", "));
                problems.push((format!("{field}.name"), problem));
            }
            Some(source) if source.digest.is_some() && source.digest != image.digest => {
                let digest = source.digest.as_ref().map(ToString::to_string).unwrap_or_default();
                problems.push((
                    format!("{field}.digest"),
                    format!("the chart has digest {digest}; write this digest"),
                ));
            }
            Some(_) => {}
        }
    }
    problems
}
