// SPDX-License-Identifier: Apache-2.0
//! The kubelet setting for an external cloud provider, per distribution (kubeadm, RKE2, k3s).

use super::Node;

/// What installs and configures the kubelets of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// kubeadm, or something that works like it.
    Kubeadm,
    /// RKE2.
    Rke2,
    /// k3s.
    K3s,
    /// Something else, which keeps the arguments of its kubelets where only its own documents say.
    Other,
}

impl Node {
    /// What installed its kubelet, as the version says.
    #[must_use]
    pub fn distribution(&self) -> Distribution {
        match self.kubelet.as_deref().unwrap_or_default() {
            version if version.contains("+rke2") => Distribution::Rke2,
            version if version.contains("+k3s") => Distribution::K3s,
            // Builds of VMware are installed by kubeadm.
            version if version.contains("+vmware") => Distribution::Kubeadm,
            version if version.contains('+') || version.contains("-eks") || version.contains("-gke") => Distribution::Other,
            _ => Distribution::Kubeadm,
        }
    }
}

impl Distribution {
    /// Where the setting is written before a node joins.
    #[must_use]
    pub const fn place(self) -> &'static str {
        match self {
            Self::Kubeadm => "with kubeadm, in InitConfiguration and JoinConfiguration before a node joins",
            Self::Rke2 => "with RKE2, in /etc/rancher/rke2/config.yaml before a node joins",
            Self::K3s => "with k3s, in /etc/rancher/k3s/config.yaml before a node joins",
            Self::Other => "as an argument of the kubelet, where your distribution keeps these, before a node joins",
        }
    }

    /// The setting, line by line.
    #[must_use]
    pub const fn stanza(self) -> &'static [&'static str] {
        match self {
            Self::Kubeadm => &["nodeRegistration: {kubeletExtraArgs: [{name: cloud-provider, value: external}]}"],
            Self::Rke2 => &["cloud-provider-name: external", "disable-cloud-controller: true"],
            Self::K3s => &["kubelet-arg: [cloud-provider=external]", "disable-cloud-controller: true"],
            Self::Other => &["--cloud-provider=external"],
        }
    }

    /// How the setting comes to a node that is there.
    #[must_use]
    pub const fn later(self) -> &'static str {
        match self {
            Self::Kubeadm => {
                "On an existing node: add --cloud-provider=external to /var/lib/kubelet/kubeadm-flags.env, restart the kubelet, then run:"
            }
            Self::Rke2 => "On an existing node: write the setting into that file, restart rke2-server or rke2-agent, then run:",
            Self::K3s => "On an existing node: write the setting into that file, restart k3s or k3s-agent, then run:",
            Self::Other => "On an existing node: add the argument, restart the kubelet, then run:",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distribution_is_known_by_the_version_of_the_kubelet() {
        for (version, expected) in [
            ("v1.34.4", Distribution::Kubeadm),
            ("v1.34.4+rke2r1", Distribution::Rke2),
            ("v1.34.4+k3s1", Distribution::K3s),
            ("v1.35.0-rc.1", Distribution::Kubeadm),
            ("v1.33.5+vmware.1-fips", Distribution::Kubeadm),
            ("v1.33.1-eks-1", Distribution::Other),
            ("v1.34.1+k0s.0", Distribution::Other),
        ] {
            let node = Node {
                kubelet: Some(version.into()),
                ..Node::default()
            };
            assert_eq!(node.distribution(), expected, "{version}");
            assert!(expected.stanza().iter().any(|line| line.contains("external")));
        }
        assert_eq!(Node::default().distribution(), Distribution::Kubeadm);
    }
}
