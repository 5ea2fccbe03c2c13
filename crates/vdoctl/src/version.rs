//! `vdoctl version`: what this build is and knows.

use super::args::{Global, MatrixFile, Output, Version as Args};
use super::context::Context;
use super::matrix::{Choice, Used, embedded_index, span};
use super::operator::{Deployment, Installer, Presence};
use super::views::matrix::OwnMatrixView;
use super::views::version::{InstallerView, KnownDriverView, OperatorVersionView, VersionView};
use super::{Answer, CliError, style};
use std::time::Duration;
use vdo_api::types::Digest;
use vdo_core::install::{Change, change, operator_version};
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
        operator: found.map(|(version, installer)| OperatorVersionView {
            version: version.clone(),
            installed_by: installer.clone(),
            skew: skew(version, installer.as_ref()),
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
    let skew = operator
        .and_then(Result::ok)
        .and_then(|(version, installer)| skew(&version, installer.as_ref()));
    Ok(skew
        .into_iter()
        .fold(answer, |answer, line| answer.note(format!("{} {line}", style::warn("warning:")))))
}

/// The version of an operator, and who installed it.
type Operator = (String, Option<InstallerView>);

fn text(view: &VersionView, operator: Option<&Result<Operator, String>>, in_use: Option<&Used>) -> String {
    let day = |time: Option<jiff::Timestamp>| time.map_or_else(|| "never".into(), |t| t.to_string().chars().take(10).collect::<String>());
    let mut text = format!("vdoctl    {VERSION}\n");
    match operator {
        Some(Ok((version, installer))) => {
            let by = installer.as_ref().map(|installer| format!(", installed by {}", installer.text()));
            text.push_str(&format!("operator  {version}{}\n", by.unwrap_or_default()));
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

/// The version of the operator in the cluster and who installed it, or why it is not known.
async fn operator(global: &Global) -> Result<Operator, String> {
    let soon = Global {
        timeout: Some(global.timeout.unwrap_or(SOON)),
        ..global.clone()
    };
    let look = async {
        let context = Context::open(&soon).await.map_err(|error| error.what)?;
        let presence = Presence::find(&context, context.namespace())
            .await
            .map_err(|error| CliError::from(error).what)?;
        match presence.deployment {
            Deployment::Found(found) => match operator_version(&found) {
                Some(version) => Ok((version, presence.installer.as_ref().map(Installer::view))),
                None => Err("its image has no version".to_owned()),
            },
            Deployment::Missing => Err(format!(
                "it is not installed in namespace {} of cluster {}",
                context.namespace(),
                context.name
            )),
            Deployment::Unknown => Err("you may not read its Deployment".to_owned()),
        }
    };
    tokio::time::timeout(soon.timeout(), look)
        .await
        .unwrap_or_else(|_| Err(format!("the cluster has not answered within {} s", soon.timeout().as_secs())))
}

/// What to do about an operator of another version than this vdoctl.
fn skew(operator: &str, installer: Option<&InstallerView>) -> Option<String> {
    match change(Some(operator)) {
        Change::Install | Change::Same => None,
        Change::Downgrade => Some(format!(
            "the operator is newer than this vdoctl ({operator} and {VERSION}): what it reports may be shown incompletely; take vdoctl {operator}"
        )),
        Change::Upgrade => {
            let by = installer.map_or_else(|| "vdoctl deploy".to_owned(), |installer| installer.program().to_owned());
            Some(format!(
                "the operator is older than this vdoctl ({operator} and {VERSION}): plans may differ from what it does; {by} upgrades it"
            ))
        }
    }
}

/// The versions that may be chosen.
fn usable(driver: &Driver) -> Vec<&Entry> {
    driver
        .versions
        .iter()
        .filter(|entry| !matches!(entry.state, State::Withdrawn(_)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_skew_names_what_to_do() {
        let skew = |operator: &str| super::skew(operator, None);
        assert_eq!(skew(VERSION), None);
        assert!(skew("99.0.0").is_some_and(|line| line.contains("take vdoctl 99.0.0")));
        assert!(skew("0.0.1").is_some_and(|line| line.contains("vdoctl deploy upgrades it")));
        assert_eq!(skew("latest"), None, "nothing is known of it");
    }
}
