// SPDX-License-Identifier: Apache-2.0
//! Exports calls, requests, parsers and limits of this module to `vdo-admin`, whose sessions also change a vCenter.

pub use super::call::Caller;
pub use super::fault::Fault;
pub use super::http::Answer;
pub use super::inspection_limits::Held;
pub use super::inventory::{pages, properties};
pub use super::inventory_objects::Item;
pub use super::offload::{Unread, Work};
pub use super::requests::{Operation, Place, VIM, element, escaped, refer};
pub use super::response::denied;
pub use super::tags::{Call, MANY, MOST, RestCall, checked, dialect, text, texts};
pub use super::xml::{Element, Tree};

/// Identifiers and names of a vCenter, checked before they are used in a request.
pub mod identifiers {
    pub use super::super::identifiers::{identifier, name, reference, segment};
}

/// Storage policies.
pub mod policies {
    pub use super::super::policies::datastores;
}

/// What an account may do.
pub mod privileges {
    pub use super::super::privileges::{ask, effective};
}

/// Documents of the protocol.
pub mod xml {
    pub use super::super::xml::{SOAP, SSO, parse};
}
