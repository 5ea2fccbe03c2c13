// SPDX-License-Identifier: Apache-2.0
//! `vdoctl mirror verify`: checks that a bundle or a registry has every image of its versions, unchanged, and checks the signature.

use super::super::args::{Global, MirrorVerify as Args};
use super::super::views::mirror::{FaultView, MirrorVerifyView};
use super::super::{Answer, CliError, Exit, registry as login, style};
use super::bundle::{Bundle, Matrix, is_signature, opened};
use super::collect::wanted;
use super::remote::Remote;
use super::{Prefix, cluster, size};
use futures::{StreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use vdo_api::retry::REGISTRY;
use vdo_api::types::{Digest, count};
use vdo_core::mirror_lock::{Image, MATRIX, placed, places};
use vdo_oci::layout::Layout;
use vdo_oci::oci::Descriptor;
use vdo_oci::registry::{Reference, Registry, retry};
use vdo_oci::transfer::{AT_ONCE, Origin, TransferError, tree};
use vdo_source::fetch::KeyStore;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fault {
    /// An image, or a part of the matrix.
    pub(super) what: String,
    /// What is wrong with it.
    pub(super) problem: String,
    /// The versions that it keeps from being installed.
    pub(super) versions: Vec<String>,
}

/// What came of it.
#[derive(Default)]
pub(super) struct Report {
    pub(super) place: String,
    /// What was looked at.
    pub(super) images: usize,
    pub(super) versions: Vec<String>,
    pub(super) bytes: Option<u64>,
    pub(super) notes: Vec<String>,
    pub(super) faults: Vec<Fault>,
}

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let report = match &args.mirror {
        None => cluster::verify(args, global).await?,
        Some(place) if place.starts_with("oci://") => in_registry(args, place).await?,
        Some(path) => in_bundle(args, Path::new(path))?,
    };
    report.answer(args)
}

/// Everything is read; nothing is asked of any network.
fn in_bundle(args: &Args, path: &Path) -> Result<Report, CliError> {
    let bundle = Bundle::open(path)?;
    let mut report = Report {
        place: path.display().to_string(),
        ..Report::default()
    };
    let layout = &bundle.layout;
    let mut sound = BTreeSet::new();
    let Some(descriptor) = bundle.names.get(MATRIX) else {
        // Of a layout without a matrix it is only known what it names.
        for (name, root) in &bundle.names {
            report.images += 1;
            report
                .faults
                .extend(broken(layout, root, &mut sound).map(|problem| fault(name, problem, &[])));
        }
        report
            .notes
            .push("the bundle has no matrix, so it is not known which images it should contain".into());
        return Ok(report);
    };
    let matrix = match bundle.matrix() {
        Ok(Some(matrix)) => matrix,
        Ok(None) => return Ok(report),
        Err(error) => {
            report.faults.push(fault("the matrix", error.what, &["all".into()]));
            return Ok(report);
        }
    };
    let read = |blob: &Descriptor| layout.read(blob).map_err(|error| CliError::of(Exit::Refused, &error));
    let needs = report.judge(&matrix, args.matrix_keys.as_deref(), read)?;
    for (blob, error) in layout.faults(descriptor, &mut sound) {
        let file = matrix
            .files
            .iter()
            .find(|(_, file)| file.digest == blob.digest)
            .map(|(path, _)| path.as_str());
        match file {
            // Charts and the signature were looked at one by one.
            Some(path) if path.ends_with(".tgz") => {}
            Some(_) if matrix.signature().is_some_and(|signature| signature.digest == blob.digest) => {}
            Some(path) => report.faults.push(fault(path, chain(&error), &[])),
            None => report.faults.push(fault("the matrix", chain(&error), &["all".into()])),
        }
    }
    for image in &matrix.lock.images {
        report.images += 1;
        let versions = needs.get(&image.reference).cloned().unwrap_or_default();
        let problem = match bundle.names.get(&image.reference) {
            None => Some("it is not in the bundle".to_owned()),
            Some(found) if found.digest != image.digest => Some(format!(
                "the bundle contains the image with the digest {}, but vdoctl mirror pull recorded {}",
                found.digest, image.digest
            )),
            Some(found) => broken(layout, found, &mut sound),
        };
        report
            .faults
            .extend(problem.map(|problem| fault(&image.reference, problem, &versions)));
    }
    let others = bundle.names.iter().filter(|(name, _)| is_signature(name));
    let others = others.map(|(name, root)| (name.clone(), root));
    let referrers = bundle.unnamed.iter().map(|root| (root.digest.to_string(), root));
    for (name, root) in others.chain(referrers) {
        report.faults.extend(
            broken(layout, root, &mut sound).map(|problem| fault(&format!("signature or attachment {name} of an image"), problem, &[])),
        );
    }
    report.bytes = Some(layout.bytes(&sound));
    Ok(report)
}

