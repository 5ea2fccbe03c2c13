// SPDX-License-Identifier: Apache-2.0
//! Reads the version of the operator in the cluster, and the remedy when it differs from the version of this vdoctl.

use super::{Deployment, Installer, Presence};
use crate::CliError;
use crate::context::Context;
use crate::views::version::InstallerView;
use vdo_core::install::{Change, change, operator_version};

const OWN: &str = env!("CARGO_PKG_VERSION");

/// Which operator is installed.
pub(crate) struct Build {
    /// Its version.
    pub version: String,
    /// Who installed it, where that is known.
    pub installer: Option<InstallerView>,
}

impl Build {
    /// That of a cluster, or why it is not known.
    pub(crate) async fn find(context: &Context) -> Result<Self, String> {
        let namespace = context.namespace();
        let presence = Presence::find(context, namespace)
            .await
            .map_err(|error| CliError::from(error).what)?;
        match presence.deployment {
            Deployment::Found(found) => Ok(Self {
                version: operator_version(&found).ok_or("the image of the operator has no version")?,
                installer: presence.installer.as_ref().map(Installer::view),
            }),
            Deployment::Missing => Err(format!(
                "the operator is not installed in namespace {namespace} of cluster {}",
                context.name
            )),
            Deployment::Unknown => Err("you lack the right to read the operator's Deployment".to_owned()),
        }
    }

    /// What to do where it has another version than this vdoctl.
    pub(crate) fn skew(&self) -> Option<String> {
        let version = &self.version;
        match change(Some(version)) {
            Change::Install | Change::Same => None,
            Change::Downgrade => Some(format!(
                "operator {version} is newer than this vdoctl ({OWN}), so vdoctl may show the report of the operator \
                 incompletely; use vdoctl {version}"
            )),
            Change::Upgrade => {
                let by = self.installer.as_ref().map_or("vdoctl deploy", |installer| installer.program());
                Some(format!(
                    "operator {version} is older than this vdoctl ({OWN}), so the changes of the operator may differ from \
                     these plans; {by} upgrades the operator"
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_skew_names_what_to_do() {
        let skew = |version: &str| {
            Build {
                version: version.to_owned(),
                installer: None,
            }
            .skew()
        };
        assert_eq!(skew(OWN), None);
        assert!(skew("99.0.0").is_some_and(|line| line.contains("use vdoctl 99.0.0")));
        assert!(skew("0.0.1").is_some_and(|line| line.contains("vdoctl deploy upgrades the operator")));
        assert_eq!(skew("latest"), None, "nothing is known of it");
    }
}
