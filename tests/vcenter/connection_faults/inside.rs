// SPDX-License-Identifier: Apache-2.0
//! The faults inside a vCenter, seen after the login.

use super::faults::{OVERLOADED, case, rule, status};
use super::world::{Case, Change, Other, Setting, node};
use std::sync::Arc;
use vdo_api::api::ConditionType::{self, Authorized, DatacentersFound, Distinct, NodesFound, StorageFound, TopologyConsistent};
use vdo_api::api::Reason::{self, *};
use vdo_api::facts::Node;
use vdo_testbed::soap::Act;
use vdo_vsphere::vsphere::{WantedDatastore, WantedPolicy};

pub fn all() -> Vec<Case> {
    let parts = [inventory(), storage(), privileges(), machines(), topology(), tags(), several()];
    parts.into_iter().flatten().collect()
}

fn inventory() -> Vec<Case> {
    vec![
        rule(
            "a user who may not read",
            DatacentersFound,
            InventoryForbidden,
            "Read-only",
            "CreateContainerView",
            Act::Fault(
                "NoPermission",
                "",
                r#"<object type="Folder">group-d1</object><privilegeId>System.View</privilegeId>"#,
            ),
        ),
        case("a datacenter that is misspelt", DatacentersFound, DatacenterNotFound, "DC0", |s| {
            s.spec.datacenters = vec!["DCO".into()]
        }),
        case("a datacenter in another folder", DatacentersFound, DatacenterNotFound, "DC0", |s| {
            s.spec.datacenters = vec!["/Europe/DC0".into()]
        }),
        case(
            "a datacenter name that fits two",
            DatacentersFound,
            DatacenterAmbiguous,
            "write the inventory path",
            |s| {
                s.changes = vec![Change::Datacenters(2), Change::Set("Datacenter", "DC1", "new-name", "DC0")];
                s.spec.datacenters = vec!["DC0".into()];
                s.nodes = vec![node("DC0_C0_RP0_VM0")];
            },
        ),
        case("a node that is not a machine", NodesFound, NodeNotFound, "elsewhere", |s| {
            s.nodes.push(node("elsewhere"))
        }),
    ]
}

/// The first node.
pub fn first(s: &mut Setting) -> &mut Node {
    Arc::make_mut(&mut s.nodes[0])
}

/// A fault that is a change in the vCenter.
fn change(name: &'static str, stage: ConditionType, reason: Reason, says: &'static str, changes: &'static [Change]) -> Case {
    case(name, stage, reason, says, move |s| s.changes = changes.to_vec())
}

/// Who names what is missing.
const CLASS: &str = "StorageClass fast";

/// Someone names this datastore.
pub fn wants(s: &mut Setting, url: &str, vsan: bool) {
    s.requirements.datastores.push(WantedDatastore {
        url: url.into(),
        named_in: CLASS.into(),
        vsan,
    });
}

fn wants_policy(s: &mut Setting, name: &str) {
    s.requirements.policies.push(WantedPolicy {
        name: name.into(),
        named_in: CLASS.into(),
    });
}