fn broken(layout: &Layout, root: &Descriptor, sound: &mut BTreeSet<Digest>) -> Option<String> {
    let faults = layout.faults(root, sound);
    let first = faults.first().map(|(_, error)| chain(error))?;
    Some(match faults.len() {
        1 => first,
        more => format!("{first}; and {} more", count(more - 1, "blob")),
    })
}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    super::super::error::sentence(error)
}

fn fault(what: &str, problem: String, versions: &[String]) -> Fault {
    Fault {
        what: what.to_owned(),
        problem,
        versions: versions.to_vec(),
    }
}

impl Report {
    /// What the matrix says by itself: its signature, its charts, and that the lock has every image that a chart can ask for. Gives which
    /// versions need which image.
    fn judge(
        &mut self,
        matrix: &Matrix,
        keys: Option<&Path>,
        read: impl Fn(&Descriptor) -> Result<Vec<u8>, CliError>,
    ) -> Result<BTreeMap<String, Vec<String>>, CliError> {
        let signature = matrix.signature().map(&read).transpose();
        match (keys, signature) {
            (_, Err(error)) => self.faults.push(fault("the signature of the matrix", error.what, &["all".into()])),
            (Some(keys), Ok(signature)) => {
                let keys = KeyStore(keys.to_owned())
                    .keys()
                    .map_err(|error| CliError::of(Exit::Usage, &error))?;
                match keys.verify(&matrix.bytes, signature.as_deref()) {
                    Ok(key) => self.notes.push(format!("the matrix is signed by {}", key.fingerprint())),
                    Err(error) => self.faults.push(fault("the matrix", chain(&error), &["all".into()])),
                }
            }
            (None, Ok(Some(_))) => self
                .notes
                .push("the signature of the matrix was not checked; --matrix-keys names the keys".into()),
            (None, Ok(None)) => self.notes.push("the matrix is not signed".into()),
        }
        if let Err(collision) = places(&matrix.lock) {
            self.faults.push(fault("the images", collision.to_string(), &[]));
        }
        let mut needs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let versions = matrix.lock.versions.iter();
        for (driver, version) in versions.flat_map(|(driver, versions)| versions.iter().map(move |version| (driver, version))) {
            let label = format!("{driver} {version}");
            self.versions.push(label.clone());
            let entry = matrix.index.drivers.get(driver).and_then(|driver| driver.entry(version));
            let package = entry.and_then(|entry| matrix.package(&entry.chart));
            let package = match package.map(&read) {
                Some(Ok(package)) => package,
                Some(Err(error)) => {
                    self.faults.push(fault("a chart", error.what, &[label]));
                    continue;
                }
                None => {
                    self.faults.push(fault("a chart", "it is not in the mirror".into(), &[label]));
                    continue;
                }
            };
            for image in wanted(&opened(&package)?, version, driver, &matrix.index)? {
                if matrix.lock.image(&image.reference).is_none() {
                    self.faults.push(fault(
                        &image.reference,
                        "it is not in the mirror".into(),
                        std::slice::from_ref(&label),
                    ));
                }
                needs.entry(image.reference).or_default().push(label.clone());
            }
        }
        Ok(needs)
    }

