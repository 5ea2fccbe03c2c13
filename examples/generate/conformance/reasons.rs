// SPDX-License-Identifier: Apache-2.0
//! Why cases of csi-sanity do not pass.

/// Who has to change for a case to pass.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Because {
    /// The driver does not offer what the specification leaves to drivers.
    Absent,
    /// The driver answers in another way than the specification says.
    Driver,
    /// csi-sanity asks what Kubernetes never asks.
    Suite,
    /// The test bed has no disks on nodes, or is more generous than machines are.
    TestBed,
}

impl Because {
    pub(crate) const ALL: [Self; 4] = [Self::Driver, Self::Suite, Self::TestBed, Self::Absent];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Absent => "Not offered by the driver",
            Self::Driver => "Other answers of the driver",
            Self::Suite => "Requests that Kubernetes does not make",
            Self::TestBed => "What the test bed does not have",
        }
    }

    pub(crate) fn introduction(self) -> &'static str {
        match self {
            Self::Absent => {
                "These features are optional in the specification. csi-sanity skips a case if the driver does not have the capability that the case tests, or if the option for the case is not set."
            }
            Self::Driver => {
                "In these cases the answer of upstream's driver differs from the specification, whichever tool installs the driver. No configuration changes these answers."
            }
            Self::Suite => {
                "In these cases csi-sanity sends requests that Kubernetes and its sidecars never send. The driver carries out the requests of Kubernetes."
            }
            Self::TestBed => "On a node that is a virtual machine these cases may have a different result.",
        }
    }
}

/// Cases and the reason that they share. A case is named by its whole name, or by a beginning of it that ends before ` / `.
pub(crate) struct Entry {
    pub(crate) cases: &'static [&'static str],
    pub(crate) because: Because,
    pub(crate) reason: &'static str,
}

impl Entry {
    pub(crate) fn covers(&self, case: &str) -> bool {
        self.cases.iter().any(|known| is_of(known, case))
    }
}

/// Whether a name in the table stands for this case.
pub(crate) fn is_of(known: &str, case: &str) -> bool {
    case.strip_prefix(known)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(" / "))
}

const fn entry(because: Because, cases: &'static [&'static str], reason: &'static str) -> Entry {
    Entry { cases, because, reason }
}

