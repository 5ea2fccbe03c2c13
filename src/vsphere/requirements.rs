use crate::types::DriverName;
use std::collections::BTreeSet;

/// Something that the drivers do with a vCenter, each with privileges of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// The cloud provider finds machines.
    CloudProvider,
    /// The CSI driver makes block volumes.
    Block,
    /// The CSI driver makes file volumes.
    File,
    /// A driver reads tags of zones and regions.
    Topology,
    /// Volumes are encrypted by their storage policy.
    Encryption,
}

impl Feature {
    /// What people call it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CloudProvider => "cloud provider",
            Self::Block => "block volumes",
            Self::File => "file volumes",
            Self::Topology => "topology",
            Self::Encryption => "encryption",
        }
    }
}

/// What the drivers of a cluster ask of one vSphere connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// The drivers that use the connection.
    pub drivers: BTreeSet<DriverName>,
    /// What they do there; [`Feature::Encryption`] shows only in the policies themselves.
    pub features: BTreeSet<Feature>,
    /// Datastores that are named.
    pub datastores: Vec<WantedDatastore>,
    /// Storage policies that are named.
    pub policies: Vec<WantedPolicy>,
    /// The tag categories of the zone and the region for the cloud provider.
    pub zone_and_region: Option<(String, String)>,
    /// How many other connections the CSI driver uses: what is named and is not here may be there.
    pub others: usize,
    /// The tag categories of the CSI driver.
    pub categories: Vec<String>,
}

impl Needs {
    /// Whether somebody names this storage policy.
    #[must_use]
    pub fn names_policy(&self, name: &str) -> bool {
        self.policies.iter().any(|wanted| wanted.name == name)
    }

    /// Every tag category that some driver reads, without repetition.
    #[must_use]
    pub fn all_categories(&self) -> BTreeSet<&str> {
        let of_cpi = self.zone_and_region.iter().flat_map(|(zone, region)| [zone, region]);
        of_cpi.chain(&self.categories).map(String::as_str).collect()
    }
}

/// A datastore that somebody names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedDatastore {
    /// Its URL.
    pub url: String,
    /// Where it is named, such as `StorageClass fast`.
    pub named_in: String,
    /// Whether it must be a vSAN datastore.
    pub vsan: bool,
}

/// A storage policy that somebody names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedPolicy {
    /// Its name.
    pub name: String,
    /// Where it is named, such as `StorageClass fast`.
    pub named_in: String,
}
