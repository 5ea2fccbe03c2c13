// SPDX-License-Identifier: Apache-2.0
//! The programs the test bed is made of, and how each is built.

/// The Kubernetes version of the control plane.
pub const KUBERNETES_VERSION: &str = "v1.34.4";

/// The versions that the API server says it has in tests: it is linked again for each.
pub(crate) const REPORTED: [&str; 5] = ["v1.31.0", "v1.32.0", "v1.33.0", "v1.35.0", "v1.36.0"];

/// A control plane of another minor. It is built on demand, from a Go module of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Minor {
    /// Its version, such as `v1.35.4`.
    pub version: &'static str,
    pub(crate) module: &'static str,
}

/// Those that can be built.
pub const MINORS: [Minor; 2] = [
    Minor {
        version: "v1.33.13",
        module: "controlplane-1.33",
    },
    Minor {
        version: "v1.35.4",
        module: "controlplane-1.35",
    },
];

/// Files of a Go module, and the folder in which the test bed keeps them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files {
    pub(crate) module: &'static str,
    pub(crate) folder: &'static str,
    pub(crate) paths: &'static [&'static str],
}

/// What becomes of nodes and pods.
pub(crate) const KWOK_STAGES: Files = Files {
    module: "sigs.k8s.io/kwok",
    folder: "kwok-stages",
    paths: &[
        "kustomize/stage/node/fast/node-initialize.yaml",
        "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
        "kustomize/stage/pod/fast/pod-complete.yaml",
        "kustomize/stage/pod/fast/pod-delete.yaml",
        "kustomize/stage/pod/fast/pod-ready.yaml",
    ],
};

/// The definitions of snapshots, which a cluster that has them got from its administrator.
pub(crate) const SNAPSHOT_DEFINITIONS: Files = Files {
    module: "github.com/kubernetes-csi/external-snapshotter/client/v8",
    folder: "snapshot-definitions",
    paths: &[
        "config/crd/snapshot.storage.k8s.io_volumesnapshotclasses.yaml",
        "config/crd/snapshot.storage.k8s.io_volumesnapshotcontents.yaml",
        "config/crd/snapshot.storage.k8s.io_volumesnapshots.yaml",
    ],
};

/// The definitions of OpenShift that the operator and vdoctl look at.
pub(crate) const OPENSHIFT_DEFINITIONS: Files = Files {
    module: "github.com/openshift/api",
    folder: "openshift-definitions",
    paths: &[
        "payload-manifests/crds/0000_03_config-operator_01_proxies.crd.yaml",
        "payload-manifests/crds/0000_03_config-operator_01_securitycontextconstraints.crd.yaml",
        "payload-manifests/crds/0000_10_config-operator_01_infrastructures-Default.crd.yaml",
        "payload-manifests/crds/0000_50_csi-driver_01_clustercsidrivers-Default.crd.yaml",
        "config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusterversions-Default.crd.yaml",
    ],
};

/// The definitions of OLM v0.
pub(crate) const OLM_DEFINITIONS: Files = Files {
    module: "github.com/operator-framework/operator-lifecycle-manager",
    folder: "olm-definitions",
    paths: &[
        "deploy/chart/crds/0000_50_olm_00-catalogsources.crd.yaml",
        "deploy/chart/crds/0000_50_olm_00-clusterserviceversions.crd.yaml",
        "deploy/chart/crds/0000_50_olm_00-installplans.crd.yaml",
        "deploy/chart/crds/0000_50_olm_00-olmconfigs.crd.yaml",
        "deploy/chart/crds/0000_50_olm_00-operatorconditions.crd.yaml",
        "deploy/chart/crds/0000_50_olm_00-operatorgroups.crd.yaml",
        "deploy/chart/crds/0000_50_olm_00-operators.crd.yaml",
        "deploy/chart/crds/0000_50_olm_00-subscriptions.crd.yaml",
    ],
};

/// The definitions of OLM v1. The standard one of ClusterExtensions has no configuration of the watched namespace.
pub(crate) const OLM_V1_DEFINITIONS: Files = Files {
    module: "github.com/operator-framework/operator-controller",
    folder: "olm-v1-definitions",
    paths: &[
        "config/base/catalogd/crd/standard/olm.operatorframework.io_clustercatalogs.yaml",
        "config/base/operator-controller/crd/experimental/olm.operatorframework.io_clusterextensions.yaml",
    ],
};