fn storage() -> Vec<Case> {
    let datastore = |name, reason, says, url: &'static str, vsan, changes: &'static [Change]| {
        case(name, StorageFound, reason, says, move |s| {
            s.changes = changes.to_vec();
            wants(s, url, vsan);
        })
    };
    let policy = |name, says, wanted: &'static str| case(name, StorageFound, StoragePolicyNotFound, says, move |s| wants_policy(s, wanted));
    const URL: &str = "ds:///vmfs/volumes/here/";
    const HERE: Change = Change::Set("Datastore", "LocalDS_0", "url", URL);
    vec![
        datastore(
            "a datastore that does not exist",
            DatastoreNotFound,
            CLASS,
            "ds:///vmfs/volumes/nowhere/",
            false,
            &[],
        ),
        datastore(
            "a datastore that is misspelt",
            DatastoreNotFound,
            "did you mean ds:///vmfs/volumes/here/?",
            "ds:///vmfs/volumes/hera/",
            false,
            &[HERE],
        ),
        datastore(
            "a datastore that no host reaches",
            DatastoreUnusable,
            "LocalDS_0",
            URL,
            false,
            &[HERE, Change::Set("Datastore", "LocalDS_0", "accessible", "false")],
        ),
        datastore(
            "a datastore in maintenance",
            DatastoreUnusable,
            "maintenance",
            URL,
            false,
            &[HERE, Change::Set("Datastore", "LocalDS_0", "maintenance", "inMaintenance")],
        ),
        datastore(
            "a datastore for files that is not a vSAN",
            DatastoreNotVsan,
            "vSAN",
            URL,
            true,
            &[HERE, Change::Set("Datastore", "LocalDS_0", "type", "VMFS")],
        ),
        policy("a storage policy that does not exist", CLASS, "gold"),
        policy(
            "a storage policy that is misspelt",
            "did you mean vSAN Default Storage Policy?",
            "VSAN default storage polizy",
        ),
        case(
            "policies that may not be read",
            StorageFound,
            InventoryForbidden,
            "PbmQueryProfile",
            |s| {
                wants_policy(s, "gold");
                let denied = Act::Fault("NoPermission", "", r#"<privilegeId>StorageProfile.View</privilegeId>"#);
                s.rules.push(vdo_testbed::soap::Rule::on("PbmQueryProfile", denied));
            },
        ),
        change(
            "no datastore that all hosts reach",
            StorageFound,
            NoSharedDatastore,
            "DC0_C0_H",
            &[
                Change::Hosts(2),
                Change::Set("VirtualMachine", "vm-1", "host", "DC0_C0_H0"),
                Change::Set("VirtualMachine", "vm-2", "host", "DC0_C0_H1"),
                Change::Set("Datastore", "LocalDS_0", "unmount", "DC0_C0_H1"),
            ],
        ),
    ]
}

fn privileges() -> Vec<Case> {
    let lacks = |name, says, changes| change(name, Authorized, PrivilegesMissing, says, changes);
    vec![
        lacks("no search for volumes", "Cns.Searchable", &[Change::Deny("Cns.Searchable", None)]),
        lacks(
            "no look at storage policies",
            "StorageProfile.View",
            &[Change::Deny("StorageProfile.View", None)],
        ),
        lacks(
            "no files on datastores",
            "Datastore.FileManagement",
            &[Change::Deny("Datastore.FileManagement", None)],
        ),
        lacks(
            "no disks for machines",
            "VirtualMachine.Config.AddRemoveDevice",
            &[Change::Deny("VirtualMachine.Config.AddRemoveDevice", None)],
        ),
        lacks(
            "no disks for one machine",
            "vm-2",
            &[Change::Deny(
                "VirtualMachine.Config.AddExistingDisk",
                Some(("VirtualMachine", "vm-2")),
            )],
        ),
        lacks(
            "no reading of one host",
            "DC0_C0_H0",
            &[Change::Deny("System.Read", Some(("HostSystem", "DC0_C0_H0")))],
        ),
    ]
}

fn machines() -> Vec<Case> {
    let machine = |name, reason, says, changes| change(name, NodesFound, reason, says, changes);
    const VM: &str = "VirtualMachine";
    vec![
        case("two machines of one name and address", NodesFound, NodeAmbiguous, "vm-1", |s| {
            s.changes = vec![
                Change::Set(VM, "vm-2", "host-name", "vm-1"),
                Change::Set(VM, "vm-2", "address", "10.0.0.1"),
            ];
            s.nodes.truncate(1);
        }),
        case("a clone with the same UUID", NodesFound, NodeAmbiguous, "vm-1", |s| {
            let uuid = "422e4956-ad22-1139-6d72-59cc8f26bc90";
            s.changes = vec![Change::Set(VM, "vm-1", "uuid", uuid), Change::Set(VM, "vm-2", "uuid", uuid)];
            s.nodes.truncate(1);
            first(s).system_uuid = uuid.into();
        }),
        machine(
            "a machine that is off",
            MachinePoweredOff,
            "vm-1",
            &[Change::Set(VM, "vm-1", "power", "poweredOff")],
        ),
        machine(
            "hardware version 13",
            HardwareVersionTooOld,
            "vmx-13",
            &[Change::Set(VM, "vm-1", "hardware", "vmx-13")],
        ),
        machine(
            "disk.EnableUUID off",
            DiskUuidDisabled,
            "disk.EnableUUID",
            &[Change::Set(VM, "vm-1", "disk-uuid", "false")],
        ),
        machine(
            "disk.EnableUUID never set",
            DiskUuidDisabled,
            "disk.EnableUUID",
            &[Change::Set(VM, "vm-1", "disk-uuid", "")],
        ),
        machine(
            "Tools that do not run",
            ToolsNotRunning,
            "vm-1",
            &[Change::Set(VM, "vm-1", "tools", "guestToolsNotRunning")],
        ),
        machine(
            "no address inside",
            GuestAddressMissing,
            "vm-1",
            &[Change::Set(VM, "vm-1", "address", "")],
        ),
        machine(
            "only an address that no one can use",
            GuestAddressMissing,
            "vm-1",
            &[Change::Set(VM, "vm-1", "address", "169.254.1.1")],
        ),
        machine(
            "an IPv6 address alone",
            GuestAddressMissing,
            "IPv4",
            &[Change::Set(VM, "vm-1", "address", "2001:db8::1")],
        ),
        machine(
            "a snapshot",
            SnapshotsPresent,
            "snapshot",
            &[Change::Set(VM, "vm-1", "snapshot", "true")],
        ),
        machine(
            "a controller of another kind",
            ParavirtualScsiMissing,
            "vm-1",
            &[Change::Set(VM, "vm-1", "scsi", "lsilogic")],
        ),
        machine(
            "ESXi 6.5",
            HostVersionTooOld,
            "6.5.0",
            &[Change::Set("HostSystem", "DC0_C0_H0", "version", "6.5.0")],
        ),
        machine(
            "a host that is away",
            HostDisconnected,
            "DC0_C0_H0",
            &[Change::Set("HostSystem", "DC0_C0_H0", "state", "notResponding")],
        ),
        case("a host name in other letters", NodesFound, GuestNameDiffers, "VM-1", |s| {
            s.changes = vec![Change::Set(VM, "vm-1", "host-name", "VM-1")];
            first(s).addresses = vec!["10.0.0.1".into()];
        }),
        case("no host name inside", NodesFound, GuestNameMissing, "vm-1", |s| {
            s.changes = vec![Change::Set(VM, "vm-1", "host-name", "")];
            first(s).addresses = vec!["10.0.0.1".into()];
        }),
        case(
            "a provider ID of another machine",
            NodesFound,
            ProviderIdDiffers,
            "vsphere://",
            |s| {
                first(s).provider_id = "vsphere://11111111-2222-3333-4444-555555555555".into();
            },
        ),
    ]
}

fn topology() -> Vec<Case> {
    let zones = |name, reason, says, changes: &'static [Change], label: Option<&'static str>| {
        case(name, TopologyConsistent, reason, says, move |s| {
            s.changes = changes.to_vec();
            s.requirements.features.insert(vdo_vsphere::vsphere::Feature::Topology);
            s.requirements.categories = vec!["k8s-zone".into()];
            if let Some(zone) = label {
                first(s).place.labels = [("topology.csi.vmware.com/k8s-zone".to_owned(), zone.to_owned())].into();
            }
        })
    };
    const HOST: Change = Change::Tag("k8s-zone", "a", "HostSystem", "DC0_C0_H0");
    vec![
        zones(
            "a tag category that does not exist",
            TopologyCategoryNotFound,
            "k8s-zone",
            &[Change::Tag("other", "a", "HostSystem", "DC0_C0_H0")],
            None,
        ),
        zones(
            "a host without a tag",
            TopologyTagMissing,
            "k8s-zone",
            &[Change::Tag("k8s-zone", "a", "Datastore", "LocalDS_0")],
            None,
        ),
        zones(
            "two tags of one category",
            TopologyTagAmbiguous,
            "k8s-zone",
            &[HOST, Change::Tag("k8s-zone", "b", "HostSystem", "DC0_C0_H0")],
            None,
        ),
        zones(
            "a label that the tags contradict",
            TopologyLabelDiffers,
            "k8s-zone",
            &[HOST],
            Some("elsewhere"),
        ),
    ]
}

/// The service for tags has a login of its own: what goes wrong there is reported there, and nowhere else.
fn tags() -> Vec<Case> {
    let service = |name, reason, says, modern, call: &'static str, act: Act| {
        case(name, TopologyConsistent, reason, says, move |s| {
            s.proxy.modern = modern;
            s.rules.push(vdo_testbed::soap::Rule::on(call, act.clone()));
            s.requirements.features.insert(vdo_vsphere::vsphere::Feature::Topology);
            s.requirements.categories = vec!["k8s-zone".into()];
        })
    };
    const OLD: &str = "POST /rest/com/vmware/cis/session";
    const NEW: &str = "POST /api/session";
    vec![
        service("tags: the login is refused", TagLoginRefused, "vAPI", false, OLD, status(401, "{}")),
        service(
            "tags: the newer login is refused",
            TagLoginRefused,
            "vAPI",
            true,
            NEW,
            status(401, "{}"),
        ),
        service("tags: the service is down", BadAnswer, "503", false, OLD, status(503, OVERLOADED)),
        service(
            "tags: the service speaks in web pages",
            BadAnswer,
            "cannot be read",
            false,
            OLD,
            Act::Body(OVERLOADED.into()),
        ),
        service(
            "tags: the user may not read them",
            InventoryForbidden,
            "tag categories",
            false,
            "GET /rest/com/vmware/cis/tagging/category",
            status(403, "{}"),
        ),
    ]
}

