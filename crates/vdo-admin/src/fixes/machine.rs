// SPDX-License-Identifier: Apache-2.0
//! The fixes for a node's machine (`disk.EnableUUID`, hardware version), and the check of the machine right before the change.
//!
//! The check needs the same machine, powered off, with the same hardware version.

use super::{Fix, MachineRef, Step};
use std::borrow::Cow;
use vdo_api::api::Reason;
use vdo_api::types::{Remedy, shell_word};
use vdo_vsphere::vsphere::{Advice, AdviceLine, Inventory, MINIMUM_HARDWARE, NodeReport};

/// The setting that makes disks known by their serial numbers, as the vendor writes it. A vCenter does not distinguish letter case.
pub const ENABLE_UUID: &str = "disk.EnableUUID";

/// The finding of a node with this reason, and its machine.
fn found(report: &NodeReport, inventory: &Inventory, reason: Reason) -> Option<(String, MachineRef)> {
    let finding = report.findings.iter().find(|finding| finding.reason == reason)?;
    let machine = inventory.machines.get(report.at?)?;
    let reference = MachineRef {
        id: machine.id.clone(),
        instance_uuid: machine.instance_uuid.clone(),
        path: machine.path.clone(),
    };
    Some((finding.message.clone(), reference))
}

pub(super) fn setting(report: &NodeReport, inventory: &Inventory) -> Option<Fix> {
    let reason = Reason::DiskUuidDisabled;
    let (message, machine) = found(report, inventory, reason)?;
    let by_hand = power_off(report);
    let step = Step::SetDiskUuid {
        machine,
        value: Some("TRUE".into()),
        before: None,
    };
    Some(Fix {
        reason,
        message,
        steps: by_hand.is_empty().then_some(step).into_iter().collect(),
        by_hand,
    })
}

pub(super) fn hardware(report: &NodeReport, inventory: &Inventory, is_allowed: bool) -> Option<Fix> {
    let reason = Reason::HardwareVersionTooOld;
    let (message, machine) = found(report, inventory, reason)?;
    let by_hand = match (is_allowed, report.snapshot) {
        (false, _) => "An upgrade of the hardware cannot be undone. Allow the upgrade with --allow hardware-version.".into(),
        (true, true) => Advice::run(
            "A machine with a snapshot cannot be upgraded. Remove the snapshot with the command below, then run the fix again:",
            format!("govc snapshot.remove -vm {} '*'", shell_word(&machine.path)),
        ),
        (true, false) => power_off(report),
    };
    let step = Step::UpgradeHardware {
        machine,
        from: report.hardware.clone(),
        to: format!("vmx-{MINIMUM_HARDWARE}"),
    };
    Some(Fix {
        reason,
        message,
        steps: by_hand.is_empty().then_some(step).into_iter().collect(),
        by_hand,
    })
}

/// How a machine is powered off without harm for what runs there; nothing where it is off.
fn power_off(report: &NodeReport) -> Advice {
    if report.power == "poweredOff" {
        return Advice::default();
    }
    let (node, machine) = (shell_word(&report.node), shell_word(&report.machine));
    Advice::of([
        AdviceLine::Text(format!(
            "The machine is {}. Power off the machine with the commands below, then run the fix again:",
            report.power
        )),
        AdviceLine::Verbatim(format!("kubectl drain {node} --ignore-daemonsets --delete-emptydir-data")),
        AdviceLine::Verbatim(format!("govc vm.power -s {machine}")),
        AdviceLine::Text("Afterwards:".into()),
        AdviceLine::Verbatim(format!("govc vm.power -on {machine}")),
        AdviceLine::Verbatim(format!("kubectl uncordon {node}")),
    ])
}

/// A machine right before it is changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineState {
    /// Its instance UUID.
    pub instance_uuid: String,
    /// The power state, such as `poweredOn`.
    pub power: String,
    /// The hardware version, such as `vmx-19`.
    pub hardware: String,
    /// `disk.EnableUUID` as it is written; `None` where it was never set.
    pub disk_uuid: Option<String>,
    /// The version of its configuration, with which a vCenter notices that another user has changed it.
    pub version: String,
}

/// Why a machine is not changed now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It was deleted, or its identifier belongs to another machine now.
    #[error("machine {path} no longer exists")]
    Gone {
        /// Its path when the step was planned.
        path: String,
    },
    /// It runs.
    #[error("machine {path} is {power}; it must be powered off")]
    NotOff {
        /// Its path.
        path: String,
        /// The power state.
        power: String,
    },
    /// Another user has changed the hardware version.
    #[error("machine {path} now has hardware version {found} instead of {expected}")]
    OtherHardware {
        /// Its path.
        path: String,
        /// The version that was expected.
        expected: String,
        /// The version that it has.
        found: String,
    },
}

impl Remedy for Unfit {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Self::Gone { .. } => "Nothing was changed. vdoctl doctor nodes shows the machines of the nodes.",
            Self::NotOff { .. } => "Power off the machine and run the same command again; nothing was changed.",
            Self::OtherHardware { .. } => "Another user has upgraded the machine meanwhile; nothing was changed.",
        };
        Some(remedy.into())
    }
}

/// Checks that a machine is still what a step was planned for. What was planned minutes ago may be powered on, upgraded or deleted.
///
/// # Errors
/// When it is not. Nothing may be changed then.
pub fn check_machine(step: &Step, state: Option<&MachineState>) -> Result<(), Unfit> {
    let Some(machine) = step.machine() else { return Ok(()) };
    let path = machine.path.clone();
    let Some(state) = state.filter(|state| state.instance_uuid == machine.instance_uuid) else {
        return Err(Unfit::Gone { path });
    };
    if state.power != "poweredOff" {
        let power = state.power.clone();
        return Err(Unfit::NotOff { path, power });
    }
    match step {
        Step::UpgradeHardware { from, .. } if *from != state.hardware => Err(Unfit::OtherHardware {
            path,
            expected: from.clone(),
            found: state.hardware.clone(),
        }),
        _ => Ok(()),
    }
}
