// SPDX-License-Identifier: Apache-2.0
//! The page of the folder.

use super::layout::{EXAMPLE, Needed};

/// What people read who find the folder in a repository.
pub(super) fn text<'a>(needed: &[Needed], encrypted: impl Iterator<Item = &'a String>) -> String {
    let mut text = String::from(
        "# VDO\n\n\
         The vSphere Kubernetes Drivers Operator and its configuration, written by `vdoctl deploy --gitops`. `operator/` comes first, then `config/`; this folder\n\
         has both. `vdoctl` writes the files of each version: keep your own changes in another folder, as patches of a Kustomization that has this one\n\
         among its resources. `sha256sum --check .vdoctl.sha256` shows whether a file was changed.\n\n\
         Namespaces and definitions are marked so that Flux and Argo CD do not delete them: without its namespace the storage driver ends under volumes in use.\n\
         To uninstall, take away `config/` first, wait until the VDOConfig is deleted, then `operator/`.\n",
    );
    for name in encrypted {
        text.push_str(&format!("\n`{name}` is encrypted with SOPS.\n"));
    }
    if !needed.is_empty() {
        text.push_str("\n## Secrets\n\nThey are not in this folder, and have to be in the cluster:\n\n");
        needed.iter().for_each(|secret| text.push_str(&format!("- {secret}\n")));
        text.push_str(&format!("\n`{EXAMPLE}` shows them without their values.\n"));
    }
    text
}
