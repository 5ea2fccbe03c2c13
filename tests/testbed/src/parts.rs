//! The programs the test bed is made of, and how each is built.

/// The Kubernetes version of the control plane.
pub const KUBERNETES_VERSION: &str = "v1.34.4";

/// One program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The store below the API server.
    Etcd,
    /// kube-apiserver.
    Apiserver,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// kubectl.
    Kubectl,
    /// kwok, which plays nodes and pods.
    Kwok,
    /// vsphere-cloud-controller-manager, the real one.
    Cpi,
    /// helm, for comparisons.
    Helm,
    /// The simulated vCenter.
    Vcsim,
    /// The drivers' own configuration parsers.
    Gcfgcheck,
}

impl Part {
    /// All parts, cheap ones first.
    pub const ALL: [Self; 10] = [
        Self::Gcfgcheck,
        Self::Vcsim,
        Self::Etcd,
        Self::Apiserver,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kubectl,
        Self::Kwok,
        Self::Cpi,
        Self::Helm,
    ];

    /// What a cluster needs.
    pub const CLUSTER: [Self; 5] = [Self::Etcd, Self::Apiserver, Self::ControllerManager, Self::Scheduler, Self::Kwok];

    /// The program's file name.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Apiserver => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
            Self::Cpi => "vsphere-cloud-controller-manager",
            Self::Helm => "helm",
            Self::Vcsim => "vcsim",
            Self::Gcfgcheck => "gcfgcheck",
        }
    }

    /// The folder of its Go module.
    pub(crate) fn module(self) -> &'static str {
        match self {
            Self::Apiserver | Self::ControllerManager | Self::Scheduler | Self::Kubectl => "controlplane",
            Self::Cpi => "cpi",
            other => other.file_name(),
        }
    }

    /// The Go package that is the program.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::Apiserver => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::ControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Scheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::Kwok => "sigs.k8s.io/kwok/cmd/kwok",
            Self::Cpi => "k8s.io/cloud-provider-vsphere/cmd/vsphere-cloud-controller-manager",
            Self::Helm => "helm.sh/helm/v3/cmd/helm",
            Self::Vcsim | Self::Gcfgcheck => ".",
        }
    }

    /// Whether the field's `KUBEBUILDER_ASSETS` folder holds it.
    pub(crate) fn is_envtest_asset(self) -> bool {
        matches!(self, Self::Etcd | Self::Apiserver | Self::Kubectl)
    }

    /// Linker flags; `version` is what a Kubernetes program will say it is.
    pub(crate) fn ldflags(self, version: &str) -> String {
        if self.module() != "controlplane" {
            return "-s -w".into();
        }
        let mut numbers = version.trim_start_matches('v').split('.');
        let (major, minor) = (numbers.next().unwrap_or("0"), numbers.next().unwrap_or("0"));
        let at = "k8s.io/component-base/version";
        format!("-s -w -X {at}.gitVersion={version} -X {at}.gitMajor={major} -X {at}.gitMinor={minor}")
    }
}
