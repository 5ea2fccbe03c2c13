// SPDX-License-Identifier: Apache-2.0
//! `vdoctl version`: prints the versions of vdoctl, of the operator in the cluster, of the matrix, and of the drivers in the matrix.

use super::args::{Global, MatrixFile, Output, Version as Args};
use super::context::Context;
use super::matrix::{Choice, Used, embedded_index, span};
use super::operator_running::Build;
use super::views::matrix::OwnMatrixView;
use super::views::version::{KnownDriverView, OperatorVersionView, VersionView};
use super::{Answer, CliError, style};
use std::time::Duration;
use vdo_api::types::Digest;
use vdo_core::matrix::{Driver, Entry, State};
use vdo_source::fetch::{MatrixSource, embedded};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How long the cluster may take: the answer is mostly wanted without it.
const SOON: Duration = Duration::from_secs(3);

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    if args.short {
        return Ok(Answer::text(format!("{VERSION}\n")));
    }
    let named = MatrixFile::default();
    let (operator, in_use) = match args.client {
        true => (None, None),
        false => {
            let (operator, choice) = tokio::join!(operator(global), Choice::at_desk(&named, global));
            (Some(operator), Some(choice?).filter(|choice| choice.used.is_of_operator()))
        }
    };
    let own = embedded_index()?;
    let index = in_use.as_ref().map_or(&own, |choice| &*choice.loaded.index);
    let in_use = in_use.as_ref().map(|choice| &choice.used);
    let drivers: Vec<(&str, Vec<&Entry>)> = index.drivers.iter().map(|(name, driver)| (name.as_str(), usable(driver))).collect();
    let range = |entries: &[&Entry]| {
        (
            span(entries.iter().map(|e| &e.kubernetes.range)),
            span(entries.iter().map(|e| &e.vsphere.range)),
        )
    };
    let known = drivers.iter().map(|(name, entries)| {
        let (kubernetes, vsphere) = range(entries);
        KnownDriverView {
            name: (*name).to_owned(),
            versions: entries.iter().map(|entry| entry.version.clone()).collect(),
            kubernetes,
            vsphere,
        }
    });
    let found = operator.as_ref().and_then(|found| found.as_ref().ok());
    let view = VersionView {
        version: VERSION.to_owned(),
        operator: found.map(|found| OperatorVersionView {
            version: found.version.clone(),
            installed_by: found.installer.clone(),
            skew: found.skew(),
        }),
        matrix: OwnMatrixView {
            source: MatrixSource::Embedded.to_string(),
            version: own.version,
            generated: own.generated,
            expires: own.expires,
            digest: Digest::of(embedded::index()),
        },
        matrix_in_use: in_use.map(Used::view),
        drivers: known.collect(),
    };
    let answer = Answer::view(args.output.or_table(), &view, || text(&view, operator.as_ref(), in_use))?;
    let skew = found.and_then(Build::skew);
    Ok(skew
        .into_iter()
        .fold(answer, |answer, line| answer.note(format!("{} {line}", style::warn("warning:")))))
}

fn text(view: &VersionView, operator: Option<&Result<Build, String>>, in_use: Option<&Used>) -> String {
    let day = |time: Option<jiff::Timestamp>| time.map_or_else(|| "never".into(), |t| t.to_string().chars().take(10).collect::<String>());
    let mut text = format!("vdoctl    {VERSION}\n");
    match operator {
        Some(Ok(found)) => {
            let by = found
                .installer
                .as_ref()
                .map(|installer| format!(", installed by {}", installer.text()));
            text.push_str(&format!("operator  {}{}\n", found.version, by.unwrap_or_default()));
        }
        Some(Err(why)) => text.push_str(&format!("operator  {}\n", style::faint(&format!("unknown: {why}")))),
        None => {}
    }
    text.push_str(&format!(
        "matrix    version {} of {}, expires {}, sha256 {} (embedded)\n",
        view.matrix.version,
        day(view.matrix.generated),
        day(view.matrix.expires),
        view.matrix.digest.short()
    ));
    text.extend(in_use.map(|used| format!("in use    {}\n", used.what())));
    text.push('\n');
    let row = |driver: &KnownDriverView| {
        let ends = driver.versions.iter().min().zip(driver.versions.iter().max());
        let versions = ends.map(|(min, max)| format!("{min} to {max}")).unwrap_or_default();
        vec![driver.name.clone(), versions, driver.kubernetes.clone(), driver.vsphere.clone()]
    };
    let rows: Vec<Vec<String>> = view.drivers.iter().map(row).collect();
    text + &style::table(&["DRIVER", "VERSIONS", "KUBERNETES", "VSPHERE"], &rows)
}

/// With the operator's version.
pub(super) async fn of_both_sides(output: Output, global: &Global) -> Result<Answer, CliError> {
    let args = Args {
        output,
        short: false,
        client: false,
    };
    run(&args, global).await
}

/// The operator in the cluster, or why it is not known.
async fn operator(global: &Global) -> Result<Build, String> {
    let soon = Global {
        timeout: Some(global.timeout.unwrap_or(SOON)),
        ..global.clone()
    };
    let look = async {
        let context = Context::open(&soon).await.map_err(|error| error.what)?;
        Build::find(&context).await
    };
    tokio::time::timeout(soon.timeout(), look)
        .await
        .unwrap_or_else(|_| Err(format!("the cluster has not answered within {} s", soon.timeout().as_secs())))
}

/// The versions that may be chosen.
fn usable(driver: &Driver) -> Vec<&Entry> {
    driver
        .versions
        .iter()
        .filter(|entry| !matches!(entry.state, State::Withdrawn(_)))
        .collect()
}
