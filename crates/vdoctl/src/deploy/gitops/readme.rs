// SPDX-License-Identifier: Apache-2.0
//! The text of the `README.md` in the folder of `--gitops`.

use super::layout::{EXAMPLE, Needed};

/// What people read who find the folder in a repository.
pub(super) fn text<'a>(needed: &[Needed], encrypted: impl Iterator<Item = &'a String>) -> String {
    let mut text = String::from(
        "# VDO\n\n\
         The vSphere Kubernetes Drivers Operator and its configuration, written by `vdoctl deploy --gitops`. Apply `operator/` before `config/`.\n\
         The Kustomization of this folder applies both. `vdoctl` rewrites these files for each version. Keep your own changes in another folder, as patches\n\
         of a Kustomization that lists this folder in its resources. `sha256sum --check .vdoctl.sha256` shows whether a file was changed.\n\n\
         Namespaces and definitions are marked so that Flux and Argo CD do not delete them: if its namespace were deleted, the\n\
         storage driver would stop while volumes are in use.\n\
         To uninstall, remove `config/` first, wait until the VDOConfig is deleted, and then remove `operator/`.\n",
    );
    for name in encrypted {
        text.push_str(&format!("\n`{name}` is encrypted with SOPS.\n"));
    }
    if !needed.is_empty() {
        text.push_str("\n## Secrets\n\nThese Secrets are not in this folder, and must exist in the cluster:\n\n");
        needed.iter().for_each(|secret| text.push_str(&format!("- {secret}\n")));
        text.push_str(&format!("\n`{EXAMPLE}` shows these Secrets without their values.\n"));
    }
    text
}
