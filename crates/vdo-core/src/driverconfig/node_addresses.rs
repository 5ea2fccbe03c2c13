// SPDX-License-Identifier: Apache-2.0
//! Computes which addresses of a virtual machine the cloud provider (CPI) gives to its node, from subnets, networks and IP families (pure).

use super::check::subnet;
use std::net::IpAddr;
use std::sync::Arc;

/// What chooses between the addresses of a machine, as the cloud provider's file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeAddresses {
    /// The families of node addresses; empty leaves the CPI's default, IPv4.
    pub families: Vec<IpFamily>,
    /// Where the internal address of a node comes from.
    pub internal: NodeNetwork,
    /// Where its external address comes from.
    pub external: NodeNetwork,
}

/// Which of a machine's addresses is taken. Empty leaves it to the CPI.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeNetwork {
    /// Subnets in which it is, in CIDR form.
    pub subnets: Vec<String>,
    /// Subnets in which it is not.
    pub excluded: Vec<String>,
    /// The network in vCenter that it is reached by.
    pub name: Option<String>,
}

/// A family of node addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl IpFamily {
    /// Its word in the file.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::V4 => "ipv4",
            Self::V6 => "ipv6",
        }
    }

    /// Its name, as people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    const fn has(self, address: IpAddr) -> bool {
        matches!((self, address), (Self::V4, IpAddr::V4(_)) | (Self::V6, IpAddr::V6(_)))
    }
}

/// A network adapter of a machine, as VMware Tools report it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Adapter {
    /// The network in vCenter that it is connected to; empty where that is not reported.
    pub network: Arc<str>,
    /// Its addresses.
    pub addresses: Vec<String>,
}

/// The addresses that a node gets of one family. At least one of them is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// The internal one.
    pub internal: Option<IpAddr>,
    /// The external one.
    pub external: Option<IpAddr>,
}

/// Why the cloud provider does not register a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAddress {
    /// No adapter has an address that other machines can reach.
    AtAll,
    /// No adapter is in one of the two networks that are named.
    InNetworks,
    /// None of this family.
    Family(IpFamily),
    /// All of this family are in subnets that are excluded.
    Excluded(IpFamily),
}

impl NodeAddresses {
    /// The families that a node needs an address of, each.
    #[must_use]
    pub fn families(&self) -> &[IpFamily] {
        if self.families.is_empty() {
            &[IpFamily::V4]
        } else {
            &self.families
        }
    }

    /// The addresses of each family, chosen as the CPI does (`DiscoverNode` in its `nodemanager.go`): the first in a subnet, else the first in
    /// the network that is named, else, where neither the internal nor the external one is found, the first of all.
    ///
    /// # Errors
    /// When the CPI would leave the node as it is.
    pub fn choose(&self, adapters: &[Adapter]) -> Result<Vec<Chosen>, NoAddress> {
        let usable: Vec<(&str, IpAddr)> = adapters
            .iter()
            .flat_map(|adapter| adapter.addresses.iter().map(|address| (&*adapter.network, address)))
            .filter_map(|(network, address)| Some((network, usable(address)?)))
            .collect();
        if let (Some(internal), Some(external)) = (&self.internal.name, &self.external.name)
            && !adapters.is_empty()
            && !adapters
                .iter()
                .any(|adapter| [internal, external].iter().any(|name| same(name, &adapter.network)))
        {
            return Err(NoAddress::InNetworks);
        }
        if usable.is_empty() {
            return Err(NoAddress::AtAll);
        }
        self.families().iter().map(|family| self.of_family(*family, &usable)).collect()
    }

    fn of_family(&self, family: IpFamily, usable: &[(&str, IpAddr)]) -> Result<Chosen, NoAddress> {
        let of_family: Vec<(&str, IpAddr)> = usable.iter().copied().filter(|(_, address)| family.has(*address)).collect();
        if of_family.is_empty() {
            return Err(NoAddress::Family(family));
        }
        let [internal, external] = [&self.internal, &self.external].map(|network| network.allowed(&of_family));
        let chosen = Chosen {
            internal: self.internal.find(&internal),
            external: self.external.find(&external),
        };
        if chosen.internal.is_some() || chosen.external.is_some() {
            return Ok(chosen);
        }
        let first = |allowed: &[(&str, IpAddr)]| allowed.first().map(|(_, address)| *address);
        match (first(&internal), first(&external)) {
            (None, None) => Err(NoAddress::Excluded(family)),
            (internal, external) => Ok(Chosen { internal, external }),
        }
    }
}

impl NodeNetwork {
    /// Those that are in no excluded subnet.
    fn allowed<'a>(&self, all: &[(&'a str, IpAddr)]) -> Vec<(&'a str, IpAddr)> {
        let excluded = |address: IpAddr| self.excluded.iter().any(|text| contains(text, address));
        all.iter().copied().filter(|(_, address)| !excluded(*address)).collect()
    }

    fn find(&self, allowed: &[(&str, IpAddr)]) -> Option<IpAddr> {
        let in_subnet = |text: &String| allowed.iter().find(|(_, address)| contains(text, *address));
        let in_network = || {
            let name = self.name.as_ref()?;
            allowed.iter().find(|(network, _)| same(name, network))
        };
        self.subnets
            .iter()
            .find_map(in_subnet)
            .or_else(in_network)
            .map(|(_, address)| *address)
    }
}

/// The CPI compares the names of networks without regard to case.
fn same(name: &str, network: &str) -> bool {
    name.to_lowercase() == network.to_lowercase()
}

fn contains(text: &str, address: IpAddr) -> bool {
    let Some((network, length)) = subnet(text) else { return false };
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    };
    let same_family = network.is_ipv4() == address.is_ipv4();
    // A prefix of no bits has every address.
    let differs = bits(network) ^ bits(address);
    same_family && differs.checked_shr(128 - u32::from(length)).unwrap_or(0) == 0
}

/// The address, if other machines can reach it there.
fn usable(address: &str) -> Option<IpAddr> {
    let address: IpAddr = address.parse().ok()?;
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    (!address.is_loopback() && !address.is_unspecified() && !link_local).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(network: &str, addresses: &[&str]) -> Adapter {
        Adapter {
            network: network.into(),
            addresses: addresses.iter().map(|address| (*address).to_owned()).collect(),
        }
    }

    #[test]
    fn subnet_holds_addresses_of_its_family_only() {
        for (text, address, expected) in [
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.1.2.3/32", "10.1.2.3", true),
            ("10.1.2.3/32", "10.1.2.2", false),
            ("0.0.0.0/0", "192.0.2.1", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "10.0.0.1", false),
            ("2001:db8::/64", "2001:db8::9", true),
            ("2001:db8::/64", "2001:db8:0:1::9", false),
            ("nonsense", "10.0.0.1", false),
        ] {
            assert_eq!(contains(text, address.parse().expect("an address")), expected, "{text} {address}");
        }
    }

    #[test]
    fn address_of_no_use_is_left_out() {
        let rules = NodeAddresses::default();
        for addresses in [&["127.0.0.1", "169.254.1.1", "fe80::1", "::1", "x"][..], &[]] {
            assert_eq!(rules.choose(&[adapter("a", addresses)]), Err(NoAddress::AtAll));
        }
        assert_eq!(rules.choose(&[]), Err(NoAddress::AtAll));
    }
}
