// SPDX-License-Identifier: Apache-2.0
//! `vdoctl support-bundle`: collects objects, logs and documents of verbs in an archive without secrets; also reads a bundle for `--from`.
//!
//! ```text
//! cluster -> objects, by lists of fields ┐         ┌-> archive
//! verbs -> documents                     ├-> mask -┤
//! pods -> logs                           ┘         └-> report
//! ```

mod allow;
mod archive;
mod collect;
mod documents;
mod fields;
mod mask;
mod missing;

use super::args::{Global, SupportBundle as Args};
use super::context::{Context, now};
use super::output::{View as _, of_view};
use super::views::doctor::DoctorView;
use super::views::history::HistoryView;
use super::views::matrix::MatrixListView;
use super::views::matrix_resolve::OutlookView;
use super::views::status::StatusView;
use super::views::support::{BundleClusterView, SupportBundleView};
use super::views::volumes::VolumesView;
use super::{Answer, CliError, Exit, ages, atomic_files};
use archive::Archive;
use documents::Documents;
use k8s_openapi::jiff::Timestamp;
use mask::Mask;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};
use vdo_api::types::{count, from_json};

/// The version of the layout of a bundle.
const SCHEMA: u64 = 1;

/// What says that a folder is a bundle.
const MANIFEST: &str = "bundle.json";

/// How many of the things that could not be read are named on the terminal.
const NAMED: usize = 3;

/// What is in a bundle, for the person who sends it.
const CONTENT: &str = "It contains the output of several commands, selected fields of objects, and events and logs, all with names and \
                       addresses of this site; read the files in logs/ before you send it.";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a report is made of: what a bundle says of itself, and the documents of verbs, live or from a bundle. Both ways lead through the same
/// mask; a bundle of an older vdoctl may lack it.
pub(super) struct Facts {
    pub about: SupportBundleView,
    pub status: Option<StatusView>,
    pub doctor: Option<DoctorView>,
    pub volumes: Option<VolumesView>,
    pub history: Option<HistoryView>,
    pub matrix: Option<MatrixListView>,
    pub outlook: Option<OutlookView>,
}

impl Facts {
    pub(super) async fn read(from: Option<&Path>, global: &Global) -> Result<Self, CliError> {
        if let Some(file) = from {
            let bundle = read(file)?;
            let mask = Mask::default();
            let about = serde_json::to_value(&bundle.manifest).map(|about| mask.document(about));
            let about = about.and_then(serde_json::from_value).unwrap_or_default();
            return Ok(Self::of(about, |verb| Some(mask.document(bundle.document(verb).ok()??))));
        }
        let context = Context::open(global).await?;
        let taken = to_the_second(now());
        let (_, mask) = collect::collect(&context).await;
        let documents = Documents::collect(&context, global).await?;
        let about = of_cluster(&context, taken, &documents);
        Ok(Self::of(about, |verb| documents.json(verb, &mask)))
    }

    /// A document that cannot be read is missing.
    pub(super) fn of(mut about: SupportBundleView, document: impl Fn(&str) -> Option<Value>) -> Self {
        fn part<T: DeserializeOwned>(document: Option<Value>, verb: &str, missing: &mut Vec<String>) -> Option<T> {
            let read = serde_json::from_value(document?);
            read.map_err(|error| missing.push(format!("{verb}: {error}"))).ok()
        }
        let missing = &mut about.missing;
        Self {
            status: part(document("status"), "status", missing),
            doctor: part(document("doctor"), "doctor", missing),
            volumes: part(document("volumes"), "volumes", missing),
            history: part(document("history"), "history", missing),
            matrix: part(document("matrix"), "matrix", missing),
            outlook: part(document("outlook"), "outlook", missing),
            about,
        }
    }
}

