//! `vdoctl mirror pull`: into a bundle.

use super::super::args::{Format, Global, MirrorPull as Args};
use super::super::output::document;
use super::super::progress::{Mark, Progress};
use super::super::{Answer, CliError, Exit, style};
use super::bundle::{Bundle, all_of};
use super::collect::Stock;
use super::find::{self, Before, Ready, repository};
use super::registries::Registries;
use super::{failed, size, unreadable, watched};
use crate::layout::Layout;
use crate::mirror::{Lock, MATRIX, Moved, places};
use crate::oci::{Descriptor, Index, REF_NAME, media};
use crate::transfer::{Meter, fetch};
use crate::types::{Digest, count, shell_word};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(super) async fn run(args: &Args, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let stock = Stock::read(&args.index, &args.select, &args.take, global).await?;
    progress.step(
        Mark::Done,
        &format!("{}, {}: {}", stock.title(), stock.signer(), count(stock.versions.len(), "version")),
    );
    let target = Target::of(&args.bundle);
    let old = target.old()?;
    let registries = Registries::new(&args.registries);
    let meter = Meter::default();
    let finding = find::all(&stock, &registries, &args.take.platform, old.as_ref());
    let ready = watched(progress, &meter, "looking the images up", finding).await?;
    let mut lock = stock.lock();
    lock.platforms = find::names(&args.take.platform);
    lock.images = ready.iter().map(|ready| ready.image.clone()).collect();
    places(&lock).map_err(|error| CliError::of(Exit::Refused, &error))?;
    let moved = old.as_ref().map(|old| lock.moved_since(&old.lock)).unwrap_or_default();
    for Moved { reference, before, now } in &moved {
        progress.step(
            Mark::Note,
            &format!("{reference} leads to another image than before\n{before} before, {now} now"),
        );
    }
    let summary = Summary::of(&ready, &lock, moved);
    if args.dry_run {
        return summary.answer(progress, args, "would be pulled", 0);
    }
    let layout = target.layout()?;
    let _turn = layout.lock().map_err(|error| unreadable(&error))?;
    layout.tidy().map_err(|error| unreadable(&error))?;
    let images: Vec<_> = ready.into_iter().map(|ready| (ready.image.reference, ready.found)).collect();
    let fetching = fetch(&images, &layout, &meter);
    let fetched = watched(progress, &meter, "pulling", fetching).await;
    fetched.map_err(|error| failed(&error))?;
    let mut entries: Vec<Descriptor> = Vec::new();
    for (reference, found) in &images {
        entries.push(named(&found.tree.root, reference));
        entries.extend(found.referrers.iter().map(|tree| tree.root.clone()));
        let tagged = found.tagged.iter();
        entries.extend(tagged.map(|(tag, tree)| named(&tree.root, &format!("{}:{tag}", repository(reference)))));
    }
    let matrix = write_matrix(&stock, &lock, &layout).map_err(|error| unreadable(&error))??;
    entries.push(named(&matrix, MATRIX));
    let mut seen = BTreeSet::new();
    entries.retain(|entry| seen.insert((entry.digest.clone(), entry.annotations.get(REF_NAME).cloned())));
    // Until here the bundle is the one before.
    layout.set_index(&Index::new(entries)).map_err(|error| unreadable(&error))?;
    target.finish(&layout)?;
    let (_, bytes, _) = meter.read();
    summary.answer(progress, args, "pulled", bytes)
}

fn named(descriptor: &Descriptor, name: &str) -> Descriptor {
    let mut descriptor = descriptor.clone();
    descriptor.annotations.insert(REF_NAME.to_owned(), name.to_owned());
    descriptor.platform = None;
    descriptor
}

/// The matrix with its lock as an artifact of the layout.
fn write_matrix(stock: &Stock, lock: &Lock, layout: &Layout) -> Result<Result<Descriptor, CliError>, crate::layout::LayoutError> {
    let artifact = match stock.artifact(lock) {
        Ok(artifact) => artifact,
        Err(error) => return Ok(Err(error)),
    };
    layout.write(media::EMPTY, media::EMPTY_JSON)?;
    for file in &artifact.files {
        layout.write(&file.media_type, &file.bytes)?;
    }
    let mut written = layout.write_json(media::MANIFEST, &artifact.manifest())?;
    written.artifact_type = Some(media::MATRIX.to_owned());
    Ok(Ok(written))
}

/// Where the bundle is written.
enum Target {
    Folder(PathBuf),
    /// An archive is written as a whole; what it is made of is collected in a folder beside it.
    Archive {
        file: PathBuf,
        work: PathBuf,
    },
}

