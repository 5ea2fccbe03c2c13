//! Where a matrix is published: what lies there, and replacing it by one publisher at a time.

use super::super::args::Publishing;
use super::super::context::now;
use super::super::doctor::password::secret;
use super::super::{Answer, CliError, Exit, save, text_diff};
use crate::fetch::{Access, MatrixSource, Signed};
use crate::matrix::Index;
use crate::publish::{Draft, INDEX, Release, Write, writes};
use crate::signature::{Form, PrivateKey, PublicKeys, Signature};
use crate::types::{Digest, shell_word};
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A matrix that is being replaced. Until it is dropped no other vdoctl replaces it.
pub(super) struct Place {
    folder: PathBuf,
    /// What lies there now.
    pub(super) source: MatrixSource,
    last: Arc<Signed>,
    key: Option<PrivateKey>,
    warning: Option<String>,
    _turn: File,
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
        let MatrixSource::Local(folder) = args.to.clone() else {
            return Err(CliError::new(
                Exit::Usage,
                format!("{} is no folder", args.to),
                "Name a folder with --to.",
            ));
        };
        let turn = turn(&folder)?;
        let source = MatrixSource::Local(folder.clone());
        let refused = |error| CliError::of(Exit::Refused, &error);
        let last = source.look(&Access::default(), None).await.map_err(refused)?.signed;
        if let Some(signature) = &last.signature {
            signed_by(key.as_ref(), &last.index, signature, &folder)?;
        }
        let draft = Draft::read(&last.index).map_err(|error| CliError::of(Exit::Refused, &error))?;
        let place = Self {
            folder,
            source,
            last,
            key,
            warning,
            _turn: turn,
        };
        Ok((place, draft))
    }

    /// Publishes the draft with new charts, by their paths.
    pub(super) fn publish(self, draft: Draft, charts: BTreeMap<String, Vec<u8>>, args: &Publishing) -> Result<Published, CliError> {
        let valid = args.valid_for.map(|days| SignedDuration::from_hours(24 * days));
        let index = draft.finish(now(), valid).map_err(|error| CliError::of(Exit::Refused, &error))?;
        let release = signed(index, charts, self.key.as_ref())?;
        if !args.dry_run {
            let old = self.last.signature.as_ref().and_then(|text| Signature::parse(text).ok());
            write(&self.folder, &writes(old.as_ref(), &release))?;
        }
        let before = String::from_utf8_lossy(&self.last.index);
        let path = self.folder.join(INDEX).display().to_string();
        let diff = || text_diff::unified(&path, &before, &String::from_utf8_lossy(&release.index));
        Published::new(&release, self.key.as_ref(), args.dry_run.then(diff), self.warning)
    }
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
        let versions = crate::types::count(versions, "driver version");
        format!("matrix version {}: {versions}{until}, {signer}\n", self.index.version)
    }

    /// The same for programs.
    pub(super) fn json(&self) -> Value {
        json!({
            "version": self.index.version, "generated": self.index.generated, "expires": self.index.expires,
            "digest": self.digest, "signer": self.signer,
        })
    }

    /// An answer with what is to be said beside it.
    pub(super) fn answer(&self, answer: Answer) -> Answer {
        self.warning.iter().fold(answer, |answer, line| answer.say(line.as_str()))
    }
}

/// The key in a file, with a warning where others can read it.
pub(super) fn signing_key(file: Option<&Path>) -> Result<(Option<PrivateKey>, Option<String>), CliError> {
    let Some(file) = file else {
        return Ok((None, None));
    };
    let (text, warning) = secret(file, "the private key")?;
    let key = PrivateKey::parse(&text).map_err(|error| CliError::of(Exit::Usage, &error))?;
    Ok((Some(key), warning))
}

/// An index with its signatures in every form that the key has.
pub(super) fn signed(index: Vec<u8>, charts: BTreeMap<String, Vec<u8>>, key: Option<&PrivateKey>) -> Result<Release, CliError> {
    let mut signatures = BTreeMap::new();
    for form in Form::ALL {
        let Some(key) = key.filter(|key| form == Form::Bare || key.has_bundles()) else {
            continue;
        };
        let text = key.sign(&index, form).map_err(|error| CliError::of(Exit::Usage, &error))?;
        signatures.insert(form, text);
    }
    Ok(Release { index, signatures, charts })
}

/// A matrix that is signed stays so, and a publisher builds on nothing that another key has signed.
fn signed_by(key: Option<&PrivateKey>, index: &[u8], signature: &[u8], folder: &Path) -> Result<(), CliError> {
    let place = folder.display();
    let Some(key) = key else {
        return Err(CliError::new(
            Exit::Usage,
            format!("the matrix in {place} is signed, and there is no key to sign the next version"),
            "Name the file of the key with --key-file.",
        ));
    };
    let keys = PublicKeys::parse(key.public().pem().as_bytes()).map_err(|error| CliError::of(Exit::Usage, &error))?;
    keys.verify(index, Some(signature)).map(drop).map_err(|_| {
        CliError::new(
            Exit::Refused,
            format!("the matrix in {place} is not signed by this key, or was changed after it was signed"),
            format!(
                "Look at it with vdoctl matrix diff; if it is right, sign it: vdoctl matrix sign {} --key-file FILE",
                shell_word(&place.to_string())
            ),
        )
    })
}

/// Does not wait: where another publisher is at work, this one is too late.
fn turn(folder: &Path) -> Result<File, CliError> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => CliError::new(
            Exit::NotFound,
            format!("the folder {} does not exist", folder.display()),
            format!(
                "Begin a matrix there: vdoctl matrix init {}",
                shell_word(&folder.display().to_string())
            ),
        ),
        _ => CliError::new(
            Exit::Refused,
            format!("the folder {} cannot be opened: {error}", folder.display()),
            "Check that you may read and write it.",
        ),
    };
    let open = File::open(folder).map_err(failed)?;
    match open.try_lock() {
        Ok(()) => Ok(open),
        Err(fs::TryLockError::WouldBlock) => Err(CliError::new(
            Exit::Refused,
            format!("another vdoctl is publishing to {} right now", folder.display()),
            "Run the command again when it is through; it then builds on what the other one has published.",
        )),
        Err(fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Takes away what a publisher that was killed had not completed: files that stand beside those that are published.
fn tidy(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name
            .strip_prefix('.')
            .and_then(|name| name.rsplit_once('.'))
            .map(|(_, number)| number);
        if number.is_some_and(|number| number.parse::<u32>().is_ok()) {
            // Where it cannot be removed it does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Carries writes out, one after the other.
fn write(folder: &Path, writes: &[Write]) -> Result<(), CliError> {
    tidy(folder);
    tidy(&folder.join("charts"));
    for Write { path, content } in writes {
        let file = folder.join(path);
        let written = match content {
            Some(bytes) => {
                let parent = file.parent().map_or(Ok(()), fs::create_dir_all);
                parent.and_then(|()| save::write(&file, bytes))
            }
            None => match fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        };
        written.map_err(|error| {
            CliError::new(
                Exit::Refused,
                format!("{} cannot be written: {error}", file.display()),
                "Free some space, or check that you may write there, and run the command again. Until then the last version stays.",
            )
        })?;
    }
    Ok(())
}