/// The definitions of GitOps tools and of Cluster API. They are no requirements of the Go module, which would then be built with what these require; their
/// hashes are in its go.sum, where `go mod tidy` must not remove them.
pub(crate) const GITOPS_DEFINITIONS: [Files; 5] = [
    Files {
        module: "github.com/fluxcd/kustomize-controller@v1.9.6",
        folder: GITOPS_FOLDER,
        paths: &["config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml"],
    },
    Files {
        module: "github.com/fluxcd/source-controller@v1.9.6",
        folder: GITOPS_FOLDER,
        paths: &[
            "config/crd/bases/source.toolkit.fluxcd.io_gitrepositories.yaml",
            "config/crd/bases/source.toolkit.fluxcd.io_ocirepositories.yaml",
        ],
    },
    Files {
        module: "github.com/argoproj/argo-cd/v3@v3.5.7",
        folder: GITOPS_FOLDER,
        paths: &["manifests/crds/application-crd.yaml", "manifests/crds/appproject-crd.yaml"],
    },
    Files {
        module: "github.com/k3s-io/helm-controller@v0.17.9",
        folder: GITOPS_FOLDER,
        paths: &["pkg/crds/yaml/generated/helm.cattle.io_helmcharts.yaml"],
    },
    Files {
        module: "sigs.k8s.io/cluster-api@v1.14.2",
        folder: GITOPS_FOLDER,
        paths: &[
            "core/config/crd/bases/addons.cluster.x-k8s.io_clusterresourcesets.yaml",
            "core/config/crd/bases/cluster.x-k8s.io_clusterclasses.yaml",
            "core/config/crd/bases/cluster.x-k8s.io_clusters.yaml",
        ],
    },
];
const GITOPS_FOLDER: &str = "gitops-definitions";

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
    /// helm 3, for comparisons, and as users have it.
    Helm,
    /// helm 4, for comparisons. It is built on demand.
    Helm4,
    /// The simulated vCenter.
    Vcsim,
    /// The drivers' own configuration parsers.
    Gcfgcheck,
    /// The real vSphere CSI driver, 3.7.0.
    CsiDriver,
    /// Its syncer.
    CsiSyncer,
    /// csi-attacher, which runs beside the driver.
    CsiAttacher,
    /// csi-provisioner.
    CsiProvisioner,
    /// csi-resizer.
    CsiResizer,
    /// csi-snapshotter.
    CsiSnapshotter,
    /// snapshot-controller, of which a cluster has one for all drivers.
    SnapshotController,
    /// What stands in for livenessprobe, of which the module proxy has no version.
    CsiLiveness,
    /// The real vSphere CSI driver, 3.3.1.
    OldCsiDriver,
    /// Its syncer.
    OldCsiSyncer,
    /// A registry that lists referrers.
    Olareg,
    /// A registry that wants a login and is strict about uploads.
    Distribution,
    /// A client of registries, for comparisons.
    Oras,
    /// Another one, which makes images.
    Crane,
    /// Clusters of containers, whose nodes load images.
    Kind,
    /// What signs and verifies, for comparisons.
    Cosign,
    /// What encrypts Secrets in a repository, as users have it.
    Sops,
    /// OpenShift's admission code, which says which of its constraints lets a pod in.
    Scccheck,
    /// What renders, checks and serves catalogs of operators.
    Opm,
    /// olm-operator of OLM v0, which installs what a ClusterServiceVersion lists.
    OlmOperator,
    /// catalog-operator of OLM v0, which resolves Subscriptions.
    OlmCatalog,
    /// catalogd of OLM v1, which serves catalogs.
    Catalogd,
    /// operator-controller of OLM v1, which installs what a ClusterExtension names.
    OperatorController,
    /// The validators of the operator framework.
    BundleCheck,
    /// The tests of operator-sdk's scorecard.
    Scorecard,
    /// csi-sanity, which calls a CSI driver as its specification allows.
    CsiSanity,
    /// What GitOps tools make of the status of an object: the library kstatus, and Lua as Argo CD runs it.
    Gitopscheck,
}

