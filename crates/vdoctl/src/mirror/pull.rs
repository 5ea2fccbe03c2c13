// SPDX-License-Identifier: Apache-2.0
//! `vdoctl mirror pull`: downloads the selected versions and their images into a bundle, a folder or a tar archive.

use super::super::args::{Format, Global, MirrorPull as Args};
use super::super::progress::{Mark, Progress};
use super::super::views::mirror::{MirrorPullView, MovedView, PulledView};
use super::super::{Answer, CliError, Exit, style};
use super::bundle::{Bundle, all_of, named, signature_name, write_matrix};
use super::collect::Stock;
use super::find::{self, Before, Ready};
use super::registries::Registries;
use super::{failed, size, unreadable, watched};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vdo_api::types::{DriverName, DriverVersion, count, shell_word, total};
use vdo_core::mirror_lock::{Lock, Moved, places};
use vdo_oci::layout::Layout;
use vdo_oci::oci::{Descriptor, Index, REF_NAME};
use vdo_oci::transfer::{Known, Meter, fetch};

pub(super) async fn run(args: &Args, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let stock = Stock::read(&args.index, &args.select, &args.take, global).await?;
    progress.step(Mark::Done, &stock.title());
    let target = Target::of(&args.bundle);
    let reading = tokio::task::spawn_blocking({
        let target = target.clone();
        move || target.old()
    });
    let read = watched(progress, &Meter::default(), "checking the existing bundle", reading).await;
    let old = read.map_err(|error| CliError::internal(&error))??;
    let registries = Registries::new(&args.registries);
    let meter = Arc::new(Meter::default());
    let finding = find::all(&stock, &registries, old.as_ref());
    let ready = watched(progress, &meter, "looking up the images", finding).await?;
    let lock = stock.lock(&ready);
    places(&lock).map_err(|error| CliError::of(Exit::Refused, &error))?;
    let moved = old
        .as_ref()
        .and_then(|old| Some(lock.moved_since(old.lock.as_ref()?)))
        .unwrap_or_default();
    for Moved { reference, before, now } in &moved {
        progress.step(
            Mark::Note,
            &format!("{reference} refers to another image than before\n{before} before, {now} now"),
        );
    }
    let summary = Summary::of(&ready, &lock, moved);
    if args.dry_run {
        return summary.answer(progress, args, "would be pulled", 0);
    }
    let layout = Arc::new(target.layout()?);
    let turn = layout.lock().map_err(|error| unreadable(&error))?;
    layout.tidy().map_err(|error| unreadable(&error))?;
    let images: Vec<_> = ready.into_iter().map(|ready| (ready.image.reference, ready.found)).collect();
    let known = old.as_ref().map(|old| Known {
        layout: &old.bundle.layout,
        damaged: &old.damaged,
    });
    let fetching = fetch(&images, known, &layout, &meter);
    let fetched = watched(progress, &meter, "pulling", fetching).await;
    fetched.map_err(|error| failed(&error))?;
    let mut entries: Vec<Descriptor> = Vec::new();
    for (reference, found) in &images {
        entries.push(named(&found.tree.root, reference));
        entries.extend(found.referrers.iter().map(|tree| tree.root.clone()));
        let signature = signature_name(reference, &found.tree.root.digest);
        entries.extend(found.tagged.iter().map(|(_, tree)| named(&tree.root, &signature)));
    }
    entries.push(write_matrix(&layout, &stock.files(&lock)?).map_err(|error| unreadable(&error))?);
    let mut seen = BTreeSet::new();
    entries.retain(|entry| seen.insert((entry.digest.clone(), entry.annotations.get(REF_NAME).cloned())));
    // Until here the bundle is the one before.
    layout.set_index(&Index::new(entries)).map_err(|error| unreadable(&error))?;
    target.finish(&layout, turn)?;
    let (_, bytes, _) = meter.read();
    summary.answer(progress, args, "pulled", bytes)
}

