// SPDX-License-Identifier: Apache-2.0
//! `vdoctl chart push` and `vdoctl chart pull`: uploads and downloads a chart package in an OCI registry, in Helm's format.

use super::super::args::{ChartPull, ChartPush};
use super::super::{Answer, CliError, Exit, atomic_files, registry};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use vdo_api::types::Digest;
use vdo_author::publish;
use vdo_core::chart::archive::PACKED_LIMIT;
use vdo_core::chart::artifact::{described, hub, tag};
use vdo_core::chart::{self, Chart};
use vdo_oci::registry::{Reference, pull_chart, push_chart};
use vdo_source::fetch::embedded;

pub(super) async fn push(args: &ChartPush) -> Result<Answer, CliError> {
    let to = repository(&args.to)?;
    let package = read(&args.package)?;
    let refused = |error: &chart::ArchiveError| CliError::of(Exit::Refused, error);
    let described = described(&package, further(&package)).map_err(|error| refused(&error))?;
    let to = named(&to, &described.name, &described.version)?;
    let digest = Digest::of(&package);
    let registry = registry::open(&args.registry, &to).await?;
    let pushed = push_chart(&registry, &to, described.config, package, described.annotations).await;
    let pushed = pushed.map_err(|error| registry::failed(&error))?;
    Ok(Answer::text(format!(
        "Pushed: {to}\nDigest: {}\nPackage: {digest}\n",
        pushed.digest
    )))
}

pub(super) async fn pull(args: &ChartPull) -> Result<Answer, CliError> {
    let from = repository(&args.from)?;
    let from = from.at_tag(&tag_of(&args.version)?);
    let registry = registry::open(&args.registry, &from).await?;
    let pulled = pull_chart(&registry, &from, PACKED_LIMIT).await;
    let (manifest, package) = pulled.map_err(|error| registry::failed(&error))?;
    // The name is the repository's, as Helm requires it; what a stranger has put there chooses no other file.
    let name = from.repository.rsplit('/').next().unwrap_or(&from.repository);
    let file = args.destination.join(format!("{name}-{}.tgz", args.version));
    atomic_files::write(&file, &package).map_err(|error| {
        let what = format!("{} cannot be written: {error}", file.display());
        CliError::new(Exit::Refused, what, "With -d, name an existing folder that you may write to.")
    })?;
    let digest = Digest::of(&package);
    Ok(Answer::text(format!("Pulled: {from}\nDigest: {}\nPackage: {digest}\n", manifest.digest)).note(format!("wrote {}", file.display())))
}

/// A repository, without tag and digest.
fn repository(text: &str) -> Result<Reference, CliError> {
    let reference = registry::reference(text)?;
    match reference.tag.is_none() && reference.digest.is_none() {
        true => Ok(reference),
        false => Err(CliError::new(
            Exit::Usage,
            format!("{text} has a tag or a digest; leave both out, because the version of the chart becomes the tag"),
            "Write oci://HOST/REPOSITORY.",
        )),
    }
}

/// The place of a chart below a repository, as `helm push` chooses it.
fn named(below: &Reference, name: &str, version: &str) -> Result<Reference, CliError> {
    registry::reference(&format!("oci://{below}/{name}:{}", tag_of(version)?))
}

fn tag_of(version: &str) -> Result<String, CliError> {
    semver::Version::parse(version.trim_start_matches('v'))
        .map(|_| tag(version))
        .map_err(|_| {
            CliError::new(
                Exit::Usage,
                format!("{version:?} is not a version of a chart"),
                "Write a version such as 3.7.3.",
            )
        })
}

/// What Artifact Hub shows of a chart of this project. Another chart says it itself.
fn further(package: &[u8]) -> BTreeMap<String, String> {
    let Ok(chart) = chart::open(package) else { return BTreeMap::new() };
    let upstream = chart.release.upstream.as_ref().map(|upstream| upstream.repository.as_str());
    let links: Vec<(&str, &str)> = upstream.map(|url| ("source", url)).into_iter().collect();
    let version = chart.metadata.version.to_string();
    let is_prerelease = semver::Version::parse(&version).is_ok_and(|version| !version.pre.is_empty());
    hub(
        chart.metadata.role,
        is_prerelease,
        &images(&chart),
        &links,
        license(package, &chart),
    )
}

/// The images with default values; none where the chart cannot be rendered with them.
fn images(chart: &Chart) -> Vec<String> {
    publish::rendered(chart, "1.34", &Value::Null)
        .map(|objects| chart::images(&objects))
        .unwrap_or_default()
}

/// The charts in this program have its license; of others nothing is known.
fn license(package: &[u8], chart: &Chart) -> Option<&'static str> {
    let own = embedded::sources().remove(&chart.metadata.name)?;
    let own = chart::package(&own, &chart.metadata.version).ok()?;
    (own == package).then_some(env!("CARGO_PKG_LICENSE"))
}

fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let unreadable = |error: &std::io::Error| {
        let exit = if error.kind() == std::io::ErrorKind::NotFound {
            Exit::NotFound
        } else {
            Exit::Usage
        };
        CliError::new(
            exit,
            format!("{} cannot be read: {error}", path.display()),
            "Name a package that vdoctl chart package has written.",
        )
    };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| unreadable(&error))?;
    // One more than is accepted, so that a larger one is noticed.
    file.take(PACKED_LIMIT as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(&error))?;
    Ok(bytes)
}
