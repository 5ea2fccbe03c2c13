// SPDX-License-Identifier: Apache-2.0
//! Selects the driver versions to mirror (`--driver`, `--kubernetes`, `--all`, …), and lists their charts and all images that these need.

use super::super::args::{Global, MatrixFile, Selecting, Taking};
use super::super::context::{Context, now};
use super::super::matrix::{Choice, driver, repository};
use super::super::{CliError, Exit};
use super::bundle::opened;
use super::find::{Ready, names};
use super::registries::Substitutes;
use super::{Prefix, cluster};
use std::collections::BTreeMap;
use std::path::Path;
use vdo_api::types::{Digest, DriverVersion, count};
use vdo_author::mirror::{self, SUMS, SUMS_SIGNATURE, Selection, Wanted, references};
use vdo_core::chart::{Chart, ImageSource};
use vdo_core::matrix::{self, Index};
use vdo_core::mirror_lock::{self, Lock, MATRIX, placed};
use vdo_oci::oci::Platform;
use vdo_oci::registry::Reference;
use vdo_source::fetch::{ChartRepository, INDEX_FILE, LoadedIndex, MatrixSource};
use vdo_source::signature::Form;

/// A version with its chart.
pub(super) struct Version {
    pub(super) driver: String,
    pub(super) version: DriverVersion,
    package: Vec<u8>,
    path: String,
}

/// Everything that is selected.
pub(super) struct Stock {
    loaded: LoadedIndex,
    pub(super) versions: Vec<Version>,
    /// Every image, with the versions that need it.
    pub(super) images: BTreeMap<String, (Wanted, Vec<String>)>,
    /// The platforms that are taken; none: all that there are.
    pub(super) platforms: Vec<Platform>,
    /// Where images are pulled from.
    substitutes: Substitutes,
    /// Where the mirror lies from which everything comes.
    mirror: Option<Prefix>,
    /// What else goes along: archives of vdoctl, with their sums.
    programs: BTreeMap<String, Vec<u8>>,
}