/// Where the bundle is written.
#[derive(Clone)]
enum Target {
    Folder(PathBuf),
    /// An archive is written as a whole; what it is made of is collected in a folder beside it, which is ours alone.
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
        Before::of(Bundle::open(path)?).map(Some)
    }

    /// Where blobs are collected.
    fn layout(&self) -> Result<Layout, CliError> {
        let (Self::Folder(path) | Self::Archive { work: path, .. }) = self;
        if let Self::Archive { work, .. } = self {
            vdo_files::own_folder(work).map_err(|error| {
                let what = format!("the folder {} cannot be used for the bundle: {error}", work.display());
                CliError::new(Exit::Refused, what, "Write the bundle into a folder where no other user may write.")
            })?;
        }
        let opened = match path.join("oci-layout").exists() {
            true => Layout::open(path),
            false => Layout::create(path),
        };
        opened.map_err(|error| unreadable(&error))
    }

    fn finish(&self, layout: &Layout, turn: File) -> Result<(), CliError> {
        let Self::Archive { file, work } = self else { return Ok(()) };
        layout.pack(file).map_err(|error| unreadable(&error))?;
        // Windows removes no folder in which a file is open.
        drop(turn);
        // It is rebuilt from the archive when it is needed again.
        std::fs::remove_dir_all(work).map_err(|error| {
            CliError::new(
                Exit::Refused,
                format!("{} cannot be removed: {error}", work.display()),
                "Remove this folder yourself; the bundle is complete.",
            )
        })
    }
}

/// What was pulled, or would be.
struct Summary {
    images: Vec<PulledView>,
    moved: Vec<MovedView>,
    blobs: usize,
    bytes: u64,
    versions: BTreeMap<DriverName, BTreeSet<DriverVersion>>,
}

impl Summary {
    fn of(ready: &[Ready], lock: &Lock, moved: Vec<Moved>) -> Self {
        let all = all_of(ready.iter().flat_map(|ready| ready.found.trees()));
        let image = |ready: &Ready| PulledView {
            reference: ready.image.reference.clone(),
            digest: ready.image.digest.clone(),
            bytes: ready.found.size(),
            versions: ready.versions.clone(),
        };
        let moved = moved.into_iter().map(|moved| MovedView {
            reference: moved.reference,
            before: moved.before,
            now: moved.now,
        });
        Self {
            images: ready.iter().map(image).collect(),
            moved: moved.collect(),
            blobs: all.len(),
            bytes: total(all.values().copied()),
            versions: lock.versions.clone(),
        }
    }

    fn answer(self, progress: &mut Progress, args: &Args, done: &str, fetched: u64) -> Result<Answer, CliError> {
        let view = MirrorPullView {
            bundle: args.bundle.clone(),
            dry_run: args.dry_run,
            versions: self.versions,
            images: self.images,
            moved: self.moved,
            blobs: self.blobs,
            bytes: self.bytes,
            fetched_bytes: fetched,
        };
        let closed = progress.end();
        if progress.is_data() {
            return Ok(progress.last(&view));
        }
        let mut text = String::new();
        if args.dry_run || matches!(args.output.format, Some(Format::Wide)) {
            let row = |image: &PulledView| vec![image.digest.short(), size(image.bytes), image.reference.clone()];
            let rows: Vec<Vec<String>> = view.images.iter().map(row).collect();
            text.push_str(&style::table(&["DIGEST", "SIZE", "IMAGE"], &rows));
        }
        text.push_str(&format!(
            "{} {}: {} in {}, {}\n",
            style::good("✓"),
            done,
            count(view.images.len(), "image"),
            count(view.blobs, "blob"),
            size(view.bytes),
        ));
        if !args.dry_run {
            text.push_str(&format!("  {}\n", fetched_of(fetched, view.bytes)));
            let bundle = args.bundle.display().to_string();
            let bundle = shell_word(&bundle);
            text.push_str(&format!(
                "  to check the bundle: vdoctl mirror verify {bundle}\n  to push the bundle:  \
                 vdoctl mirror push {bundle} oci://HOST/PREFIX\n"
            ));
        }
        Ok(closed.into_iter().fold(Answer::text(text), Answer::exit))
    }
}

/// How much was fetched of a bundle, and what was not because it was there.
fn fetched_of(fetched: u64, all: u64) -> String {
    match all.saturating_sub(fetched) {
        0 => format!("{} fetched", size(fetched)),
        there => format!("{} fetched; {} of an earlier pull are still valid", size(fetched), size(there)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_pull_speaks_of_no_earlier_one() {
        assert_eq!(fetched_of(2 << 20, 2 << 20), "2.0 MiB fetched");
        assert_eq!(
            fetched_of(1 << 20, 3 << 20),
            "1.0 MiB fetched; 2.0 MiB of an earlier pull are still valid"
        );
    }
}
