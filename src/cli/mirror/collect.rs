//! What is to be mirrored: versions of a matrix, their charts, and every image that these can ask for.

use super::super::args::{Global, MatrixFile, Selecting, Taking};
use super::super::context::now;
use super::super::matrix::{driver, library};
use super::super::{CliError, Exit};
use super::bundle::opened;
use super::find::{Ready, names};
use super::registries::Substitutes;
use super::{Prefix, cluster};
use crate::chart::{Chart, ImageSource};
use crate::fetch::{Edition, INDEX_FILE, MatrixSource, index_file};
use crate::matrix::{self, Index};
use crate::mirror::{self, Lock, MATRIX, Selection, Wanted, placed, references};
use crate::oci::Platform;
use crate::signature::Form;
use crate::types::{Digest, DriverVersion, count};
use std::collections::BTreeMap;
use std::path::Path;

/// A version with its chart.
pub(super) struct Version {
    pub(super) driver: String,
    pub(super) version: DriverVersion,
    package: Vec<u8>,
    path: String,
}

/// Everything that is selected.
pub(super) struct Stock {
    edition: Edition,
    pub(super) versions: Vec<Version>,
    /// Every image, with the versions that need it.
    pub(super) images: BTreeMap<String, (Wanted, Vec<String>)>,
    /// Where images are pulled from.
    pub(super) substitutes: Substitutes,
    /// What else goes along: archives of vdoctl that lie beside the index.
    programs: BTreeMap<String, Vec<u8>>,
}

impl Stock {
    /// Reads the matrix, and the charts of what is selected.
    pub(super) async fn read(matrix: &MatrixFile, select: &Selecting, take: &Taking, global: &Global) -> Result<Self, CliError> {
        let (library, edition) = library(matrix, global).await?;
        let mut selection = selection(select, &edition.index)?;
        if take.for_cluster {
            selection.exact = cluster::versions(&edition, global).await?;
        }
        let chosen = selection
            .choose(&edition.index)
            .map_err(|error| CliError::of(Exit::Usage, &error))?;
        let mut stock = Self {
            substitutes: Substitutes(take.from.clone()),
            versions: Vec::new(),
            images: BTreeMap::new(),
            programs: match &matrix.matrix {
                Some(MatrixSource::Local(path)) => programs(path)?,
                _ => BTreeMap::new(),
            },
            edition,
        };
        if let (Some(lock), Some(MatrixSource::Registry(source))) = (&stock.edition.lock, &matrix.matrix) {
            stock.substitutes.0.extend(from_mirror(lock, &source.to_string()));
        }
        for (name, versions) in &chosen {
            for version in versions {
                let entry = stock.edition.index.drivers.get(name).and_then(|driver| driver.entry(version));
                let Some(entry) = entry else { continue };
                let package = library.package(&entry.chart).await;
                let package = package.map_err(|error| CliError::of(Exit::Refused, &error))?;
                let chart = opened(&package)?;
                let label = format!("{name} {version}");
                for wanted in wanted(&chart, version, name, &stock.edition.index)? {
                    let known = stock.images.entry(wanted.reference.clone()).or_insert_with(|| (wanted, Vec::new()));
                    known.1.push(label.clone());
                }
                let beside = |url: &&String| !url.contains("://");
                let path = entry
                    .chart
                    .urls
                    .iter()
                    .find(beside)
                    .map(|url| url.trim_start_matches("./").to_owned());
                stock.versions.push(Version {
                    driver: name.to_string(),
                    version: version.clone(),
                    path: path.unwrap_or_else(|| format!("charts/{name}-{version}.tgz")),
                    package,
                });
            }
        }
        let image = take.image.clone().unwrap_or_else(crate::install::released_image);
        if image != "none" {
            let digest = ImageSource::parse(&image).digest;
            let wanted = Wanted {
                reference: image.clone(),
                source: image.clone(),
                digest,
            };
            stock
                .images
                .entry(image)
                .or_insert((wanted, Vec::new()))
                .1
                .push("the operator".into());
        }
        Ok(stock)
    }

    /// What the mirror is going to hold.
    pub(super) fn lock(&self, images: &[Ready], platforms: &[Platform]) -> Lock {
        let mut lock = Lock::of(self.edition.source.clone(), self.edition.digest.clone(), now());
        for version in &self.versions {
            let versions = lock.versions.entry(version.driver.as_str().into()).or_default();
            versions.insert(version.version.clone());
        }
        lock.platforms = names(platforms);
        lock.images = images.iter().map(|ready| ready.image.clone()).collect();
        lock
    }

