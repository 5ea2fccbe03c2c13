// SPDX-License-Identifier: Apache-2.0
//! The type `Held`: a version change that waits, for example for a maintenance window, and the version that stays installed until then.

use super::rejection::{Rejected, Rejection};
use super::resolve::DriverRequest;
use vdo_api::types::DriverVersion;

/// A change of a version that is not made yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The version that stays.
    pub at: DriverVersion,
    /// The one that would be chosen.
    pub before: DriverVersion,
    /// Until when, or for what it waits, as the end of "waits".
    pub waits: String,
}

impl Held {
    /// The version that would be chosen, where a change is held. A pin is not.
    pub(super) fn rejected(request: Option<&DriverRequest>) -> Option<Rejected> {
        let request = request.filter(|request| request.pin.is_none())?;
        let Self { before, waits, .. } = request.held.as_ref()?;
        Some(Rejected {
            version: before.clone(),
            reason: Rejection::Held { waits: waits.clone() },
        })
    }
}