/// What a bundle of this cluster says of itself, without what its files leave out.
/// A file that is read by people names no fraction of a second.
fn to_the_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn of_cluster(context: &Context, taken: Timestamp, documents: &Documents) -> SupportBundleView {
    SupportBundleView {
        schema: SCHEMA,
        vdoctl: VERSION.to_owned(),
        taken: Some(taken),
        cluster: BundleClusterView {
            name: context.name.clone(),
            server: context.server.clone(),
            version: context.kubernetes.raw().to_owned(),
        },
        namespace: context.namespace().to_owned(),
        exits: documents.exits(),
        missing: documents.missing(),
        left_out: Vec::new(),
    }
}

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let context = Context::open(global).await?;
    let taken = to_the_second(now());
    let (objects, mask) = collect::collect(&context).await;
    let documents = Documents::collect(&context, global).await?;
    let mut archive = Archive::new(format!("vdo-support-{}", word(&context.name)));
    documents.write(&mut archive, &mask);
    let mut manifest = of_cluster(&context, taken, &documents);
    manifest.missing.extend(objects.write(&context, &mut archive, &mask).await);
    manifest.left_out = archive.left_out().to_vec();
    archive.add(MANIFEST, mask.json(of_view(&manifest)).as_bytes());
    let missing = manifest.missing;
    let files = archive.files();
    let bytes = archive.finish().map_err(|error| unwritable(Path::new("the archive"), &error))?;
    let time = taken.strftime("%Y%m%dT%H%M%SZ");
    let path = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("vdo-support-{}-{time}.tar.gz", word(&context.name))));
    let size = bytes.len().div_ceil(1024);
    let answer = if path == Path::new("-") {
        Answer::bytes(bytes)
    } else {
        atomic_files::write_private(&path, &bytes).map_err(|error| unwritable(&path, &error))?;
        Answer::text("").note(format!("{}: {} in {size} KiB. {CONTENT}", path.display(), count(files, "file")))
    };
    let lines = missing::grouped(&missing);
    let mut notes: Vec<String> = lines
        .iter()
        .take(NAMED)
        .map(|line| format!("not collected: {}", mask.text(line)))
        .collect();
    if lines.len() > NAMED {
        notes.push(format!("and {} more; {MANIFEST} in the bundle lists all", lines.len() - NAMED));
    }
    let answer = notes.into_iter().fold(answer, Answer::note);
    Ok(answer.note("vdoctl status --from FILE, vdoctl doctor --from FILE and vdoctl report --from FILE read the bundle."))
}

/// A bundle that was read.
pub(super) struct Bundle {
    file: PathBuf,
    manifest: SupportBundleView,
    files: archive::Files,
}

impl Bundle {
    /// The document of a verb, where it was collected.
    fn document<T: DeserializeOwned>(&self, verb: &str) -> Result<Option<T>, CliError> {
        let path = format!("{verb}.json");
        self.files.get(&path).map(from_json).transpose().map_err(|error| {
            CliError::new(
                Exit::Refused,
                format!("{path} in {} cannot be read: {error}", self.file.display()),
                format!(
                    "Copy the bundle again from its origin, or read it with the vdoctl that wrote it, {}.",
                    known(&self.manifest.vdoctl)
                ),
            )
        })
    }

    /// The document of a verb.
    pub(super) fn view<T: DeserializeOwned>(&self, verb: &str) -> Result<T, CliError> {
        self.document(verb)?.ok_or_else(|| {
            let why = self.manifest.missing.iter().find(|line| line.starts_with(verb));
            CliError::new(
                Exit::NotFound,
                format!(
                    "{} has no {verb}: {}",
                    self.file.display(),
                    why.map_or("it was not collected", String::as_str)
                ),
                "See bundle.json in the bundle.",
            )
        })
    }

    /// When it was made.
    pub(super) fn taken(&self) -> Option<Timestamp> {
        self.manifest.taken
    }

    /// An answer from it, with its time and the exit code that the verb had then.
    pub(super) fn answer(&self, verb: &str, answer: Answer) -> Answer {
        let exit = self.manifest.exits.get(verb).copied().and_then(Exit::of);
        let taken = self.taken().map_or_else(|| "unknown".to_owned(), ages::time);
        let cluster = known(&self.manifest.cluster.name);
        answer
            .note(format!("As of {taken} in cluster {cluster}."))
            .exit(exit.unwrap_or(Exit::Ok))
    }
}

/// The kind of a document.
#[derive(Deserialize)]
struct OfKind<T> {
    kind: String,
    #[serde(flatten)]
    of: T,
}

