// SPDX-License-Identifier: Apache-2.0
//! The proof that a person asked for changes in a vCenter, without which no administrator session opens.

/// That a person has asked for changes in a vCenter. The port that writes there cannot be opened without it.
///
/// Only the command line gives it: the operator does not depend on this crate.
#[derive(Debug)]
pub struct Consent(());

impl Consent {
    /// A person has given the administrator's credentials for this command.
    #[must_use]
    pub const fn given() -> Self {
        Self(())
    }
}