impl Part {
    /// All parts but those that are built on demand, cheap ones first.
    pub const ALL: [Self; 20] = [
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
        Self::CsiLiveness,
        Self::CsiAttacher,
        Self::CsiProvisioner,
        Self::CsiResizer,
        Self::CsiSnapshotter,
        Self::SnapshotController,
        Self::CsiDriver,
        Self::CsiSyncer,
        Self::OldCsiDriver,
        Self::OldCsiSyncer,
    ];

    /// What a cluster needs.
    pub const CLUSTER: [Self; 5] = [Self::Etcd, Self::Apiserver, Self::ControllerManager, Self::Scheduler, Self::Kwok];

    /// Those that are built when a test asks for them, each in a folder of its own.
    pub const ON_DEMAND: [Self; 17] = [
        Self::Olareg,
        Self::Distribution,
        Self::Oras,
        Self::Crane,
        Self::Kind,
        Self::Cosign,
        Self::Sops,
        Self::Opm,
        Self::OlmOperator,
        Self::OlmCatalog,
        Self::Catalogd,
        Self::OperatorController,
        Self::BundleCheck,
        Self::Scorecard,
        Self::Scccheck,
        Self::CsiSanity,
        Self::Gitopscheck,
    ];

    /// What the tests need besides: built before they run, because a build beside them takes the time that they wait for something.
    pub(crate) const OF_TESTS: [Self; 7] = [
        Self::Olareg,
        Self::Distribution,
        Self::Oras,
        Self::Crane,
        Self::Kind,
        Self::CsiSanity,
        Self::Gitopscheck,
    ];

