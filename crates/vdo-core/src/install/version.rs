// SPDX-License-Identifier: Apache-2.0
//! Reads the version of an installed operator from its Deployment, and decides whether this build is the same, an upgrade or a downgrade.

use crate::manifest::Object;
use semver::Version;

/// What a deployment does to the operator that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// There is none, or its version is not known.
    Install,
    /// It has this version already.
    Same,
    /// It is older.
    Upgrade,
    /// It is newer.
    Downgrade,
}

/// The version of an operator, from its Deployment: what its label says, or the tag of its image.
#[must_use]
pub fn operator_version(deployment: &Object) -> Option<String> {
    if let Some(version) = deployment.label("app.kubernetes.io/version") {
        return Some(version.to_owned());
    }
    let image = deployment.text("/spec/template/spec/containers/0/image");
    let name = image.rsplit_once('/').map_or(image, |(_, name)| name);
    let tag = name.split('@').next()?.rsplit_once(':')?.1;
    Some(tag.trim_start_matches('v').to_owned())
}

/// What becomes of an operator of this version, as its Deployment says it, under this build.
#[must_use]
pub fn change(installed: Option<&str>) -> Change {
    change_to(installed, env!("CARGO_PKG_VERSION"))
}

fn change_to(installed: Option<&str>, own: &str) -> Change {
    let (Some(installed), Ok(own)) = (installed.and_then(|text| Version::parse(text).ok()), Version::parse(own)) else {
        return Change::Install;
    };
    match installed.cmp_precedence(&own) {
        std::cmp::Ordering::Less => Change::Upgrade,
        std::cmp::Ordering::Equal => Change::Same,
        std::cmp::Ordering::Greater => Change::Downgrade,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_each_pair_of_versions_is_recognised() {
        for (installed, own, expected) in [
            (None, "0.1.0", Change::Install),
            (Some("latest"), "0.1.0", Change::Install),
            (Some("0.1.0"), "0.1.0", Change::Same),
            (Some("0.1.0+build.2"), "0.1.0", Change::Same),
            (Some("0.1.0"), "0.2.0", Change::Upgrade),
            (Some("0.10.0"), "0.9.0", Change::Downgrade),
            (Some("1.0.0-rc.1"), "1.0.0", Change::Upgrade),
        ] {
            assert_eq!(change_to(installed, own), expected, "{installed:?} under {own}");
        }
    }
}