/// Reads a bundle.
pub(super) fn read(file: &Path) -> Result<Bundle, CliError> {
    let name = file.display();
    let wrong = |what: String, remedy: &str| CliError::new(Exit::Refused, format!("{name} {what}"), remedy);
    let bytes = std::fs::read(file).map_err(|error| {
        CliError::new(
            Exit::NotFound,
            format!("{name} cannot be read: {error}"),
            "Name a file that vdoctl support-bundle has written.",
        )
    })?;
    let files = archive::open(&bytes).map_err(|error| {
        wrong(
            format!("is not a complete support bundle: {error}"),
            "Copy the bundle again from its origin.",
        )
    })?;
    let manifest: Option<OfKind<SupportBundleView>> = files.get(MANIFEST).and_then(|bytes| from_json(bytes).ok());
    let manifest = manifest
        .filter(|manifest| manifest.kind == SupportBundleView::KIND)
        .ok_or_else(|| {
            wrong(
                "is not a support bundle: it has no bundle.json".into(),
                "Name a file that vdoctl support-bundle has written.",
            )
        })?;
    let manifest = manifest.of;
    if manifest.schema > SCHEMA {
        return Err(wrong(
            format!("was made by a newer vdoctl ({})", known(&manifest.vdoctl)),
            "Use that version of vdoctl, or a newer one.",
        ));
    }
    Ok(Bundle {
        file: file.to_owned(),
        manifest,
        files,
    })
}

fn known(text: &str) -> &str {
    if text.is_empty() { "unknown" } else { text }
}

/// A word for a file name.
pub(super) fn word(text: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') {
            c
        } else {
            '-'
        }
    };
    text.chars().map(safe).take(40).collect()
}

pub(super) fn unwritable(path: &Path, error: &std::io::Error) -> CliError {
    CliError::new(
        Exit::Refused,
        format!("{} cannot be written: {error}", path.display()),
        "Name another file, or free some space; no incomplete file is left.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bundle(manifest: &Value) -> Vec<u8> {
        let mut archive = Archive::new("vdo-support-demo".into());
        archive.add("status.json", b"{\"kind\": \"Status\"}");
        archive.add("old.json", b"{\"kind\": \"Doctor\", \"passed\": 3}");
        archive.add(MANIFEST, manifest.to_string().as_bytes());
        archive.finish().expect("an archive")
    }

    #[test]
    fn bundle_is_read_back_and_damage_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("bundle.tar.gz");
        let manifest = json!({"kind": "SupportBundle", "schema": SCHEMA, "vdoctl": "0.1.0", "taken": "2026-01-01T00:00:00Z", "cluster": {"name": "demo"}, "exits": {"status": 1}, "missing": ["doctor: no answer"]});
        let whole = bundle(&manifest);
        std::fs::write(&file, &whole).expect("written");
        let opened = read(&file).expect("a bundle");
        // An older vdoctl wrote less.
        let view: DoctorView = opened.view("old").expect("a view");
        assert_eq!(view.passed, 3);
        let answer = opened.answer("status", Answer::text(""));
        assert_eq!(answer.exit, Exit::Differences);
        assert_eq!(answer.talk, ["As of 2026-01-01T00:00:00Z in cluster demo."]);
        let error = opened.view::<DoctorView>("doctor").expect_err("it is missing");
        assert!(error.what.contains("doctor: no answer"), "{error}");
        let error = opened.view::<StatusView>("status").expect_err("it is not whole");
        assert!(
            error.what.contains("status.json in") && error.remedy.contains("the vdoctl that wrote it, 0.1.0"),
            "{error:?}"
        );

        for (bytes, said) in [
            (whole[..whole.len() / 2].to_vec(), "is not a complete support bundle"),
            (b"not an archive".to_vec(), "is not a complete support bundle"),
            (Vec::new(), "is not a complete support bundle"),
            (bundle(&json!({"kind": "Other"})), "has no bundle.json"),
            (
                bundle(&json!({"kind": "SupportBundle", "schema": SCHEMA + 1, "vdoctl": "9.0.0"})),
                "was made by a newer vdoctl (9.0.0)",
            ),
        ] {
            std::fs::write(&file, bytes).expect("written");
            let error = read(&file).err().expect(said);
            assert!(error.what.contains(said), "{said}: {error}");
        }
        // A few kilobytes that would be gigabytes in memory.
        let mut archive = Archive::new("vdo-support-demo".into());
        archive.add("status.json", format!("[{}{{}}]", "{},".repeat(1 << 20)).as_bytes());
        archive.add(MANIFEST, manifest.to_string().as_bytes());
        std::fs::write(&file, archive.finish().expect("an archive")).expect("written");
        let error = read(&file)
            .and_then(|bundle| bundle.view::<StatusView>("status"))
            .expect_err("too much");
        assert!(
            error.what.contains("status.json in") && error.what.contains("more than 200000 values"),
            "{error}"
        );
        assert_eq!(
            read(&folder.path().join("none")).err().map(|error| error.exit),
            Some(Exit::NotFound)
        );
    }
}
