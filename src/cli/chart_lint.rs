//! `vdoctl chart lint`: whether a chart may be published.

use super::args::ChartLint;
use super::{Answer, CliError, Exit};
use crate::chart::{self, Source, archive};
use std::collections::BTreeMap;
use std::path::Path;

pub(super) fn run(args: &ChartLint) -> Result<Answer, CliError> {
    let unreadable = |error: &std::io::Error| {
        CliError::new(
            Exit::NotFound,
            format!("{} cannot be read: {error}", args.path.display()),
            "Name the folder of a chart or its package.",
        )
    };
    let mut packages = Vec::new();
    if args.path.is_dir() {
        let mut files = BTreeMap::new();
        read(&args.path, "", &mut files).map_err(|error| unreadable(&error))?;
        let source = Source { files };
        for version in source.versions() {
            packages.push(chart::package(&source, &version).map_err(|error| CliError::of(Exit::Refused, &error))?);
        }
        if packages.is_empty() {
            return Err(CliError::new(
                Exit::NotFound,
                format!("{} holds no chart: there is no releases/VERSION.yaml in it", args.path.display()),
                "Name the folder of one chart, such as charts/vsphere-csi, or its package.",
            ));
        }
    } else {
        packages.push(std::fs::read(&args.path).map_err(|error| unreadable(&error))?);
    }
    let mut text = String::new();
    let mut count = 0;
    for bytes in packages {
        let chart = chart::open(&bytes).map_err(|error| {
            let mut error = CliError::of(Exit::Refused, &error);
            error.what = format!("{}: {}", args.path.display(), error.what);
            error
        })?;
        let findings = chart::lint(&chart);
        count += findings.len();
        findings
            .iter()
            .for_each(|finding| text.push_str(&format!("{}: {finding}\n", chart.label())));
        if findings.is_empty() {
            text.push_str(&format!("{}: nothing found\n", chart.label()));
        }
    }
    if count == 0 {
        return Ok(Answer::text(text));
    }
    Err(CliError::new(
        Exit::Differences,
        format!("{count} findings:\n{}", text.trim_end()),
        "Correct the chart and run the command again.",
    ))
}

/// Every file below a folder, within the limits of a package.
fn read(folder: &Path, below: &str, files: &mut BTreeMap<String, Vec<u8>>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{below}{}", entry.file_name().to_string_lossy());
        let metadata = entry.metadata()?;
        if metadata.is_dir() && path.split('/').count() < archive::DEPTH_LIMIT {
            read(&entry.path(), &format!("{path}/"), files)?;
        } else if metadata.is_file() && metadata.len() <= archive::FILE_LIMIT as u64 && files.len() < archive::FILES_LIMIT {
            files.insert(path, std::fs::read(entry.path())?);
        } else {
            let why = "a chart holds regular files alone, within the limits of a package";
            return Err(std::io::Error::other(format!("{path} is not allowed in it: {why}")));
        }
    }
    Ok(())
}
