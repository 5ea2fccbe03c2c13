//! `vdoctl version`: what this build is and knows.

use super::args::Version as Args;
use super::matrix::{embedded_index, identity, span};
use super::output::document;
use super::{Answer, CliError, style};
use crate::matrix::{Driver, Entry, State};
use crate::types::Digest;
use serde_json::{Value, json};

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) async fn run(args: &Args) -> Result<Answer, CliError> {
    if args.short {
        return Ok(Answer::text(format!("{VERSION}\n")));
    }
    let index = embedded_index()?;
    let drivers: Vec<(&str, Vec<&Entry>)> = index.drivers.iter().map(|(name, driver)| (name.as_str(), usable(driver))).collect();
    let range = |entries: &[&Entry]| {
        (
            span(entries.iter().map(|e| &e.kubernetes.range)),
            span(entries.iter().map(|e| &e.vsphere.range)),
        )
    };
    Answer::formatted(
        args.output.or_table(),
        || {
            let drivers: Vec<Value> = drivers
                .iter()
                .map(|(name, entries)| {
                    let (kubernetes, vsphere) = range(entries);
                    let versions: Vec<_> = entries.iter().map(|e| &e.version).collect();
                    json!({"name": name, "versions": versions, "kubernetes": kubernetes, "vsphere": vsphere})
                })
                .collect();
            document(
                "Version",
                json!({"version": VERSION, "matrix": identity(&index), "drivers": drivers}),
            )
        },
        || {
            let day =
                |time: Option<jiff::Timestamp>| time.map_or_else(|| "never".into(), |t| t.to_string().chars().take(10).collect::<String>());
            let digest = Digest::of(crate::fetch::embedded::index()).short();
            let mut text = format!("vdoctl  {VERSION}\n");
            text.push_str(&format!(
                "matrix  version {} of {}, expires {}, sha256 {digest} (embedded)\n\n",
                index.version,
                day(index.generated),
                day(index.expires)
            ));
            let rows: Vec<Vec<String>> = drivers
                .iter()
                .map(|(name, entries)| {
                    let (kubernetes, vsphere) = range(entries);
                    let versions: Vec<_> = entries.iter().map(|e| &e.version).collect();
                    let ends = versions.iter().min().zip(versions.iter().max());
                    vec![
                        (*name).to_owned(),
                        ends.map(|(min, max)| format!("{min} to {max}")).unwrap_or_default(),
                        kubernetes,
                        vsphere,
                    ]
                })
                .collect();
            text.push_str(&style::table(&["DRIVER", "VERSIONS", "KUBERNETES", "VSPHERE"], &rows));
            text
        },
    )
}

/// The versions that may be chosen.
fn usable(driver: &Driver) -> Vec<&Entry> {
    driver
        .versions
        .iter()
        .filter(|entry| !matches!(entry.state, State::Withdrawn(_)))
        .collect()
}
