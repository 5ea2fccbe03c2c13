// SPDX-License-Identifier: Apache-2.0
//! `vdoctl mirror push`: uploads a bundle, or an OCI layout, into a registry, with the matrix as the last part.

use super::super::args::{Global, MirrorPush as Args};
use super::super::progress::{Mark, Progress};
use super::super::views::mirror::MirrorPushView;
use super::super::{Answer, CliError, Exit, registry, style};
use super::bundle::{Bundle, Matrix, all_of, is_signature};
use super::use_in_cluster::adopt;
use super::{Prefix, failed, size, watched};
use futures::{StreamExt, TryStreamExt, stream};
use std::sync::Arc;
use vdo_api::retry::REGISTRY;
use vdo_api::types::{count, shell_word, total};
use vdo_core::mirror_lock::{Lock, MATRIX, placed, places};
use vdo_oci::oci::Descriptor;
use vdo_oci::registry::{Reference, Registry, retry};
use vdo_oci::transfer::{AT_ONCE, Delivery, Meter, TransferError, send};

pub(super) async fn run(args: &Args, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let bundle = Bundle::open(&args.bundle)?;
    let matrix = bundle.matrix()?;
    let (deliveries, last) = deliveries(&bundle, matrix.as_ref(), &args.to).await?;
    complete(&bundle, deliveries.iter().chain(&last))?;
    let registry = registry::open(&args.registry, &deliveries[0].to).await?;
    let all = deliveries.len() + usize::from(last.is_some());
    let (deliveries, known) = news(&registry, deliveries).await?;
    let (last, last_known) = news(&registry, last.into_iter().collect()).await?;
    let known = known + last_known;
    let to = Sent {
        to: &args.to,
        images: all,
        known,
        dry_run: args.dry_run,
    };
    let trees = || deliveries.iter().chain(&last).flat_map(|delivery| delivery.found.trees());
    let bytes = total(all_of(trees()).into_values());
    if args.dry_run {
        return to.answer(progress, bytes, None);
    }
    deliver(&registry, &deliveries, &last, progress).await?;
    let lock = matrix.as_ref().map(|matrix| &matrix.lock);
    if args.adopt {
        let prefix = Prefix::parse(&args.to)?;
        let used = adopt(&prefix, global).await?;
        progress.step(Mark::Done, &used);
        return to.answer(progress, bytes, None);
    }
    to.answer(progress, bytes, lock)
}