impl Target {
    fn of(bundle: &Path) -> Self {
        match bundle.extension().is_some_and(|extension| extension == "tar") {
            false => Self::Folder(bundle.to_owned()),
            true => {
                let name = bundle.file_name().unwrap_or_default().to_string_lossy();
                Self::Archive {
                    work: bundle.with_file_name(format!(".{name}.d")),
                    file: bundle.to_owned(),
                }
            }
        }
    }

    /// What is there.
    fn old(&self) -> Result<Option<Before>, CliError> {
        let (Self::Folder(path) | Self::Archive { file: path, .. }) = self;
        if !path.exists() || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()) {
            return Ok(None);
        }
        let bundle = Bundle::open(path)?;
        let lock = bundle.matrix()?.map(|matrix| matrix.lock);
        Ok(lock.map(|lock| Before { bundle, lock }))
    }

    /// Where blobs are collected.
    fn layout(&self) -> Result<Layout, CliError> {
        let (Self::Folder(path) | Self::Archive { work: path, .. }) = self;
        let opened = match path.join("oci-layout").exists() {
            true => Layout::open(path),
            false => Layout::create(path),
        };
        opened.map_err(|error| unreadable(&error))
    }

    fn finish(&self, layout: &Layout) -> Result<(), CliError> {
        let Self::Archive { file, work } = self else { return Ok(()) };
        layout.pack(file).map_err(|error| unreadable(&error))?;
        // It is rebuilt from the archive when it is needed again.
        std::fs::remove_dir_all(work).map_err(|error| {
            CliError::new(
                Exit::Refused,
                format!("{} cannot be removed: {error}", work.display()),
                "Remove it; the bundle is complete.",
            )
        })
    }
}

/// What was pulled, or would be.
struct Summary {
    images: Vec<(String, Digest, u64, Vec<String>)>,
    moved: Vec<Moved>,
    blobs: usize,
    bytes: u64,
    versions: Value,
}

impl Summary {
    fn of(ready: &[Ready], lock: &Lock, moved: Vec<Moved>) -> Self {
        let all = all_of(ready.iter().flat_map(|ready| ready.found.trees()));
        let line = |ready: &Ready| {
            (
                ready.image.reference.clone(),
                ready.image.digest.clone(),
                ready.found.size(),
                ready.versions.clone(),
            )
        };
        Self {
            images: ready.iter().map(line).collect(),
            moved,
            blobs: all.len(),
            bytes: all.values().sum(),
            versions: json!(lock.versions),
        }
    }

    fn answer(&self, progress: &mut Progress, args: &Args, done: &str, fetched: u64) -> Result<Answer, CliError> {
        let images = self
            .images
            .iter()
            .map(|(reference, digest, bytes, versions)| json!({"reference": reference, "digest": digest, "bytes": bytes, "for": versions}));
        let moved = self
            .moved
            .iter()
            .map(|moved| json!({"reference": moved.reference, "before": moved.before, "now": moved.now}));
        let document = document(
            "MirrorPull",
            json!({
                "bundle": args.bundle, "dryRun": args.dry_run, "versions": self.versions, "images": images.collect::<Vec<_>>(),
                "moved": moved.collect::<Vec<_>>(), "blobs": self.blobs, "bytes": self.bytes, "fetchedBytes": fetched,
            }),
        );
        let closed = progress.end();
        if progress.is_data() {
            return Ok(progress.last(&document));
        }
        let mut text = String::new();
        if args.dry_run || matches!(args.output.format, Some(Format::Wide)) {
            let head = vec!["IMAGE".to_owned(), "DIGEST".to_owned(), "SIZE".to_owned()];
            let row = |(reference, digest, bytes, _): &(String, Digest, u64, _)| vec![reference.clone(), digest.short(), size(*bytes)];
            let rows: Vec<Vec<String>> = std::iter::once(head).chain(self.images.iter().map(row)).collect();
            text.push_str(&style::columns(rows.iter()));
        }
        text.push_str(&format!(
            "{} {}: {} in {}, {}\n",
            style::good("✓"),
            done,
            count(self.images.len(), "image"),
            count(self.blobs, "blob"),
            size(self.bytes),
        ));
        if !args.dry_run {
            text.push_str(&format!("  {} were fetched; the rest was there\n", size(fetched)));
            let bundle = args.bundle.display().to_string();
            let bundle = shell_word(&bundle);
            text.push_str(&format!(
                "  check it: vdoctl mirror verify {bundle}\n  push it:  vdoctl mirror push {bundle} oci://HOST/PREFIX\n"
            ));
        }
        Ok(closed.into_iter().fold(Answer::text(text), Answer::exit))
    }
}
