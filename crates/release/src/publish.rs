// SPDX-License-Identifier: Apache-2.0
//! `vdo-release publish` and `vdo-release image-push`: publish the artifacts of a version in a registry, with `--dry-run` and `--check`.
//!
//! ```text
//!   folders --collect--> items --look--> state of each --> refused, as a whole
//!                                                      --> put what is missing, in order, and look again
//! ```
//!
//! A tag that refers to another artifact is not changed, so a version is published once. Existing artifacts are not sent again, so the same
//! command continues after an interruption, and changes nothing when every artifact exists.

mod attest;
mod collect;
mod item;
mod look;
mod put;

use crate::built::Built;
use crate::registry::{Reach, wait};
use crate::{output, sign};
use anyhow::{Context, Result, anyhow, bail};
use collect::{Folders, collect, place};
use item::{Item, State};
use look::look;
use std::path::PathBuf;
use vdo_oci::registry::{Reference, Registry, current, retry};
use vdo_source::signature::PublicKeys;

#[derive(Debug, clap::Args)]
pub struct PushArgs {
    /// The image, as `vdo-release image` writes it
    #[arg(long, value_name = "DIR")]
    layout: PathBuf,
    /// The repository for the image, without a tag; the tag is computed from the content
    #[arg(long, value_name = "HOST/REPOSITORY")]
    to: Reference,
    #[command(flatten)]
    reach: Reach,
}

/// Pushes the image with all its platforms and bills of materials, unless it is there.
pub fn push(args: &PushArgs) -> Result<()> {
    let built = Built::open(&args.layout)?;
    let to = args.to.at_tag(&built.own_tag());
    wait(async {
        let registry = args.reach.open(&to).await?;
        let found = retry(vdo_api::retry::REGISTRY, || current(&registry, &to)).await?;
        if found.as_ref() != Some(&built.root.digest) {
            let placed = put::image(&registry, &built.layout, &built.root, &to).await;
            placed.with_context(|| format!("{to} is not pushed"))?;
        }
        Ok(())
    })?;
    // Who calls it reads the last line.
    output::line(&to.to_string())
}

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The registry, with or without a path. All artifacts are published below this path instead of ghcr.io
    #[arg(long, value_name = "HOST[/PATH]")]
    registry: String,
    /// The version of the release, without the letter v
    #[arg(long, value_name = "VERSION")]
    version: String,
    /// The image of the operator, as `vdo-release image` writes it
    #[arg(long, value_name = "DIR", default_value = "target/image")]
    image: PathBuf,
    /// The bundle as an image, if there is one
    #[arg(long, value_name = "DIR", default_value = "target/bundle-image")]
    bundle: PathBuf,
    /// The catalog as an image, if there is one
    #[arg(long, value_name = "DIR", default_value = "target/catalog-image")]
    catalog: PathBuf,
    /// The files of the release
    #[arg(long, value_name = "DIR", required_unless_present = "check")]
    release: Option<PathBuf>,
    /// The matrix with its charts
    #[arg(long, value_name = "DIR", required_unless_present = "check")]
    matrix: Option<PathBuf>,
    /// Only shows what would be published
    #[arg(long)]
    dry_run: bool,
    /// Only checks whether the registry answers
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Publishes everything of a version.
pub fn run(args: &Args) -> Result<()> {
    let first = place(&args.registry, "vdo-operator", &format!("v{}", args.version))?;
    if args.check {
        return wait(async {
            let registry = args.reach.open(&first).await?;
            retry(vdo_api::retry::REGISTRY, || registry.head(&first)).await?;
            Ok(())
        });
    }
    let folder = |folder: &Option<PathBuf>| folder.clone().ok_or_else(|| anyhow!("--release and --matrix are required"));
    let folders = Folders {
        image: args.image.clone(),
        bundle: args.bundle.clone(),
        catalog: args.catalog.clone(),
        release: folder(&args.release)?,
        matrix: folder(&args.matrix)?,
    };
    let items = collect(&args.registry, &args.version, &folders)?;
    let key = sign::key()?;
    let keys = key.as_ref().map(attest::public).transpose()?;
    if key.is_none() {
        output::line("  NOT signed: VDO_SIGNING_KEY names no key")?;
    }
    wait(async {
        let registry = args.reach.open(&first).await?;
        let states = looked(&registry, &items, keys.as_ref()).await?;
        refuse(&items, &states)?;
        if args.dry_run {
            return output::line("dry run: nothing was published");
        }
        let mut sent = 0;
        for (item, state) in items.iter().zip(&states).filter(|(_, state)| state.is_to_do()) {
            let published = async {
                put::item(&registry, item, state, key.as_ref().zip(keys.as_ref())).await?;
                // Another publisher may have been there in the same moment.
                match look(&registry, item, keys.as_ref()).await? {
                    State::There => Ok(()),
                    _ => bail!("after the upload, the registry does not have the whole artifact: another publisher writes to the same tag"),
                }
            };
            let published = published.await;
            published.with_context(|| {
                format!(
                    "{} is not published; number of artifacts published before: {sent}; run the same command again to continue",
                    item.to
                )
            })?;
            output::line(&format!("  published {}", item.to))?;
            sent += 1;
        }
        output::line(&match sent {
            0 => "the registry has all artifacts already; nothing was sent".to_owned(),
            sent => format!("{sent} of {} published", items.len()),
        })
    })?;
    output::line(&usage(&args.registry, &args.version, args.dry_run))
}

/// Looks for each item and lists it.
async fn looked(registry: &Registry, items: &[Item], keys: Option<&PublicKeys>) -> Result<Vec<State>> {
    let mut states = Vec::new();
    for item in items {
        let state = look(registry, item, keys)
            .await
            .with_context(|| format!("{} cannot be looked up", item.to))?;
        output::line(&format!(
            "  {:10} {}@{}  {}",
            state.word(),
            item.to,
            item.manifest.digest,
            item.what
        ))?;
        states.push(state);
    }
    Ok(states)
}

/// Ends it when a tag leads to something else.
fn refuse(items: &[Item], states: &[State]) -> Result<()> {
    let taken: Vec<String> = items
        .iter()
        .zip(states)
        .filter_map(|(item, state)| match state {
            State::Other(digest, why) => Some(format!(
                "{} refers to {digest} in the registry ({why}); the artifact to publish is {}",
                item.to, item.manifest.digest
            )),
            _ => None,
        })
        .collect();
    match taken.is_empty() {
        true => Ok(()),
        false => bail!(
            "nothing was published, because a version is published once:\n  {}\nRaise the version in Cargo.toml, or build the commit that was published: git checkout vVERSION.",
            taken.join("\n  ")
        ),
    }
}

/// How what was published is used.
fn usage(registry: &str, version: &str, dry_run: bool) -> String {
    let at = registry.trim_end_matches('/');
    match dry_run {
        true => format!("To publish it: make publish REGISTRY={at}"),
        false => format!(
            "To use it:
  vdoctl deploy --image-registry {at} --matrix oci://{at}/vdo-project/matrix:stable …
  helm install vdo oci://{at}/vdo-project/charts/vdo --version {version} --namespace vmware-system-vdo --create-namespace
  oras pull {at}/vdo-project/release:v{version}"
        ),
    }
}
