// SPDX-License-Identifier: Apache-2.0
//! Opens and replaces the matrix of `--to` for the verbs that publish: a folder or a registry tag, by one publisher at a time.

mod folder;
mod signing;

use super::super::args::Publishing;
use super::super::context::now;
use super::super::views::publish::PublishedView;
use super::super::{Answer, CliError, Exit, registry as login, text_diff};
use jiff::SignedDuration;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use vdo_api::types::{ChartRef, Digest, shell_word};
use vdo_author::publish::{Draft, INDEX, Release, writes};
use vdo_core::matrix::Index;
use vdo_core::mirror_lock;
use vdo_oci::registry::{Reference, Registry, pull_matrix, push_matrix};
use vdo_source::fetch::{Access, MatrixSource, Signed, embedded};
use vdo_source::signature::{Form, PrivateKey, Signature};

pub(super) use signing::{private_key, signed, signing_key};

/// A matrix that is being replaced.
pub(super) struct Place {
    target: Target,
    name: String,
    last: Signed,
    key: Option<PrivateKey>,
    warning: Option<String>,
}

enum Target {
    /// Until it is dropped, no other vdoctl publishes there.
    Folder { path: PathBuf, _turn: File },
    /// With all its files, and what the tag led to when they were read.
    Registry {
        registry: Registry,
        reference: Reference,
        before: Digest,
        files: BTreeMap<String, Vec<u8>>,
    },
}

/// What was published, or would be.
pub(super) struct Published {
    /// The new index.
    pub(super) index: Index,
    /// The digest of its bytes.
    pub(super) digest: Digest,
    /// The key that has signed it.
    pub(super) signer: Option<Digest>,
    /// The difference, for a dry run.
    pub(super) diff: Option<String>,
    warning: Option<String>,
}

impl Place {
    /// Reads what lies there.
    pub(super) async fn open(args: &Publishing) -> Result<(Self, Draft), CliError> {
        let (key, warning) = signing_key(args.key_file.as_deref())?;
        let name = args.to.to_string();
        let (target, last) = match &args.to {
            MatrixSource::Registry(source) => in_registry(args, source.reference()).await?,
            source => in_folder(source).await?,
        };
        if last.lock.is_some() {
            return Err(CliError::new(
                Exit::Refused,
                format!("{name} is a mirror of a matrix that is published elsewhere"),
                "Publish to the original matrix, and pull the mirror again.",
            ));
        }
        if let Some(signature) = &last.signature {
            signing::signed_by(key.as_ref(), &last.index, signature, &name)?;
        }
        let draft = Draft::read(&last.index).map_err(|error| CliError::of(Exit::Refused, &error))?;
        let place = Self {
            target,
            name,
            last,
            key,
            warning,
        };
        Ok((place, draft))
    }

    /// The bytes of a chart that was published there.
    pub(super) async fn chart(&self, chart: &ChartRef) -> Result<Vec<u8>, CliError> {
        let bytes = match &self.target {
            Target::Folder { path, .. } => MatrixSource::Local(path.clone()).chart(&Access::default(), chart).await,
            Target::Registry { files, .. } => {
                let file = chart.urls.iter().find_map(|path| files.get(path));
                match file.filter(|bytes| Digest::of(bytes) == chart.digest) {
                    Some(bytes) => Ok(bytes.clone()),
                    None => embedded::chart(chart),
                }
            }
        };
        bytes.map_err(|error| CliError::of(Exit::Refused, &error))
    }

    /// Ends what a publisher that was killed had begun: the signatures of the version that lies there, in every form of the key.
    pub(super) fn settle(self, args: &Publishing) -> Result<(), CliError> {
        let Target::Folder { path, _turn } = &self.target else {
            // A registry is given all files at once.
            return Ok(());
        };
        if args.dry_run {
            return Ok(());
        }
        let mut missing = writes(None, &signed(self.last.index.clone(), BTreeMap::new(), self.key.as_ref())?);
        missing.retain(|write| {
            let file = || std::fs::read(path.join(&write.path)).ok();
            write.path != INDEX && write.content.is_some() && !signing::verifies(self.key.as_ref(), &self.last.index, file())
        });
        folder::write(path, &missing)
    }