/// Two connections of the same drivers.
fn several() -> Vec<Case> {
    let other = |name, reason, says, other: Other, datacenters: &'static [&'static str]| {
        case(name, Distinct, reason, says, move |s| {
            s.other = Some(other.clone());
            if !datacenters.is_empty() {
                s.changes = vec![Change::Datacenters(2)];
                s.spec.datacenters = datacenters.iter().map(|name| (*name).to_owned()).collect();
                s.nodes = vec![node("DC0_C0_RP0_VM0")];
            }
        })
    };
    let of = |elsewhere, datacenters: &[&str]| Other {
        elsewhere,
        datacenters: datacenters.iter().map(|name| (*name).to_owned()).collect(),
    };
    vec![
        other("the same vCenter twice", DuplicateVcenter, "vc2", of(false, &["DC1"]), &["DC0"]),
        other(
            "a datacenter in two connections",
            OverlappingDatacenters,
            "DC0",
            of(false, &[]),
            &["DC0"],
        ),
        other("a machine in two vCenters", MachineInSeveralVcenters, "vm-1", of(true, &[]), &[]),
        case(
            "a datastore that no vCenter has",
            StorageFound,
            DatastoreNotFound,
            "the object does not exist in the vCenters of 1 other connection either",
            |s| {
                s.requirements.others = 1;
                s.other = Some(Other {
                    elsewhere: true,
                    ..Other::default()
                });
                wants(s, "ds:///vmfs/volumes/nowhere/", false);
            },
        ),
    ]
}
