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
                "The specification leaves these to drivers. csi-sanity skips the cases of a capability that is absent, and those of an option that it was not given."
            }
            Self::Driver => {
                "Upstream's driver answers in another way than the specification says, with any installer. No configuration changes that."
            }
            Self::Suite => "Kubernetes and its sidecars send other requests, with which the driver does what is asked for.",
            Self::TestBed => "On a node that is a virtual machine these cases may end in another way.",
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
        "The request is refused, with the code `INTERNAL` around `INVALID_ARGUMENT`.",
    ),
    entry(
        Because::Driver,
        &["Controller Service [Controller Server] / CreateVolume / should fail when no name is provided"],
        "The request is refused, with the code `INTERNAL`: the driver looks for an earlier operation of that name before it checks the name.",
    ),
    entry(
        Because::Driver,
        &["Controller Service [Controller Server] / CreateVolume / should fail when no volume capabilities are provided"],
        "The driver makes a block volume.",
    ),
    entry(
        Because::Driver,
        &[
            "Controller Service [Controller Server] / ControllerPublishVolume / should fail when the node does not exist",
            "Controller Service [Controller Server] / ControllerPublishVolume / should fail when the volume does not exist",
        ],
        "The request is refused, with the code `INTERNAL` in place of `NOT_FOUND`. The driver looks for the node first, and neither case names one that exists.",
    ),
    entry(
        Because::Driver,
        &[
            "Controller Service [Controller Server] / CreateVolume / should fail when the volume source snapshot is not found",
            "DeleteSnapshot [Controller Server] / should succeed when an invalid snapshot id is used",
            "ListSnapshots [Controller Server] / should return empty when the specified snapshot id does not exist",
        ],
        "An identifier without the form `VOLUME+SNAPSHOT` is `INVALID_ARGUMENT` to the driver, and not a snapshot that it does not know. Kubernetes sends identifiers that the driver gave.",
    ),
    entry(
        Because::Driver,
        &["ListSnapshots [Controller Server] / should return empty when the specified source volume id does not exist"],
        "The driver answers `INTERNAL` in place of an empty list.",
    ),
    entry(
        Because::Driver,
        &["Controller Service [Controller Server] / ListVolumes / should fail when an invalid starting_token is passed"],
        "The request is refused, with the code `INVALID_ARGUMENT` in place of `ABORTED`.",
    ),
    entry(
        Because::Driver,
        &[
            "Controller Service [Controller Server] / ListVolumes / check the presence of new volumes and absence of deleted ones in the volume list",
        ],
        "The driver lists the volumes that are attached to a machine. csi-attacher compares that list with its own attachments, and nothing else reads it.",
    ),
    entry(
        Because::Driver,
        &[
            "Controller Service [Controller Server] / ValidateVolumeCapabilities / should fail when no volume capabilities are provided",
            "Controller Service [Controller Server] / ValidateVolumeCapabilities / should fail when no volume id is provided",
            "Controller Service [Controller Server] / ValidateVolumeCapabilities / should fail when the requested volume does not exist",
        ],
        "The driver checks the capabilities that are named, and neither the volume nor whether any is named. No part of Kubernetes makes this call.",
    ),
    entry(
        Because::Driver,
        &[
            "Controller Service [Controller Server] / CreateVolume / should fail when requesting to create a volume with already existing name and different capacity",
        ],
        "The driver does not compare the capacity with that of the volume that it made under the name.",
    ),
    entry(
        Because::Driver,
        &[
            "CreateSnapshot [Controller Server] / should fail when requesting to create a snapshot with already existing name and different source volume ID",
        ],
        "The driver knows a snapshot by its name and its volume, so that the name of one of another volume is free.",
    ),
    entry(
        Because::Driver,
        &[
            "Node Service / NodePublishVolume / should fail when no target path is provided",
            "Node Service / NodePublishVolume / should fail when no volume capability is provided",
        ],
        "The request is refused, with the code `FAILED_PRECONDITION`: the driver looks for the staging path first, which the request does not name either.",
    ),
    entry(
        Because::Driver,
        &["Node Service / NodeUnpublishVolume / should fail when no target path is provided"],
        "The request is refused, with the code `FAILED_PRECONDITION` in place of `INVALID_ARGUMENT`.",
    ),
    entry(
        Because::Driver,
        &["Node Service / NodeExpandVolume / should fail when volume is not found"],
        "The request is refused, with the code `INVALID_ARGUMENT`: the driver wants a capacity, which the specification leaves out where the volume is to be as large as possible.",
    ),
    entry(
        Because::Driver,
        &["Node Service / NodeExpandVolume / should work if node-expand is called after node-publish"],
        "To make a volume larger the driver wants its capability, which is optional. csi-resizer always sends it.",
    ),
    entry(
        Because::Driver,
        &["Node Service / NodeGetVolumeStats / should fail when volume is not found"],
        "The request is refused, with the code `INTERNAL` in place of `NOT_FOUND`.",
    ),
    entry(
        Because::Suite,
        &[
            "Controller Service [Controller Server] / volume lifecycle",
            "Node Service / should be idempotent",
            "Node Service / should work",
        ],
        "csi-sanity asks for the zone of the node in `requisite` alone. The driver goes by `preferred`, which csi-provisioner always sends as well. \
         The same life, with a claim of Kubernetes, is that of `real_csi_volume_lives_its_whole_life_with_the_roles_of_the_chart_and_an_account_of_users_create`.",
    ),
    entry(
        Because::Suite,
        &[
            "Controller Service [Controller Server] / CreateVolume / should not fail when requesting to create a volume with already existing name and same capacity",
        ],
        "The driver records an operation in a `CnsVolumeOperationRequest` of the volume's name. csi-sanity's names have capital letters, with which the API server takes no object, so that \
         the second request is a new one. The names of csi-provisioner, `pvc-…`, have none.",
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
        "The volume is made and attached; then the plugin looks for its disk in `/dev/disk/by-id`.",
    ),
    entry(
        Because::TestBed,
        &[
            "Controller Service [Controller Server] / ControllerPublishVolume / should fail when publishing more volumes than the node max attach limit",
        ],
        "csi-sanity is not asked for it (`--csi.testnodevolumeattachlimit`): simulated machines take any number of disks.",
    ),
    entry(
        Because::Absent,
        &[
            "Controller Service [Controller Server] / CreateVolume / should create volume from an existing source volume",
            "Controller Service [Controller Server] / CreateVolume / should fail when the volume source volume is not found",
        ],
        "Volumes are not cloned from volumes (`CLONE_VOLUME`); from snapshots they are.",
    ),
    entry(
        Because::Absent,
        &[
            "Controller Service [Controller Server] / CreateVolume / should create volume with a volume attribute class",
            "Controller Service [Controller Server] / CreateVolume / should not create volume with an invalid volume attribute class",
            "ModifyVolume [Controller Server]",
        ],
        "There are no VolumeAttributesClasses (`MODIFY_VOLUME`).",
    ),
    entry(
        Because::Absent,
        &[
            "Controller Service [Controller Server] / ControllerPublishVolume / should fail when the volume is already published but is incompatible",
        ],
        "There is no attachment that is only read (`PUBLISH_READONLY`).",
    ),
    entry(
        Because::Absent,
        &["Controller Service [Controller Server] / GetCapacity"],
        "There is no `GET_CAPACITY`; placement goes by datastores that the driver chooses.",
    ),
    entry(
        Because::Absent,
        &["GetSnapshot [Controller Server]"],
        "Snapshots are listed, not got (`GET_SNAPSHOT`).",
    ),
    entry(
        Because::Absent,
        &["CreateSnapshot [Controller Server] / should succeed when creating a snapshot with accessibility requirements"],
        "Snapshots are where their volumes are (`SNAPSHOT_ACCESSIBILITY_CONSTRAINTS`).",
    ),
    entry(
        Because::Absent,
        &[
            "GroupController Service [GroupController Server]",
            "GroupController Service [GroupController VolumeGroupSnapshots]",
        ],
        "There are no snapshots of groups (`GROUP_CONTROLLER_SERVICE`).",
    ),
    entry(
        Because::Absent,
        &[
            "ControllerGetVolumeHealth [Controller Server]",
            "ControllerListVolumeHealth [Controller Server]",
            "Node Service / NodeGetStorageHealth",
            "Node Service / NodeGetVolumeHealth",
        ],
        "There are no calls about the health of volumes; they are newer than the driver.",
    ),
    entry(
        Because::Absent,
        &["Node Service / NodePublishVolume / with single node multi writer capability"],
        "There is no `SINGLE_NODE_MULTI_WRITER`.",
    ),
];
