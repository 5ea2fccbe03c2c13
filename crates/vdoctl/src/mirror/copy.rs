// SPDX-License-Identifier: Apache-2.0
//! `vdoctl mirror copy`: copies a part of a matrix with its images from their registries into a registry, without a bundle.

use super::super::args::{Global, MatrixFile, MirrorCopy as Args, RegistryArgs};
use super::super::progress::{Mark, Progress};
use super::super::{Answer, CliError, Exit, registry as login};
use super::bundle::all_of;
use super::collect::Stock;
use super::push::{Sent, deliver, news};
use super::registries::Registries;
use super::{Prefix, find, watched};
use vdo_api::retry::REGISTRY;
use vdo_api::types::total;
use vdo_core::mirror_lock::{placed, places};
use vdo_oci::registry::{current, push_matrix, retry};
use vdo_oci::transfer::{Delivery, Meter};

pub(super) async fn run(args: &Args, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let prefix = Prefix::parse(&args.to)?;
    let matrix = MatrixFile {
        matrix: Some(args.source.clone()),
        matrix_keys: args.matrix_keys.clone(),
        matrix_credentials: args.matrix_credentials.clone(),
    };
    let stock = Stock::read(&matrix, &args.select, &args.take, global).await?;
    progress.step(Mark::Done, &stock.title());
    let registries = Registries::new(&args.registries);
    let finding = find::all(&stock, &registries, None);
    let ready = watched(progress, &Meter::default(), "looking up the images", finding).await?;
    let lock = stock.lock(&ready);
    let places = places(&lock).map_err(|error| CliError::of(Exit::Refused, &error))?;
    let mut deliveries = Vec::new();
    for ready in ready {
        let path = placed(&ready.image.reference);
        // The same image under two names is in one place once.
        if places.get(&path).is_some_and(|image| image.reference == ready.image.reference) {
            deliveries.push(Delivery {
                found: ready.found,
                to: prefix.at(&path)?,
            });
        }
    }
    let at = prefix.matrix()?;
    let args_of_target: RegistryArgs = args.registries.clone().into();
    let registry = login::open(&args_of_target, &at).await?;
    let all = deliveries.len() + 1;
    let (deliveries, known) = news(&registry, deliveries).await?;
    let bytes = total(all_of(deliveries.iter().flat_map(|delivery| delivery.found.trees())).into_values());
    deliver(&registry, &deliveries, &[], progress).await?;
    let files = stock.files(&lock)?;
    let refused = |error| login::failed(&error);
    let before = retry(REGISTRY, || current(&registry, &at)).await.map_err(refused)?;
    let pushed = push_matrix(&registry, &at, &files, before.as_ref()).await;
    pushed.map_err(refused)?;
    let sent = Sent {
        to: &args.to,
        images: all,
        known,
        dry_run: false,
    };
    sent.answer(progress, bytes, Some(&lock))
}
