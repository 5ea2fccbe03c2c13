// SPDX-License-Identifier: Apache-2.0
//! One change of a machine or tag in a vCenter, its privilege, and whether it can be undone; `accounts/step.rs` has roles and users.

use super::MachineState;
use serde::{Deserialize, Serialize};
use std::fmt;
use vdo_vsphere::vsphere::ManagedObject;

/// The identity of a virtual machine, which stays the same when the machine is moved or renamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineRef {
    /// The identifier of the machine.
    pub id: String,
    /// The instance UUID of the machine, which no other machine has.
    pub instance_uuid: String,
    /// The inventory path of the machine when the step was planned.
    pub path: String,
}

impl MachineRef {
    /// The managed object.
    #[must_use]
    pub fn object(&self) -> ManagedObject {
        ManagedObject {
            kind: "VirtualMachine".into(),
            id: self.id.clone(),
        }
    }
}

/// One change in a vCenter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "step", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Step {
    /// `disk.EnableUUID` of a machine gets a value. Without a value, the setting is removed.
    SetDiskUuid {
        /// The machine.
        machine: MachineRef,
        /// The value.
        value: Option<String>,
        /// The previous value, which is known after the step was made.
        before: Option<String>,
    },
    /// A machine gets a newer hardware version. This step cannot be undone.
    UpgradeHardware {
        /// The machine.
        machine: MachineRef,
        /// The previous version, such as `vmx-13`.
        from: String,
        /// The new version.
        to: String,
    },
    /// A tag category is created.
    CreateCategory {
        /// The name of the category.
        category: String,
    },
    /// A tag is created.
    CreateTag {
        /// The category of the tag.
        category: String,
        /// The name of the tag.
        tag: String,
    },
    /// A tag is attached to an object.
    AttachTag {
        /// The category of the tag.
        category: String,
        /// The tag.
        tag: String,
        /// The object.
        object: ManagedObject,
        /// The inventory path of the object.
        path: String,
    },
    /// A tag is detached from an object.
    DetachTag {
        /// The category of the tag.
        category: String,
        /// The tag.
        tag: String,
        /// The object.
        object: ManagedObject,
        /// The inventory path of the object.
        path: String,
    },
    /// A tag is deleted.
    DeleteTag {
        /// The category of the tag.
        category: String,
        /// The name of the tag.
        tag: String,
    },
    /// A tag category is deleted.
    DeleteCategory {
        /// The name of the category.
        category: String,
    },
}

/// What a step is about; the steps of one subject are consented to together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A setting of the machine with this identifier.
    Setting(String),
    /// The hardware of the machine with this identifier.
    Hardware(String),
    /// The tag category of this name.
    Category(String),
}

impl Step {
    /// What it is about.
    #[must_use]
    pub fn subject(&self) -> Subject {
        match self {
            Self::SetDiskUuid { machine, .. } => Subject::Setting(machine.id.clone()),
            Self::UpgradeHardware { machine, .. } => Subject::Hardware(machine.id.clone()),
            Self::CreateCategory { category }
            | Self::CreateTag { category, .. }
            | Self::AttachTag { category, .. }
            | Self::DetachTag { category, .. }
            | Self::DeleteTag { category, .. }
            | Self::DeleteCategory { category } => Subject::Category(category.clone()),
        }
    }

    /// It, with what was there before, as it was seen right before it is made.
    #[must_use]
    pub fn after(&self, seen: Option<&MachineState>) -> Self {
        let mut step = self.clone();
        if let (Self::SetDiskUuid { before, .. }, Some(seen)) = (&mut step, seen) {
            before.clone_from(&seen.disk_uuid);
        }
        step
    }

    /// The machine that it changes, if it changes one.
    #[must_use]
    pub fn machine(&self) -> Option<&MachineRef> {
        match self {
            Self::SetDiskUuid { machine, .. } | Self::UpgradeHardware { machine, .. } => Some(machine),
            _ => None,
        }
    }

    /// Whether another step leads back.
    #[must_use]
    pub fn is_reversible(&self) -> bool {
        !matches!(self, Self::UpgradeHardware { .. })
    }

    /// Whether it changes the same thing as another one, so that only the newer one can be undone.
    #[must_use]
    pub fn replaces(&self, older: &Self) -> bool {
        match (self, older) {
            (Self::SetDiskUuid { machine, .. }, Self::SetDiskUuid { machine: other, .. }) => machine.id == other.id,
            _ => self == older,
        }
    }

    /// Whether it can only be made once the other one is: a tag needs its category, and is attached once it is there.
    #[must_use]
    pub fn needs(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::CreateTag { category: own, .. } | Self::AttachTag { category: own, .. }, Self::CreateCategory { category }) => {
                own == category
            }
            (
                Self::AttachTag {
                    category: own, tag: name, ..
                },
                Self::CreateTag { category, tag },
            ) => own == category && name == tag,
            _ => false,
        }
    }

    /// The privilege that it needs, and on what.
    #[must_use]
    pub fn privilege(&self) -> (&'static str, &str) {
        const ROOT: &str = "the root folder";
        match self {
            Self::SetDiskUuid { machine, .. } => ("VirtualMachine.Config.AdvancedConfig", &machine.path),
            Self::UpgradeHardware { machine, .. } => ("VirtualMachine.Config.UpgradeVirtualHardware", &machine.path),
            Self::CreateCategory { .. } => ("InventoryService.Tagging.CreateCategory", ROOT),
            Self::CreateTag { .. } => ("InventoryService.Tagging.CreateTag", ROOT),
            Self::AttachTag { path, .. } | Self::DetachTag { path, .. } => ("InventoryService.Tagging.AttachTag", path),
            Self::DeleteTag { .. } => ("InventoryService.Tagging.DeleteTag", ROOT),
            Self::DeleteCategory { .. } => ("InventoryService.Tagging.DeleteCategory", ROOT),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetDiskUuid {
                machine,
                value: Some(value),
                ..
            } => write!(f, "set disk.EnableUUID={value} on VirtualMachine {}", machine.path),
            Self::SetDiskUuid { machine, .. } => write!(f, "remove disk.EnableUUID from VirtualMachine {}", machine.path),
            Self::UpgradeHardware { machine, from, to } => {
                write!(
                    f,
                    "upgrade the hardware of VirtualMachine {} from {from} to {to} (cannot be undone)",
                    machine.path
                )
            }
            Self::CreateCategory { category } => write!(f, "create tag category {category}"),
            Self::CreateTag { category, tag } => write!(f, "create tag {tag} in category {category}"),
            Self::AttachTag {
                category,
                tag,
                object,
                path,
            } => write!(f, "attach tag {tag} of category {category} to {} {path}", object.kind),
            Self::DetachTag {
                category,
                tag,
                object,
                path,
            } => write!(f, "detach tag {tag} of category {category} from {} {path}", object.kind),
            Self::DeleteTag { category, tag } => write!(f, "delete tag {tag} of category {category}"),
            Self::DeleteCategory { category } => write!(f, "delete tag category {category}"),
        }
    }
}
