// SPDX-License-Identifier: Apache-2.0
//! Certificates: the facts of a vCenter's certificate, and the serving certificate of the CSI driver's validating webhook, which is issued,
//! verified and rotated without a gap in trust.
//!
//! ```text
//! facts      thumbprints, dates and names of a presented certificate
//! state      the stored Secret
//! verify     whether a certificate is valid now
//! rotation   state x time -> the next step
//! issue      a new authority with its one certificate
//! ```

mod facts;
mod issue;
mod rotation;
mod state;
mod verify;

pub use facts::CertificateFacts;
pub use issue::{LIFE, issue};
pub use rotation::{Action, Known, SETTLE, decide};
pub use state::{Pair, SECRET, State};
pub use verify::{Validity, verify, verify_pair};
