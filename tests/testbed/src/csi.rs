// SPDX-License-Identifier: Apache-2.0
//! The real CSI driver: which program stands for which image of its controller's pod.

pub(crate) mod source;

use anyhow::Result;

use crate::binaries::Binaries;
use crate::cluster::Cluster;
use crate::process::{Launch, Process};
use crate::upstream_programs::Part;

/// The beginning of the references of the syncer, which is in the controller's pod alone. With it in
/// [`ClusterOptions::images`](crate::ClusterOptions::images) that pod is run by the node agent, and the pods on the nodes are played.
pub const CSI_IMAGES: &str = "registry.k8s.io/csi-vsphere/syncer";

/// A version of the driver that the test bed can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsiVersion {
    /// 3.8.0, for which the programs of 3.7.0 stand: the Go module proxy has nothing newer.
    Newest,
    /// 3.7.3, for which they stand, too.
    Patched,
    /// 3.7.0
    Newer,
    /// 3.3.1
    Older,
}

/// An image and the program that is run for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stand {
    pub(crate) image: &'static str,
    pub(crate) part: Part,
    /// Arguments before those of the container.
    pub(crate) args: &'static [&'static str],
}

const fn stand(image: &'static str, part: Part) -> Stand {
    Stand { image, part, args: &[] }
}

/// Before 5.0 topology was off unless it was asked for.
const PROVISIONER: Stand = Stand {
    args: &["--feature-gates=Topology=false"],
    ..stand("registry.k8s.io/sig-storage/csi-provisioner:v4.0.1", Part::CsiProvisioner)
};

const PATCHED: [Stand; 7] = {
    let mut stands = NEWER;
    stands[0].image = "registry.k8s.io/csi-vsphere/driver:v3.7.3";
    stands[1].image = "registry.k8s.io/csi-vsphere/syncer:v3.7.3";
    stands
};

const NEWEST: [Stand; 7] = {
    let mut stands = NEWER;
    stands[0].image = "registry.k8s.io/csi-vsphere/driver:v3.8.0";
    stands[1].image = "registry.k8s.io/csi-vsphere/syncer:v3.8.0";
    stands[2].image = "registry.k8s.io/sig-storage/csi-attacher:v4.10.0";
    stands[4].image = "registry.k8s.io/sig-storage/csi-resizer:v2.0.0";
    stands[5].image = "registry.k8s.io/sig-storage/csi-snapshotter:v8.4.0";
    stands[6].image = "registry.k8s.io/sig-storage/livenessprobe:v2.17.0";
    stands
};

/// Of the sidecars other versions run than are shipped, where the proxy has not the same: the attacher is 4.12.0, the provisioner 5.3.0, the
/// resizer 1.12.0, the snapshotter 8.2.0.
const NEWER: [Stand; 7] = [
    stand("registry.k8s.io/csi-vsphere/driver:v3.7.0", Part::CsiDriver),
    stand("registry.k8s.io/csi-vsphere/syncer:v3.7.0", Part::CsiSyncer),
    stand("registry.k8s.io/sig-storage/csi-attacher:v4.9.0", Part::CsiAttacher),
    PROVISIONER,
    stand("registry.k8s.io/sig-storage/csi-resizer:v1.12.0", Part::CsiResizer),
    stand("registry.k8s.io/sig-storage/csi-snapshotter:v8.2.0", Part::CsiSnapshotter),
    stand("registry.k8s.io/sig-storage/livenessprobe:v2.15.0", Part::CsiLiveness),
];

/// The driver's own images are where they were published again.
const OLDER: [Stand; 7] = [
    stand("registry.k8s.io/csi-vsphere/driver:v3.3.1", Part::OldCsiDriver),
    stand("registry.k8s.io/csi-vsphere/syncer:v3.3.1", Part::OldCsiSyncer),
    stand("registry.k8s.io/sig-storage/csi-attacher:v4.5.1", Part::CsiAttacher),
    PROVISIONER,
    stand("registry.k8s.io/sig-storage/csi-resizer:v1.10.1", Part::CsiResizer),
    stand("registry.k8s.io/sig-storage/csi-snapshotter:v7.0.2", Part::CsiSnapshotter),
    stand("registry.k8s.io/sig-storage/livenessprobe:v2.12.0", Part::CsiLiveness),
];

impl CsiVersion {
    pub(crate) fn stands(self) -> &'static [Stand] {
        match self {
            Self::Newest => &NEWEST,
            Self::Patched => &PATCHED,
            Self::Newer => &NEWER,
            Self::Older => &OLDER,
        }
    }

    /// What of its images [`ClusterOptions::images`](crate::ClusterOptions::images) claims, where the controllers of other versions are played.
    pub(crate) fn claim(self) -> &'static str {
        self.stands()[1].image
    }

    /// The programs of this version.
    pub fn parts(self) -> Vec<Part> {
        self.stands().iter().map(|stand| stand.part).collect()
    }
}

/// What a cluster with snapshots has from its administrator: the definitions and the controller that all drivers share. The controller ends
/// with what this gives.
pub async fn start_snapshots(cluster: &Cluster) -> Result<Process> {
    let binaries = tokio::task::spawn_blocking(|| Binaries::ensure(&[Part::SnapshotController])).await??;
    for file in binaries.snapshot_definitions()? {
        cluster.apply_file(file).await?;
    }
    let log = cluster.dir().join("snapshot-controller.log");
    Launch::new("snapshot-controller", binaries.path(Part::SnapshotController), log)
        .flag("kubeconfig", cluster.kubeconfig())
        .flag("http-endpoint", "")
        .spawn()
}