impl Stock {
    /// Reads the matrix, and the charts of what is selected.
    pub(super) async fn read(matrix: &MatrixFile, select: &Selecting, take: &Taking, global: &Global) -> Result<Self, CliError> {
        let (repository, loaded) = match take.for_cluster {
            // What the cluster needs is decided as its operator decides.
            true => {
                let context = Context::open(global).await?;
                let choice = Choice::in_cluster(matrix, &context, global).await?;
                (choice.repository, choice.loaded)
            }
            false => repository(matrix, global).await?,
        };
        let mut selection = selection(select, &loaded.index)?;
        if take.for_cluster {
            selection.exact = cluster::versions(&loaded, global).await?;
        }
        let chosen = selection.choose(&loaded.index).map_err(|error| CliError::of(Exit::Usage, &error))?;
        let mut stock = Self {
            platforms: take.platform.clone(),
            substitutes: Substitutes(take.from.clone()),
            mirror: match loaded.source.parse() {
                Ok(MatrixSource::Registry(source)) => prefix_of(source.reference()),
                _ => None,
            },
            versions: Vec::new(),
            images: BTreeMap::new(),
            programs: programs(&repository).await?,
            loaded,
        };
        stock.refuse_missing_platforms()?;
        for (name, versions) in &chosen {
            for version in versions {
                let entry = stock.loaded.index.drivers.get(name).and_then(|driver| driver.entry(version));
                let Some(entry) = entry else { continue };
                let package = repository.package(&entry.chart).await;
                let package = package.map_err(|error| CliError::of(Exit::Refused, &error))?;
                let chart = opened(&package)?;
                let label = format!("{name} {version}");
                for wanted in wanted(&chart, version, name, &stock.loaded.index)? {
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
        let image = take.image.clone().unwrap_or_else(vdo_core::install::released_image);
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

    /// A mirror that was made for some platforms has no images of others.
    fn refuse_missing_platforms(&self) -> Result<(), CliError> {
        let Some(held) = self
            .loaded
            .lock
            .as_ref()
            .map(|lock| &lock.platforms)
            .filter(|held| !held.is_empty())
        else {
            return Ok(());
        };
        match self.platforms.iter().find(|wanted| !held.contains(&wanted.to_string())) {
            Some(wanted) => Err(CliError::new(
                Exit::Usage,
                format!(
                    "the mirror {} has images for {}, but not for {wanted}",
                    self.loaded.source,
                    held.join(", ")
                ),
                "Name platforms that the mirror has, or another source.",
            )),
            None => Ok(()),
        }
    }

    /// The platforms as the lock lists them.
    pub(super) fn platforms(&self) -> Vec<String> {
        match &self.loaded.lock {
            Some(lock) if self.platforms.is_empty() => lock.platforms.clone(),
            _ => names(&self.platforms),
        }
    }

    /// What a mirror that is the source has of an image.
    fn mirrored(&self, wanted: &Wanted) -> Option<(&Prefix, &mirror_lock::Image)> {
        self.mirror.as_ref().zip(self.loaded.lock.as_ref()?.image(&wanted.reference))
    }

    /// Where an image is pulled from. Of a mirror everything comes from the mirror itself, by the digest that it was pulled with.
    pub(super) fn place(&self, wanted: &Wanted) -> Result<Reference, CliError> {
        let (mut at, digest) = match self.mirrored(wanted) {
            Some((prefix, image)) => (prefix.at(&placed(&image.reference))?, Some(&image.digest)),
            None => (self.substitutes.source(&wanted.source)?, wanted.digest.as_ref()),
        };
        at.digest = digest.cloned().or(at.digest);
        Ok(at)
    }

    /// The digest of all platforms of an image of which a mirror has a part.
    pub(super) fn whole(&self, wanted: &Wanted) -> Option<Digest> {
        self.mirrored(wanted)?.1.whole.clone()
    }

    /// What the mirror is going to hold.
    pub(super) fn lock(&self, images: &[Ready]) -> Lock {
        let mut lock = Lock::of(self.loaded.source.clone(), self.loaded.digest.clone(), now());
        for version in &self.versions {
            let versions = lock.versions.entry(version.driver.as_str().into()).or_default();
            versions.insert(version.version.clone());
        }
        lock.platforms = self.platforms();
        lock.images = images.iter().map(|ready| ready.image.clone()).collect();
        lock
    }

    /// The files of the mirrored matrix.
    pub(super) fn files(&self, lock: &Lock) -> Result<BTreeMap<String, Vec<u8>>, CliError> {
        let text = lock.text().map_err(|error| CliError::of(Exit::Refused, &error))?;
        let mut files = BTreeMap::from([
            (INDEX_FILE.to_owned(), self.loaded.signed.index.clone()),
            (mirror_lock::FILE.to_owned(), text.into_bytes()),
        ]);
        if let Some(signature) = &self.loaded.signed.signature {
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
        let signer = match (&self.loaded.signer, &self.loaded.signed.signature) {
            (Some(signer), _) => format!("signed by {signer}"),
            (None, Some(_)) => "signature not checked (--matrix-keys names the keys)".into(),
            (None, None) => "not signed".into(),
        };
        let versions = count(self.versions.len(), "version");
        format!(
            "matrix {} version {}, {signer}: {versions}",
            self.loaded.source, self.loaded.index.version
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

/// Where a mirror lies, whose matrix is this.
fn prefix_of(matrix: &Reference) -> Option<Prefix> {
    let (repository, _) = MATRIX.split_once(':')?;
    let place = format!("oci://{}/{}", matrix.host, matrix.repository);
    Prefix::parse(place.strip_suffix(repository)?).ok()
}

/// The archives of vdoctl that lie beside the index, with their sums and the signature of these.
async fn programs(repository: &ChartRepository) -> Result<BTreeMap<String, Vec<u8>>, CliError> {
    let beside = async |name: &str| {
        let found = repository.beside(name, PROGRAM).await;
        found.map_err(|error| CliError::of(Exit::Refused, &error))
    };
    let mut files = BTreeMap::new();
    let Some(sums) = beside(SUMS).await? else { return Ok(files) };
    for program in mirror::programs(&String::from_utf8_lossy(&sums)) {
        let wrong = |problem: &str| {
            CliError::new(
                Exit::Refused,
                format!("{} in the folder of matrix {repository}: {problem}", program.name),
                "Build or copy the release again.",
            )
        };
        let bytes = beside(&program.name).await?.ok_or_else(|| wrong("the file is missing"))?;
        if Digest::of(&bytes).hex() != program.sum {
            return Err(wrong("its checksum differs from SHA256SUMS"));
        }
        files.insert(program.name, bytes);
    }
    if !files.is_empty() {
        let signature = beside(SUMS_SIGNATURE).await?;
        files.extend(signature.map(|signature| (SUMS_SIGNATURE.to_owned(), signature)));
        files.insert(SUMS.to_owned(), sums);
    }
    Ok(files)
}

/// Bytes of an archive of vdoctl: ten times as many as it has.
const PROGRAM: usize = 64 << 20;