    /// The files of the mirrored matrix.
    pub(super) fn files(&self, lock: &Lock) -> Result<BTreeMap<String, Vec<u8>>, CliError> {
        let text = lock.text().map_err(|error| CliError::of(Exit::Refused, &error))?;
        let mut files = BTreeMap::from([
            (INDEX_FILE.to_owned(), self.edition.signed.index.clone()),
            (mirror::FILE.to_owned(), text.into_bytes()),
        ]);
        if let Some(signature) = &self.edition.signed.signature {
            let form = if signature.trim_ascii_start().starts_with(b"{") {
                Form::Bundle
            } else {
                Form::Bare
            };
            files.insert(form.file_of(Path::new(INDEX_FILE)).display().to_string(), signature.clone());
        }
        files.extend(self.programs.clone());
        files.extend(self.versions.iter().map(|version| (version.path.clone(), version.package.clone())));
        Ok(files)
    }

    /// Which matrix it is, who vouches for it, and how many versions are selected.
    pub(super) fn title(&self) -> String {
        let signer = match (&self.edition.signer, &self.edition.signed.signature) {
            (Some(signer), _) => format!("signed by {signer}"),
            (None, Some(_)) => "with a signature that was not checked; --matrix-keys names the keys".into(),
            (None, None) => "not signed".into(),
        };
        let versions = count(self.versions.len(), "version");
        format!(
            "matrix {} version {}, {signer}: {versions}",
            self.edition.source, self.edition.index.version
        )
    }
}

/// The flags as a selection. Drivers may be named without `vsphere-`.
pub(super) fn selection(select: &Selecting, index: &Index) -> Result<Selection, CliError> {
    let mut drivers = select.driver.clone();
    for pattern in &mut drivers {
        driver(index, &pattern.driver)?.0.clone_into(&mut pattern.driver);
    }
    Ok(Selection {
        kubernetes: select.kubernetes.clone(),
        vcenters: select.vcenter.clone(),
        drivers,
        all: select.all,
        ..Selection::default()
    })
}

/// Every image that a version can ask for on the minors that it supports.
pub(super) fn wanted(chart: &Chart, version: &DriverVersion, driver: &str, index: &Index) -> Result<Vec<Wanted>, CliError> {
    let entry = index.drivers.get(driver).and_then(|driver| driver.entry(version));
    let minors = entry
        .map(|entry| matrix::minors(&entry.kubernetes.range, index))
        .unwrap_or_default();
    references(chart, &minors).map_err(|error| CliError::of(Exit::Refused, &error))
}

/// Of a mirror everything comes from the mirror itself, from where it lies there.
fn from_mirror(lock: &Lock, source: &str) -> Vec<(String, String)> {
    let prefix = source.strip_suffix(MATRIX).and_then(|prefix| Prefix::parse(prefix).ok());
    let pairs = |prefix: Prefix| {
        let images = lock.images.iter();
        images
            .map(|image| (image.reference.clone(), format!("{}/{}", prefix.0, placed(&image.reference))))
            .collect()
    };
    prefix.map(pairs).unwrap_or_default()
}

/// The archives of vdoctl that a release has beside its matrix, as SHA256SUMS lists them.
fn programs(matrix: &Path) -> Result<BTreeMap<String, Vec<u8>>, CliError> {
    let sums = index_file(matrix).with_file_name("SHA256SUMS");
    let mut programs = BTreeMap::new();
    for line in std::fs::read_to_string(&sums).unwrap_or_default().lines() {
        let Some((sum, name)) = line.split_once("  ") else { continue };
        let is_plain = !name.contains('/') && name.starts_with("vdoctl");
        if !is_plain {
            continue;
        }
        let wrong = |problem: String| {
            CliError::new(
                Exit::Refused,
                format!("{name} beside the matrix: {problem}"),
                "Build or copy the release again.",
            )
        };
        let bytes = std::fs::read(sums.with_file_name(name)).map_err(|error| wrong(error.to_string()))?;
        if Digest::of(&bytes).hex() != sum {
            return Err(wrong("it is not what SHA256SUMS says".into()));
        }
        programs.insert(name.to_owned(), bytes);
    }
    Ok(programs)
}
