// SPDX-License-Identifier: Apache-2.0
//! Whether a machine is still fit for a planned step, checked right before the change: same machine, powered off, same hardware.

use super::Step;
use std::borrow::Cow;
use vdo_api::types::Remedy;

/// The setting that makes disks known by their serial numbers, as the vendor writes it. A vCenter does not distinguish letter case.
pub const ENABLE_UUID: &str = "disk.EnableUUID";

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
