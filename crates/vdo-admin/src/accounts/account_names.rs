// SPDX-License-Identifier: Apache-2.0
//! The description that marks a vCenter user as created by `vdoctl users`, and the two user names that `users rotate` alternates.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// What the description of a user of ours begins with.
const PREFIX: &str = "Made by vdoctl users";

/// What makes a user ours: its description names the cluster, the vCenter and the drivers that it is for. vCenters in linked mode share
/// their users, and a user for each keeps a change in one from reaching the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The UID of the cluster's kube-system namespace.
    pub cluster: String,
    /// The instance UUID of the vCenter.
    pub vcenter: String,
    /// The drivers, in short, such as `cpi`.
    pub drivers: BTreeSet<String>,
}

impl Mark {
    /// The two names that an account has in turn: a rotation makes the other one and deletes the one before.
    #[must_use]
    pub fn names(&self) -> [String; 2] {
        let drivers: Vec<&str> = self.drivers.iter().map(String::as_str).collect();
        let first = |text: &str, count| text.chars().filter(char::is_ascii_alphanumeric).take(count).collect::<String>();
        let (cluster, vcenter) = (first(&self.cluster, 8), first(&self.vcenter, 4));
        ["a", "b"].map(|turn| format!("vdo-{}-{cluster}-{vcenter}-{turn}", drivers.join("-")))
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drivers: Vec<&str> = self.drivers.iter().map(String::as_str).collect();
        write!(
            f,
            "{PREFIX} for {} of cluster {} in vCenter {}",
            drivers.join(","),
            self.cluster,
            self.vcenter
        )
    }
}

impl FromStr for Mark {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let rest = text
            .trim()
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_prefix(" for "))
            .ok_or(())?;
        let (drivers, places) = rest.split_once(" of cluster ").ok_or(())?;
        let (cluster, vcenter) = places.split_once(" in vCenter ").ok_or(())?;
        let drivers: BTreeSet<String> = drivers.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect();
        let known = !drivers.is_empty() && [cluster, vcenter].iter().all(|id| !id.is_empty() && !id.contains(' '));
        known
            .then(|| Self {
                cluster: cluster.to_owned(),
                vcenter: vcenter.to_owned(),
                drivers,
            })
            .ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_mark_is_read_back() {
        let mark = Mark {
            cluster: "0c9c2a4e-7d1b-4a7e-9a50-3f5d1f2e7b11".into(),
            vcenter: "8b1f2c9e-6a55-4c8e-9d43-0f6f3a1c7e11".into(),
            drivers: ["csi".to_owned(), "cpi".into()].into(),
        };
        assert_eq!(mark.to_string().parse(), Ok(mark.clone()));
        assert_eq!(mark.names(), ["vdo-cpi-csi-0c9c2a4e-8b1f-a", "vdo-cpi-csi-0c9c2a4e-8b1f-b"]);
        let linked = Mark {
            vcenter: "11111111-6a55-4c8e-9d43-0f6f3a1c7e11".into(),
            ..mark.clone()
        };
        assert!(linked != mark && linked.names().iter().all(|name| !mark.names().contains(name)));
        for text in [
            "",
            "an account of the storage team",
            "Made by vdoctl users",
            "Made by vdoctl users for  of cluster x in vCenter y",
            "Made by vdoctl users for csi of cluster x",
        ] {
            assert_eq!(text.parse::<Mark>(), Err(()), "{text}");
        }
    }
}
