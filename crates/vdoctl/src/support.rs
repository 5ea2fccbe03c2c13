//! `vdoctl support-bundle`: everything that helps to find out what is wrong, in one archive without a secret in it.
//!
//! ```text
//! cluster -> objects, by lists of fields ┐         ┌-> archive
//! verbs -> documents                     ├-> mask -┤
//! pods -> logs                           ┘         └-> report
//! ```

mod allow;
mod archive;
mod cluster;
mod documents;
mod fields;
mod mask;

use super::args::{Format, Global, SupportBundle as Args};
use super::context::{Context, now};
use super::output::document;
use super::{Answer, CliError, Exit, save};
use archive::Archive;
use documents::Documents;
use mask::Mask;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use vdo_api::types::{count, from_json};

/// The version of the layout of a bundle.
const SCHEMA: u64 = 1;

/// What says that a folder is a bundle.
const MANIFEST: &str = "bundle.json";

/// How many of the things that could not be read are named on the terminal.
const NAMED: usize = 3;

/// What is in a bundle, for the person who sends it.
const CONTENT: &str = "It holds answers of vdoctl, listed fields of objects, events and logs, with names and addresses of this site; \
                       read logs/ before you send it.";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a report is made of: what a bundle says of itself, and the documents of these verbs, live or from a bundle. Both ways lead through
/// the same mask; a bundle of an older vdoctl may lack it.
pub(super) async fn facts(from: Option<&Path>, verbs: &[&str], global: &Global) -> Result<Value, CliError> {
    if let Some(file) = from {
        let bundle = read(file)?;
        let mut facts = bundle.manifest.clone();
        for verb in verbs {
            facts[*verb] = bundle.json(file, verb).ok().flatten().unwrap_or(Value::Null);
        }
        return Ok(Mask::default().document(facts));
    }
    let context = Context::open(global).await?;
    let taken = now();
    let (_, mask) = cluster::collect(&context).await;
    let documents = Documents::collect(&context, global).await?;
    let mut facts = mask.document(json!({
        "vdoctl": VERSION,
        "taken": taken,
        "cluster": {"name": context.name, "server": context.server, "version": context.kubernetes.raw()},
        "missing": documents.missing(),
    }));
    for verb in verbs {
        facts[*verb] = documents.json(verb, &mask);
    }
    Ok(facts)
}

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let context = Context::open(global).await?;
    let taken = now();
    let (objects, mask) = cluster::collect(&context).await;
    let documents = Documents::collect(&context, global).await?;
    let mut archive = Archive::new(format!("vdo-support-{}", word(&context.name)));
    documents.write(&mut archive, &mask);
    let mut missing = documents.missing();
    missing.extend(objects.write(&context, &mut archive, &mask).await);
    let manifest = document(
        "SupportBundle",
        json!({
            "schema": SCHEMA,
            "vdoctl": VERSION,
            "taken": taken,
            "cluster": {"name": context.name, "server": context.server, "version": context.kubernetes.raw()},
            "namespace": context.namespace(),
            "exits": documents.exits(),
            "missing": missing,
            "leftOut": archive.left_out(),
        }),
    );
    archive.add(MANIFEST, mask.json(manifest).as_bytes());
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
        save::write_private(&path, &bytes).map_err(|error| unwritable(&path, &error))?;
        Answer::text("").note(format!("{}: {} in {size} KiB. {CONTENT}", path.display(), count(files, "file")))
    };
    let mut notes: Vec<String> = missing
        .iter()
        .take(NAMED)
        .map(|line| format!("not in it: {}", mask.text(line)))
        .collect();
    if missing.len() > NAMED {
        notes.push(format!("and {} more; {MANIFEST} in it lists all", missing.len() - NAMED));
    }
    let answer = notes.into_iter().fold(answer, Answer::note);
    Ok(answer.note("vdoctl status --from FILE, vdoctl doctor --from FILE and vdoctl report --from FILE read it."))
}