    /// Publishes the draft with new charts, by their paths.
    pub(super) async fn publish(self, draft: Draft, charts: BTreeMap<String, Vec<u8>>, args: &Publishing) -> Result<Published, CliError> {
        let valid = args
            .valid_for
            .map(|days| SignedDuration::from_hours(days.saturating_mul(24).min(24 * 366 * 1000)));
        let index = draft.finish(now(), valid).map_err(|error| CliError::of(Exit::Refused, &error))?;
        let release = signed(index, charts, self.key.as_ref())?;
        let diff = args.dry_run.then(|| {
            let before = String::from_utf8_lossy(&self.last.index);
            let path = Path::new(&self.name).join(INDEX).display().to_string();
            text_diff::unified(&path, &before, &String::from_utf8_lossy(&release.index))
        });
        if !args.dry_run {
            match self.target {
                Target::Folder { path, _turn } => {
                    let old = self.last.signature.as_ref().and_then(|text| Signature::parse(text).ok());
                    folder::write(&path, &writes(old.as_ref(), &release))?;
                }
                Target::Registry {
                    registry,
                    reference,
                    before,
                    mut files,
                } => {
                    for form in Form::ALL {
                        files.remove(&form.file_of(Path::new(INDEX)).display().to_string());
                    }
                    files.extend(release.files());
                    let pushed = push_matrix(&registry, &reference, &files, Some(&before)).await;
                    pushed.map_err(|error| login::failed(&error))?;
                }
            }
        }
        Published::new(&release, self.key.as_ref(), diff, self.warning)
    }
}

async fn in_folder(source: &MatrixSource) -> Result<(Target, Signed), CliError> {
    let MatrixSource::Local(path) = source.clone() else {
        return Err(CliError::new(
            Exit::Usage,
            format!("{source} is not a folder"),
            "Name a folder with --to.",
        ));
    };
    let turn = folder::turn(&path)?;
    let look = source.fetch(&Access::default(), None).await;
    let look = look.map_err(|error| CliError::of(Exit::Refused, &error))?;
    Ok((Target::Folder { path, _turn: turn }, Signed::clone(&look.signed)))
}

async fn in_registry(args: &Publishing, reference: &Reference) -> Result<(Target, Signed), CliError> {
    let registry = login::open(&args.registry, reference).await?;
    let found = pull_matrix(&registry, reference).await.map_err(|error| login::failed(&error))?;
    let none = || {
        CliError::new(
            Exit::NotFound,
            format!("there is no matrix at oci://{reference}"),
            format!(
                "To create a matrix there: vdoctl matrix init {}",
                shell_word(&format!("oci://{reference}"))
            ),
        )
    };
    let (before, files) = found.ok_or_else(none)?;
    let index = files.get(INDEX).ok_or_else(none)?.clone();
    let beside = Form::ALL.map(|form| form.file_of(Path::new(INDEX)).display().to_string());
    let signature = beside.iter().find_map(|name| files.get(name)).cloned();
    let lock = files.get(mirror_lock::FILE).cloned();
    let target = Target::Registry {
        registry,
        reference: reference.clone(),
        before,
        files,
    };
    Ok((target, Signed { index, signature, lock }))
}

impl Published {
    pub(super) fn new(
        release: &Release,
        key: Option<&PrivateKey>,
        diff: Option<String>,
        warning: Option<String>,
    ) -> Result<Self, CliError> {
        Ok(Self {
            index: Index::parse(&release.index).map_err(|error| CliError::of(Exit::Refused, &error))?,
            digest: Digest::of(&release.index),
            signer: key.map(|key| key.public().fingerprint()),
            diff,
            warning,
        })
    }

    /// One line about the matrix as it is then.
    pub(super) fn line(&self) -> String {
        let versions: usize = self.index.drivers.values().map(|driver| driver.versions.len()).sum();
        let until = self.index.expires.map_or(String::new(), |time| format!(", good until {time}"));
        let signer = match &self.signer {
            Some(key) => format!("signed by {key}"),
            None => "not signed".to_owned(),
        };
        let versions = vdo_api::types::count(versions, "driver version");
        format!("matrix version {}: {versions}{until}, {signer}\n", self.index.version)
    }

    /// The same for programs.
    pub(super) fn view(&self) -> PublishedView {
        PublishedView {
            version: self.index.version,
            generated: self.index.generated,
            expires: self.index.expires,
            digest: self.digest.clone(),
            signer: self.signer.clone(),
        }
    }

    /// An answer with what is to be said beside it.
    pub(super) fn answer(&self, answer: Answer) -> Answer {
        self.warning.iter().fold(answer, |answer, line| answer.note(line.as_str()))
    }
}