/// Sends everything; the matrix goes last, so that who follows it finds every image.
pub(super) async fn deliver(
    registry: &Registry,
    deliveries: &[Delivery],
    last: &[Delivery],
    progress: &mut Progress,
) -> Result<(), CliError> {
    let meter = Arc::new(Meter::default());
    for part in [deliveries, last] {
        let sent = watched(progress, &meter, "pushing", send(registry, part, &meter)).await;
        sent.map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// What is to be sent where; of a mirror the matrix apart.
async fn deliveries(bundle: &Bundle, matrix: Option<&Matrix>, to: &str) -> Result<(Vec<Delivery>, Option<Delivery>), CliError> {
    let mut all = Vec::new();
    let one = async |name: &str, descriptor: &Descriptor, to: Reference| {
        let found = bundle.found(name, descriptor).await?;
        Ok::<_, CliError>(Delivery { found, to })
    };
    if let Some(matrix) = matrix {
        let prefix = Prefix::parse(to)?;
        let places = places(&matrix.lock).map_err(|error| CliError::of(Exit::Refused, &error))?;
        for (path, image) in places {
            let descriptor = bundle.names.get(&image.reference).filter(|found| found.digest == image.digest);
            let descriptor = descriptor.ok_or_else(|| incomplete(bundle, &image.reference))?;
            all.push(one(&image.reference, descriptor, prefix.at(&path)?).await?);
        }
        let descriptor = bundle.names.get(MATRIX).ok_or_else(|| incomplete(bundle, MATRIX))?;
        let mut last = Some(one(MATRIX, descriptor, prefix.matrix()?).await?);
        if all.is_empty() {
            all.extend(last.take());
        }
        return Ok((all, last));
    }
    let named = bundle.names.iter().filter(|(name, _)| !is_signature(name));
    for (name, descriptor) in named {
        // A name without a path is a tag.
        let to = match name.contains('/') {
            true => Prefix::parse(to)?.at(&placed(name))?,
            false => registry::reference(to)?.at_tag(name),
        };
        all.push(one(name, descriptor, to).await?);
    }
    if all.is_empty() {
        let at = registry::reference(to)?;
        match bundle.alone().as_slice() {
            [only] if at.tag.is_some() => all.push(one(&at.to_string(), only, at).await?),
            [_] => {
                return Err(CliError::new(
                    Exit::Usage,
                    format!("the image in {} has no name", bundle.layout.path().display()),
                    "Name a tag for the image: oci://HOST/REPOSITORY:TAG.",
                ));
            }
            images => {
                return Err(CliError::new(
                    Exit::Refused,
                    format!(
                        "{} has {} without names, and no matrix",
                        bundle.layout.path().display(),
                        count(images.len(), "image")
                    ),
                    "Name a bundle that vdoctl mirror pull has written, or a layout with named images.",
                ));
            }
        }
    }
    Ok((all, None))
}

fn incomplete(bundle: &Bundle, what: &str) -> CliError {
    CliError::new(
        Exit::Refused,
        format!("the bundle {} lacks {what}; nothing was sent", bundle.layout.path().display()),
        "Pull the bundle again: vdoctl mirror pull.",
    )
}

/// Nothing is sent of a bundle that lacks something.
fn complete<'a>(bundle: &Bundle, deliveries: impl Iterator<Item = &'a Delivery>) -> Result<(), CliError> {
    for delivery in deliveries {
        let mut blobs = delivery.found.trees().flat_map(|tree| tree.blobs.values());
        if let Some(blob) = blobs.find(|blob| !bundle.layout.has(blob)) {
            return Err(incomplete(bundle, &format!("blob {} of {}", blob.digest, delivery.to.repository)));
        }
    }
    Ok(())
}

/// Those that are not there yet, and how many are.
pub(super) async fn news(registry: &Registry, deliveries: Vec<Delivery>) -> Result<(Vec<Delivery>, usize), CliError> {
    let all = deliveries.len();
    let looked = stream::iter(deliveries).map(|delivery| async move {
        let seen = retry(REGISTRY, || registry.head(&delivery.to)).await?;
        let known = seen.and_then(|seen| seen.digest).as_ref() == Some(&delivery.found.tree.root.digest);
        Ok::<_, TransferError>((!known).then_some(delivery))
    });
    let looked: Vec<Option<Delivery>> = looked.buffered(AT_ONCE).try_collect().await.map_err(|error| failed(&error))?;
    let missing: Vec<Delivery> = looked.into_iter().flatten().collect();
    let known = all - missing.len();
    Ok((missing, known))
}

/// What was sent, or would be.
pub(super) struct Sent<'a> {
    pub(super) to: &'a str,
    pub(super) images: usize,
    pub(super) known: usize,
    pub(super) dry_run: bool,
}

impl Sent<'_> {
    /// With a lock the answer shows how to use it.
    pub(super) fn answer(&self, progress: &mut Progress, bytes: u64, lock: Option<&Lock>) -> Result<Answer, CliError> {
        let prefix = Prefix::parse(self.to).ok().filter(|_| lock.is_some());
        let registry = prefix.as_ref().map(|prefix| prefix.0.as_str());
        let matrix = prefix
            .as_ref()
            .and_then(|prefix| prefix.matrix().ok())
            .map(|at| format!("oci://{at}"));
        let view = MirrorPushView {
            to: self.to.to_owned(),
            dry_run: self.dry_run,
            images: self.images,
            known: self.known,
            bytes,
            registry: registry.map(str::to_owned),
            matrix,
        };
        let closed = progress.end();
        if progress.is_data() {
            return Ok(progress.last(&view));
        }
        let done = if self.dry_run { "would be pushed" } else { "pushed" };
        let mut text = format!(
            "{} {done}: {} to {}, {} of them already in the registry; {}\n",
            style::good("✓"),
            count(self.images, "image"),
            self.to,
            self.known,
            size(bytes)
        );
        if let (Some(registry), Some(matrix), false) = (&view.registry, &view.matrix, self.dry_run) {
            text.push_str(&format!(
                "  in a new cluster: vdoctl deploy --image-registry {} --matrix {} …\n  in a running cluster: vdoctl mirror push … --use, \
                 or\n    set spec.images.registry to {registry} and run: vdoctl configure matrix {matrix}\n",
                shell_word(registry),
                shell_word(matrix),
            ));
        }
        Ok(closed.into_iter().fold(Answer::text(text), Answer::exit))
    }
}