/// The answer of a verb, as it was when a bundle was made.
pub(super) fn recorded(file: &Path, verb: &str, format: Format) -> Result<Answer, CliError> {
    let bundle = read(file)?;
    let manifest = &bundle.manifest;
    let absent = || {
        let why = manifest["missing"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .find(|line| line.starts_with(verb));
        CliError::new(
            Exit::NotFound,
            format!("{} has no {verb}: {}", file.display(), why.unwrap_or("it was not collected")),
            "See bundle.json in it.",
        )
    };
    let json: Value = bundle.json(file, verb)?.ok_or_else(absent)?;
    let text = bundle.text(verb).ok_or_else(absent)?;
    let exit = Exit::ALL
        .iter()
        .copied()
        .find(|exit| Some(u64::from(*exit as u8)) == manifest["exits"][verb].as_u64());
    let answer = Answer::formatted(format, || json, || text)?;
    Ok(answer
        .note(format!(
            "As of {} in cluster {}.",
            said(&manifest["taken"]),
            said(&manifest["cluster"]["name"])
        ))
        .exit(exit.unwrap_or(Exit::Ok)))
}

/// What a verb said as a document when a bundle was made.
pub(super) fn recorded_json(file: &Path, verb: &str) -> Result<Value, CliError> {
    read(file)?.json(file, verb)?.ok_or_else(|| {
        CliError::new(
            Exit::NotFound,
            format!("{} has no {verb}", file.display()),
            "See bundle.json in it.",
        )
    })
}

/// A bundle that was read.
pub(super) struct Bundle {
    pub manifest: Value,
    files: archive::Files,
}

impl Bundle {
    /// What a verb said, where it was collected.
    pub(super) fn json(&self, file: &Path, verb: &str) -> Result<Option<Value>, CliError> {
        let path = format!("{verb}.json");
        self.files.get(&path).map(from_json).transpose().map_err(|error| {
            CliError::new(
                Exit::Refused,
                format!("{path} in {} cannot be read: {error}", file.display()),
                "Copy it again from where it was made.",
            )
        })
    }

    pub(super) fn text(&self, verb: &str) -> Option<String> {
        String::from_utf8(self.files.get(&format!("{verb}.txt"))?.clone()).ok()
    }
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
            format!("is no whole support bundle: {error}"),
            "Copy it again from where it was made.",
        )
    })?;
    let manifest: Option<Value> = files.get(MANIFEST).and_then(|bytes| from_json(bytes).ok());
    let manifest = manifest.filter(|manifest| manifest["kind"] == "SupportBundle").ok_or_else(|| {
        wrong(
            "is no support bundle: it has no bundle.json".into(),
            "Name a file that vdoctl support-bundle has written.",
        )
    })?;
    match manifest["schema"].as_u64() {
        Some(schema) if schema <= SCHEMA => Ok(Bundle { manifest, files }),
        _ => Err(wrong(
            format!("was made by a newer vdoctl ({})", said(&manifest["vdoctl"])),
            "Take that version of vdoctl, or a newer one.",
        )),
    }
}

fn said(value: &Value) -> &str {
    value.as_str().unwrap_or("unknown")
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
        "Name another file, or make room; nothing is left half-written.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(manifest: &Value) -> Vec<u8> {
        let mut archive = Archive::new("vdo-support-demo".into());
        archive.add("status.json", b"{\"kind\": \"Status\"}");
        archive.add("status.txt", b"CLUSTER demo\n");
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
        let answer = recorded(&file, "status", Format::Table).expect("an answer");
        assert_eq!((answer.data.as_slice(), answer.exit), (&b"CLUSTER demo\n"[..], Exit::Differences));
        assert_eq!(answer.talk, ["As of 2026-01-01T00:00:00Z in cluster demo."]);
        let error = recorded(&file, "doctor", Format::Json).expect_err("it is missing");
        assert!(error.what.contains("doctor: no answer"), "{error}");

        for (bytes, said) in [
            (whole[..whole.len() / 2].to_vec(), "is no whole support bundle"),
            (b"not an archive".to_vec(), "is no whole support bundle"),
            (Vec::new(), "is no whole support bundle"),
            (bundle(&json!({"kind": "Other"})), "has no bundle.json"),
            (
                bundle(&json!({"kind": "SupportBundle", "schema": SCHEMA + 1, "vdoctl": "9.0.0"})),
                "was made by a newer vdoctl (9.0.0)",
            ),
        ] {
            std::fs::write(&file, bytes).expect("written");
            let error = recorded(&file, "status", Format::Table).expect_err(said);
            assert!(error.what.contains(said), "{said}: {error}");
        }
        // A few kilobytes that would be gigabytes in memory.
        let mut archive = Archive::new("vdo-support-demo".into());
        archive.add("status.json", format!("[{}{{}}]", "{},".repeat(1 << 20)).as_bytes());
        archive.add(MANIFEST, manifest.to_string().as_bytes());
        std::fs::write(&file, archive.finish().expect("an archive")).expect("written");
        let error = recorded(&file, "status", Format::Json).expect_err("too much");
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
