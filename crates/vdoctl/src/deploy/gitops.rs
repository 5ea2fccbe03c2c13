// SPDX-License-Identifier: Apache-2.0
//! `vdoctl deploy --gitops FOLDER`: writes the objects of an installation as files for a GitOps tool, without a request to a cluster.
//!
//! ```text
//! what is in the folder -> objects -> files, Secrets apart -> encrypted or left out -> what differs is written
//! ```

mod folder;
mod layout;
mod readme;
mod sops;

use super::super::args::{CredentialsSecret, Deploy as Args, Global};
use super::super::progress::{Mark, Progress};
use super::super::{Answer, CliError};
use super::Manifests;
use super::configuration::CONNECTION;
use folder::Folder;
use layout::Layout;
use std::path::Path;
use vdo_api::types::count;

pub(super) async fn run(args: &Args, global: &Global, path: &Path, progress: &mut Progress) -> Result<Answer, CliError> {
    // Nothing is asked for a folder that is refused.
    let folder = Folder::look(path)?;
    let encrypts = sops::encrypts(args.gitops.sops, path, progress).await?;
    let args = if encrypts { args.clone() } else { without_password(args) };
    let manifests = Manifests::of(&args, global, progress).await?;
    let Layout {
        mut files,
        secrets,
        needed,
    } = Layout::of(&manifests, encrypts);
    for (name, secret) in &secrets {
        let text = match folder.has(name) && sops::is(path, name, secret).await {
            true => folder.text(name)?,
            false => sops::encrypted(path, name, secret).await?,
        };
        files.insert(name.clone(), text);
    }
    let written = folder.write(&files)?;
    let kept = files.len() - written.min(files.len());
    progress.step(
        Mark::Done,
        &format!(
            "{}: {} written, {kept} unchanged; nothing was written to a cluster",
            path.display(),
            count(written, "file")
        ),
    );
    for secret in &needed {
        let line = format!("{secret} must exist in the cluster; {} shows its keys", layout::EXAMPLE);
        progress.step(Mark::Note, &line);
    }
    Ok(Answer::text("").note("Commit the folder. docs/gitops.md shows how Flux, Argo CD and others apply it."))
}

/// The flags with the name of the Secret in place of the user: a password that is left out is not asked for.
fn without_password(args: &Args) -> Args {
    let mut args = args.clone();
    if args.vcenter.user.take().is_some() {
        args.vcenter.password_file = None;
        args.vcenter.credentials_secret = vec![CredentialsSecret {
            field: None,
            name: format!("{CONNECTION}-credentials"),
        }];
    }
    args
}
