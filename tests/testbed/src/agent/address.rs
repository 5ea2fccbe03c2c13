// SPDX-License-Identifier: Apache-2.0
//! Where a pod's ports are on this machine.
//!
//! All pods share its network, so that two operators would take each other's port. Each pod has an address of the loopback network, and a
//! program that listens on all addresses gets an option to listen on that one.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;

use crate::ports::Port;

/// The operator's variable for where it listens. Without it and without an argument it listens on all addresses.
const LISTEN: &str = "VDO_LISTEN";
/// The beginning of the variable for the place of a port.
const PORT: &str = "TESTBED_PORT_";

/// The address of a pod, and the places of its ports.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) ip: IpAddr,
    /// By the number in the pod's specification.
    pub(super) ports: BTreeMap<u16, SocketAddr>,
    _claims: Vec<Port>,
}

impl Address {
    /// Finds an address at which the pod's ports are free. A port that something else has on all addresses gets another number.
    pub(super) fn choose(pod: &Pod) -> Result<Self> {
        let random = RandomState::new().hash_one(&pod.metadata.uid).to_be_bytes();
        let ip = Ipv4Addr::new(127, random[0].max(1), random[1], random[2].clamp(1, 254));
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let numbers = containers.flat_map(|container| container.ports.iter().flatten());
        let numbers = numbers.filter_map(|port| u16::try_from(port.container_port).ok());
        let (mut ports, mut claims) = (BTreeMap::new(), Vec::new());
        for number in numbers {
            let mut place = SocketAddr::new(ip.into(), number);
            if TcpListener::bind(place).is_err() {
                let other = Port::claim()?;
                place.set_port(other.number());
                claims.push(other);
            }
            ports.insert(number, place);
        }
        Ok(Self {
            ip: ip.into(),
            ports,
            _claims: claims,
        })
    }
}

/// Replaces "all addresses" by the pod's own in arguments and variables; a program that says nothing gets the operator's variable.
pub(super) fn narrow(ports: &BTreeMap<u16, SocketAddr>, args: &mut [String], env: &mut Vec<(String, String)>) {
    let mut found = env.iter().any(|(name, _)| name == LISTEN) || args.iter().any(|arg| arg.starts_with("--listen"));
    let texts = args.iter_mut().chain(env.iter_mut().map(|(_, value)| value));
    for text in texts {
        for (number, place) in ports {
            for (before, port) in [("", "0.0.0.0:"), ("", "[::]:"), ("=", ":")] {
                let everywhere = format!("{before}{port}{number}");
                if text.ends_with(&everywhere) {
                    *text = text.replace(&everywhere, &format!("{before}{place}"));
                    found = true;
                }
            }
        }
    }
    if let Some((_, place)) = ports.first_key_value().filter(|_| !found) {
        env.push((LISTEN.into(), place.to_string()));
    }
    // Programs that have their port in themselves are built so that they look here.
    env.extend(ports.iter().map(|(number, place)| (format!("{PORT}{number}"), place.to_string())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_all_addresses_become_the_pods_own() {
        let place: SocketAddr = "127.1.2.3:8080".parse().expect("an address");
        let ports = BTreeMap::from([(8080, place)]);
        let variable = |value: &str| vec![(LISTEN.to_owned(), value.to_owned())];
        for (args, env, wanted_args, wanted_env) in [
            (vec![], vec![], vec![], variable("127.1.2.3:8080")),
            (vec!["--listen=0.0.0.0:8080"], vec![], vec!["--listen=127.1.2.3:8080"], vec![]),
            (
                vec!["--http-endpoint=:8080"],
                vec![],
                vec!["--http-endpoint=127.1.2.3:8080"],
                vec![],
            ),
            (vec!["--listen", "[::]:8080"], vec![], vec!["--listen", "127.1.2.3:8080"], vec![]),
            (vec![], variable("0.0.0.0:8080"), vec![], variable("127.1.2.3:8080")),
            (vec![], variable("127.0.0.1:9090"), vec![], variable("127.0.0.1:9090")),
            (vec!["--listen=0.0.0.0:80"], vec![], vec!["--listen=0.0.0.0:80"], vec![]),
        ] {
            let mut args: Vec<String> = args.into_iter().map(str::to_owned).collect();
            let (mut env, mut wanted_env) = (env, wanted_env);
            narrow(&ports, &mut args, &mut env);
            wanted_env.push(("TESTBED_PORT_8080".to_owned(), "127.1.2.3:8080".to_owned()));
            assert_eq!((args, env), (wanted_args.into_iter().map(str::to_owned).collect(), wanted_env));
        }
        let mut env = Vec::new();
        narrow(&BTreeMap::new(), &mut [], &mut env);
        assert!(env.is_empty(), "a pod without ports");
    }
}