    fn answer(mut self, args: &Args) -> Result<Answer, CliError> {
        self.faults.sort();
        self.faults.dedup();
        let good = self.faults.is_empty();
        let fault = |fault: &Fault| FaultView {
            what: fault.what.clone(),
            problem: fault.problem.clone(),
            versions: fault.versions.clone(),
        };
        let view = MirrorVerifyView {
            mirror: self.place.clone(),
            complete: good,
            versions: self.versions.clone(),
            images: self.images,
            bytes: self.bytes,
            faults: self.faults.iter().map(fault).collect(),
            notes: self.notes.clone(),
        };
        let answer = Answer::view(args.output.or_table(), &view, || self.text())?;
        Ok(answer.exit(if good { Exit::Ok } else { Exit::Differences }))
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for fault in &self.faults {
            text.push_str(&format!("{} {}: {}\n", style::bad("✗"), fault.what, fault.problem));
            if !fault.versions.is_empty() {
                text.push_str(&format!("    {}\n", fault.versions.join(", ")));
            }
        }
        let what = format!(
            "{}: {}, {}",
            self.place,
            count(self.versions.len(), "version"),
            count(self.images, "image")
        );
        match self.faults.is_empty() {
            true => {
                let bytes = self.bytes.map(|bytes| format!(", {}", size(bytes))).unwrap_or_default();
                text.push_str(&format!("{} {what}{bytes}: complete\n", style::good("✓")));
            }
            false => text.push_str(&format!(
                "{what}: {}\n  pull or push the mirror again; only the missing data is transferred\n",
                count(self.faults.len(), "fault")
            )),
        }
        self.notes.iter().for_each(|note| text.push_str(&format!("  {note}\n")));
        text
    }
}

/// Each image is looked up by its digest, with everything below it.
async fn in_registry(args: &Args, place: &str) -> Result<Report, CliError> {
    let prefix = Prefix::parse(place)?;
    let at = prefix.matrix()?;
    let registry = login::open(&args.registry, &at).await?;
    let remote = Remote::open(&registry, &at, place).await?;
    let matrix = &remote.matrix;
    let mut report = Report {
        place: place.to_owned(),
        images: matrix.lock.images.len(),
        ..Report::default()
    };
    let needs = report.judge(matrix, args.matrix_keys.as_deref(), |blob| remote.read(blob))?;
    let looked = stream::iter(&matrix.lock.images).map(|image| {
        let (prefix, registry) = (&prefix, &registry);
        async move { (image, at_registry(registry, prefix, image).await) }
    });
    let looked: Vec<(&Image, Result<Vec<String>, CliError>)> = looked.buffered(AT_ONCE).collect().await;
    for (image, problems) in looked {
        let versions = needs.get(&image.reference).cloned().unwrap_or_default();
        let problems = problems?;
        report
            .faults
            .extend(problems.into_iter().map(|problem| fault(&image.reference, problem, &versions)));
    }
    Ok(report)
}

async fn at_registry(registry: &Registry, prefix: &Prefix, image: &Image) -> Result<Vec<String>, CliError> {
    let at = prefix.at(&placed(&image.reference))?.at_digest(&image.digest);
    Ok(missing(registry, &at).await.err().into_iter().collect())
}

/// What of an image a registry lacks, in words.
pub(super) async fn missing(registry: &Registry, at: &Reference) -> Result<(), String> {
    let said = |error: &TransferError| chain(error);
    let found = retry(REGISTRY, || registry.manifest(at))
        .await
        .map_err(|error| said(&error.into()))?;
    let origin = Origin::Registry(registry.clone(), at.clone());
    let tree = tree(&origin, &at.to_string(), (found.descriptor, found.bytes), &[])
        .await
        .map_err(|error| said(&error))?;
    let blobs = stream::iter(tree.blobs.into_values()).map(|blob| async move {
        let known = retry(REGISTRY, || registry.has_blob(&at.repository, &blob.digest)).await;
        match known {
            Ok(true) => Ok(()),
            Ok(false) if vdo_oci::oci::is_foreign(&blob.media_type) => Ok(()),
            Ok(false) => Err(format!("blob {} is missing", blob.digest)),
            Err(error) => Err(chain(&error)),
        }
    });
    let looked: Vec<Result<(), String>> = blobs.buffered(AT_ONCE).collect().await;
    looked.into_iter().collect()
}