pub(crate) const REASONS: [Entry; 30] = [
    entry(
        Because::Driver,
        &[
            "Controller Service [Controller Server] / ControllerPublishVolume / should fail when no node id is provided",
            "Controller Service [Controller Server] / ControllerPublishVolume / should fail when no volume capability is provided",
            "Controller Service [Controller Server] / ControllerPublishVolume / should fail when no volume id is provided",
            "Controller Service [Controller Server] / ControllerUnpublishVolume / should fail when no volume id is provided",
            "CreateSnapshot [Controller Server] / should fail when no name is provided",
            "CreateSnapshot [Controller Server] / should fail when no source volume id is provided",
        ],
        "The driver refuses the request with the code `INTERNAL`. The expected code `INVALID_ARGUMENT` is only in the message.",
    ),
    entry(
        Because::Driver,
        &["Controller Service [Controller Server] / CreateVolume / should fail when no name is provided"],
        "The driver refuses the request with the code `INTERNAL`, because it searches for an earlier operation with the requested name before it checks whether the request has a name.",
    ),
    entry(
        Because::Driver,
        &["Controller Service [Controller Server] / CreateVolume / should fail when no volume capabilities are provided"],
        "The driver creates a block volume instead of refusing the request.",
    ),
    entry(
        Because::Driver,
        &[
            "Controller Service [Controller Server] / ControllerPublishVolume / should fail when the node does not exist",
            "Controller Service [Controller Server] / ControllerPublishVolume / should fail when the volume does not exist",
        ],
        "The driver refuses the request with the code `INTERNAL` instead of `NOT_FOUND`. The driver looks for the node first, and the node in the request does not exist.",
    ),
    entry(
        Because::Driver,
        &[
            "Controller Service [Controller Server] / CreateVolume / should fail when the volume source snapshot is not found",
            "DeleteSnapshot [Controller Server] / should succeed when an invalid snapshot id is used",
            "ListSnapshots [Controller Server] / should return empty when the specified snapshot id does not exist",
        ],
        "If an identifier does not have the form `VOLUME+SNAPSHOT`, the driver answers `INVALID_ARGUMENT` instead of reporting an unknown snapshot. Kubernetes sends only identifiers that the driver created.",
    ),
    entry(
        Because::Driver,
        &["ListSnapshots [Controller Server] / should return empty when the specified source volume id does not exist"],
        "The driver answers `INTERNAL` instead of an empty list.",
    ),
    entry(
        Because::Driver,
        &["Controller Service [Controller Server] / ListVolumes / should fail when an invalid starting_token is passed"],
        "The driver refuses the request with the code `INVALID_ARGUMENT` instead of `ABORTED`.",
    ),
    entry(
        Because::Driver,
        &[
            "Controller Service [Controller Server] / ListVolumes / check the presence of new volumes and absence of deleted ones in the volume list",
        ],
        "The driver lists only the volumes that are attached to a machine. csi-attacher compares this list with its own attachments, and no other component reads the list.",
    ),
    entry(
        Because::Driver,
        &[
            "Controller Service [Controller Server] / ValidateVolumeCapabilities / should fail when no volume capabilities are provided",
            "Controller Service [Controller Server] / ValidateVolumeCapabilities / should fail when no volume id is provided",
            "Controller Service [Controller Server] / ValidateVolumeCapabilities / should fail when the requested volume does not exist",
        ],
        "The driver checks only the capabilities in the request. The driver checks neither the volume nor whether the request has a capability. No part of Kubernetes makes this call.",
    ),
    entry(
        Because::Driver,
        &[
            "Controller Service [Controller Server] / CreateVolume / should fail when requesting to create a volume with already existing name and different capacity",
        ],
        "The driver does not compare the requested capacity with the capacity of the existing volume of the same name.",
    ),
    entry(
        Because::Driver,
        &[
            "CreateSnapshot [Controller Server] / should fail when requesting to create a snapshot with already existing name and different source volume ID",
        ],
        "The driver identifies a snapshot by its name and its volume, so snapshots of two volumes may have the same name.",
    ),
    entry(
        Because::Driver,
        &[
            "Node Service / NodePublishVolume / should fail when no target path is provided",
            "Node Service / NodePublishVolume / should fail when no volume capability is provided",
        ],
        "The driver refuses the request with the code `FAILED_PRECONDITION`, because it first checks the staging path, which the request does not have either.",
    ),
    entry(
        Because::Driver,
        &["Node Service / NodeUnpublishVolume / should fail when no target path is provided"],
        "The driver refuses the request with the code `FAILED_PRECONDITION` instead of `INVALID_ARGUMENT`.",
    ),
    entry(
        Because::Driver,
        &["Node Service / NodeExpandVolume / should fail when volume is not found"],
        "The driver refuses the request with the code `INVALID_ARGUMENT`, because it requires a capacity. According to the specification, a request without a capacity makes the volume as large as possible.",
    ),
    entry(
        Because::Driver,
        &["Node Service / NodeExpandVolume / should work if node-expand is called after node-publish"],
        "To expand a volume the driver requires the volume capability, which is optional in the specification. csi-resizer always sends this capability.",
    ),
    entry(
        Because::Driver,
        &["Node Service / NodeGetVolumeStats / should fail when volume is not found"],
        "The driver refuses the request with the code `INTERNAL` instead of `NOT_FOUND`.",
    ),
    entry(
        Because::Suite,
        &[
            "Controller Service [Controller Server] / volume lifecycle",
            "Node Service / should be idempotent",
            "Node Service / should work",
        ],
        "csi-sanity sends the zone of the node only in the field `requisite`. The driver reads the field `preferred`; csi-provisioner always sends both fields. \
         The test `real_csi_volume_lives_its_whole_life_with_the_roles_of_the_chart_and_an_account_of_users_create` runs the same life cycle, but with a PersistentVolumeClaim in Kubernetes.",
    ),
    entry(
        Because::Suite,
        &[
            "Controller Service [Controller Server] / CreateVolume / should not fail when requesting to create a volume with already existing name and same capacity",
        ],
        "The driver records an operation in a `CnsVolumeOperationRequest` with the name of the volume. The volume names from csi-sanity have capital letters, and the API server refuses object names with capital letters. \
         The driver therefore handles the second request as a new request. The names from csi-provisioner, `pvc-…`, have no capital letters.",
    ),
    entry(
        Because::Suite,
        &[
            "Controller Service [Controller Server] / ListVolumes / pagination should detect volumes added between pages and accept tokens when the last volume from a page is deleted",
        ],
        "The case is switched off in csi-sanity.",
    ),
    entry(
        Because::TestBed,
        &[
            "Node Service / NodeGetVolumeStats / should fail when volume does not exist on the specified path",
            "Node Service / NodeUnpublishVolume / should remove target path",
        ],
        "The volume is created and attached. Then the node plugin looks for the disk of the volume in the folder `/dev/disk/by-id`, which the test bed does not have.",
    ),
    entry(
        Because::TestBed,
        &[
            "Controller Service [Controller Server] / ControllerPublishVolume / should fail when publishing more volumes than the node max attach limit",
        ],
        "The option for this case (`--csi.testnodevolumeattachlimit`) is not set, because simulated machines accept any number of disks.",
    ),
    entry(
        Because::Absent,
        &[
            "Controller Service [Controller Server] / CreateVolume / should create volume from an existing source volume",
            "Controller Service [Controller Server] / CreateVolume / should fail when the volume source volume is not found",
        ],
        "The driver does not clone a volume from a volume (`CLONE_VOLUME`). The driver creates volumes from snapshots.",
    ),
    entry(
        Because::Absent,
        &[
            "Controller Service [Controller Server] / CreateVolume / should create volume with a volume attribute class",
            "Controller Service [Controller Server] / CreateVolume / should not create volume with an invalid volume attribute class",
            "ModifyVolume [Controller Server]",
        ],
        "The driver does not support VolumeAttributesClasses (`MODIFY_VOLUME`).",
    ),
    entry(
        Because::Absent,
        &[
            "Controller Service [Controller Server] / ControllerPublishVolume / should fail when the volume is already published but is incompatible",
        ],
        "The driver does not support read-only attachments (`PUBLISH_READONLY`).",
    ),
    entry(
        Because::Absent,
        &["Controller Service [Controller Server] / GetCapacity"],
        "The driver does not support `GET_CAPACITY`. The driver itself selects the datastore of a volume.",
    ),
    entry(
        Because::Absent,
        &["GetSnapshot [Controller Server]"],
        "The driver lists snapshots, but it has no call for a single snapshot (`GET_SNAPSHOT`).",
    ),
    entry(
        Because::Absent,
        &["CreateSnapshot [Controller Server] / should succeed when creating a snapshot with accessibility requirements"],
        "A snapshot is always in the same place as its volume (`SNAPSHOT_ACCESSIBILITY_CONSTRAINTS`).",
    ),
    entry(
        Because::Absent,
        &[
            "GroupController Service [GroupController Server]",
            "GroupController Service [GroupController VolumeGroupSnapshots]",
        ],
        "The driver does not support snapshots of volume groups (`GROUP_CONTROLLER_SERVICE`).",
    ),
    entry(
        Because::Absent,
        &[
            "ControllerGetVolumeHealth [Controller Server]",
            "ControllerListVolumeHealth [Controller Server]",
            "Node Service / NodeGetStorageHealth",
            "Node Service / NodeGetVolumeHealth",
        ],
        "The driver has no calls for the health of volumes, because these calls are newer than the driver.",
    ),
    entry(
        Because::Absent,
        &["Node Service / NodePublishVolume / with single node multi writer capability"],
        "The driver does not support `SINGLE_NODE_MULTI_WRITER`.",
    ),
];
