// SPDX-License-Identifier: Apache-2.0
//! Detects the type of the cluster (kind, k3d, minikube, remote) from its nodes and context, and the architectures of its nodes.

use crate::stop::Stop;
use std::collections::BTreeSet;

/// What kubectl prints of each node; the lines are read by [`nodes`].
pub const NODES: &str = "jsonpath={range .items[*]}{.metadata.name}{\"|\"}{.status.nodeInfo.architecture}{\"|\"}{.spec.providerID}{\"|\"}{.metadata.labels.minikube\\.k8s\\.io/name}{\"\\n\"}{end}";

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its processor, as Kubernetes names it.
    pub architecture: String,
    /// Who made it, such as `kind://docker/kind/kind-control-plane`.
    pub provider: String,
    /// The profile of minikube.
    pub profile: String,
}

/// Reads what kubectl printed.
pub fn nodes(text: &str) -> Vec<Node> {
    let node = |line: &str| {
        let mut parts = line.split('|').map(str::to_owned);
        Some(Node {
            name: parts.next().filter(|name| !name.is_empty())?,
            architecture: parts.next()?,
            provider: parts.next()?,
            profile: parts.next()?,
        })
    };
    text.lines().filter_map(node).collect()
}

/// Where a cluster is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Containers of kind, run by `docker`, `podman` or `nerdctl`.
    Kind {
        /// Its name.
        cluster: String,
        /// The program that runs its nodes.
        runtime: String,
    },
    /// Containers of k3d.
    K3d {
        /// Its name.
        cluster: String,
    },
    /// A machine or container of minikube.
    Minikube {
        /// Its name.
        profile: String,
    },
    /// Anywhere else.
    Remote,
}

/// Where the cluster of this context is. The nodes decide; where they are not known, the name of the context does. `runtime` is what
/// KIND_EXPERIMENTAL_PROVIDER says.
pub fn place(context: &str, nodes: Option<&[Node]>, runtime: Option<&str>) -> Place {
    let runtime = runtime.unwrap_or("docker");
    if let Some(nodes) = nodes {
        return nodes.iter().find_map(|node| of_node(node, runtime)).unwrap_or(Place::Remote);
    }
    if let Some(cluster) = context.strip_prefix("kind-") {
        let (cluster, runtime) = (cluster.to_owned(), runtime.to_owned());
        return Place::Kind { cluster, runtime };
    }
    match (context.strip_prefix("k3d-"), context) {
        (Some(cluster), _) => Place::K3d {
            cluster: cluster.to_owned(),
        },
        (None, "minikube") => Place::Minikube {
            profile: context.to_owned(),
        },
        _ => Place::Remote,
    }
}

fn of_node(node: &Node, runtime: &str) -> Option<Place> {
    if let Some(made) = node.provider.strip_prefix("kind://") {
        let mut parts = made.split('/');
        let by = parts
            .next()
            .filter(|by| ["docker", "podman", "nerdctl"].contains(by))
            .unwrap_or(runtime);
        let cluster = parts.next().filter(|cluster| !cluster.is_empty())?;
        return Some(Place::Kind {
            cluster: cluster.to_owned(),
            runtime: by.to_owned(),
        });
    }
    if !node.profile.is_empty() {
        return Some(Place::Minikube {
            profile: node.profile.clone(),
        });
    }
    // k3d-NAME-server-0, k3d-NAME-agent-1
    let name = node.name.strip_prefix("k3d-")?;
    let (name, number) = name.rsplit_once('-')?;
    let cluster = name.strip_suffix("-server").or_else(|| name.strip_suffix("-agent"))?;
    number.parse::<u32>().ok()?;
    Some(Place::K3d {
        cluster: cluster.to_owned(),
    })
}

/// The processors for which an image is needed.
///
/// # Errors
/// When none is built for one of them.
pub fn architectures<'a>(found: impl IntoIterator<Item = &'a str>) -> Result<Vec<String>, Stop> {
    // A node that has not said it yet is not asked.
    let found: BTreeSet<&str> = found.into_iter().filter(|one| !one.is_empty()).collect();
    match found.iter().find(|one| !["amd64", "arm64"].contains(*one)) {
        Some(other) => Err(Stop::usage(format!(
            "At least one node has the architecture {other}, but images are built only for amd64 and arm64"
        ))
        .try_this("Name an image that you have for this architecture: make deploy VDO_IMAGE=NAME:TAG")),
        None => Ok(found.into_iter().map(str::to_owned).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_what_the_nodes_say_and_the_context_only_without_them() {
        let kind = |cluster: &str, runtime: &str| Place::Kind {
            cluster: cluster.into(),
            runtime: runtime.into(),
        };
        let k3d = |cluster: &str| Place::K3d { cluster: cluster.into() };
        let minikube = |profile: &str| Place::Minikube { profile: profile.into() };
        for (context, text, runtime, expected) in [
            ("mine", "a|amd64|kind://podman/dev/dev-control-plane|", None, kind("dev", "podman")),
            ("kind-x", "a|amd64|kind://docker/dev/a|", Some("nerdctl"), kind("dev", "docker")),
            ("kind-x", "a|amd64|kind://finch/dev/a|", Some("nerdctl"), kind("dev", "nerdctl")),
            ("kind-prod", "cp|amd64|vsphere://42|", None, Place::Remote),
            ("mine", "k3d-a-b-server-0|amd64|k3s://k3d-a-b-server-0|", None, k3d("a-b")),
            ("mine", "k3d-a-agent-12|amd64||", None, k3d("a")),
            ("mine", "k3d-a-server-x|amd64||", None, Place::Remote),
            ("mine", "minikube|arm64||two", None, minikube("two")),
            ("mine", "", None, Place::Remote),
        ] {
            assert_eq!(place(context, Some(&nodes(text)), runtime), expected, "{context} {text}");
        }
        for (context, runtime, expected) in [
            ("kind-kind", None, kind("kind", "docker")),
            ("kind-kind", Some("podman"), kind("kind", "podman")),
            ("k3d-dev", None, k3d("dev")),
            ("minikube", None, minikube("minikube")),
            ("admin@prod", None, Place::Remote),
        ] {
            assert_eq!(place(context, None, runtime), expected, "{context}");
        }
    }

    #[test]
    fn architectures_are_named_once_and_unknown_ones_are_refused() {
        assert_eq!(
            architectures(["arm64", "amd64", "", "arm64"]),
            Ok(vec!["amd64".into(), "arm64".into()])
        );
        let error = architectures(["amd64", "s390x"]).expect_err("refused").to_string();
        assert!(error.contains("s390x") && error.contains("VDO_IMAGE"), "{error}");
    }
}