    /// Whether it is one of them.
    pub(crate) fn is_on_demand(self) -> bool {
        Self::ON_DEMAND.contains(&self)
    }

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
            Self::Helm4 => "helm-4",
            Self::Vcsim => "vcsim",
            Self::Gcfgcheck => "gcfgcheck",
            Self::CsiDriver => "vsphere-csi",
            Self::CsiSyncer => "vsphere-syncer",
            Self::CsiAttacher => "csi-attacher",
            Self::CsiProvisioner => "csi-provisioner",
            Self::CsiResizer => "csi-resizer",
            Self::CsiSnapshotter => "csi-snapshotter",
            Self::SnapshotController => "snapshot-controller",
            Self::CsiLiveness => "livenessprobe",
            Self::OldCsiDriver => "vsphere-csi-3.3.1",
            Self::OldCsiSyncer => "vsphere-syncer-3.3.1",
            Self::Olareg => "olareg",
            Self::Distribution => "distribution",
            Self::Oras => "oras",
            Self::Crane => "crane",
            Self::Kind => "kind",
            Self::Cosign => "cosign",
            Self::Sops => "sops",
            Self::Scccheck => "scccheck",
            Self::Opm => "opm",
            Self::OlmOperator => "olm",
            Self::OlmCatalog => "catalog",
            Self::Catalogd => "catalogd",
            Self::OperatorController => "operator-controller",
            Self::BundleCheck => "bundlecheck",
            Self::Scorecard => "scorecard-test",
            Self::CsiSanity => "csi-sanity",
            Self::Gitopscheck => "gitopscheck",
        }
    }

    /// The folder of its Go module.
    pub(crate) fn module(self) -> &'static str {
        match self {
            // They have most packages in common, and Go compiles those once.
            Self::Etcd | Self::Apiserver | Self::ControllerManager | Self::Scheduler | Self::Kubectl | Self::Cpi => "controlplane",
            Self::CsiDriver
            | Self::CsiSyncer
            | Self::CsiAttacher
            | Self::CsiProvisioner
            | Self::CsiResizer
            | Self::CsiSnapshotter
            | Self::SnapshotController
            | Self::CsiLiveness => "csi",
            Self::OldCsiDriver | Self::OldCsiSyncer => "csi-3.3",
            Self::Scccheck => "openshift",
            Self::Opm | Self::OlmOperator | Self::OlmCatalog | Self::BundleCheck => "olm",
            Self::Catalogd | Self::OperatorController => "olm-v1",
            Self::Gitopscheck => "gitops",
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
            Self::Helm4 => "helm.sh/helm/v4/cmd/helm",
            Self::CsiDriver | Self::OldCsiDriver => "sigs.k8s.io/vsphere-csi-driver/v3/cmd/vsphere-csi",
            Self::CsiSyncer | Self::OldCsiSyncer => "sigs.k8s.io/vsphere-csi-driver/v3/cmd/syncer",
            Self::CsiAttacher => "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher",
            Self::CsiProvisioner => "github.com/kubernetes-csi/external-provisioner/v5/cmd/csi-provisioner",
            Self::CsiResizer => "github.com/kubernetes-csi/external-resizer/cmd/csi-resizer",
            Self::CsiSnapshotter => "github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter",
            Self::SnapshotController => "github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller",
            Self::Olareg => "github.com/olareg/olareg/cmd/olareg",
            Self::Distribution => "github.com/distribution/distribution/v3/cmd/registry",
            Self::Oras => "oras.land/oras/cmd/oras",
            Self::Crane => "github.com/google/go-containerregistry/cmd/crane",
            Self::Kind => "sigs.k8s.io/kind",
            Self::Cosign => "github.com/sigstore/cosign/v3/cmd/cosign",
            Self::Sops => "github.com/getsops/sops/v3/cmd/sops",
            Self::Opm => "github.com/operator-framework/operator-registry/cmd/opm",
            Self::OlmOperator => "github.com/operator-framework/operator-lifecycle-manager/cmd/olm",
            Self::OlmCatalog => "github.com/operator-framework/operator-lifecycle-manager/cmd/catalog",
            Self::Catalogd => "github.com/operator-framework/operator-controller/cmd/catalogd",
            Self::OperatorController => "github.com/operator-framework/operator-controller/cmd/operator-controller",
            Self::Scorecard => "github.com/operator-framework/operator-sdk/images/scorecard-test",
            Self::CsiSanity => "github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity",
            Self::Vcsim | Self::Gcfgcheck | Self::CsiLiveness | Self::BundleCheck | Self::Scccheck | Self::Gitopscheck => ".",
        }
    }

    /// Whether it runs in a root file system of its own, without the libraries of this machine.
    pub(crate) fn is_contained(self) -> bool {
        matches!(self.module(), "csi" | "csi-3.3")
    }

    /// Whether another minor of Kubernetes has a program of its own for it. kubectl talks to all.
    pub(crate) fn is_of_the_control_plane(self) -> bool {
        matches!(self, Self::Apiserver | Self::ControllerManager | Self::Scheduler)
    }

    /// The files of a Go module that come with the program.
    pub(crate) fn files(self) -> Option<Files> {
        match self {
            Self::Kwok => Some(KWOK_STAGES),
            Self::SnapshotController => Some(SNAPSHOT_DEFINITIONS),
            Self::OlmOperator => Some(OLM_DEFINITIONS),
            Self::OperatorController => Some(OLM_V1_DEFINITIONS),
            _ => None,
        }
    }

    /// Whether the field's `KUBEBUILDER_ASSETS` folder holds it.
    pub(crate) fn is_envtest_asset(self) -> bool {
        matches!(self, Self::Etcd | Self::Apiserver | Self::Kubectl)
    }

    /// Build tags: what needs C libraries is left out.
    pub(crate) fn tags(self) -> &'static str {
        match self.module() {
            "olm" | "olm-v1" => "containers_image_openpgp,exclude_graphdriver_btrfs,json1",
            _ => "",
        }
    }

    /// Linker flags; `version` is what a Kubernetes program will say it is.
    pub(crate) fn ldflags(self, version: &str) -> String {
        if !self.is_of_the_control_plane() && self != Self::Kubectl {
            return "-s -w".into();
        }
        let mut numbers = version.trim_start_matches('v').split('.');
        let (major, minor) = (numbers.next().unwrap_or("0"), numbers.next().unwrap_or("0"));
        let at = "k8s.io/component-base/version";
        format!("-s -w -X {at}.gitVersion={version} -X {at}.gitMajor={major} -X {at}.gitMinor={minor}")
    }
}
